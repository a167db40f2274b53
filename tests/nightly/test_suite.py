"""Suite files: what they may say, what they mean, and what is refused with its line."""

import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.nightly.night import night_plan, night_seed, resolve
from benchctl.nightly.suite import Suite, load_suite
from benchctl.results.plan import VariantSpec
from benchctl.run.form import documents_of
from benchctl.spec import DEFAULT_FORKS, MAX_SEED
from benchctl.stats.metrics import metrics_of
from builders import make_plan
from golden import Cases

LEAST = "variants: [es@8.19.0]\nchallenges: [range-only]\n"


def write(folder: Path, text: str, name: str = "search.yml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def suite_of(folder: Path, text: str) -> Suite:
    return load_suite(write(folder, text))


def test_a_suite_needs_little_and_is_called_like_its_file(tmp_path: Path):
    suite = suite_of(tmp_path, LEAST)
    assert suite.challenges == ("range-only",)
    assert suite.track == "big5"
    assert suite.forks == DEFAULT_FORKS
    assert suite.seed is None
    assert suite.budget_s is None
    assert suite.canary is None
    assert suite.margins == {}
    assert suite.notify is None


def test_amounts_are_read(tmp_path: Path):
    text = "budget: 1.5h\nheap: 2g\ndocs: 300k\nseed: 7\n"
    text += "margins: {throughput: 4%, service_time_p99: 10%, latency: 8%}\n"
    suite = suite_of(tmp_path, LEAST + text)
    assert suite.budget_s == 5400
    assert (suite.heap, documents_of(suite)) == ("2g", 300_000)
    assert suite.margins == {"throughput": 0.04, "service_time_p99": 0.1, "latency_p90": 0.08}
    assert suite.seed == 7
    assert documents_of(suite_of(tmp_path, LEAST + "docs: 20000\n")) == 20_000


def test_variants_come_before_the_canary_and_know_their_place(tmp_path: Path):
    text = "variants: [es@latest, 'mine=es,jdk:17']\ncanary: old=es@8.11.0\nchallenges: [test]\n"
    suite = suite_of(tmp_path, text)
    assert suite.members == [
        ("es@latest", ("variants", 0)),
        ("mine=es,jdk:17", ("variants", 1)),
        ("old=es@8.11.0", ("canary",)),
    ]
    assert [spec.jdk for spec in suite.specs] == [None, "17", None]


def test_paths_are_relative_to_the_suite_file(tmp_path: Path):
    (tmp_path / "here").mkdir()
    text = (
        "variants:\n"
        "  - mine=es,distribution:build/es.tar.gz,jdk:jdks/22\n"
        "  - other=es,distribution:https://host/es.zip,jdk:21\n"
        "challenges: [range-only, sub/mine, mine.json, own-of-track]\n"
        "warmup-challenges: [./warm.json]\n"
        "track: here\ncorpus: docs.json\ncorpus-dirs: [more, /data]\n"
        "hosts: hosts.yml\n"
    )
    suite = suite_of(tmp_path, text)
    assert suite.variants == (
        f"mine=es,distribution:{tmp_path}/build/es.tar.gz,jdk:{tmp_path}/jdks/22",
        "other=es,distribution:https://host/es.zip,jdk:21",
    )
    assert suite.challenges == (
        "range-only",
        str(tmp_path / "sub/mine"),
        str(tmp_path / "mine.json"),
        "own-of-track",
    )
    assert suite.warmup_challenges == (str(tmp_path / "warm.json"),)
    assert suite.track == str(tmp_path / "here")
    assert suite.corpus == str(tmp_path / "docs.json")
    assert suite.corpus_dirs == (str(tmp_path / "more"), "/data")
    assert suite.hosts == str(tmp_path / "hosts.yml")


def test_paths_within_a_variant_are_relative_to_the_suite_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir("/")
    (tmp_path / "mine.jar").touch()
    (tmp_path / "extra.zip").touch()
    text = (
        "variants:\n"
        "  - a=es,jar:mine.jar,jdk:jdks/22,plugin:./extra.zip,warmup:warm.json,jvm:-Xlog:gc,safepoint\n"
        "  - b=es,jar:mine.jar,jar:patched:bulk-visit,jdk:17\n"
        "canary: c=es@8.11.0,distribution:https://host/es.zip,warmup:warmup,jdk:17\n"
        "challenges: [range-only]\n"
    )
    suite = suite_of(tmp_path, text)
    specs = suite.specs
    assert specs[0].jars == (str(tmp_path / "mine.jar"),)
    assert specs[0].jdk == str(tmp_path / "jdks/22")
    assert specs[0].plugins == (str(tmp_path / "extra.zip"),)
    assert specs[0].warmups == (str(tmp_path / "warm.json"),)
    assert specs[0].jvm_flags == ("-Xlog:gc,safepoint",)
    assert specs[1].jars == (str(tmp_path / "mine.jar"), "patched:bulk-visit")
    assert [spec.jdk for spec in specs[1:]] == ["17", "17"]
    assert (specs[2].distribution, specs[2].warmups) == ("https://host/es.zip", ("warmup",))


def test_what_comes_with_benchctl_goes_before_files_of_the_same_name(tmp_path: Path):
    (tmp_path / "range-only").mkdir()
    (tmp_path / "big5").mkdir()
    (tmp_path / "mine").mkdir()
    suite = suite_of(tmp_path, "variants: [es]\nchallenges: [range-only, mine]\ntrack: big5\n")
    assert suite.challenges == ("range-only", str(tmp_path / "mine"))
    assert suite.track == "big5"


def test_what_is_wrong_is_refused_with_its_line(cases: Cases, tmp_path: Path):
    cases("suite", lambda text: suite_of(tmp_path, text), tmp_path)


@pytest.mark.parametrize("name", ["My Suite.yml", "_.yml", f"{'x' * 61}.yml"])
def test_a_suite_is_called_like_its_file_which_can_name_a_directory(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="cannot be the name of a suite"):
        load_suite(write(tmp_path, LEAST, name))


def test_the_template_is_a_suite(tmp_path: Path):
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    assert [spec.name for spec in suite_of(tmp_path, text).specs] == ["es@latest", "os@latest", "canary"]


def test_nights_may_be_judged_by_other_metrics(tmp_path: Path):
    suite = suite_of(tmp_path, f"{LEAST}metrics: throughput, cpu\nmargins: {{cpu: 3%}}\n")
    plan = msgspec.structs.replace(make_plan(), metrics=suite.metrics)
    task = plan.schedules[0].schedule[0]
    assert [one.key for one in metrics_of(plan, task)] == ["throughput", "cpu"]


def test_everything_that_the_template_has_in_comments_can_be_taken_in(tmp_path: Path):
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    setting = re.compile(r"^( *)# (( *- )?( *[a-z_0-9-]+:( .*)?)|- (es-noinline|mine)=.*)$", re.MULTILINE)
    suite = suite_of(tmp_path, setting.sub(r"\1\2", text))
    assert suite.notify is not None
    assert suite.notify.title == "webhook $CHAT_WEBHOOK"
    names = [spec.name for spec in suite.specs]
    assert names == ["es@latest", "os@latest", "es-noinline", "mine", "canary"]
    # All that a suite has is in the template, but for what it refuses.
    assert {name for name in text.replace("#", " ").split() if name.endswith(":")} >= {
        f"{field}:" for field in _keys(Suite) if field not in {"sweep", "evidence"}
    }


def test_the_template_has_the_defaults_that_it_says(tmp_path: Path):
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    template, least = suite_of(tmp_path, text), suite_of(tmp_path, LEAST)
    same = ("confirm_forks", "on_busy", "host", "raw_nights", "forks", "restart", "track")
    assert {name: getattr(template, name) for name in same} == {name: getattr(least, name) for name in same}


def _keys(kind: type[Suite]) -> list[str]:
    return list(kind.__struct_encode_fields__)


# A suite into a night's plan.


TEXT = """
variants: [es@latest, 'mine=es@9.1.0,distribution:build']
canary: old=es@8.11.0
challenges: [range-only, big5rangedebug]
warmup-challenges: [warmup]
restart: never
params: {iterations: 30, range-only.iterations: 7}
include-tasks: range
exclude-tasks: desc_sort_timestamp
docs: 20k
corpus-seed: 3
heap: 512m
segments: 2
ingest-clients: 1
index-builds: 2
workers: 3
forks: 4
on-error: abort
assertions: false
"""


def resolved(suite: Suite) -> tuple[VariantSpec, ...]:
    return resolve(suite, newest=lambda _: "9.9.9")


def test_variants_are_called_as_in_the_suite_whatever_version_that_is(tmp_path: Path):
    assert resolved(suite_of(tmp_path, TEXT)) == (
        VariantSpec("es@latest", "elasticsearch", "9.9.9"),
        VariantSpec("mine", "elasticsearch", "9.1.0", distribution=str(tmp_path / "build")),
        VariantSpec("old", "elasticsearch", "8.11.0"),
    )


def test_all_of_the_suite_reaches_the_plan(tmp_path: Path):
    suite = suite_of(tmp_path, TEXT)
    specs = resolved(suite)
    plan, _, _ = night_plan(suite, "search", 42, specs, Home(tmp_path))
    assert plan.variants == specs
    assert [challenge.name for challenge in plan.schedules] == ["range-only", "big5rangedebug"]
    assert [challenge.name for challenge in plan.warmup_challenges] == ["warmup"]
    assert [[(task.label, task.iterations) for task in one.schedule] for one in plan.schedules] == [
        [("range", 7)],
        [("range", 30)],
    ]
    assert (plan.include_tasks, plan.exclude_tasks) == ("range", "desc_sort_timestamp")
    assert (plan.restart, plan.heap_mb) == ("never", 512)
    assert (plan.corpus.documents, plan.corpus.seed) == (20_000, 3)
    assert (plan.segments, plan.ingest_clients, plan.index_builds) == (2, 1, 2)
    assert (plan.workers, plan.forks) == (3, 4)
    assert (plan.on_error, plan.assertions) == ("abort", False)
    assert (plan.seed, plan.stop) == (night_seed(suite, "search", 42), None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("variants: [es]\nchallenges: [nowhere.json]\n", "nowhere.json"),
        ("variants: [es]\nchallenges: [test]\npin: node=1\n", "--pin"),
    ],
)
def test_what_does_not_fit_track_or_host_is_refused_before_anything_starts(
    tmp_path: Path, text: str, said: str
):
    suite = suite_of(tmp_path, text)
    with pytest.raises(UsageError, match=said):
        night_plan(suite, "search", 1, resolved(suite), Home(tmp_path))


def test_every_night_has_another_seed_and_always_the_same(tmp_path: Path):
    suite = suite_of(tmp_path, LEAST)
    seeds = [night_seed(suite, "search", night) for night in range(1, 1001)]
    assert seeds == [night_seed(suite, "search", night) for night in range(1, 1001)]
    assert len(set(seeds)) == 1000
    assert all(0 <= seed < MAX_SEED for seed in seeds)
    suite = suite_of(tmp_path, f"{LEAST}seed: 0\n")
    assert {night_seed(suite, "search", night) for night in range(1, 9)} == {0}

"""Suite files: what they may say, what they mean, and what is refused with its line."""

import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.nightly.suite import Suite, check_challenges, load_suite
from benchctl.run.form import documents_of
from benchctl.spec import DEFAULT_FORKS
from benchctl.stats.history import metrics_of
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
    assert suite.name == "search"
    assert suite.challenges == ("range-only",)
    assert suite.track == "big5"
    assert suite.forks == DEFAULT_FORKS
    assert suite.seed is None
    assert suite.budget_s is None
    assert suite.canaries == ()
    assert suite.margins == {}
    assert suite.runs is None


def test_amounts_are_read(tmp_path: Path):
    text = "budget: 1.5h\nheap: 2g\ndocs: 300k\nseed: 7\n"
    text += "margins: {throughput: 4%, service_time_p99: 10%, latency: 8%}\n"
    suite = suite_of(tmp_path, LEAST + text)
    assert suite.budget_s == 5400
    assert (suite.heap, documents_of(suite)) == ("2g", 300_000)
    assert suite.margins == {"throughput": 0.04, "service_time_p99": 0.1, "latency_p90": 0.08}
    assert suite.seed == 7
    assert documents_of(suite_of(tmp_path, LEAST + "docs: 20000\n")) == 20_000


def test_variants_come_before_canaries_and_know_their_place(tmp_path: Path):
    text = "variants: [es@latest, 'mine=es,jdk:17']\ncanary: old=es@8.11.0\nchallenges: [test]\n"
    suite = suite_of(tmp_path, text)
    members = list(suite.members())
    assert [(role, variant) for role, variant, _ in members] == [
        ("watched", "es@latest"),
        ("watched", "mine=es,jdk:17"),
        ("canary", "old=es@8.11.0"),
    ]
    assert suite.spec_of(members[1][1]).jdk == "17"


def test_several_canaries_may_be_given(tmp_path: Path):
    suite = suite_of(tmp_path, f"{LEAST}canary: [c1=es@8.11.0, c2=os@2.11.0]\n")
    assert [variant for role, variant, _ in suite.members() if role == "canary"] == [
        "c1=es@8.11.0",
        "c2=os@2.11.0",
    ]


def test_paths_are_relative_to_the_suite_file(tmp_path: Path):
    (tmp_path / "here").mkdir()
    text = (
        "variants:\n"
        "  - mine=es,distribution:build/es.tar.gz,jdk:jdks/22\n"
        "  - other=es,distribution:https://host/es.zip,jdk:21\n"
        "challenges: [range-only, sub/mine, mine.json, own-of-track]\n"
        "warmup-challenges: [./warm.json]\n"
        "track: here\ncorpus: docs.json\ncorpus-dirs: [more, /data]\nruns: ../runs\n"
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
    named = suite_of(tmp_path, text.replace("corpus: docs", "corpus: logs=docs"))
    assert named.corpus == f"logs={tmp_path / 'docs.json'}"
    assert suite.corpus_dirs == (str(tmp_path / "more"), "/data")
    assert suite.hosts == str(tmp_path / "hosts.yml")
    assert suite.runs == str(tmp_path / "../runs")


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
    specs = [suite.spec_of(variant) for _, variant, _ in suite.members()]
    assert specs[0].jars == (str(tmp_path / "mine.jar"),)
    assert specs[0].jdk == str(tmp_path / "jdks/22")
    assert specs[0].plugins == (str(tmp_path / "extra.zip"),)
    assert specs[0].warmups == (str(tmp_path / "warm.json"),)
    assert specs[0].jvm_flags == ("-Xlog:gc,safepoint",)
    assert specs[1].jars == (str(tmp_path / "mine.jar"), "patched:bulk-visit")
    assert [spec.jdk for spec in specs[1:]] == ["17", "17"]
    assert (specs[2].distribution, specs[2].warmups) == ("https://host/es.zip", ("warmup",))


def test_microbenchmarks_are_watched_with_jars_beside_the_suite(tmp_path: Path):
    (tmp_path / "Sum.java").write_text("class Sum {}\n")
    text = """
variants: [plain, "own=jar:lib/own.jar,jar:a.b:c:1,jvm:-XX:-Inline"]
canary: canary=jvm:-Xint
micro: {source: Sum.java, params: {size: [1]}}
margins: {op_time: 3%}
"""
    suite = suite_of(tmp_path, text)
    assert suite.micro is not None
    assert suite.micro.spec(Path()).source == str(tmp_path / "Sum.java")
    specs = [suite.spec_of(variant) for _, variant, _ in suite.members()]
    assert [(one.name, one.engine) for one in specs] == [("plain", "jvm"), ("own", "jvm"), ("canary", "jvm")]
    assert specs[1].jars == (str(tmp_path / "lib" / "own.jar"), "a.b:c:1")


def test_what_comes_with_benchctl_goes_before_files_of_the_same_name(tmp_path: Path):
    (tmp_path / "range-only").mkdir()
    (tmp_path / "big5").mkdir()
    (tmp_path / "mine").mkdir()
    suite = suite_of(tmp_path, "variants: [es]\nchallenges: [range-only, mine]\ntrack: big5\n")
    assert suite.challenges == ("range-only", str(tmp_path / "mine"))
    assert suite.track == "big5"


def test_what_is_wrong_is_refused_with_its_line(cases: Cases, tmp_path: Path):
    cases("suite", lambda text: suite_of(tmp_path, text), tmp_path)


def test_a_file_whose_name_cannot_be_a_suites_needs_one_within(tmp_path: Path):
    path = write(tmp_path, LEAST, "My Suite.yml")
    with pytest.raises(
        UsageError, match="the file's name, 'My Suite', cannot be that of the suite"
    ) as caught:
        load_suite(path)
    assert "name: search" in caught.value.hint
    path.write_text(f"{LEAST}name: mine\n", encoding="utf-8")
    assert load_suite(path).name == "mine"


def test_a_night_may_follow_the_pollution(tmp_path: Path):
    text = f"{LEAST}warmup-challenges: [polluted]\n"
    path = write(tmp_path, text)
    check_challenges(path, load_suite(path))
    path = write(tmp_path, text.replace("polluted", "poluted"))
    with pytest.raises(UsageError) as caught:
        check_challenges(path, load_suite(path))
    assert "'polluted'" in caught.value.hint


def test_a_night_does_not_sweep(tmp_path: Path):
    with pytest.raises(UsageError, match="a night watches figures, and a sweep draws curves"):
        suite_of(tmp_path, f"{LEAST}sweep: ['clients=1,2']\n")


def test_the_template_is_a_suite(tmp_path: Path):
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    suite = suite_of(tmp_path, text)
    assert [role for role, _, _ in suite.members()] == ["watched", "watched", "canary"]


def test_nights_may_be_judged_by_other_metrics(tmp_path: Path):
    suite = suite_of(tmp_path, f"{LEAST}metrics: throughput, cpu\nmargins: {{cpu: 3%}}\n")
    plan = msgspec.structs.replace(make_plan(), metrics=suite.metrics)
    task = plan.schedules[0].schedule[0]
    assert [one.key for one in metrics_of(plan, task)] == ["throughput", "cpu"]


def test_everything_that_the_template_has_in_comments_can_be_taken_in(tmp_path: Path):
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    setting = re.compile(r"^( *)# (( *- )?( *[a-z_0-9-]+:( .*)?)|- (es-noinline|mine)=.*)$", re.MULTILINE)
    suite = suite_of(tmp_path, setting.sub(r"\1\2", text))
    assert {spec.title for spec in suite.notify} == {
        "command ./notify.sh",
        "webhook $CHAT_WEBHOOK",
        "webhook ci.example.org",
    }
    assert [suite.spec_of(variant).name for _, variant, _ in suite.members()] == [
        "es@latest",
        "os@latest",
        "es-noinline",
        "mine",
        "canary",
    ]
    # All that a suite has is in the template, but for what it refuses.
    assert {name for name in text.replace("#", " ").split() if name.endswith(":")} >= {
        f"{field}:" for field in _keys(Suite) if field not in {"sweep", "evidence"}
    }


def test_the_template_has_the_defaults_that_it_says(tmp_path: Path):
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    template, least = suite_of(tmp_path, text), suite_of(tmp_path, LEAST)
    same = ("confirm", "on_busy", "on_cut_off", "host", "retention", "forks", "restart", "track")
    assert {name: getattr(template, name) for name in same} == {name: getattr(least, name) for name in same}


def _keys(kind: type[Suite]) -> list[str]:
    return list(kind.__struct_encode_fields__)

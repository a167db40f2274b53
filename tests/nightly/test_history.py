"""Values of nights from their runs, what makes nights comparable, and what changed between two."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.nightly.records import SeriesKey
from benchctl.nightly.series import changes, era_of, fork_values, read_runs, same_engine, task_names
from benchctl.results.figures import Quantiles
from benchctl.results.model import RunRecord
from benchctl.results.plan import CorpusFile, PinSpec, Plan
from benchctl.results.store import RunStore
from benchctl.track.library import TrackSource
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task, Track
from builders import CORPUS, NS_PER_MS, make_environment, make_fork, make_plan, make_record, make_summary
from nightly.made import night, run


def measured(*tasks: Task, metrics: str = "", **summary: object) -> RunRecord:
    """One fork of es, whose summaries are all alike."""
    summaries = [
        make_summary(task.label, 2.0, **{"task": place} | summary) for place, task in enumerate(tasks)
    ]
    return make_record(
        plan=make_plan(schedules=(Challenge("c", tasks),), metrics=metrics),
        forks=(make_fork("es", 0, *summaries),),
    )


def values(record: RunRecord) -> dict[str, float]:
    return {key.metric: value for key, _, value in fork_values(record)}


def test_a_value_has_its_series_and_unit():
    (throughput, service) = fork_values(measured(Task("range")))
    key, metric, value = throughput
    assert (key, metric.unit, value) == (SeriesKey("es", "c", "range", "throughput"), "queries/s", 500.0)
    assert (service[0].metric, service[1].unit, service[2]) == ("service_time_p90", "ms", pytest.approx(2.2))


def test_a_throttled_task_is_followed_by_latency_and_not_by_what_was_asked_for():
    latency = Quantiles(*(5 * NS_PER_MS,) * 3)
    found = values(measured(Task("range", target_throughput=10.0), latency=latency))
    assert found == {"service_time_p90": pytest.approx(2.2), "latency_p90": 5.0}


@pytest.mark.parametrize("value", [None, 0.0, -1.0, math.nan, math.inf])
def test_what_has_no_value_is_left_out(value: float | None):
    assert values(measured(Task("range"), throughput_per_s=value, service_time=None)) == {}


def test_zeros_count_where_a_metric_may_be_0_and_nowhere_else():
    assert values(measured(Task("range"), metrics="gc,cpu", meters={"gc": 0.0, "cpu": 0.0})) == {"gc": 0.0}


def test_failed_forks_and_hidden_tasks_have_none():
    record = measured(Task("range"))
    failed = make_fork("es", 1, make_summary("range", 2.0), status="failed")
    hidden = make_fork("es", 2, make_summary("range", 2.0, reported=False))
    record = msgspec.structs.replace(record, forks=(*record.forks, failed, hidden))
    assert len(list(fork_values(record))) == 2


def test_challenges_of_one_name_are_told_apart():
    plan = make_plan(
        schedules=(
            Challenge("c", (Task("a"), Task("b"))),
            Challenge("d", (Task("a"),)),
            Challenge("c", (Task("a"),)),
        )
    )
    assert task_names(plan) == {
        (0, 0): ("c (1 of 2)", "a"),
        (0, 1): ("c (1 of 2)", "b"),
        (1, 0): ("d", "a"),
        (2, 0): ("c (2 of 2)", "a"),
    }


def test_runs_become_series_and_one_that_is_gone_is_told(tmp_path: Path):
    store = RunStore(tmp_path)
    for name in ("run-1", "run-3"):
        store.create(name).save(measured(Task("range")))
    told: list[str] = []
    nights = [night(number) for number in (1, 2, 3)] + [night(4, run="")]
    runs, (service, throughput) = read_runs(store, nights, told.append)
    assert [text.split(":")[0] for text in told] == ["night 2 has no values"]
    assert ([*runs], runs[1].forks) == ([1, 3], ())
    assert (service.key.metric, throughput.key.metric) == ("service_time_p90", "throughput")
    assert (throughput.nights.tolist(), throughput.values.tolist()) == ([1, 3], [500.0, 500.0])
    assert throughput.higher_is_better


# What changed.


def on(**host: Any) -> RunRecord:
    return msgspec.structs.replace(run(), environment=make_environment(**host))


def facts(**changed: Any) -> RunRecord:
    record = run()
    return msgspec.structs.replace(
        record, engines=tuple(msgspec.structs.replace(engine, **changed) for engine in record.engines)
    )


def of_commit(changed: str) -> RunRecord:
    source = TrackSource("https://example.org/tracks", "books", "main", "c" * 40, changed)
    return msgspec.structs.replace(run(), plan=make_plan(track_source=source, variants=run().plan.variants))


def test_runs_that_are_alike_have_no_changes():
    assert changes(run(), run()) == ()
    other = msgspec.structs.replace(
        facts(modules=("b", "a")), environment=make_environment(other_java=("x",))
    )
    assert changes(facts(modules=("a", "b")), other) == ()


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (on(kernel="6.2.0"), "kernel 6.1.0 → 6.2.0"),
        (on(governor="performance"), "governor none → performance"),
        (on(memory_bytes=32 * 2**30), "memory 24 GiB → 32 GiB"),
        (on(benchctl_commit="abc"), "benchctl commit none → abc"),
        (of_commit("a" * 40), f"commit of the track none → {'a' * 12}"),
        (run(heap_mb=1024), "es: heap mb none → 1024"),
        (run(settings={"b": 1, "a": "x"}), "es: settings none → a=x b=1"),
        (facts(build="c" * 40), f"es: build b1 → {'c' * 12}"),
        (facts(jvm_flags=("-Xmx1g", "-Xint")), "es: jvm flags none → -Xmx1g -Xint"),
        (facts(jars={"lucene-core.jar": "e" * 64}), f"es: jars none → lucene-core.jar={'e' * 12}"),
    ],
)
def test_changes_of_host_track_and_variants_are_told(now: RunRecord, text: str):
    assert text in changes(run(), now)
    assert text in changes(run(), now, "es")
    assert changes(run(), now, "canary") == changes(run(), now) if not text.startswith("es") else True


def test_of_lists_what_came_and_went_is_told_and_an_order():
    before, after = facts(jvm_flags=("-Xms1g", "-Xmx1g")), facts(jvm_flags=("-Xms1g", "-Xmx2g"))
    assert changes(before, after, "es") == ("es: jvm flags -Xmx1g → -Xmx2g",)
    assert changes(before, facts(jvm_flags=("-Xmx1g", "-Xms1g")), "es") == ("es: jvm flags in another order",)


@pytest.mark.parametrize(
    "other", [run("b2"), run(jvm_flags=("-Xint",)), run(settings={"a": "b"}), facts(jdk="Oracle 22")]
)
def test_what_makes_another_engine(other: RunRecord):
    assert same_engine(run(), on(kernel="7"), "es")
    if other.plan.variants[0].jvm_flags:
        other = msgspec.structs.replace(other, engines=())
    assert not same_engine(run(), other, "es")


# What makes nights comparable.


@pytest.fixture(scope="module")
def track() -> Track:
    return load_track("big5", {})[0]


def era(track: Track, environment: Any = None, **plan: Any) -> str:
    record = make_record(plan=make_plan(**plan), environment=environment or make_environment())
    return era_of(record, track)


SORT = Challenge("c", (Task("desc_sort_timestamp", iterations=3),))


@pytest.mark.parametrize(
    "plan",
    [
        {"heap_mb": 1024},
        {"segments": 2},
        {"workers": 2},
        {"restart": "never"},
        {"schedules": (SORT,)},
        {"warmup_challenges": (SORT,)},
        {"pin": PinSpec((0,), (1,))},
        {"corpus": msgspec.structs.replace(CORPUS, documents=10)},
    ],
)
def test_another_size_challenge_or_corpus_begins_a_new_era(track: Track, plan: dict[str, Any]):
    assert era(track, **plan) != era(track)


def test_another_host_begins_one_and_another_kernel_or_benchctl_does_not(track: Track):
    assert era(track, make_environment(fingerprint="other")) != era(track)
    assert era(track, make_environment(kernel="7", benchctl="9.9")) == era(track)


def test_variants_forks_and_seeds_do_not(track: Track):
    assert era(track, variants=make_plan().variants[::-1], forks=9, seed=7) == era(track)


def test_of_a_track_the_operations_that_are_used_count(track: Track):
    def edited(name: str) -> str:
        operation = msgspec.structs.replace(track.operations[name], name="x")
        other = msgspec.structs.replace(track, operations=track.operations | {name: operation})
        return era_of(make_record(plan=make_plan(track="/elsewhere", track_digest="other")), other)

    assert edited("range") != era(track)
    assert edited("desc_sort_timestamp") == era(track)


def test_files_of_documents_may_lie_anywhere(track: Track):
    def corpus(path: str, digest: str) -> Plan:
        file = CorpusFile(path=path, documents=1, held=1, raw_bytes=1, sha256="s")
        return make_plan(corpus=msgspec.structs.replace(CORPUS, files=(file,), digest=digest))

    eras = {
        name: era_of(make_record(plan=plan), track)
        for name, plan in {"a": corpus("/a", "d"), "b": corpus("/b", "d"), "c": corpus("/a", "e")}.items()
    }
    assert eras["a"] == eras["b"] != eras["c"]

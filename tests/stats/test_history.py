"""What earlier runs say about a plan: whose forks count, how they are pooled, and when there are enough."""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from benchctl.results.model import RunRecord
from benchctl.results.plan import PinSpec, Plan, TargetSpec, VariantSpec
from benchctl.stats.history import ENOUGH_FORKS, History, Noise, collect_history, kind_of
from benchctl.stats.metrics import LATENCY, SERVICE_TIME, THROUGHPUT, Metric, metric
from benchctl.track.model import Challenge, Task
from builders import CORPUS, ES, OS, make_environment, make_fork, make_plan, make_record, make_summary

HOST = make_environment().fingerprint
PLAN = make_plan()
RANGE = (0, 0)
SLOW = msgspec.structs.replace(ES, name="slow", jvm_flags=("-XX:-Inline",))
NEW = make_plan(variants=(msgspec.structs.replace(ES, name="new", jvm_flags=("-Xint",)),))


def run(
    name: str, means: dict[str, Sequence[float]], plan: Plan = PLAN, wall_s: float = 20.0, **changes: Any
) -> RunRecord:
    """A finished run whose forks took these mean service times, ms."""
    forks = [
        make_fork(variant, block, make_summary("range", mean_ms), wall_s=wall_s)
        for variant, values in means.items()
        for block, mean_ms in enumerate(values)
    ]
    return make_record(name, plan=plan, forks=tuple(forks), **changes)


def look(*records: RunRecord, plan: Plan = PLAN) -> History:
    return collect_history(records, plan, HOST)


def noise_of(found: History, metric: Metric, *specs: VariantSpec) -> Noise:
    noise = found.noise(RANGE, metric, *specs)
    assert noise is not None
    return noise


def test_forks_of_the_same_plan_give_its_spread_and_its_time():
    found = look(run("a", {"es": [10, 11, 12], "os": [20, 22, 20]}, wall_s=12.5))
    noise = noise_of(found, SERVICE_TIME, ES)
    assert noise.sd == pytest.approx(statistics.stdev(math.log(value) for value in (10, 11, 12)))
    assert (noise.df, noise.forks, noise.match) == (2, 3, "same")
    assert found.noise(RANGE, THROUGHPUT, OS) is not None
    assert (found.forks, found.runs) == (6, ("a",))
    assert [found.fork_time_s(spec) for spec in PLAN.variants] == [12.5, 12.5]


def test_spread_is_pooled_within_runs_so_that_a_changed_machine_does_not_add_to_it():
    steady = look(run("b", {"es": [10, 11, 12]}), run("a", {"es": [30, 33, 36]}))
    noise = noise_of(steady, SERVICE_TIME, ES)
    assert noise.sd == pytest.approx(statistics.stdev(math.log(value) for value in (10, 11, 12)))
    assert (noise.df, noise.forks) == (4, 6)


def test_without_forks_of_its_own_all_variants_of_the_engine_say_something_each_around_its_own_mean():
    found = look(
        run("a", {"es": [10, 11], "slow": [50, 55, 60]}, make_plan(variants=(ES, SLOW), apart="x")), plan=NEW
    )
    noise = noise_of(found, SERVICE_TIME, NEW.variants[0])
    assert (noise.df, noise.forks, noise.match) == (3, 5, "similar")
    assert (found.forks, found.runs) == (5, ("a",))
    assert [found.fork_time_s(spec) for spec in (*NEW.variants, OS)] == [20.0, None]
    assert found.noise(RANGE, SERVICE_TIME, OS) is None


@pytest.mark.parametrize(
    "traits",
    [
        {"jvm_flags": ("-XX:-Inline",)},
        {"jars": ("patched:bulk-visit",)},
        {"jdk": "17"},
        {"settings": {"a.b": "1"}},
        {"heap_mb": 256},
        {"environment": {"MALLOC_ARENA_MAX": "2"}},
        {"plugins": ("icu.zip",)},
        {"version": "8.19.0"},
    ],
)
def test_forks_of_another_variant_of_the_engine_are_not_mixed_with_its_own(traits: dict[str, Any]):
    slow = msgspec.structs.replace(ES, name="slow", **traits)
    both = make_plan(variants=(ES, slow), apart="x")
    records = [
        run("b", {"es": [10, 11]}, make_plan(variants=(ES,)), wall_s=10.0),
        run("a", {"slow": [50, 55, 90]}, make_plan(variants=(slow,)), wall_s=70.0),
    ]
    found = look(*records, plan=both)
    for spec, df in ((ES, 1), (slow, 2)):
        noise = noise_of(found, SERVICE_TIME, spec)
        assert (noise.df, noise.match) == (df, "same")
    assert [found.fork_time_s(spec) for spec in both.variants] == [10.0, 70.0]
    apart = msgspec.structs.replace(PLAN, apart="asked for")
    assert look(*records, plan=apart).fork_time_s(ES) == 10.0
    assert look(*records, plan=make_plan(variants=(ES,))).runs == ("b",)


def only_task(task: Task, challenge: str = "c") -> dict[str, Any]:
    return {"schedules": (Challenge(challenge, (task,)),)}


RANGED = Task("range", iterations=3)


@pytest.mark.parametrize(
    ("planned", "changes", "match"),
    [
        # What only decides how well a run is measured makes it no other; nor does a variant's name.
        ({"forks": 9, "seed": 5}, {}, "same"),
        ({"track_digest": "u"}, {}, "same"),
        ({"corpus": msgspec.structs.replace(CORPUS, digest="")}, {}, "same"),
        ({"variants": (msgspec.structs.replace(ES, name="a"), OS)}, {}, "same"),
        ({"apart": "asked for"}, {}, "similar"),
        ({"heap_mb": 1024}, {}, "similar"),
        ({"restart": "never"}, {}, "similar"),
        ({"corpus": msgspec.structs.replace(CORPUS, documents=4_000_000)}, {}, "similar"),
        (only_task(Task("range", iterations=300)), {}, "similar"),
        ({"pin": PinSpec(node=(0,), driver=(1,))}, {}, "similar"),
        (only_task(RANGED, "d"), {}, None),
        (only_task(msgspec.structs.replace(RANGED, name="range-again")), {}, None),
        (only_task(msgspec.structs.replace(RANGED, target_throughput=5)), {}, None),
        ({}, {"environment": make_environment(fingerprint="another machine")}, None),
    ],
)
def test_whose_forks_count(planned: dict[str, Any], changes: dict[str, Any], match: str | None):
    """Those of other sizes have to do, but not for the time."""
    plan = make_plan(**planned)
    sides = {plan.variants[0].name: [10, 11], "os": [10, 11]}
    found = look(run("a", sides, plan, **changes))
    noise = found.noise(RANGE, SERVICE_TIME, ES)
    assert (noise and noise.match) == match
    assert (found.fork_time_s(ES) is not None) == (match == "same")


def test_runs_of_the_same_sizes_come_before_newer_ones_of_others():
    other = run("b", {"es": [10, 30]}, make_plan(heap_mb=1024))
    same = run("a", {"es": [10, 11]})
    found = look(other, same)
    noise = noise_of(found, SERVICE_TIME, ES)
    assert noise.sd == pytest.approx(math.log(11 / 10) / math.sqrt(2))
    assert (noise.match, found.runs, found.forks) == ("same", ("a",), 2)


def test_throttled_tasks_are_judged_by_their_latency():
    plan = make_plan(schedules=(Challenge("c", (Task("range", iterations=3, target_throughput=5),)),))
    summary = make_summary("range", 10)
    summary = msgspec.structs.replace(summary, latency=summary.service_time)
    forks = tuple(make_fork("es", block, summary) for block in range(2))
    found = look(make_record(plan=plan, forks=forks), plan=plan)
    assert {metric for _, metric, _ in found.noises} == {SERVICE_TIME.key, LATENCY.key}


def test_a_single_fork_or_a_failed_one_has_no_spread():
    failed = make_fork("es", 1, make_summary("range", 10), status="failed")
    record = make_record(plan=PLAN, forks=(make_fork("es", 0, make_summary("range", 10)), failed))
    found = look(record)
    assert found.noises == {}
    assert found.fork_s == {kind_of(ES): 1.0, kind_of(ES).of_engine: 1.0}
    assert found.forks == 0


def test_tasks_that_only_prepare_others_are_known_as_such():
    forks = [make_fork("es", block, make_summary("range", 10, reported=False)) for block in range(2)]
    assert look(make_record(plan=PLAN, forks=tuple(forks))).hidden == {RANGE}


def test_clusters_that_run_already_are_kept_apart_from_fresh_nodes():
    there = msgspec.structs.replace(ES, target=TargetSpec(("http://a:1",)))
    elsewhere = msgspec.structs.replace(ES, target=TargetSpec(("http://b:1",)))
    found = look(run("a", {"es": [10, 11]}, make_plan(variants=(there,))), plan=make_plan(variants=(there,)))
    assert found.noise(RANGE, SERVICE_TIME, there) is not None
    assert found.noise(RANGE, SERVICE_TIME, elsewhere) is None
    assert found.noise(RANGE, SERVICE_TIME, ES) is None


def test_no_more_runs_are_read_than_needed():
    def endless() -> Iterator[RunRecord]:
        for number in range(10_000):
            yield run(f"{number}", {"es": [10, 11, 10, 11], "os": [10, 11, 10, 11]})
            read.append(number)

    read: list[int] = []
    found = collect_history(endless(), PLAN, HOST)
    assert len(read) + 1 == ENOUGH_FORKS // 4
    assert found.forks == 2 * ENOUGH_FORKS


def test_of_what_may_be_0_the_spread_is_a_share_of_the_mean():
    plan = msgspec.structs.replace(PLAN, metrics="gc")
    forks = [
        make_fork(variant, block, make_summary("range", 10.0, meters={"gc": value}))
        for variant, values in {"es": (0.0, 2.0, 4.0), "os": (0.0, 0.0, 0.0)}.items()
        for block, value in enumerate(values)
    ]
    found = look(make_record("a", plan=plan, forks=tuple(forks)), plan=plan)
    noise = noise_of(found, metric("gc"), ES)
    assert (noise.sd, noise.forks) == (1.0, 3)
    assert found.noise(RANGE, metric("gc"), OS) is None


def test_differences_within_blocks_have_a_spread_of_their_own():
    found = look(run("a", {"es": [10, 20, 40], "os": [22, 40, 80]}))
    pairs = noise_of(found, SERVICE_TIME, ES, OS)
    assert pairs.sd == pytest.approx(statistics.stdev([math.log(2.2), math.log(2), math.log(2)]))
    assert (pairs.df, pairs.forks, pairs.match) == (2, 3, "same")


def test_blocks_without_both_forks_make_no_pair_and_runs_are_pooled_about_their_own_means():
    alone = run("c", {"es": [10, 20]})
    first, second = run("b", {"es": [10, 10, 10], "os": [20, 22]}), run("a", {"es": [10, 10], "os": [50, 55]})
    pairs = noise_of(look(alone, first, second), SERVICE_TIME, ES, OS)
    assert pairs.df == 2
    assert pairs.sd == pytest.approx(statistics.stdev([0, math.log(1.1)]))


def test_the_same_variant_under_two_names_makes_pairs_once():
    again = msgspec.structs.replace(ES, name="again")
    both = make_plan(variants=(ES, again))
    found = look(run("a", {"es": [10, 11, 10], "again": [10, 10, 10]}, both), plan=both)
    pairs = noise_of(found, SERVICE_TIME, ES, again)
    assert (pairs.df, pairs.match) == (2, "same")


def test_pairs_of_other_variants_of_the_engines_have_to_do():
    found = look(run("a", {"slow": [10, 11, 12], "os": [20, 20, 21]}, make_plan(variants=(SLOW, OS))))
    pairs = noise_of(found, SERVICE_TIME, ES, OS)
    assert (pairs.df, pairs.match) == (2, "similar")

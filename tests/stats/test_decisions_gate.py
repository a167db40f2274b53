import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from benchctl.stats.analyse import analyse
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat, CaveatCode, answers_differ, failed_forks
from benchctl.stats.decisions import GateResult, gate
from benchctl.stats.metrics import THROUGHPUT, Metric, metric
from benchctl.track.model import Task
from builders import make_fork, make_summary
from stats.made import plan as plan_of

FLAT = (1.0, 1.001, 0.999, 1.0, 1.0)
SLIGHTLY = (0.994, 1.006, 1.0, 0.997, 1.003)
NOISY = (1.0, 1.2, 0.8, 1.1, 0.9)


def analysis(
    *tasks: tuple[Sequence[float], Sequence[float]],
    method: str = "holm",
    metrics: Sequence[Metric] | None = None,
    **options: Any,
) -> Analysis:
    """Tasks named a, b, ...: factors on 10 ms, one a fork, of the baseline and of the contender."""
    names = [chr(ord("a") + place) for place in range(len(tasks))]
    forks = {
        variant: [
            make_fork(
                variant,
                block,
                *(
                    make_summary(
                        name, 10 * sides[side][(block - 2 * side) % len(sides[side])], task=place, **options
                    )
                    for place, (name, sides) in enumerate(zip(names, tasks, strict=True))
                ),
            )
            for block in range(len(tasks[0][side]))
        ]
        for side, variant in enumerate(("es", "os"))
    }
    return analyse(forks, plan_of(*(Task(name) for name in names)), method=method, metrics=metrics)


def scaled(factor: float, values: Sequence[float] = FLAT) -> list[float]:
    return [factor * value for value in values]


def test_a_task_that_became_slower_is_a_regression_and_is_named_first():
    found = gate(analysis((FLAT, NOISY), (FLAT, scaled(1.2))))
    assert found.outcome == "regression"
    assert found.reasons[0].startswith("os in b, throughput: slower, -16.7% (-")
    assert len(found.reasons) == 4


def test_alike_and_faster_pass():
    found = gate(analysis((FLAT, FLAT), (FLAT, scaled(0.8))))
    assert found == GateResult("pass", ("no regression in 4 comparisons: 2 equal, 2 faster",))


def test_slower_by_an_unclear_amount_is_no_pass_but_faster_is():
    slower = analysis((FLAT, scaled(1.027, SLIGHTLY)))
    assert slower.rows[0].comparisons[0].verdict == "different"
    assert gate(slower).outcome == "inconclusive"
    assert "slower by an unclear amount, -" in gate(slower).reasons[0]
    faster = analysis((FLAT, scaled(0.974, SLIGHTLY)))
    assert [row.comparisons[0].verdict for row in faster.rows] == ["different", "equivalent"]
    assert gate(faster).outcome == "pass"


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
@pytest.mark.parametrize(
    ("forks", "options", "reason"),
    [
        (4, {}, "fewer than 5 forks per variant"),
        (5, {"lacking_warmup": 100}, "little warm-up"),
    ],
)
def test_provisional_rows_neither_pass_nor_fail(
    factor: float, forks: int, options: dict[str, Any], reason: str
):
    found = analysis((FLAT[:forks], scaled(factor, FLAT[:forks])), **options)
    assert found.rows[0].comparisons[0].verdict in ("faster", "equivalent", "slower")
    assert found.rows[0].comparisons[0].provisional
    judged = gate(found)
    assert judged.outcome == "inconclusive"
    assert reason in judged.reasons[0]


def test_nothing_measured_never_passes():
    assert gate(analysis(((), ()))).outcome == "inconclusive"
    empty = msgspec.structs.replace(analysis((FLAT, FLAT)), rows=())
    assert gate(empty).reasons == ("nothing was compared",)


CANNOT = {"unsupported": "unknown query", "throughput_per_s": None, "service_time": None}


@pytest.mark.parametrize(
    ("forks", "options", "reason"),
    [
        (NOISY, {}, "minimum detectable effect"),
        (FLAT[:1], {}, "os in a, throughput: insufficient: "),
        (FLAT[:2], {}, "os in a, throughput: insufficient: "),
        (FLAT, {"failures": {"rejected": 3}}, "failed requests of es: 15 rejected"),
        (FLAT, CANNOT, "os in a, throughput: n/a: es cannot do this operation: unknown query"),
    ],
)
def test_what_may_hide_a_regression_is_no_pass(forks: Sequence[float], options: dict[str, Any], reason: str):
    found = analysis((FLAT[: len(forks)], forks), **options)
    assert gate(found).outcome == "inconclusive"
    assert reason in gate(found).reasons[0]
    # Where there are several, the challenge is named.
    several = msgspec.structs.replace(found, sections=found.sections * 2)
    assert gate(several).reasons[0].startswith("os in c: a, throughput: ")


def test_other_answers_are_no_pass():
    found = msgspec.structs.replace(analysis((FLAT, FLAT)))
    doubt = answers_differ("os", "es", "no hits")
    rows = tuple(msgspec.structs.replace(row, caveats=(*row.caveats, doubt)) for row in found.rows)
    assert gate(msgspec.structs.replace(found, rows=rows)).reasons[0] == (
        "os in a, throughput: os and es return different results: no hits"
    )


def test_forks_that_failed_are_no_pass():
    doubt = failed_forks("os", 1)
    found = analysis((FLAT, FLAT))
    found = gate(msgspec.structs.replace(found, caveats=(*found.caveats, doubt)))
    assert found == GateResult("inconclusive", ("1 fork of os failed and is not included",))


def test_a_quantile_that_is_the_slowest_request_never_passes():
    p99 = [metric("service_time", 0.99)]
    found = analysis((FLAT, FLAT), samples=99, metrics=p99)
    (comparison,) = found.rows[0].comparisons
    assert comparison.verdict == "insufficient"
    assert comparison.p_adjusted is None
    (doubt,) = found.rows[0].caveats
    assert doubt.code == "too-few-samples"
    assert re.findall(r"\d+", doubt.text) == ["99", "99", "100"]
    assert gate(found).reasons == (f"os in a, p99 service time: insufficient: {doubt.text}",)
    enough = analysis((FLAT, FLAT), samples=100, metrics=p99)
    assert enough.rows[0].comparisons[0].verdict == "equivalent"


def throttled_beside(metrics: Sequence[Metric] | None, *others: Task) -> Analysis:
    """Task a is throttled, the others are not."""
    forks: dict[str, list[Any]] = {"es": [], "os": []}
    for variant, made in forks.items():
        for block, factor in enumerate(FLAT if variant == "es" else FLAT[2:] + FLAT[:2]):
            plain = make_summary("a", 10 * factor, throughput_per_s=20.0, target_per_s=20.0)
            first = msgspec.structs.replace(plain, latency=plain.service_time)
            rest = [
                make_summary(one.operation, 10 * factor, task=place) for place, one in enumerate(others, 1)
            ]
            made.append(make_fork(variant, block, first, *rest))
    plan = plan_of(Task("a", target_throughput=20), *others)
    return analyse(forks, plan, method="holm", metrics=metrics)


def test_a_throttled_task_is_judged_by_its_latency_and_named_where_that_is_not_compared():
    assert gate(throttled_beside(None)).reasons == ("no regression in 2 comparisons: 2 equal",)
    beside = gate(throttled_beside([THROUGHPUT], Task("b")))
    left = "excluded: the throughput of a, which is the offered rate; latency was not compared"
    assert beside == GateResult("pass", ("no regression in 1 comparison: 1 equal", left))
    assert gate(throttled_beside([THROUGHPUT])) == GateResult("inconclusive", ("nothing was compared", left))


def test_unlike_results_that_were_compared_by_force_are_said():
    found = analysis((FLAT, FLAT))
    doubt = Caveat("unlike", "incomparable results (--force): heap differs")
    forced = gate(msgspec.structs.replace(found, caveats=(doubt, *found.caveats)))
    assert forced.text == "pass, of incomparable results (--force)"
    assert forced.reasons[-1] == doubt.text
    assert gate(found).text == "pass"


def test_it_needs_holms_adjustment():
    with pytest.raises(ValueError, match="Holm"):
        gate(analysis((FLAT, FLAT), method="benjamini-hochberg"))


def test_holm_counts_all_metrics_because_a_gate_is_one_decision():
    tasks = [(FLAT, scaled(1.0 + place / 100)) for place in range(3)]
    table, gated = analysis(*tasks, method="benjamini-hochberg"), analysis(*tasks)
    least = min(row.comparisons[0].p for row in gated.rows)
    adjusted = min(row.comparisons[0].p_adjusted for row in gated.rows)
    assert adjusted == pytest.approx(6 * least)
    assert min(row.comparisons[0].p_adjusted for row in table.rows) == pytest.approx(3 * least)


def test_what_never_happened_passes_and_what_began_to_happen_does_not():
    def judged(after: float) -> GateResult:
        forks = {
            variant: [
                make_fork(variant, block, make_summary("a", 10.0, meters={"gc": pause * (1 + block)}))
                for block in range(6)
            ]
            for variant, pause in (("es", 0.0), ("os", after))
        }
        return gate(analyse(forks, plan_of(Task("a")), method="holm", metrics=[metric("gc")]))

    assert judged(0.0) == GateResult("pass", ("no regression in 1 comparison: 1 equal",))
    worse = judged(2.0)
    assert worse.outcome == "regression"
    assert worse.reasons[0] == "os in a, collector pauses: slower, 0 ms against 7 ms, p 0.031"


@pytest.mark.parametrize("code", ["test-mode", "unfinished"])
@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_a_trial_decides_nothing_and_what_has_not_ended_does_not_pass(code: CaveatCode, factor: float):
    found = analysis((FLAT, scaled(factor)))
    doubted = gate(msgspec.structs.replace(found, caveats=(Caveat(code, "run r"),)))
    slower = code == "unfinished" and factor > 1
    assert doubted.outcome == ("regression" if slower else "inconclusive")
    assert "run r" in doubted.reasons

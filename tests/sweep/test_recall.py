"""Values at equal recall: interpolated within blocks, compared as anything else, never extrapolated."""

import csv
import io
import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from benchctl.report.formats import render, render_screen
from benchctl.report.sentences import verdict
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import AtRecall, SweepAxis, SweepCurve
from benchctl.stats.caveat import Caveat
from benchctl.stats.inference import adjusted_p
from benchctl.sweep.curve import ByBlock, judged_curves, value_at
from benchctl.sweep.report import recall_sentences
from builders import ES
from sweeps import BLOCKS, CANDIDATES, make_curve, recall_curve, recall_record, recalls, searches

SHARES = st.floats(0.01, 1.0)
TARGETS = (0.9, 0.95, 0.99)


def interpolated(target: float, found: Sequence[float], values: Sequence[float]) -> float:
    """ln(value) at a recall that rises."""
    return float(np.interp(-np.log(1.001 - target), -np.log(1.001 - np.array(found)), np.log(values)))


def by_hand(target: float, found: Sequence[ByBlock], values: Sequence[ByBlock]) -> list[float]:
    return [
        interpolated(target, *([point[block] for point in line] for line in (found, values)))
        for block in range(len(values[0]))
    ]


def level(curve: SweepCurve, recall: float) -> AtRecall:
    return next(one for one in curve.at_recall if one.recall == recall)


@given(st.lists(st.tuples(SHARES, st.floats(1, 1e5)), min_size=2, max_size=6), SHARES)
def test_a_value_lies_on_the_line_between_two_points_and_never_beyond_all(
    points: list[tuple[float, float]], target: float
):
    found, values = zip(*sorted(points), strict=True)
    assume(all(high - low > 1e-6 for low, high in pairwise(found)))
    value, places = value_at(target, found, values)
    if found[0] <= target <= found[-1]:
        assert value == pytest.approx(math.exp(interpolated(target, found, values)))
        assert found[places[0]] <= target <= found[places[-1]]
        assert len(places) <= 2
    else:
        assert math.isnan(value)
        assert places == ()


@pytest.mark.parametrize(
    ("found", "places"),
    [
        # The first point that reaches it, and the one before, whatever comes behind.
        ((0.85, 0.95, 0.88, 0.99), (0, 1)),
        ((0.85, 0.8, 0.95, 0.99), (1, 2)),
        # Raised until it suffices, it would have been left at the first.
        ((0.91, 0.85, 0.95, 0.99), ()),
        ((0.9, 0.85, 0.95, 0.99), (0,)),
        ((0.85, 0.85, 0.9, 0.9), (2,)),
        ((0.85, 0.86, 0.87, 1.0), (2, 3)),
        ((0.5, 0.6, 0.7, 0.89), ()),
        ((0.85, math.nan, 0.95, 0.99), ()),
        ((math.nan,) * 4, ()),
    ],
)
def test_recall_that_wavers_is_reached_by_the_first_point(found: Sequence[float], places: tuple[int, ...]):
    values = (100, 80, 60, 40)
    value, used = value_at(0.9, found, values)
    assert used == places
    own = [[line[place] for place in places] for line in (found, values)]
    assert value == pytest.approx(math.exp(interpolated(0.9, *own)) if places else math.nan, nan_ok=True)


def test_between_powers_of_the_candidates_nothing_is_lost():
    candidates = np.array(CANDIDATES.numbers)
    value, _ = value_at(0.95, 1.001 - 2 / candidates, 4000 / candidates**0.6)
    assert value == pytest.approx(4000 / (2 / 0.051) ** 0.6)


def test_a_point_without_a_value_encloses_nothing():
    for values in ((0.0, 80), (math.nan, 80), (100, math.nan)):
        assert math.isnan(value_at(0.9, (0.85, 0.95), values)[0])


def test_values_are_the_t_interval_of_interpolated_blocks_and_compared_within_them():
    curve = recall_curve({"es": 1.5, "os": 1.8})
    assert [one.recall for one in curve.at_recall] == list(TARGETS)
    es, os = (
        by_hand(0.95, recalls(missing, seed=seed), searches(per_s, seed=10 + seed))
        for seed, missing, per_s in ((0, 1.5, 4000), (1, 1.8, 3000))
    )
    line = level(curve, 0.95).lines[0]
    ends = ttest_1samp(es, 0).confidence_interval(0.95)
    expected = [math.exp(value) for value in (np.mean(es), ends.low, ends.high)]
    assert [line.mean.value, line.mean.low, line.mean.high] == pytest.approx(expected)
    assert (line.variant, line.reached, line.blocks, line.between) == ("es", BLOCKS, BLOCKS, ("20", "50"))
    (one,) = level(curve, 0.95).comparisons
    within = ttest_1samp(np.subtract(os, es), 0)
    ends = within.confidence_interval(0.95)
    assert one.effect_percent == pytest.approx(100 * math.expm1(np.mean(os) - np.mean(es)))
    assert (one.low_percent, one.high_percent) == pytest.approx(
        (100 * math.expm1(ends.low), 100 * math.expm1(ends.high))
    )
    assert one.p == pytest.approx(within.pvalue)
    assert (one.verdict, one.paired, one.provisional) == ("slower", True, False)
    assert msgspec.json.decode(msgspec.json.encode(curve), type=SweepCurve) == curve


def test_where_builds_count_they_are_what_has_values():
    (one,) = level(recall_curve({"es": 1.5, "os": 1.8}, replicate="build"), 0.95).comparisons
    assert (one.replicate, one.replicates) == ("build", (BLOCKS, BLOCKS))


@pytest.mark.parametrize(
    ("missing", "recall", "reason"),
    [
        (0.1, 0.95, "already 0.99 at candidates 10"),
        (9, 0.99, "not reached: 0.957 at candidates 200"),
    ],
)
def test_a_recall_that_no_block_encloses_has_no_value_and_says_why(
    missing: float, recall: float, reason: str
):
    found = level(recall_curve({"es": 1.5, "os": missing}), recall)
    assert found.lines[0].mean is not None
    assert (found.lines[1].mean, found.lines[1].reached, found.lines[1].blocks) == (None, 0, BLOCKS)
    said, _, candidates = found.lines[1].reason.rpartition(" at ")
    words, _, number = said.rpartition(" ")
    expected_words, _, expected = reason.rpartition(" at ")[0].rpartition(" ")
    assert (words, candidates) == (expected_words, reason.rpartition(" at ")[2])
    assert float(number) == pytest.approx(float(expected), abs=0.002)
    (one,) = found.comparisons
    assert (one.verdict, one.effect_percent) == ("n/a", None)


def test_a_recall_that_some_blocks_reach_is_counted_and_gets_no_verdict():
    found = {"es": recalls(1.5), "os": recalls(1.8, seed=2)}
    found["os"][4][2] = 0.985
    at = level(recall_curve({"es": 1.5, "os": 1.8}, recalls=found), 0.99)
    assert (at.lines[1].reached, at.lines[1].blocks) == (BLOCKS - 1, BLOCKS)
    assert at.lines[1].reason == "not reached: 0.985 at candidates 200"
    assert at.lines[1].mean is not None
    (one,) = at.comparisons
    assert (one.gapped, one.verdict) == (True, "insufficient")


def test_a_recall_is_never_told_as_reached_that_is_not():
    found = {name: recalls(1.5) for name in ("es", "os")}
    found["os"] = [dict.fromkeys(range(BLOCKS), 0.94999) for _ in CANDIDATES.labels]
    at = level(recall_curve({"es": 1.5, "os": 1.8}, recalls=found), 0.95)
    assert at.lines[1].reason == "not reached: 0.949 at candidates 10"


def test_only_what_rises_along_numbers_and_has_a_logarithm_is_interpolated():
    flat = [dict.fromkeys(range(BLOCKS), 0.95) for _ in CANDIDATES.labels]
    values = {"es": searches(4000)}
    assert recall_curve({"es": 1.5}, recalls={"es": flat}).at_recall == ()
    assert recall_curve({"es": 1.5}, recalls={}).at_recall == ()
    named = SweepAxis("collector", CANDIDATES.labels)
    for axis, metric in ((named, "throughput"), (CANDIDATES, "gc")):
        curve = make_curve(values, axis, metric=metric, comparisons=(), recalls={"es": recalls(1.5)})
        assert curve.at_recall == curve.lines[0].recall == ()


def test_points_have_their_recall():
    found = recalls(1.5, seed=0)
    curve = recall_curve({"es": 1.5})
    means = [np.mean(list(point.values())) for point in found]
    assert [mean.value for mean in curve.lines[0].recall] == pytest.approx(means)
    assert all(mean.low < mean.value < mean.high for mean in curve.lines[0].recall)
    assert [one.comparisons for one in curve.at_recall] == [()] * 3


def test_a_weak_point_weakens_the_recalls_that_lie_beside_it_alone():
    firm = recall_curve({"es": 1.5, "os": 1.8})
    remarks = ((), (), (), ("not warmed up",), ())
    curve = recall_curve({"es": 1.5, "os": 1.8}, remarks={"os": remarks})
    assert [one.comparisons[0].provisional for one in firm.at_recall] == [False] * 3
    assert [one.comparisons[0].provisional for one in curve.at_recall] == [False, False, True]
    assert level(curve, 0.99).lines[1].between == ("100", "200")


def test_a_point_that_withholds_verdicts_does_so_at_the_recalls_beside_it():
    doubt = Caveat("saturated", "it did not keep up")
    curve = recall_curve({"es": 1.5, "os": 1.8}, caveats=((), (), (), (doubt,), ()))
    assert [one.comparisons[0].judged for one in curve.at_recall] == [True, True, False]


@pytest.mark.parametrize("method", ["benjamini-hochberg", "holm"])
def test_recalls_of_all_tasks_are_adjusted_together(method: str):
    curves = [recall_curve({"es": 1.5, "os": 1.8}, task=task, blocks=4) for task in ("a", "b")]
    alone = [one.comparisons[0].p for curve in curves for one in curve.at_recall]
    together = [
        one.comparisons[0].p_adjusted for curve in judged_curves(curves, method) for one in curve.at_recall
    ]
    assert together == pytest.approx(adjusted_p(alone, method))


def test_the_first_sentence_of_a_run_is_at_equal_recall():
    analysis = analyse_run(recall_record())
    assert {curve.metric: bool(curve.at_recall) for curve in analysis.curves} == {
        "throughput": True,
        "service_time_p90": True,
        "recall": False,
    }
    (one,) = level(analysis.curves[0], 0.95).comparisons
    assert one.verdict == "slower"
    assert verdict(analysis).startswith("range at equal recall: os against es slower at 0.9, 0.95 (")
    assert "range at equal recall" in render_screen(analysis).plain.replace("\n", " ")


def test_programs_get_recalls_in_lines_of_their_own():
    analysis = analyse_run(recall_record())
    lines = [line for line in csv.DictReader(io.StringIO(render(analysis, "csv"))) if line["at_recall"]]
    curves = [curve for curve in analysis.curves if curve.at_recall]
    assert [(line["metric"], float(line["at_recall"])) for line in lines] == [
        (curve.metric, target) for curve in curves for target in TARGETS
    ]
    assert float(lines[0]["effect_percent"]) == curves[0].at_recall[0].comparisons[0].effect_percent
    found = msgspec.json.decode(render(analysis, "json"))
    assert found["curves"][0]["at_recall"][0]["lines"][0]["variant"] == "es"


def test_a_single_variant_has_values_and_no_sentence():
    analysis = analyse_run(recall_record(variants=(ES,)))
    assert analysis.curves[0].at_recall[0].lines[0].mean is not None
    assert list(recall_sentences(analysis.curves)) == []


def test_of_many_tasks_the_first_are_told():
    curves = [recall_curve({"es": 1.5, "os": 1.8}, task=task) for task in ("a", "b", "c")]
    first, second = recall_sentences(curves)
    assert first.startswith("a at equal recall: os against es slower at")
    assert second.startswith("b at")


def test_recalls_with_the_same_verdict_are_together():
    (sentence,) = recall_sentences([recall_curve({"es": 1.5, "os": 0.3})])
    assert "without a verdict at 0.9, 0.95; faster at 0.99 (" in sentence

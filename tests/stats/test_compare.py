import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from benchctl.stats.compare import adjust
from comparing import compare

BLOG_ROWS = [
    (1964.79, 3537.2, 80.03),
    (1970.58, 3552.7, 80.29),
    (729.779, 1308.88, 79.35),
    (773.676, 825.3, 6.67),
    (0.512, 0.286, -44.14),
    (0.42, 0.33, -21.43),
    (3274.09, 3502.62, 6.98),
    (3274.09, 1858.64, -43.23),
]
FORKS = st.lists(st.floats(0.1, 1000), min_size=3, max_size=7)


def times(left: Sequence[float], right: Sequence[float], **options: Any):
    return compare(left, right, **{"higher_is_better": False, "margin": 0.05, **options})


@pytest.mark.parametrize(("baseline", "contender", "percent"), BLOG_ROWS)
def test_effect_is_the_diff_of_the_blog(baseline: float, contender: float, percent: float):
    assert times([baseline], [contender]).effect_percent == pytest.approx(percent, abs=0.0051)


CLEAR = ([10.0, 10.1, 9.9], [18.0, 18.1, 17.8])


@pytest.mark.parametrize(
    ("left", "right", "options", "verdict", "codes"),
    [
        ([10.0], [18.0], {}, "insufficient", ["few-units"]),
        ([10.0, 10.1], [18.0, 18.1], {}, "insufficient", ["few-units"]),
        (*CLEAR, {}, "slower", []),
        (*CLEAR, {"higher_is_better": True}, "faster", []),
        (*CLEAR[::-1], {}, "faster", []),
        (*CLEAR, {"judged": False}, "n/a", []),
        ([10.0, 10.05, 9.95, 10.02], [10.4, 10.6, 10.2, 10.5], {}, "different", []),
        ([10.0, 13.0, 8.0], [11.0, 9.0, 14.0], {}, "inconclusive", []),
        # Equality comes before significance, and the margin is the same ratio both ways.
        ([10.0, 10.001, 9.999], [10.1, 10.101, 10.099], {}, "equivalent", []),
        ([1.0, 1.00001, 0.99999], [1.049, 1.04901, 1.04899], {}, "equivalent", []),
        ([1.0, 1.00001, 0.99999], [1.051, 1.05101, 1.05099], {}, "slower", []),
        ([1.0, 1.00001, 0.99999], [0.953, 0.95301, 0.95299], {}, "equivalent", []),
        ([1.0, 1.00001, 0.99999], [0.9515, 0.95151, 0.95149], {}, "faster", []),
        ([10.0] * 5, [11.0] * 5, {}, "insufficient", ["no-spread"]),
        ([10.0, 10.1], [math.nan, 0.0], {}, "n/a", []),
        ([], [], {}, "n/a", []),
        # Pairs have their block in common.
        ([10.0, 20.0, 40.0, 80.0], [12.0, 24.2, 47.6, 96.0], {}, "inconclusive", []),
        ([10.0, 20.0, 40.0, 80.0], [12.0, 24.2, 47.6, 96.0], {"paired": True}, "slower", []),
    ],
)
def test_verdicts_and_doubts(
    left: list[float], right: list[float], options: dict[str, Any], verdict: str, codes: list[str]
):
    found = times(left, right, **options)
    assert found.verdict == verdict
    assert [doubt.code for doubt in found.caveats] == codes
    assert (found.p_adjusted is None) == (verdict in ("insufficient", "n/a"))
    assert (found.p is None) == (min(len(left), len(right)) < 2 or "no-spread" in codes or right[1:] == [0.0])


@pytest.mark.parametrize("broken", [0.0, -1.0, math.nan, math.inf])
def test_a_fork_without_a_figure_takes_the_verdict_away(broken: float):
    found = times([10.0, 10.1, 9.9, 10.0], [18.0, 18.1, 17.8, broken])
    assert (found.n_contender, found.verdict) == (3, "insufficient")
    assert found.effect_percent == pytest.approx(79.7, abs=0.3)
    assert [doubt.code for doubt in found.caveats] == ["missing-values"]


def test_a_pair_is_left_out_with_its_partner():
    found = times([10.0, 11.0, 12.0, 50.0], [12.0, 13.3, 14.0, math.nan], paired=True)
    assert (found.n_baseline, found.n_contender) == (3, 3)
    assert found.baseline_value == pytest.approx((10 * 11 * 12) ** (1 / 3))


def test_adjusting_makes_p_larger_and_may_take_a_verdict():
    weak = times([10.0, 10.4, 9.7, 10.1], [11.6, 11.0, 12.6, 11.3])
    null = times([10.0, 13.0, 8.0], [11.0, 9.0, 14.0])
    assert 0.002 < weak.p < 0.05
    assert weak.verdict in ("slower", "different")
    adjusted = adjust([weak] + [null] * 40)
    assert adjusted[0].p == weak.p
    assert adjusted[0].p_adjusted > 0.05
    assert adjusted[0].verdict == "inconclusive"


def test_what_gets_no_verdict_is_not_in_the_family():
    clear = times([10.0, 10.4, 9.7, 10.1], [11.6, 11.0, 12.6, 11.3])
    others = [times([10.0], [10.0])] * 20 + [times([1.0, 2.0, 3.0], [1.0, 2.0, 3.1], judged=False)] * 20
    assert adjust([clear, *others])[0].p_adjusted == pytest.approx(clear.p)
    assert [one.verdict for one in adjust([clear, *others])[1:]] == ["insufficient"] * 20 + ["n/a"] * 20


def test_a_gate_is_stricter_than_a_table():
    rows = [times([10.0, 10.4, 9.7, 10.1], [11.6, 11.0, 12.6, 11.3])] * 3
    assert adjust(rows, method="holm")[2].p_adjusted == pytest.approx(3 * rows[0].p)
    assert adjust(rows)[2].p_adjusted == pytest.approx(rows[0].p)


@settings(deadline=None)
@given(FORKS, FORKS)
def test_swapping_the_sides_inverts_the_effect(left: Sequence[float], right: Sequence[float]):
    forth, back = times(left, right), times(right, left)
    assert (1 + forth.effect_percent / 100) * (1 + back.effect_percent / 100) == pytest.approx(1.0)
    assert forth.p == pytest.approx(back.p) if forth.p is not None else back.p is None
    opposite = {"faster": "slower", "slower": "faster"}
    assert back.verdict == opposite.get(forth.verdict, forth.verdict)


@settings(deadline=None)
@given(FORKS, FORKS, st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(left: Sequence[float], right: Sequence[float], factor: float):
    plain = times(left, right)
    scaled = times([value * factor for value in left], [value * factor for value in right])
    assert scaled.effect_percent == pytest.approx(plain.effect_percent, rel=1e-6, abs=1e-6)
    if plain.p is not None and plain.p > 1e-6:
        assert scaled.p == pytest.approx(plain.p, rel=1e-4)


@settings(deadline=None)
@given(FORKS, FORKS)
def test_verdicts_never_say_more_than_the_interval(left: Sequence[float], right: Sequence[float]):
    found = times(left, right)
    assume(found.low90_percent is not None)
    inside = found.low90_percent > -100 * 0.05 / 1.05 and found.high90_percent < 5
    assert (found.verdict == "equivalent") == inside
    if found.verdict in ("faster", "slower"):
        assert found.p_adjusted <= 0.05
        assert found.low90_percent > 5 or found.high90_percent < -100 * 0.05 / 1.05


@settings(deadline=None)
@given(st.lists(st.floats(), max_size=6), st.lists(st.floats(), max_size=6))
def test_no_input_breaks_it(left: Sequence[float], right: Sequence[float]):
    found = times(left, right)
    for value in (found.effect_percent, found.low_percent, found.p, found.mde_percent):
        assert value is None or not math.isnan(value)


COSTS = ([2.1, 1.9, 2.2, 2.0, 1.8], [3.1, 2.8, 3.3, 3.0, 2.9])


def test_a_difference_is_that_of_the_values_with_the_ts_own_interval():
    left, right = COSTS
    found = times(left, right, additive=True, paired=True, compared_as="difference")
    expected = ttest_rel(right, left)
    assert found.difference == pytest.approx(1.02)
    interval, narrow = (expected.confidence_interval(level) for level in (0.95, 0.90))
    assert (found.difference_low, found.difference_high) == pytest.approx((interval.low, interval.high))
    assert (found.difference_low90, found.difference_high90) == pytest.approx((narrow.low, narrow.high))
    assert (found.p, found.verdict) == (pytest.approx(expected.pvalue), "slower")
    assert found.effect_percent == pytest.approx(51.0)
    assert found.low_percent > found.margin_percent


def test_a_ratio_to_what_may_be_below_0_is_not_told_but_the_difference_is():
    left = [0.3, -0.4, 0.5, -0.2, 0.1]
    told, silent = (
        times(left, COSTS[1], additive=True, signed=True, compared_as=kind)
        for kind in ("difference", "ratio-of-sums")
    )
    assert (silent.verdict, silent.effect_percent, silent.low_percent) == ("n/a", None, None)
    assert [doubt.text for doubt in silent.caveats] == [
        "baseline is not clearly above 0: no ratio is possible, only a difference"
    ]
    assert silent.difference_low == told.difference_low
    assert (told.verdict, told.caveats) == ("different", ())


def test_a_cost_that_may_be_nothing_has_a_ratio_below_it():
    found = times(COSTS[0], [0.1, -0.1, 0.05, -0.05, -0.1], additive=True, signed=True)
    assert found.effect_percent == pytest.approx(-101.0)
    assert found.low_percent < -100
    assert (found.verdict, found.error) == ("faster", None)


@given(FORKS, FORKS, st.booleans())
def test_differences_turn_around_with_the_sides(left: list[float], right: list[float], paired: bool):  # noqa: FBT001 - drawn
    size = min(len(left), len(right))
    sides = (left[:size], right[:size])
    there, back = (
        times(*pair, additive=True, paired=paired, compared_as="difference") for pair in (sides, sides[::-1])
    )
    assume(there.p is not None)
    assert there.p == pytest.approx(back.p or 0.0)
    assert (there.difference_low, there.difference_high) == (
        pytest.approx(-(back.difference_high or 0.0)),
        pytest.approx(-(back.difference_low or 0.0)),
    )


def rare(left: Sequence[float], right: Sequence[float], **options: Any):
    """Of what may be 0, such as pauses."""
    return times(left, right, additive=True, **options)


# Often next to nothing on one side: such a ratio has no upper end.
COUNTS = st.lists(st.sampled_from((0.0, 0.01, 0.1)) | st.floats(0.9, 1.1), min_size=3, max_size=7).filter(any)


@given(COUNTS, COUNTS, st.booleans(), st.booleans(), st.sampled_from((1, 2, 3, None)))
def test_an_interval_excludes_no_difference_just_where_p_says_so(
    left: list[float],
    right: list[float],
    paired: bool,  # noqa: FBT001 - drawn
    additive: bool,  # noqa: FBT001 - drawn
    looks: int | None,
):
    size = min(len(left), len(right))
    found = times(left[:size], right[:size], additive=additive, paired=paired, looks=looks)
    assume(found.p is not None and found.low_percent is not None)
    assume(all(abs(found.p - level) > 1e-6 for level in (0.05, 0.10)))
    for level, low, high in (
        (0.05, found.low_percent, found.high_percent),
        (0.10, found.low90_percent, found.high90_percent),
    ):
        excluded = low > 0 or (high is not None and high < 0)
        assert excluded == (found.p < level)


def test_flushes_that_took_longer_beyond_doubt_have_a_lower_end():
    """Three builds per variant were `+182.9% (-100.0 or more), p 0.042, slower`: nothing was excluded."""
    found = rare([0.021, 0.077, 0.025], [0.152, 0.097, 0.099])
    assert (round(found.effect_percent), round(found.p, 3), found.high_percent) == (183, 0.042, None)
    assert 0 < found.low_percent < 10
    # The baseline is all but 0 for the narrower interval, too, and by how much at most is unknown.
    assert found.verdict == "slower"


def test_what_never_happened_on_either_side_is_equal_and_no_test():
    found = rare([0.0] * 6, [0.0] * 6)
    assert (found.verdict, found.p, found.effect_percent, found.low_percent) == (
        "equivalent",
        None,
        None,
        None,
    )
    assert [doubt.code for doubt in found.caveats] == ["no-ratio"]
    assert "what happens in 39% of forks or fewer may have been missed" in found.caveats[0].text
    clear = rare([10.0, 10.4, 9.7, 10.1], [11.6, 11.0, 12.6, 11.3])
    assert adjust([clear, found])[0].p_adjusted == clear.p


@pytest.mark.parametrize(("forks", "missed"), [(3, 63), (6, 39), (11, 24), (12, None)])
def test_equal_has_the_share_of_forks_that_it_may_have_missed(forks: int, missed: int | None):
    values = [10.0, *(10.001 for _ in range(forks - 1))]
    found = times(values, values[::-1])
    assert found.verdict == "equivalent"
    assert found.missed_percent == (missed and pytest.approx(missed, abs=0.5))
    assert times(values, [2 * value for value in values[::-1]]).missed_percent is None


@pytest.mark.parametrize(("options", "least"), [({}, 5), ({"additive": True}, 12)])
def test_ratios_of_arithmetic_means_take_twelve_forks(options: dict[str, Any], least: int):
    values = [10.0 + 0.1 * (place % 3) for place in range(least)]
    assert not times(values, values[::-1], **options).few
    assert times(values[1:], values[:0:-1], **options).few
    # What is told is a difference, or there is no ratio.
    assert not times(values[:5], values[4::-1], **options, compared_as="difference").few
    assert not rare([0.0] * 5, values[:5]).few


def test_equal_of_index_builds_may_have_missed_builds():
    values, units = [10.0, 10.1, 10.001, 10.1, 10.002, 10.1], [0, 0, 1, 1, 2, 2]
    found = times(values, values[::-1], replicate="build", units=(units, units))
    assert (found.verdict, found.missed_percent) == ("equivalent", pytest.approx(63, abs=0.5))


@pytest.mark.parametrize("forks", [1, 2])
def test_nothing_in_few_forks_says_nothing(forks: int):
    assert rare([0.0] * forks, [0.0] * forks).verdict == "insufficient"
    assert rare([0.0] * forks, [5.0] * forks).verdict == "insufficient"


@pytest.mark.parametrize(("forks", "verdict"), [(7, "inconclusive"), (8, "slower")])
def test_looked_at_often_what_never_happened_on_one_side_takes_eight_pairs(forks: int, verdict: str):
    found = rare([0.0] * forks, [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0][:forks], looks=None)
    assert (found.verdict, found.p) == (verdict, pytest.approx((forks + 1) / 2**forks))


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.06, "slower"), (1.04, "different"), (1.001, "equivalent"), (0.93, "faster")]
)
@pytest.mark.parametrize("looks", [1, 2, None])
def test_the_estimate_beyond_the_margin_makes_the_verdict(factor: float, verdict: str, looks: int | None):
    """The 90% interval of +6% and of +4% holds the margin of 5%."""
    baseline = [10.0, 10.1, 9.9, 10.05, 9.95, 10.0, 10.02, 9.98]
    spread = 0.02 if verdict != "equivalent" else 0.002
    jitter = [1 + spread * one for one in (0.9, -0.7, 1.0, -1.1, 0.4, -0.5, 0.6, -0.6)]
    contender = [value * factor * each for value, each in zip(baseline, jitter, strict=True)]
    found = times(baseline, contender, paired=True, looks=looks)
    assert found.verdict == verdict
    assert (found.low90_percent < 5 < found.high90_percent) == (factor in (1.06, 1.04))


def test_every_further_look_doubles_p():
    ps = [times([10.0, 10.1, 9.9, 10.05], [10.3, 10.2, 10.1, 10.6], looks=looks).p for looks in (1, 2, 3)]
    assert ps[1:] == pytest.approx([2 * ps[0], 4 * ps[0]])


def test_intervals_of_the_third_look_are_those_of_a_quarter_of_the_level():
    sides = [10.0, 20.0, 40.0, 80.0], [11.0, 21.5, 45.0, 84.0]
    found = times(*sides, paired=True, looks=3)
    logs = ttest_rel(*(list(map(math.log, side)) for side in sides[::-1]))
    for confidence, low, high in (
        (0.9875, found.low_percent, found.high_percent),
        (0.975, found.low90_percent, found.high90_percent),
    ):
        ends = logs.confidence_interval(confidence)
        assert (math.log1p(low / 100), math.log1p(high / 100)) == pytest.approx((ends.low, ends.high))


@pytest.mark.parametrize("paired", [False, True])
def test_the_second_look_doubles_the_p_of_what_never_happened(*, paired: bool):
    sides = [0.0] * 6, [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    once, second, ninth = (rare(*sides, paired=paired, looks=looks) for looks in (1, 2, 9))
    assert (second.p, ninth.p) == (2 * once.p, 1.0 if paired else pytest.approx(256 * once.p))


def test_looked_at_often_four_pairs_have_no_interval_and_no_verdict():
    found = times([10.0, 10.1, 9.9, 10.05], [20.0, 20.3, 19.7, 20.1], paired=True, looks=None)
    assert (found.verdict, found.low_percent, found.mde_percent) == ("inconclusive", None, None)
    assert found.p > 0.05


@pytest.mark.parametrize("paired", [False, True])
def test_what_never_happened_on_one_side_is_told_by_rearranging_forks(*, paired: bool):
    events = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    worse = rare([0.0] * 6, events, paired=paired)
    assert (worse.verdict, worse.direction) == ("slower", "slower")
    assert worse.p == pytest.approx(2 / 2**6 if paired else 2 / 924)
    assert (worse.effect_percent, worse.high_percent) == (None, None)
    assert rare(events, [0.0] * 6, paired=paired).verdict == "faster"
    assert compare([0.0] * 6, events, higher_is_better=True, margin=0.05, additive=True).verdict == "faster"
    assert rare([0.0] * 6, [0.0] * 4 + events[:2], paired=paired).verdict == "inconclusive"
    assert rare([0.0] * 3, events[:3], paired=paired).verdict == "inconclusive"


@given(
    events=st.lists(st.floats(0.001, 1e6) | st.just(0.0), min_size=3, max_size=7).filter(any),
    paired=st.booleans(),
)
def test_one_side_without_any_is_judged_the_same_in_any_unit_and_direction(
    events: Sequence[float], *, paired: bool
):
    never = [0.0] * len(events)
    worse, better = rare(never, events, paired=paired), rare(events, never, paired=paired)
    assert worse.p == better.p == rare(never, [1000 * one for one in events], paired=paired).p
    assert worse.verdict == ("slower" if worse.p <= 0.05 else "inconclusive")
    assert better.verdict == ("faster" if worse.p <= 0.05 else "inconclusive")

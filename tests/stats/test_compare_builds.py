import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from benchctl.stats.analyse import analyse
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Side, several_builds
from builders import make_fork, make_plan, make_summary
from comparing import compare

# Three builds of two forks each, block by block: forks take the builds in turn.
BUILDS = (0, 1, 2, 0, 1, 2)
ES_MS = (10.0, 11.0, 12.0, 10.2, 11.3, 12.1)
OS_MS = (13.0, 14.2, 15.0, 13.1, 14.0, 15.5)


def forks(variant: str, times: Sequence[float], builds: Sequence[int] = BUILDS):
    return [
        make_fork(variant, block, make_summary("range", ms), index_build=build)
        for block, (ms, build) in enumerate(zip(times, builds, strict=True))
    ]


def nested(logs: Sequence[float], builds: Sequence[int]):
    return Side.plain(np.exp(logs).tolist(), builds).nested()


def means(times: Sequence[float], builds: Sequence[int] = BUILDS):
    return nested(np.log(times), builds).means


def compared(**options: object):
    return compare(ES_MS, OS_MS, **{"higher_is_better": False, "margin": 0.05, **options})


def test_the_interval_is_welchs_on_the_means_of_the_builds():
    found = compared(replicate="build", units=(BUILDS, BUILDS))
    expected = ttest_ind(means(OS_MS), means(ES_MS), equal_var=False)
    assert (found.replicate, found.replicates, found.n_baseline) == ("build", (3, 3), 6)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.low_percent == pytest.approx(100 * math.expm1(expected.confidence_interval().low))
    assert found.low_percent < compared().low_percent


def test_pairs_are_pairs_of_builds():
    found = compared(replicate="build", units=(BUILDS, BUILDS), paired=True)
    assert found.p == pytest.approx(ttest_rel(means(OS_MS), means(ES_MS)).pvalue)


@pytest.mark.parametrize(
    ("builds", "text"),
    [
        ((0, 1) * 3, "too few index builds (2 and 2): a verdict needs 3 per variant"),
        ((0,) * 6, "too few index builds (1 and 1): a verdict needs 3 per variant, an interval 2"),
    ],
)
def test_under_three_builds_there_is_no_verdict(builds: Sequence[int], text: str):
    found = compared(replicate="build", units=(builds, builds))
    assert found.verdict == "insufficient"
    assert found.caveats == (Caveat("few-units", text),)
    assert (found.p is None) == ("interval" in text)


def test_a_fork_without_a_figure_keeps_its_build_number_to_itself():
    found = compare((10.0, math.nan, 12.0), (10.0, 11.0, 12.0), higher_is_better=False, margin=0.05,
                    replicate="build", units=((0, 1, 2), (0, 1, 2)))  # fmt: skip
    assert (found.units_baseline, found.units_contender) == (2, 3)
    assert found.baseline_value == pytest.approx(math.sqrt(120.0))


def test_components_of_a_balanced_design():
    """Means 1, 2, 3; within, deviations of +-0.1 on 2 forks each: mean squares 2 and 0.02."""
    found = nested([0.9, 1.1, 1.9, 2.1, 2.9, 3.1], (0, 0, 1, 1, 2, 2))
    assert found.within_sd == pytest.approx(math.sqrt(0.02))
    assert found.between_sd == pytest.approx(math.sqrt((2.0 - 0.02) / 2))


def test_components_of_an_uneven_design_are_right_on_average():
    generator = np.random.default_rng(3)
    builds = np.repeat(np.arange(4), (1, 2, 5, 8))
    squares = []
    for _ in range(3000):
        logs = generator.normal(0, 0.3, 4)[builds] + generator.normal(0, 0.2, builds.size)
        found = nested(logs, builds.tolist())
        squares.append((found.between_sd**2, found.within_sd**2))
    between, within = np.mean(squares, axis=0)
    assert within == pytest.approx(0.04, rel=0.03)
    assert between == pytest.approx(0.09, rel=0.08)


@pytest.mark.parametrize(
    ("builds", "between", "within"), [((0, 1, 2), False, False), ((0, 0, 0), False, True), ((), False, False)]
)
def test_what_cannot_be_told_is_none(builds: Sequence[int], *, between: bool, within: bool):
    found = nested([1.0, 2.0, 3.0][: len(builds)], builds)
    assert (found.between_sd is not None, found.within_sd is not None) == (between, within)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 4)), min_size=1, max_size=20))
def test_the_order_of_forks_does_not_matter(drawn: list[tuple[float, int]]):
    logs, builds = zip(*drawn, strict=True)
    forth, back = nested(logs, builds), nested(logs[::-1], builds[::-1])
    assert forth.means == pytest.approx(back.means)


def test_an_analysis_uses_builds_where_there_are_several():
    found = analyse({"es": forks("es", ES_MS), "os": forks("os", OS_MS)}, make_plan(index_builds=3))
    one = found.rows[0].comparisons[0]
    assert (one.replicate, one.replicates) == ("build", (3, 3))
    assert found.caveats[-1].code == "builds"
    figures = found.rows[0].figures[0]
    assert figures.units == BUILDS
    assert figures.value == one.baseline_value
    assert figures.between_units_percent > 5 * figures.within_units_percent
    assert figures.cv_percent == pytest.approx(8.03, abs=0.01)


def test_pairs_of_builds_in_an_analysis_are_of_blocks_that_both_finished():
    made = {"es": forks("es", ES_MS), "os": forks("os", OS_MS)[:-1]}
    found = analyse(made, make_plan(index_builds=3), runs=["r"])
    one = found.rows[0].comparisons[0]
    assert (one.paired, one.replicates, one.n_baseline) == (True, (3, 3), 5)
    speeds = [1000 / np.array(times[:5]) for times in (OS_MS, ES_MS)]
    assert one.p == pytest.approx(ttest_rel(*(means(side, BUILDS[:5]) for side in speeds)).pvalue)


def test_forks_that_failed_make_it_uneven_and_the_note_says_so():
    broken = forks("os", OS_MS)
    broken[5] = msgspec.structs.replace(broken[5], status="failed", reason="no")
    found = analyse({"es": forks("es", ES_MS), "os": broken}, make_plan(index_builds=3))
    assert "forks on each build: es 2 2 2, os 2 2 1" in found.caveats[-1].text


def test_one_side_with_one_build_gets_no_verdict():
    assert several_builds({"es": forks("es", ES_MS), "os": forks("os", OS_MS, (0,) * 6)})
    one = compared(replicate="build", units=(BUILDS, (0,) * 6))
    assert (one.verdict, one.replicates) == ("insufficient", (3, 1))

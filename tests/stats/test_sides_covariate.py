import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress, t

from benchctl.results.model import HostProbe
from benchctl.stats.analyse import analyse
from benchctl.stats.compare import build_means
from benchctl.stats.metrics import THROUGHPUT
from benchctl.stats.sides import Side, adjusted_cvs, adjusted_effect, compare_sides, host_probes
from builders import make_fork, make_plan, make_summary

MS = 1_000_000


def sides(forks: int, *, slope: float = 1.0, effect: float = 0.1, noise: float = 0.01, seed: int = 1):
    """Logs and probes of both sides, on a host that varies by 10 %."""
    generator = np.random.default_rng(seed)
    probes = generator.normal(18.0, 0.10, (2, forks, 2))
    logs = slope * probes[..., 0] + generator.normal(0, noise, (2, forks))
    logs[1] += effect
    return (*logs, *probes)


def probe(cpu_ns: int, memory_ns: int = 100 * MS) -> HostProbe:
    return HostProbe(cpu_ns, memory_ns, None, 0.0, None)


def test_what_the_host_did_is_taken_out():
    found = adjusted_effect(*sides(10), paired=False)
    assert found.low < 0.1 < found.high
    assert found.high - found.low < 0.04
    assert found.kernels == ("cpu", "memory")


def test_pairs_are_adjusted_by_the_differences_of_their_probes():
    baseline, contender, before, after = sides(5)
    found = adjusted_effect(baseline, contender, before, after, paired=True)
    expected = linregress(after[:, 0] - before[:, 0], contender - baseline)
    half = t.ppf(0.975, 3) * expected.intercept_stderr
    assert found.kernels == ("cpu",)
    assert found.effect == pytest.approx(expected.intercept)
    assert (found.low, found.high) == pytest.approx((expected.intercept - half, expected.intercept + half))


def test_the_effect_is_the_plain_one_where_the_host_was_the_same_on_both_sides():
    baseline, contender, before, _ = sides(8)
    found = adjusted_effect(baseline, contender, before, before, paired=False)
    assert found.effect == pytest.approx(contender.mean() - baseline.mean())


@pytest.mark.parametrize(
    ("forks", "paired", "kernels"),
    [(2, False, ()), (3, False, ("cpu",)), (4, False, ("cpu",)), (5, False, ("cpu", "memory")),
     (4, True, ()), (5, True, ("cpu",)), (8, True, ("cpu",)), (9, True, ("cpu", "memory"))],
)  # fmt: skip
def test_the_number_of_forks_alone_decides_on_the_kernels(
    forks: int, kernels: Sequence[str], *, paired: bool
):
    found = adjusted_effect(*sides(forks), paired=paired)
    assert found.kernels == kernels
    assert bool(found.reason) == (not kernels)
    assert (found.effect is None) == (not kernels)


def test_a_memory_probe_that_says_what_the_cpu_probe_says_is_left_out():
    baseline, contender, before, after = sides(10)
    before[:, 1], after[:, 1] = before[:, 0], after[:, 0]
    found = adjusted_effect(baseline, contender, before, after, paired=False)
    assert found.kernels == ("cpu",)


def test_a_host_that_changed_with_the_variant_cannot_be_told_from_it():
    baseline, contender, before, after = sides(10)
    before[:], after[:] = 18.0, 18.1
    found = adjusted_effect(baseline, contender, before, after, paired=False)
    assert found.reason == "the host probes do not vary on their own"


@pytest.mark.parametrize("paired", [False, True])
def test_a_fork_without_a_probe_is_not_dropped(*, paired: bool):
    baseline, contender, before, after = sides(10)
    after[3] = math.nan
    found = adjusted_effect(baseline, contender, before, after, paired=paired)
    assert found.reason == "not every fork has a host probe"


def test_no_spread_is_no_measurement():
    found = adjusted_effect(*sides(10, noise=0.0), paired=False)
    assert found.reason == "nothing varies but with the host"


def test_probes_are_means_of_before_and_after():
    made = [make_fork("es", 0, probes=(probe(100 * MS), probe(110 * MS))), make_fork("es", 1)]
    found = host_probes(made)
    assert found[0].tolist() == pytest.approx([math.log(105 * MS), math.log(100 * MS)])
    assert np.isnan(found[1]).all()
    assert host_probes([]).shape == (0, 2)


def test_adjusted_cvs_are_those_of_the_residuals():
    baseline, contender, before, after = sides(400, noise=0.03)
    found = adjusted_cvs({"es": baseline, "os": contender}, {"es": before, "os": after})
    assert found == pytest.approx({"es": 3.0, "os": 3.0}, rel=0.1)


def test_adjusted_cvs_are_unbiased_with_few_forks():
    squares = [
        [cv**2 for cv in adjusted_cvs({"a": one, "b": two}, {"a": left, "b": right}).values()]
        for one, two, left, right in (sides(5, noise=0.02, seed=seed) for seed in range(1500))
    ]
    assert np.sqrt(np.mean(squares)) == pytest.approx(2.0, rel=0.03)


def test_one_variant_alone_has_an_adjusted_cv():
    baseline, _, before, _ = sides(10)
    assert adjusted_cvs({"es": baseline}, {"es": before})["es"] < 2.0
    assert adjusted_cvs({"es": baseline[:3]}, {"es": before[:3]}) == {}
    assert adjusted_cvs({"es": baseline[:0]}, {"es": before[:0]}) == {}


def analysed(**changes: Any):
    """The host slows down fork by fork, and both variants with it."""
    generator = np.random.default_rng(5)
    made = {}
    for variant, factor in (("es", 1.0), ("os", 1.1)):
        made[variant] = []
        for block in range(6):
            host = 1 + 0.05 * block
            ms = 10 * factor * host * float(np.exp(generator.normal(0, 0.01)))
            probes = (probe(round(100 * MS * host)), probe(round(100 * MS * host)))
            made[variant].append(make_fork(variant, block, make_summary("range", ms), probes=probes))
    return analyse(made, make_plan(**changes), runs=["r"])


def test_an_analysis_shows_the_adjusted_effect_which_decides_nothing():
    service_time = analysed().rows[1]
    one = service_time.comparisons[0]
    assert one.verdict == "inconclusive"
    assert one.adjusted_low_percent < 10.0 < one.adjusted_high_percent
    assert one.adjusted_high_percent - one.adjusted_low_percent < 5
    assert (one.adjusted_for, one.adjusted_reason) == ("cpu", "")
    assert all(figures.cv_percent > 5 * figures.cv_adjusted_percent for figures in service_time.figures)


def a_side(name: str, values: Sequence[float], seed: int, builds: Sequence[int]) -> Side:
    return Side(
        label=name,
        blocks=tuple(range(len(values))),
        values=tuple(values),
        builds=tuple(builds),
        probes=np.random.default_rng(seed).normal(18.0, 0.1, (len(values), 2)),
    )


BUILDS = (0, 1, 2, 3, 4) * 2
VALUES = (
    (10.0, 12.0, 11.0, 10.5, 11.2, 10.3, 11.8, 11.1, 10.9, 11.0),
    (13.0, 12.9, 14.1, 12.4, 13.3, 12.8, 13.6, 14.0, 12.7, 13.1),
)


def two_sides(contender: Sequence[float] = VALUES[1]) -> tuple[Side, Side]:
    return a_side("es", VALUES[0], 1, BUILDS), a_side("os", contender, 2, BUILDS)


@pytest.mark.parametrize("paired", [False, True])
def test_with_builds_their_means_are_adjusted(*, paired: bool):
    sides = two_sides()
    found = compare_sides(THROUGHPUT, *sides, paired=paired, judged=True, by_build=True)
    expected = adjusted_effect(
        *(build_means(np.log(side.values), BUILDS) for side in sides),
        *(build_means(side.probes, BUILDS) for side in sides),
        paired=paired,
    )
    assert found.replicates == (5, 5)
    assert found.adjusted_percent == pytest.approx(100 * math.expm1(expected.effect))
    assert found.adjusted_high_percent == pytest.approx(100 * math.expm1(expected.high))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("by_build", [False, True])
def test_a_fork_without_a_figure_takes_its_own_probe_and_build_with_it(*, paired: bool, by_build: bool):
    whole = two_sides()
    gap = two_sides((*VALUES[1][:3], math.nan, *VALUES[1][4:]))
    kept = [block for block in range(10) if block != 3]
    without = (whole[0].within(kept) if paired else whole[0], whole[1].within(kept))
    options = {"paired": paired, "judged": True, "by_build": by_build}
    found = compare_sides(THROUGHPUT, *gap, **options)
    expected = compare_sides(THROUGHPUT, *without, **options)
    for name in ("effect_percent", "p", "adjusted_percent", "adjusted_low_percent", "replicates"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name)), name


def test_no_figures_at_all_are_nothing_to_adjust():
    found = compare_sides(THROUGHPUT, *two_sides((math.nan,) * 10), paired=False, judged=True, by_build=False)
    assert found.adjusted_reason == "a side has no figures"

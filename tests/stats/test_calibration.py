"""Do the statistics keep their promises? Forks are drawn from known processes, again and again, seeded.

`pytest tests/stats/test_calibration.py --repetitions 20000 --calibration-table FILE` measures ten times as
exactly as the suite does and writes what it found as Markdown.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_ind_from_stats, ttest_rel

from benchctl.results.plan import FIRST_LOOK
from benchctl.stats.inference import Ratio, adjusted_p, difference_of, sequential_critical
from comparing import compare
from stats.processes import (
    PHIS,
    SIGMAS,
    SLOW,
    Table,
    Values,
    fork_levels,
    noise,
    noise_means,
    welch,
)

MARGIN = 0.05
FORKS = (3, 5, 10)
NORMAL = {"least": 0.025, "most": 0.065}
COVERAGE = 0.935
FALSE_POSITIVES = "Welch: p at most 0.05 without a difference"
COVERED = "Welch: coverage of the 95% interval"


def seeded(*words: float) -> np.random.Generator:
    """A stream of its own for every cell."""
    return np.random.default_rng([round(1000 * word) for word in words])


@pytest.mark.parametrize("forks", FORKS)
@pytest.mark.parametrize("fork_sd", [0.01, 0.02, 0.05])
@pytest.mark.parametrize(("sigma", "phi", "samples"), list(itertools.product(SIGMAS, PHIS, (100, 1000))))
def test_equal_variants_are_found_different_as_often_as_promised(
    calibration: Table, forks: int, fork_sd: float, sigma: float, phi: float, samples: int
):
    drawn = noise_means(calibration.repetitions, phi, samples)[sigma][..., :forks]
    drawn = drawn + fork_levels(seeded(forks, fork_sd, sigma, phi, samples), drawn.shape, fork_sd)
    rejected, covered = welch(drawn[:, 0], drawn[:, 1])
    cell = f"n {forks}, fork SD {fork_sd:.0%}, sigma {sigma}, phi {phi}, m {samples:,}"
    calibration.check(f"{FALSE_POSITIVES}, normal forks", cell, rejected, **NORMAL)
    calibration.check(f"{COVERED}, normal forks", cell, covered, least=COVERAGE)


@pytest.mark.parametrize("forks", FORKS)
def test_the_vectorised_test_of_this_file_is_the_one_that_benchctl_runs(forks: int):
    left, right = seeded(forks).normal(0, 0.02, (2, 20, forks))
    vectorised = ttest_ind(right, left, axis=1, equal_var=False)
    for place in range(20):
        found = difference_of(left[place], right[place], paired=False)
        assert found.p == pytest.approx(vectorised.pvalue[place])
        for confidence in (0.9, 0.95):
            interval = vectorised.confidence_interval(confidence)
            assert found.interval(confidence) == pytest.approx((interval.low[place], interval.high[place]))


# Name -> SD of forks and share of slow ones on either side, and what is accepted; else it is reported.
# Of two states on one side, the share of forks that may have been missed stands below each table.
PROCESSES: dict[str, tuple[tuple[float, float], tuple[float, float], dict[str, float]]] = {
    **{
        f"fork SD {left:.0%} and {right:.0%}": ((left, right), (0.0, 0.0), {"rejected": 0.065})
        for left, right in ((0.01, 0.02), (0.01, 0.05), (0.05, 0.01))
    },
    **{
        f"fork SD {sd:.0%}, {slow:.0%} slow on both sides": (
            (sd, sd), (slow, slow), {"rejected": 0.065, "covered": COVERAGE},
        )
        for sd in (0.01, 0.02, 0.05)
        for slow in (0.1, 0.3)
    },
    **{f"fork SD 1%, {slow:.0%} slow on one side": ((0.01, 0.01), (0.0, slow), {}) for slow in (0.1, 0.3)},
}  # fmt: skip


@pytest.mark.parametrize("forks", FORKS)
@pytest.mark.parametrize("process", PROCESSES)
def test_unlike_spreads_and_two_states(calibration: Table, forks: int, process: str):
    sds, slow, bounds = PROCESSES[process]
    drawn = noise_means(calibration.repetitions, 0.3, 100)[0.1][..., :forks]
    generator = seeded(11, forks, [*PROCESSES].index(process))
    left, right = (
        drawn[:, side] + fork_levels(generator, drawn[:, side].shape, sds[side], slow[side])
        for side in range(2)
    )
    truth = (slow[1] - slow[0]) * SLOW
    rejected, covered = welch(left, right, truth=truth)
    cell = f"n {forks}, {process}"
    if not truth:
        calibration.check(
            f"{FALSE_POSITIVES}, two states or spreads", cell, rejected, most=bounds.get("rejected")
        )
    calibration.check(f"{COVERED}, two states or spreads", cell, covered, least=bounds.get("covered"))


def test_pooling_requests_would_mislead(calibration: Table):
    """The negative control: the mistake that forks exist to avoid."""
    rejected = 0
    for repetition in range(calibration.repetitions):
        generator = seeded(5, repetition)
        drawn = fork_levels(generator, (2, 5, 1), 0.02) + 0.3 * noise(generator, (2, 5, 1000), 0.3)
        left, right = drawn.reshape(2, -1)
        sides = (left.mean(), left.std(ddof=1), left.size, right.mean(), right.std(ddof=1), right.size)
        rejected += ttest_ind_from_stats(*sides, equal_var=False).pvalue <= 0.05
    share = rejected / calibration.repetitions
    calibration.check("pooled requests, a negative control", "n 5, 2%, 0.3, 0.3, m 1,000", share, least=0.20)


def family_p(generator: np.random.Generator, repetitions: int, effects: Sequence[float]) -> Values:
    """p-values of shape (repetitions, tasks), five forks per variant with an SD of 2%."""
    shape = (repetitions, len(effects), 5)
    left = generator.normal(0, 0.02, shape)
    right = generator.normal(0, 0.02, shape) + np.asarray(effects)[:, None]
    return np.asarray(ttest_ind(right, left, axis=-1, equal_var=False).pvalue)


@pytest.mark.parametrize("method", ["benjamini-hochberg", "holm"])
def test_forty_equal_tasks_rarely_give_any_finding(calibration: Table, method: str):
    p_values = family_p(seeded(17), calibration.repetitions, [0.0] * 40)
    found = np.mean([min(adjusted_p(row, method)) <= 0.05 for row in p_values.tolist()])
    calibration.check("40 true nulls: any finding", method, found, most=0.065)


def test_share_of_false_findings_beside_real_ones(calibration: Table):
    p_values = family_p(seeded(19), calibration.repetitions, [0.06] * 10 + [0.0] * 30)
    shares = []
    for row in p_values.tolist():
        found = np.asarray(adjusted_p(row, "benjamini-hochberg")) <= 0.05
        shares.append(found[10:].sum() / max(1, found.sum()))
    calibration.check(
        "mean share of false findings", "10 real effects, 30 nulls", float(np.mean(shares)), most=0.06
    )


@pytest.mark.parametrize("forks", FORKS)
@pytest.mark.parametrize("fork_sd", [0.01, 0.02, 0.05])
def test_equivalence_at_exactly_the_margin_is_rarely_claimed(calibration: Table, forks: int, fork_sd: float):
    limit = math.log1p(MARGIN)
    left, right = seeded(23, forks, fork_sd).normal(0, fork_sd, (2, calibration.repetitions, forks))
    right = right + limit
    interval = ttest_ind(right, left, axis=1, equal_var=False).confidence_interval(0.90)
    equivalent = (interval.low > -limit) & (interval.high < limit)
    for place in range(5):
        found = compare(
            np.exp(left[place]).tolist(), np.exp(right[place]).tolist(), higher_is_better=False, margin=MARGIN
        )
        assert (found.verdict == "equivalent") == equivalent[place]
    cell = f"n {forks}, fork SD {fork_sd:.0%}"
    calibration.check("TOST: equivalent at exactly the margin", cell, equivalent.mean(), most=0.065)


@pytest.mark.parametrize("phi", [0.3, 0.5])
def test_equal_in_a_closed_loop_is_said_of_the_engines(calibration: Table, phi: float):
    """Several clients pause between requests for this share of their time; times differ by the margin."""
    times = np.exp(seeded(41, phi).normal(0, 0.01, (calibration.repetitions, 2, 6)))
    times[:, 1] *= 1 + MARGIN
    cycles = times + phi / (1 - phi)
    share = np.median(1 - times / cycles, axis=-1).max(axis=-1)
    claimed = [
        [
            compare(
                *(8 / sides).tolist(), higher_is_better=True, margin=MARGIN, paired=True, stretch=stretch
            ).verdict
            == "equivalent"
            for stretch in (1.0, 1 / (1 - own))
        ]
        for sides, own in zip(cycles, share.tolist(), strict=True)
    ]
    plain, stretched = np.mean(claimed, axis=0)
    cell = f"n 6, fork SD 1%, phi {phi}"
    calibration.check(
        "TOST: equal at the margin, pauses included, a negative control", cell, plain, least=0.3
    )
    calibration.check("TOST: equal at the margin, pauses of clients", cell, stretched, most=0.065)


@pytest.mark.parametrize(("effect", "forks", "least"), [(0.05, 5, 0.90), (0.10, 3, 0.97), (0.03, 10, 0.85)])
def test_real_effects_are_found(calibration: Table, effect: float, forks: int, least: float):
    """Effects are on the log scale. The second has a power of 0.9705: the error of the draw counts."""
    left, right = seeded(29, forks).normal(0, 0.02, (2, calibration.repetitions, forks))
    rejected, _ = welch(left, right + effect)
    error = 2 * math.sqrt(least * (1 - least) / calibration.repetitions)
    name = f"power: {effect:.0%} at n {forks}, total SD 2%"
    calibration.check(name, f"to be at least {least:.0%}", rejected, least=least - error)


MOST = 50


def pairs_of(process: str, repetitions: int, fork_sd: float) -> Values:
    """Differences within pairs with mean 0, shape (repetitions, MOST), of this SD or of such forks."""
    generator = seeded(31, fork_sd, len(process))
    shape = (repetitions, MOST)
    match process.split():
        case ["exponential"]:
            return generator.exponential(fork_sd, shape) - fork_sd
        case ["t3"]:
            return generator.standard_t(3, shape) * fork_sd / math.sqrt(3)
        case ["AR", phi]:
            return fork_sd * noise(generator, shape, float(phi))
        case [share, "slow"]:
            sides = generator.normal(0, fork_sd, (2, *shape))
            return np.diff(sides + (generator.random(sides.shape) < float(share)) * math.log(SLOW), axis=0)[0]
    raise ValueError(process)


def half_widths(pairs: Values, confidence: float = 0.95) -> Values:
    """Of the interval after each pair, as `Contrast` has them where looks are many."""
    counts = np.arange(1, pairs.shape[1] + 1)
    means = pairs.cumsum(axis=1) / counts
    squares = np.maximum((pairs**2).cumsum(axis=1) - counts * means**2, 0)
    errors = np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
    reach = np.array([sequential_critical(confidence, n - 1, n) if n > 1 else math.inf for n in counts])
    half = np.full(pairs.shape, math.inf)
    usable = np.isfinite(reach)
    half[:, usable] = reach[usable] * errors[:, usable]
    return half


BUILD_SD, FORK_SD, FORKS_A_BUILD = 0.03, 0.02, 5


def nested_logs(generator: np.random.Generator, repetitions: int, builds: int) -> Values:
    """Forks on builds, shape (2 sides, repetitions, builds, forks)."""
    levels = generator.normal(0, BUILD_SD, (2, repetitions, builds, 1))
    return np.asarray(levels + generator.normal(0, FORK_SD, (2, repetitions, builds, FORKS_A_BUILD)))


@pytest.mark.parametrize("builds", FORKS)
def test_intervals_over_builds_cover_and_those_over_forks_do_not(calibration: Table, builds: int):
    left, right = nested_logs(seeded(37, builds), calibration.repetitions, builds)
    rejected, covered = welch(left.mean(axis=-1), right.mean(axis=-1))
    cell = f"{builds} builds of {FORKS_A_BUILD} forks, build SD 3%, fork SD 2%"
    calibration.check("index builds: p at most 0.05 without a difference", cell, rejected, **NORMAL)
    calibration.check("index builds: coverage of the 95% interval", cell, covered, least=COVERAGE)
    rows = left.shape[0]
    _, wrong = welch(left.reshape(rows, -1), right.reshape(rows, -1))
    calibration.check("index builds taken for forks, a negative control: coverage", cell, wrong, most=0.80)
    numbers = np.repeat(np.arange(builds), FORKS_A_BUILD).tolist()
    for place in range(5):
        values = [np.exp(side[place].ravel()).tolist() for side in (left, right)]
        found = compare(
            *values, higher_is_better=False, margin=MARGIN, replicate="build", units=(numbers, numbers)
        )
        expected = ttest_ind(*(side[place].mean(axis=-1) for side in (right, left)), equal_var=False)
        assert found.p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("builds", FORKS)
def test_uneven_builds_and_pairs_of_builds_cover(calibration: Table, builds: int):
    """Half of the builds have lost all forks but one; blocks share their host, with an SD of 10%."""
    left, right = nested_logs(seeded(41, builds), calibration.repetitions, builds)
    whole = np.arange(builds) % 2 == 0
    _, covered = welch(*(np.where(whole, side.mean(axis=-1), side[..., 0]) for side in (left, right)))
    cell = f"{builds} builds of 5 forks or 1"
    calibration.check("index builds, uneven: coverage", cell, covered, least=COVERAGE)
    blocks = seeded(43, builds).normal(0, 0.10, left.shape)
    found = ttest_rel((right + blocks).mean(axis=-1), (left + blocks).mean(axis=-1), axis=1)
    interval = found.confidence_interval(0.95)
    covered = float(((interval.low <= 0) & (interval.high >= 0)).mean())
    calibration.check("index builds, paired: coverage", f"{builds} pairs of builds", covered, least=COVERAGE)


HOSTS = {
    "still": np.zeros,
    "drifts by a fork SD": lambda blocks: np.linspace(0.0, 1.0, blocks),
    "makes a step of two fork SDs in the middle": lambda blocks: 2.0 * (np.arange(blocks) >= blocks // 2),
}


@pytest.mark.parametrize("blocks", [5, 8, 12])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("host", HOSTS)
def test_pairs_within_blocks_cover_whatever_the_host_does(
    calibration: Table, blocks: int, share: float, host: str
):
    """The fork SD is 1; `share` of its variance lies between blocks, beside what the host does in a run."""
    generator = seeded(53, blocks, share, [*HOSTS].index(host))
    levels = generator.normal(0, math.sqrt(share), (calibration.repetitions, blocks)) + HOSTS[host](blocks)
    left, right = levels + generator.normal(0, math.sqrt(1 - share), (2, calibration.repetitions, blocks))
    found = ttest_rel(right, left, axis=1)
    interval = found.confidence_interval(0.95)
    covered = float(((interval.low <= 0) & (interval.high >= 0)).mean())
    cell = f"{blocks} blocks, share {share:g}, the host {host}"
    calibration.check("blocks as pairs: coverage of the 95% interval", cell, covered, least=COVERAGE)
    calibration.check(
        "blocks as pairs: p at most 0.05 without a difference",
        cell,
        float((found.pvalue <= 0.05).mean()),
        most=0.065,
    )
    unpaired = ttest_ind(right, left, axis=1, equal_var=False).confidence_interval(0.95)
    width = (interval.high - interval.low).mean() / (unpaired.high - unpaired.low).mean()
    # What pairing costs where the host is still, and what it saves where it is not.
    calibration.check(
        "blocks as pairs: width over Welch's", cell, float(width), most=0.8 if share >= 0.6 else 1.2
    )


def verdicts_of(pairs: Values, look: int, *, margin: float = MARGIN) -> tuple[Values, Values, Values]:
    """Faster or slower, different, and equal after so many pairs under the verdict rule; masks of rows."""
    limit = math.log1p(margin)
    mean = pairs[:, :look].mean(axis=1)
    error = pairs[:, :look].std(axis=1, ddof=1) / math.sqrt(look)
    significant = np.abs(mean) > sequential_critical(0.95, look - 1, look) * error
    equal = np.abs(mean) + sequential_critical(0.90, look - 1, look) * error < limit
    beyond = np.abs(mean) > limit
    return significant & beyond & ~equal, significant & ~beyond & ~equal, equal


def at_first_verdict(pairs: Values) -> tuple[Values, Values]:
    """Verdict at the first look that has any, from FIRST_LOOK pairs on, and the number of pairs.

    0 is open, 1 beyond the margin, 2 within, 3 equal.
    """
    found, taken = np.zeros(len(pairs), int), np.full(len(pairs), pairs.shape[1])
    for look in range(FIRST_LOOK, pairs.shape[1] + 1):
        for code, mask in enumerate(verdicts_of(pairs, look), 1):
            fresh = mask & (found == 0)
            found[fresh], taken[fresh] = code, look
    return found, taken


LOOKS = [
    *((f"{slow} slow", sd, 0.05) for slow in (0.0, 0.1, 0.3, 0.5) for sd in (0.01, 0.02, 0.05)),
    *(("t3", sd, 0.05) for sd in (0.02, 0.05, 0.10)),
    # Skewed pairs are a one-sided rare state: .05 is not promised, a difference of note rarely claimed. Pairs
    # with an autocorrelation of .3 break what every test of means assumes.
    *(("exponential", sd, 0.15) for sd in (0.02, 0.05, 0.10)),
    ("AR .3", 0.05, 0.15),
]


@pytest.mark.parametrize(("process", "fork_sd", "most"), LOOKS)
def test_looking_after_every_block_finds_nothing_that_is_not_there(
    calibration: Table, process: str, fork_sd: float, most: float
):
    found, _ = at_first_verdict(pairs_of(process, calibration.repetitions, fork_sd))
    cell = f"up to {MOST} pairs, {process}, SD {fork_sd:.0%}"
    false = float(np.isin(found, (1, 2)).mean())
    calibration.check("any look: a difference that is not there", cell, false, most=most)


@pytest.mark.parametrize("effect", [0.005, 0.02, 0.10])
@pytest.mark.parametrize("fork_sd", [0.02, 0.10])
def test_the_direction_is_right(calibration: Table, effect: float, fork_sd: float):
    """At any look, and at a fixed number of pairs."""
    pairs = seeded(43, effect, fork_sd).normal(math.log1p(effect), fork_sd, (calibration.repetitions, MOST))
    found, taken = at_first_verdict(pairs)
    means = np.array([row[:n].mean() for row, n in zip(pairs, taken.tolist(), strict=True)])
    wrong = float((np.isin(found, (1, 2)) & (means < 0)).mean())
    cell = f"effect {effect:.1%}, SD of pairs {fork_sd:.0%}"
    calibration.check("any look: the wrong direction", cell, wrong, most=0.025)
    once = ttest_rel(pairs[:, :6], np.zeros((len(pairs), 6)), axis=1)
    wrong = float(((once.pvalue <= 0.05) & (once.statistic < 0)).mean())
    error = 2 * math.sqrt(0.025 * 0.975 / calibration.repetitions)
    calibration.check("six pairs: the wrong direction", cell, wrong, most=0.025 + error)


@pytest.mark.parametrize("fork_sd", [0.02, 0.05, 0.10])
def test_equal_at_exactly_the_margin_is_rarely_claimed_at_any_look(calibration: Table, fork_sd: float):
    pairs = seeded(38, fork_sd).normal(math.log1p(MARGIN), fork_sd, (calibration.repetitions, MOST))
    ever = np.zeros(len(pairs), bool)
    for look in range(FIRST_LOOK, MOST + 1):
        ever |= verdicts_of(pairs, look)[2]
    cell = f"up to {MOST} pairs, SD of pairs {fork_sd:.0%}"
    calibration.check("any look: equal at exactly the margin", cell, float(ever.mean()), most=0.05)


@pytest.mark.parametrize("fork_sd", [0.05, 0.10])
@pytest.mark.parametrize("effect", [0.0, 0.10])
def test_a_run_until_decided_ends_right(calibration: Table, fork_sd: float, effect: float):
    pairs = seeded(39, fork_sd, effect).normal(math.log1p(effect), fork_sd, (calibration.repetitions, MOST))
    found, taken = at_first_verdict(pairs)
    half = half_widths(pairs)[np.arange(len(pairs)), taken - 1]
    means = np.array([row[:n].mean() for row, n in zip(pairs, taken.tolist(), strict=True)])
    covered = float((np.abs(means - math.log1p(effect)) <= half).mean())
    cell = f"SD of pairs {fork_sd:.0%}, effect {effect:.0%}, ends after {taken.mean():.1f} pairs"
    calibration.check("until decided: the interval at the end covers", cell, covered, least=0.95)
    right = float((found == (1 if effect else 3)).mean())
    least = 0.90 if effect else 0.5 if fork_sd < 0.10 else 0.0
    calibration.check("until decided: the right verdict", cell, right, least=least)
    for place in range(3):
        for look in (FIRST_LOOK, 20):
            values = np.exp(pairs[place, :look]).tolist()
            own = compare(
                [1.0] * look, values, higher_is_better=False, margin=MARGIN, paired=True, looks=None
            )
            beyond, within, equal = (bool(mask[place]) for mask in verdicts_of(pairs, look))
            assert (own.verdict in ("slower", "faster")) == beyond
            assert (own.verdict == "different") == within
            assert (own.verdict == "equivalent") == equal


def test_deciding_after_a_look_misleads_little_more_than_looking_once(calibration: Table):
    """The first look was at an ordinary p; whoever then runs until it is decided pays from then on."""
    pairs = seeded(41).normal(0, 0.05, (calibration.repetitions, MOST))
    found = found_by_hand(pairs, (FIRST_LOOK,))
    for look in range(FIRST_LOOK + 1, MOST + 1):
        beyond, within, _ = verdicts_of(pairs, look)
        found |= beyond | within
    cell = f"five pairs, then until decided or up to {MOST}"
    calibration.check(
        "extend --until-decided: a difference that is not there", cell, float(found.mean()), most=0.075
    )


def found_by_hand(pairs: Values, counts: Sequence[int]) -> Values:
    """Whether p is at most .05 at any look after so many pairs, of which each but the last made others."""
    found = np.zeros(len(pairs), bool)
    for looks, count in enumerate(counts, 1):
        own = pairs[:, :count]
        p = 2 ** (looks - 1) * ttest_rel(own, np.zeros_like(own), axis=1).pvalue
        found |= p <= 0.05
        none = np.zeros(count)
        for place in range(3):
            mine = difference_of(none, own[place], paired=True, looks=looks)
            assert mine.p == pytest.approx(min(1.0, p[place]))
    return found


@pytest.mark.parametrize("looks", [2, 4, 8])
def test_adding_blocks_after_looks_misleads_little_more_than_looking_once(calibration: Table, looks: int):
    pairs = seeded(44, looks).normal(0, 0.05, (calibration.repetitions, 6 * looks))
    false = found_by_hand(pairs, range(6, 6 * looks + 1, 6)).mean()
    cell = f"{looks} looks, each after six pairs more"
    calibration.check("extend: a difference that is not there", cell, float(false), most=0.075)


def test_adding_blocks_after_a_look_finds_what_it_should(calibration: Table):
    """The mixture t-test would find it in .37 of cases."""
    pairs = seeded(45).normal(math.log1p(0.10), 0.15, (calibration.repetitions, 22))
    second = 2 * ttest_rel(pairs, np.zeros_like(pairs), axis=1).pvalue <= 0.05
    cell = "6 and 16 pairs more, SD of pairs 15%, effect 10%"
    calibration.check("extend: a true difference at the second look", cell, float(second.mean()), least=0.69)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("events", "truth"), [(2.0, 1.0), (2.0, 3.0), (20.0, 1.0), (20.0, 0.5)])
@pytest.mark.parametrize("forks", [5, 10])
def test_ratios_of_what_is_often_zero_cover(
    calibration: Table, forks: int, events: float, truth: float, *, paired: bool
):
    """Pauses of a fork: as many as there happen to be, each of some length, longer on a noisy host."""
    generator = seeded(forks, events, truth, paired)
    rejected, covered = [], []
    for _ in range(calibration.calls):
        host = np.exp(generator.normal(0, 0.2, forks))
        sides = [
            generator.gamma(2.0 * np.maximum(generator.poisson(events * ratio, forks), 1e-9)) * host
            for ratio in (1.0, truth)
        ]
        if not all(side.any() for side in sides):
            continue
        found = Ratio.of(*sides, paired=paired)
        low, high = found.bounds(0.95)
        rejected.append(found.p <= 0.05)
        covered.append(low <= truth <= high)
    cell = f"n {forks}, {events:g} events a fork, {'pairs' if paired else 'apart'}"
    if truth == 1.0:
        name = "Fieller: p at most 0.05 without a difference, values that may be 0"
        calibration.check(name, cell, float(np.mean(rejected)), most=0.08)
    name = "Fieller: coverage of the 95% interval, values that may be 0"
    calibration.check(name, f"{cell}, ratio {truth:g}", float(np.mean(covered)), least=0.915)


def task_values(generator: np.random.Generator, means: Sequence[float], forks: int, *, host: float) -> Values:
    """Of tasks that share the forks of their side, shape (tasks, forks): means, times fork and host.

    Every factor has a mean of 1, so that the mean of what is drawn is what was asked for.
    """
    shared = fork_factor(generator, (1, forks), 0.05) * host
    return np.asarray(means)[:, None] * shared * fork_factor(generator, (len(means), forks), 0.03)


def fork_factor(generator: np.random.Generator, shape: tuple[int, ...], sd: float) -> Values:
    return np.exp(generator.normal(-(sd**2) / 2, sd, shape))


# What a side's tasks take on average, and how a derived value is made of them: baseline, contender, weights.
DERIVED = {
    "one task": ((10.0,), (10.8,), (1,)),
    "total of three": ((4.0, 20.0, 1.0), (4.0, 24.0, 0.5), (1, 1, 1)),
    "cost of a quarter": ((8.0, 6.0), (9.0, 6.2), (1, -1)),
    "cost near 0": ((6.3, 6.0), (6.6, 6.2), (1, -1)),
}


@pytest.mark.parametrize("forks", [5, 10])
@pytest.mark.parametrize("what", DERIVED)
@pytest.mark.parametrize("design", ["apart", "pairs", "builds", "looks"])
def test_differences_sums_and_costs_cover(calibration: Table, what: str, forks: int, design: str):
    """Differences and Fieller's ratios of values that several tasks of a fork make up.

    With `builds`, every replicate is the mean of three forks on a build that has a speed of its own; `looks`
    may be any number. Some ratios to costs near 0 are not
    told: those that are, are reported beside.
    """
    *means, weights = DERIVED[what]
    truth = [float(np.dot(weights, side)) for side in means]
    looks, paired = None if design == "looks" else 1, design != "apart"
    generator = seeded(17, forks, list(DERIVED).index(what), len(design))
    differences, ratios, told = [], [], []
    for _ in range(calibration.calls):
        sides = []
        host = fork_factor(generator, (1, forks), 0.10)
        for own in means:
            if design == "builds":
                build = fork_factor(generator, (1, forks), 0.08)
                drawn = np.mean(
                    [task_values(generator, own, forks, host=host * build) for _ in range(3)], axis=0
                )
            else:
                drawn = task_values(generator, own, forks, host=host if paired else 1.0)
            sides.append(np.asarray(weights) @ drawn)
        difference = difference_of(*sides, paired=paired, looks=looks)
        ratio = Ratio.of(*sides, paired=paired, looks=looks)
        low, high = difference.interval(0.95)
        differences.append(low <= truth[1] - truth[0] <= high)
        low, high = ratio.bounds(0.95)
        ratios.append(low <= truth[1] / truth[0] <= high)
        told += [ratios[-1]] if math.isfinite(high) else []
    cell = f"{what}, n {forks}, {design}"
    calibration.check("coverage of the 95% interval of a difference", cell, np.mean(differences), least=0.92)
    name = "Fieller: coverage of the 95% interval, derived"
    calibration.check(name, cell, np.mean(ratios), least=0.92)
    if told:
        cell = f"{cell}, told {len(told) / len(ratios):.0%}"
        calibration.check(f"{name}, where the baseline is clearly above 0", cell, np.mean(told))


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("events", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("forks", [3, 6, 10])
def test_what_rarely_happens_is_rarely_found_different(
    calibration: Table, forks: int, events: float, *, paired: bool
):
    """Whether or not a side happens to be 0 in every fork."""
    generator = seeded(31, forks, events, paired)
    verdicts = []
    for _ in range(max(calibration.calls // 5, 100)):
        host = np.exp(generator.normal(0, 0.2, forks))
        happened = generator.poisson(events, (2, forks))
        sides = np.where(happened > 0, generator.gamma(2.0 * np.maximum(happened, 1)) * host, 0.0)
        found = compare(*sides, higher_is_better=False, margin=MARGIN, paired=paired, additive=True)
        verdicts.append(found.verdict in ("faster", "slower", "different"))
    cell = f"n {forks}, {events:g} events a fork, {'pairs' if paired else 'apart'}"
    name = "a side may be 0 in every fork, no difference: faster, slower or different"
    calibration.check(name, cell, float(np.mean(verdicts)), most=0.08)


@pytest.mark.parametrize("forks", [3, 6, 10])
def test_equal_because_nothing_happened_misses_no_more_than_it_says(calibration: Table, forks: int):
    """The share of forks that the caveat names happens on one side, and never on the other."""
    share = 1 - 0.05 ** (1 / forks)
    happened = seeded(37, forks).random((calibration.repetitions, forks)) < share
    never = [0.0] * forks
    missed = np.mean(~happened.any(axis=1))
    found = compare(never, never, higher_is_better=False, margin=MARGIN, additive=True)
    assert f"what happens in {100 * share:.0f}% of forks or fewer" in found.caveats[0].text
    calibration.check(
        "equal, since 0 in every fork: missed what it says", f"n {forks}", float(missed), most=0.065
    )

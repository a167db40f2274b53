"""Outcomes follow from verdicts; what an experiment promises of them holds, by simulation.

`pytest tests/experiment/test_judge.py --repetitions 20000` measures each promise as often.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from benchctl.experiment.comparisons import ExperimentRow
from benchctl.experiment.judge import ExpectationResult, Outcome, Toward, judge_expectations, outcome_of
from benchctl.experiment.record import ComparisonSpec, Relation
from benchctl.stats.analysis import Figures, Steadiness
from benchctl.stats.compare import Verdict
from benchctl.stats.outlook import further_forks
from comparing import compare
from made_experiment import expect

OUTCOMES: Mapping[Verdict, tuple[Outcome, ...]] = {
    # of `slower`, `faster`, `alike`, `different`
    "slower": ("confirmed", "refuted", "refuted", "confirmed"),
    "faster": ("refuted", "confirmed", "refuted", "confirmed"),
    "equivalent": ("refuted", "refuted", "confirmed", "refuted"),
    "different": ("inconclusive", "inconclusive", "inconclusive", "confirmed"),
    "inconclusive": ("inconclusive",) * 4,
    "insufficient": ("inconclusive",) * 4,
    "n/a": ("inconclusive",) * 4,
}


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_an_outcome_follows_from_the_verdict(verdict: Verdict):
    assert tuple(outcome_of(relation, verdict) for relation in get_args(Toward)) == OUTCOMES[verdict]


FORK_SD = 0.05
RELATIONS: tuple[Relation, ...] = ("slower", "faster", "different")


def row(name: str, logs: npt.NDArray[np.float64], *, looks: int | None = 1) -> ExperimentRow:
    """A comparison of throughputs, by block, from the logarithms of both sides, shape (2, forks)."""
    values = np.exp(logs).tolist()
    compared = compare(*values, higher_is_better=True, margin=0.03, paired=True, looks=looks)
    blocks = tuple(range(logs.shape[1]))
    sides = [
        Figures(
            variant=side,
            blocks=blocks,
            values=tuple(own),
            value=None,
            cv_percent=None,
            samples=100,
            steady=Steadiness("steady"),
        )
        for side, own in zip(("a", "b"), values, strict=True)
    ]
    return ExperimentRow(
        asked=ComparisonSpec(name, "m/a/t", "m/b/t", label=name, metric="throughput"),
        unit="docs/s",
        higher_is_better=True,
        figures=(sides[0], sides[1]),
        comparison=compared,
    )


def judged(
    effects: Sequence[float], relations: Sequence[Relation], forks: int, generator: np.random.Generator
) -> tuple[ExpectationResult, ...]:
    """One experiment: an expectation of each comparison, whose contender is faster by so much (log ratio)."""
    drawn = generator.normal(0, FORK_SD, (len(effects), 2, forks))
    drawn[:, 1] += np.asarray(effects)[:, None]
    rows = {f"c{number}": row(f"c{number}", logs) for number, logs in enumerate(drawn)}
    named = zip(rows, relations, strict=True)
    return judge_expectations([expect(name, relation, name) for name, relation in named], rows)


@pytest.fixture
def repetitions(pytestconfig: pytest.Config) -> int:
    found: int = pytestconfig.getoption("--repetitions")
    return found


def at_most(share: float, most: float, repetitions: int) -> bool:
    """Whether a measured share keeps a bound, but for three standard errors of chance."""
    return share <= most + 3 * math.sqrt(most * (1 - most) / repetitions)


@pytest.mark.parametrize("forks", [5, 12])
def test_of_twenty_null_expectations_rarely_any_is_confirmed(forks: int, repetitions: int):
    generator = np.random.default_rng([forks, 20])
    repetitions = max(50, repetitions // 4)  # each is twenty of the others
    relations = [RELATIONS[number % 3] for number in range(20)]
    confirmed = sum(
        any(one.outcome == "confirmed" for one in judged([0.0] * 20, relations, forks, generator))
        for _ in range(repetitions)
    )
    assert at_most(confirmed / repetitions, 0.05, repetitions)


def shares(effect: float, forks: int, repetitions: int) -> Counter[tuple[Outcome, Verdict]]:
    """Outcomes of `slower` for a true effect, a ratio - 1, each with the verdict that it follows from."""
    generator = np.random.default_rng([forks, round(-1e4 * effect)])
    found: Counter[tuple[Outcome, Verdict]] = Counter()
    for _ in range(repetitions):
        (one,) = judged([math.log1p(effect)], ["slower"], forks, generator)
        found[one.outcome, one.judged[0].comparison.verdict] += 1
    return found


def test_a_slowdown_within_the_margin_is_refuted_only_as_equal(repetitions: int):
    """It is true that it is slower by 3%, and as true that it is equal within 5%."""
    found = shares(-0.03, 40, repetitions)
    assert {verdict for outcome, verdict in found if outcome == "refuted"} <= {"equivalent"}
    assert found["refuted", "equivalent"] / repetitions > 0.4
    assert {outcome for outcome, verdict in found if verdict == "different"} <= {"inconclusive"}


@pytest.mark.parametrize("forks", [6, 40])
def test_a_slowdown_of_the_margin_is_rarely_refuted(forks: int, repetitions: int):
    found = shares(1 / 1.05 - 1, forks, repetitions)
    refuted = sum(count for (outcome, _), count in found.items() if outcome == "refuted")
    assert at_most(refuted / repetitions, 0.05, repetitions)


def test_a_slowdown_beyond_the_margin_is_confirmed(repetitions: int):
    found = shares(-0.10, 8, repetitions)
    confirmed = sum(count for (outcome, _), count in found.items() if outcome == "confirmed")
    assert confirmed / repetitions >= 0.8


@pytest.mark.parametrize("effect", [0.0, 1 / 1.05 - 1])
def test_outcomes_of_what_is_extended_until_it_is_decided_err_nearly_as_rarely(
    effect: float, repetitions: int
):
    """No effect is confirmed as one, and a slowdown of the margin is refuted, in 7.3% at most."""
    generator = np.random.default_rng([50, round(-1e4 * effect)])
    wrong = "refuted" if effect else "confirmed"
    count = max(50, repetitions // 2)
    found: Counter[Outcome] = Counter()
    for _ in range(count):
        drawn = generator.normal(0, FORK_SD, (2, 54))
        drawn[1] += math.log1p(effect)
        for looks, forks in enumerate(range(5, 54, 6), 1):
            known = {"c": row("c", drawn[:, :forks], looks=looks)}
            (one,) = judge_expectations([expect("c", "slower", "c")], known)
            if one.outcome != "inconclusive":
                break
        found[one.outcome] += 1
    assert at_most(found[wrong] / count, 0.073, count)


def test_p_is_adjusted_over_distinct_comparisons():
    """The same comparison in two expectations is one hypothesis."""
    generator = np.random.default_rng(3)
    rows = {name: row(name, generator.normal(((0,), (0.05,)), FORK_SD, (2, 6))) for name in "ab"}
    both = [expect("one", "faster", "a"), expect("other", "alike", "a"), expect("third", "slower", "b")]
    first, second, third = judge_expectations(both, rows)
    assert first.p_adjusted == second.p_adjusted
    least, most = sorted((rows["a"].comparison.p or 0, rows["b"].comparison.p or 0))
    adjusted = [one.p_adjusted for one in (first, third)]
    assert sorted(adjusted) == pytest.approx([min(1, 2 * least), max(most, min(1, 2 * least))])


def test_the_margin_of_an_expectation_decides_and_not_that_of_the_metric():
    logs = np.random.default_rng(4).normal(((0,), (0.04,)), 0.002, (2, 8))
    compared = row("c", logs)
    assert compared.comparison.verdict == "faster"
    narrow, wide = (expect("same", "alike", "c", margin=margin) for margin in ("3%", "10%"))
    found = judge_expectations([narrow, wide], {"c": compared})
    assert [one.outcome for one in found] == ["refuted", "confirmed"]


def test_forks_that_are_missing_are_foretold_while_more_may_decide():
    logs = np.random.default_rng(5).normal(((0,), (-0.08,)), 0.1, (2, 6))
    (one,) = judge_expectations([expect("c", "slower", "c")], {"c": row("c", logs)})
    assert one.outcome == "inconclusive"
    assert one.further == further_forks(one.judged[0].comparison)
    assert one.further is not None
    gapped = msgspec.structs.replace(row("c", logs), missing="m has not been measured")
    (one,) = judge_expectations([expect("c", "slower", "c")], {"c": gapped})
    assert (one.further, one.doubts) == (None, ("m has not been measured",))

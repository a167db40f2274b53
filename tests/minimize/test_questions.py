"""The rules of a search: what a question knows, and what it may spend."""

import math

import msgspec
import pytest

from benchctl.minimize.record import Decision, Effect, FirstQuestion, MinimizeSpec, RemovalQuestion

SPEC = MinimizeSpec(
    effect=Effect("range", "slower", "es"),
    metric="service_time_p50",
    by=None,
    most_forks=12,
    prefix_iterations=None,
    budget_s=None,
    alpha=0.05,
)


def decision(number: int, *ratios: float, phase: str = "whole", verdict: str = "present") -> Decision:
    return Decision(
        number=number,
        phase=phase,  # type: ignore[arg-type]
        short=False,
        steps=(0, 1),
        tasks=("a", "b"),
        verdict=verdict,  # type: ignore[arg-type]
        contender=tuple(10 * ratio for ratio in ratios),
        reference=(10.0,) * len(ratios),
    )


def odds(decisions: list[Decision], number: int, *ratios: float) -> float:
    found = RemovalQuestion(SPEC, decisions, number).judge([math.log(ratio) for ratio in ratios]).log_odds
    assert found is not None
    return found


BEGUN = decision(1, 1.4, 1.5, 1.45, 1.42, 1.48)
PAIRS = (1.3, 1.35, 1.4)


def test_a_question_knows_those_before_it_and_none_behind_so_that_it_is_the_same_when_it_goes_on() -> None:
    wild = decision(2, 0.5, 2.0, 1.0, phase="remove", verdict="absent")
    alone = odds([BEGUN], 2, *PAIRS)
    assert odds([BEGUN, wild], 2, *PAIRS) == alone
    assert abs(odds([BEGUN, wild], 3, *PAIRS)) < abs(alone)


def test_half_of_the_effect_is_the_threshold_unless_another_is_asked_for() -> None:
    half = math.exp(sum(math.log(one) for one in (1.4, 1.5, 1.45, 1.42, 1.48)) / 10)
    assert odds([BEGUN], 2, *(half,) * 3) == pytest.approx(0, abs=1e-6)
    asked_for = RemovalQuestion(msgspec.structs.replace(SPEC, by=0.3), [BEGUN], 2)
    assert asked_for.judge([math.log(1.3)] * 3).log_odds == pytest.approx(0, abs=1e-6)


def test_later_questions_may_spend_less() -> None:
    spent = [RemovalQuestion(SPEC, [BEGUN], number).alpha for number in (2, 3, 4)]
    assert spent == sorted(spent, reverse=True)
    assert FirstQuestion(SPEC, 1).alpha + sum(spent) < SPEC.alpha


def test_few_pairs_have_no_odds() -> None:
    said = RemovalQuestion(SPEC, [BEGUN], 2).judge([0.3, 0.3])
    assert (said.verdict, said.log_odds) == ("measuring", None)
    assert said.log_odds_needed == pytest.approx(-math.log(RemovalQuestion(SPEC, [BEGUN], 2).alpha))

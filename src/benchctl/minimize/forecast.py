"""What a search says it is going to take, before it starts and once it knows its effect."""

import math
from collections.abc import Iterator

from benchctl.minimize.candidates import Candidates
from benchctl.minimize.questions import FirstQuestion, RemovalQuestion
from benchctl.minimize.search import most_questions, usual_questions
from benchctl.report.numbers import counted, duration, percent
from benchctl.results.minimize import Decision, MinimizeSpec
from benchctl.results.plan import Plan
from benchctl.stats.history import History
from benchctl.stats.inference import cv_of, mde_paired
from benchctl.stats.metrics import metric_of
from benchctl.stats.sequential import LEAST_PAIRS, level_of_look

_ROOT_TWO = 2**0.5


def start_forecast(spec: MinimizeSpec, candidates: Candidates, plan: Plan, history: History) -> Iterator[str]:
    """Lines before the first fork: how many questions, how long a block, what the first one would see."""
    count = len(candidates.front)
    needs_some = not spec.effect.against
    usual = 2 + usual_questions(count, needs_some=needs_some)
    yield (
        f"{counted(count, 'step')} before {candidates.target.label}: about {usual} questions where two of "
        f"them matter, at most {2 + most_questions(count)}; each takes from {LEAST_PAIRS} to "
        f"{spec.most_forks} pairs of forks"
    )
    known = history.block_s(plan)
    least = candidates.least_s(candidates.every)
    if known is not None:
        yield f"forks of the whole schedule took {duration(known)} here"
    if least:
        yield (
            f"the schedule's own rates make a fork of the whole last at least {duration(least)}: cut counts "
            "(--prefix-iterations, or --param target_throughput=0) if that is too long"
        )
    task = candidates.challenge.schedule.index(candidates.target)
    spread = history.noise((0, task), metric_of(spec.metric), plan.variants[0])
    if spread is not None:
        level = level_of_look(FirstQuestion(spec, 1).alpha, spec.most_forks)
        seen = mde_paired(spec.most_forks, spread.sd * _ROOT_TWO, alpha=2 * level)
        yield (
            f"forks of {candidates.target.label} had a CV of {percent(100 * cv_of(spread.sd))} here: "
            f"effects from {percent(100 * math.expm1(seen))} would be confirmed"
        )


def removal_forecast(
    begun: Decision, question: RemovalQuestion, count: int, *, needs_some: bool
) -> Iterator[str]:
    """Lines once the effect is known: how many questions are left, of how many pairs, how long that is."""
    questions = usual_questions(count, needs_some=needs_some)
    if not questions:
        return
    pairs = question.expected_pairs
    block_s = begun.seconds / max(1, len(begun.contender))
    yield (
        f"about {counted(questions, 'question')} more if two steps matter, each of about "
        f"{counted(pairs, 'pair')} of forks: {duration(questions * pairs * block_s)} at most, less as the "
        "schedule gets shorter"
    )
    if question.hopeless:
        yield (
            "forks differ so much that many questions will stay open, and their tasks be kept: longer tasks "
            "(--param iterations=...), more documents or more --forks make it better"
        )

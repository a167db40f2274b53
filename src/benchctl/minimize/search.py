"""Delta debugging over the tasks in front of a target: which of them does the effect need?"""

import itertools
import statistics
from collections.abc import Callable, Iterable
from typing import Literal

Subset = tuple[int, ...]
"""Positions of the tasks that are left, ascending."""

Verdict = Literal["present", "absent", "undecided"]

_MOST_TRIED = 200


def smallest(count: int, judge: Callable[[Subset], Verdict], *, needs_some: bool) -> Subset:
    """Remove tasks while the effect persists, until none can go any more.

    This is ddmin (Zeller and Hildebrandt 2002, IEEE TSE 28) that tries complements only (Hodovan and Kiss
    2016, "Practical Improvements to the Minimizing Delta Debugging Algorithm"): whoever removes half of the
    tasks tries the other half as well, and smaller parts alone rarely keep an effect that takes several
    tasks. Parts are removed from the front, and halve when none of their size can go. What comes out is
    1-minimal as far as the judge knows: the effect was seen with it, and was not with any single task less.

    Args:
        count: tasks, in order; the effect is there with all of them.
        judge: asked once for every subset; an exception of it ends the search. What it cannot decide is kept.
        needs_some: the effect is known to be gone without any task; else that is asked first.

    Returns:
        The tasks that are left, in order.
    """
    known: dict[Subset, Verdict] = {(): "absent"} if needs_some else {}
    known[tuple(range(count))] = "present"

    def persists(subset: Subset) -> bool:
        if subset not in known:
            known[subset] = judge(subset)
        return known[subset] == "present"

    if persists(()):
        return ()
    kept = tuple(range(count))
    size = _half(count)
    while True:
        before = kept
        kept = _swept(kept, size, persists)
        if size == 1 and kept == before:
            return kept
        size = min(_half(size), _half(len(kept)))


def most_questions(count: int) -> int:
    """A bound of how often a judge is asked.

    A sweep over parts of size s asks once a part, and removes a part with every yes: all sweeps over larger
    parts ask less than 2 count together, and those over single tasks at most once for every pair of one that
    is left and one that went.
    """
    return 2 * count + count * (count + 1) // 2 + 1


def usual_questions(count: int, *, needs_some: bool, needed: int = 2) -> int:
    """How often a judge is asked when so many tasks are needed, the median over where they stand."""

    def asked(wanted: frozenset[int]) -> int:
        questions = 0

        def judge(subset: Subset) -> Verdict:
            nonlocal questions
            questions += 1
            return "present" if wanted <= set(subset) else "absent"

        smallest(count, judge, needs_some=needs_some)
        return questions

    choices = list(itertools.combinations(range(count), min(needed, count)))
    step = max(1, len(choices) // _MOST_TRIED)
    return round(statistics.median(_counts(map(frozenset, choices[::step]), asked)))


def _counts(choices: Iterable[frozenset[int]], asked: Callable[[frozenset[int]], int]) -> list[int]:
    return [asked(choice) for choice in choices]


def _swept(kept: Subset, size: int, persists: Callable[[Subset], bool]) -> Subset:
    """What is left when every part of that size was tried to be removed, from the front."""
    start = 0
    while start < len(kept):
        rest = kept[:start] + kept[start + size :]
        if persists(rest):
            kept = rest
        else:
            start += size
    return kept


def _half(number: int) -> int:
    return max(1, (number + 1) // 2)

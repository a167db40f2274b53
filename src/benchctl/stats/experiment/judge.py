"""Expectations judged by intervals, never by how an estimate looks.

With s, the contender's change in speed as a logarithm (below 0: slower), and a margin m under which two are
alike:

`slower`     refuted when the 90 % interval of s lies above -m: a slowdown of more than the margin is excluded
             at 5 %; else confirmed when the 95 % interval lies below 0.
`faster`     the mirror image.
`alike`      confirmed when the 90 % interval lies within (-m, m): two one-sided tests at 5 %; refuted when it
             lies wholly beyond the margin, on either side.
`different`  refuted when the 90 % interval lies within (-m, m); else confirmed when the 95 % interval
             excludes 0.

Everything else is inconclusive. A slowdown that is certain and smaller than the margin does not confirm
`slower`, so that nothing is ever both `slower` and `alike`.

An expectation of k comparisons is confirmed when each one confirms it, which takes no adjustment: that all
do by mistake is no likelier than that any one does (an intersection-union test: Berger, Technometrics 24,
1982). It is refuted when a single one refutes it, and there are k chances of that: so refuting takes the
interval of 1 - 10 %/k instead of 90 % (Bonferroni).
"""

import math
from collections.abc import Sequence

from benchctl.results.experiment.model import Relation
from benchctl.stats.contrast import Contrast
from benchctl.stats.experiment.model import Outcome


def judge_relation(relation: Relation, speed: Contrast, margin: float, comparisons: int = 1) -> Outcome:
    """What an estimate says about a relation.

    Args:
        relation: what the contender should be.
        speed: its change in speed, natural logarithm; above 0 is faster.
        margin: relative difference below which two are alike, above 0.
        comparisons: of the expectation, each of which can refute it.
    """
    limit = math.log1p(margin)
    low90, high90 = speed.interval(0.90)
    low95, high95 = speed.interval(0.95)
    low, high = speed.interval(1 - 0.10 / comparisons)
    alike = -limit < low90 and high90 < limit
    # What one comparison alone would refute is not confirmed where it is one of several, either.
    match relation:
        case "slower":
            return _outcome(confirmed=high95 < 0 and low90 <= -limit, refuted=low > -limit)
        case "faster":
            return _outcome(confirmed=low95 > 0 and high90 >= limit, refuted=high < limit)
        case "alike":
            return _outcome(confirmed=alike, refuted=low > limit or high < -limit)
        case "different":
            return _outcome(
                confirmed=(low95 > 0 or high95 < 0) and not alike, refuted=-limit < low and high < limit
            )


def support(relation: Relation, speed: Contrast, margin: float) -> float:
    """How likely an estimate that speaks for the relation as much as this one would be without it.

    Two-sided for a difference, even where its direction is expected; the greater of the two one-sided tests
    for `alike`.
    """
    limit = math.log1p(margin)
    if relation == "alike":
        return max(speed.p_at_least(-limit), speed.p_at_most(limit))
    wrong_way = {"slower": speed.estimate > 0, "faster": speed.estimate < 0}.get(relation, False)
    return 1.0 if wrong_way else speed.p


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Of several comparisons that all have to show it, each judged as one of so many."""
    if "refuted" in outcomes:
        return "refuted"
    return "confirmed" if outcomes and set(outcomes) == {"confirmed"} else "inconclusive"


def _outcome(*, confirmed: bool, refuted: bool) -> Outcome:
    if refuted:
        return "refuted"
    return "confirmed" if confirmed else "inconclusive"

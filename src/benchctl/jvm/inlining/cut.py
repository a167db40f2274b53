"""A tree cut to what matters: how calls were dispatched, and where a limit stood in the way."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.jvm.inlining.fates import HOT_REFUSALS, Fate
from benchctl.jvm.inlining.model import Call, in_library, names

_SILENT = frozenset({Fate.FORCED, Fate.INTRINSIC, Fate.ACCESSOR})


@dataclass(frozen=True)
class CutTree:
    """What is left of a tree.

    Attributes:
        calls: with their positions in the whole tree, in its order.
        cut: calls that were left out.
    """

    calls: tuple[tuple[int, Call], ...]
    cut: int


def cut_tree(
    calls: Sequence[Call], *, asked: str = "", depth: int | None = None, everything: bool = False
) -> CutTree:
    """Leave out what only the Java library does within itself, and what goes without saying.

    Kept are all calls of methods outside the Java library but accessors, intrinsics and what is inlined by
    force; virtual calls; sites with several receivers; calls that a limit of the compiler refused; what was
    asked for; and the way to each of them.

    Args:
        calls: a whole tree.
        asked: a method that is always kept, as `model.names` takes it; empty for none.
        depth: calls deeper than this are left out; None for no bound.
        everything: leave out nothing but what is too deep.
    """
    many = _sites_with_many(calls)
    kept: set[int] = set()
    for at in range(len(calls) - 1, -1, -1):
        call = calls[at]
        if everything or at in kept or _matters(call, asked) or (call.parent, call.bci) in many:
            kept.add(at)
            kept.add(call.parent)
    left = [(at, calls[at]) for at in sorted(kept) if at >= 0 and (depth is None or calls[at].depth <= depth)]
    return CutTree(tuple(left), len(calls) - len(left))


def _matters(call: Call, asked: str) -> bool:
    if (asked and names(call.callee, asked)) or call.fate.outcome == "virtual" or call.fate in HOT_REFUSALS:
        return True
    return not in_library(call.callee) and call.fate not in _SILENT


def _sites_with_many(calls: Sequence[Call]) -> set[tuple[int, int]]:
    """(parent, bci) of sites that several classes were seen at, or several callees are inlined into."""
    callees: dict[tuple[int, int], set[str]] = {}
    for call in calls:
        seen = callees.setdefault((call.parent, call.bci), set())
        seen.add(call.callee)
        seen.update(receiver.name for receiver in call.receivers if receiver.count < receiver.total)
    return {site for site, seen in callees.items() if len(seen) > 1}

"""The compilation that somebody means who names a method."""

from dataclasses import dataclass

from benchctl.errors import UsageError
from benchctl.jvm.inlining.log import InliningLog
from benchctl.jvm.inlining.model import Call, Compilation, Tree, names, own_name, simple, stable
from benchctl.nearest import nearest

_MOST_NAMES = 5


@dataclass(frozen=True)
class Found:
    """A compilation with what is of interest in it.

    Attributes:
        compilation: the newest that fits.
        tree: all of it; without the compiled method as root, the calls of the method and what is in them.
        as_root: whether the method is what was compiled, rather than called in it.
        others: compilations that fit, too, and are older.
        given_up_ms: when the JVM stopped using it, milliseconds since it started; None where it did not.
    """

    compilation: Compilation
    tree: Tree
    as_root: bool
    others: int
    given_up_ms: int | None = None


def find_newest(log: InliningLog, method: str, level: int | None) -> Found:
    """The newest compilation of a method; without any, the newest that calls it.

    Args:
        log: of one JVM.
        method: as `model.names` takes it.
        level: of the compilation, 1 to 4; None for any.

    Raises:
        UsageError: there is none; with names that are near.
    """
    mentions = log.mentions(method)
    for as_root, candidates in ((True, mentions.rooted), (False, mentions.calling)):
        fitting = [one for one in candidates if level is None or one.compilation.level in {level, None}]
        if fitting:
            newest, tree = fitting[-1].compilation, fitting[-1].tree()
            if not as_root:
                tree = Tree(_around(tree.calls, method), tree.unread)
            return Found(newest, tree, as_root, len(fitting) - 1, log.given_up_ms(newest))
    found = {one.compilation.level for one in mentions.all()}
    if found:
        levels = ", ".join(str(one) for one in sorted(one for one in found if one is not None))
        raise UsageError(f"no compilation of level {level} has {method}", hint=f"there are of level {levels}")
    raise UsageError(f"{method} is in no compilation of the log", hint=_near(log, method))


def _around(calls: tuple[Call, ...], method: str) -> tuple[Call, ...]:
    """The calls of a method, the way to them, and what is in them; positions of parents as they become."""
    kept: set[int] = set()
    for at, call in enumerate(calls):
        if call.parent in kept and _inside(calls, call.parent, method):
            kept.add(at)
        elif names(call.callee, method):
            step = at
            while step >= 0:
                kept.add(step)
                step = calls[step].parent
    places = {at: place for place, at in enumerate(sorted(kept))} | {-1: -1}
    return tuple(
        Call(
            one.depth, one.caller, places[one.parent], one.bci, one.callee, one.size, one.fate, one.text,
            one.receivers,
        )
        for one in (calls[at] for at in sorted(kept))
    )  # fmt: skip


def _inside(calls: tuple[Call, ...], at: int, method: str) -> bool:
    while at >= 0:
        if names(calls[at].callee, method):
            return True
        at = calls[at].parent
    return False


def _near(log: InliningLog, method: str) -> str:
    known = {simple(one) for one in log.methods()}
    alike = sorted(one for one in known if own_name(one) == method.rpartition("::")[2])
    guess = nearest(simple(stable(method)), known)
    if "::" not in method and (near := nearest(method, {own_name(one) for one in known})):
        alike += sorted(one for one in known if own_name(one) == near)
    offered = list(dict.fromkeys([*([guess] if guess else []), *alike]))[:_MOST_NAMES]
    return f"near are: {', '.join(offered)}" if offered else "write it as Class::method, as the JVM prints it"

"""What the newest code does with all calls of a name in a method: the cause that figures are held against."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.jvm.inlining.log import InliningLog
from benchctl.jvm.inlining.model import Receiver, names
from benchctl.jvm.inlining.sites import Site, newest_sites
from benchctl.results.experiment import Found


@dataclass(frozen=True)
class Called:
    """All calls of one name in one method, of the newest compilation by C2 that says how they are made.

    Attributes:
        found: what became of them.
        words: HotSpot's own, by callee; empty where no compilation has such a call.
        receivers: of the call with the largest type profile, the most frequent first; of a virtual call
            HotSpot prints none.
        calls: that this profile counts, over all receivers; 0 where none is printed.
        given_up_ms: when the JVM stopped using that compilation, milliseconds since it started; None if
            never.
    """

    found: Found
    words: str = ""
    receivers: tuple[Receiver, ...] = ()
    calls: int = 0
    given_up_ms: int | None = None


def read_called(log: InliningLog, caller: str, callee: str) -> Called:
    """Look at the calls of a name in a method.

    Args:
        log: of one JVM.
        caller: the method, as `model.names` takes it.
        callee: the called method's name, without its class.

    Raises:
        BenchctlError: the log cannot be read.
    """
    newest = _newest(log, caller, callee)
    if not newest:
        return Called("absent")
    kinds = {found_at(one) for one in newest}
    # A loop that javac or Lucene unrolled has the call several times, with much the same profile.
    most = max(newest, key=lambda one: one.calls)
    given_up = [one.given_up_ms for one in newest if one.given_up_ms is not None]
    return Called(
        found=kinds.pop() if len(kinds) == 1 else "partly",
        words=" | ".join(sorted({one.words for one in newest})),
        receivers=most.receivers,
        calls=most.calls,
        given_up_ms=max(given_up, default=None),
    )


def found_at(site: Site) -> Found:
    """What became of one call site."""
    if site.is_inlined:
        # Of more than two receivers C2 inlines one that has 90 % of the calls, and does not print that it
        # dispatches the rest; the profile then counts more calls than those of the receivers it names.
        known = sum(one.count for one in site.receivers)
        return "partly" if site.is_virtual or known < site.calls else "inlined"
    return "virtual" if site.is_virtual else "refused"


def _newest(log: InliningLog, caller: str, callee: str) -> Sequence[Site]:
    """All calls of the callee in the method, of the newest compilation by C2 that has any.

    Calls that it holds for rare are left out where others say how they are made.
    """
    fitting = [
        one
        for key, one in newest_sites(log, under=caller).items()
        if key.name == callee and names(key.caller, caller)
    ]
    telling = [one for one in fitting if one.is_inlined or one.is_virtual] or fitting
    if not telling:
        return []
    last = max(telling, key=lambda one: one.compilation.stamp_ms or 0).compilation
    return [one for one in telling if one.compilation == last]

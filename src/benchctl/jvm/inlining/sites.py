"""Call sites: what became of each, over all callees that were tried there."""

from typing import NamedTuple

import msgspec

from benchctl.jvm.inlining.fates import Fate
from benchctl.jvm.inlining.log import InliningLog
from benchctl.jvm.inlining.model import C2_LEVEL, Call, Compilation, Receiver, own_name, stable


class SiteKey(NamedTuple):
    """A call site, as it is named in another JVM, too.

    Attributes:
        caller: method that the call is in.
        bci: of the call.
        name: of the called method, without its class, which differs with how the call was dispatched.
    """

    caller: str
    bci: int
    name: str


class Site(msgspec.Struct, frozen=True):
    """What became of a call site in one compilation.

    Attributes:
        key: which site.
        compilation: the one that it is in.
        callees: (method, fate, HotSpot's words) that were tried, without repetition.
        receivers: what its type profile says, the most frequent first; of a virtual call HotSpot prints none.
        copies: how often the caller is in the compilation, in one place or another.
        given_up_ms: when the JVM stopped using the compilation, milliseconds since it started; None if never.
    """

    key: SiteKey
    compilation: Compilation
    callees: tuple[tuple[str, Fate, str], ...]
    receivers: tuple[Receiver, ...]
    copies: int
    given_up_ms: int | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether a call remains that looks its target up."""
        return any(fate.outcome == "virtual" for _, fate, _ in self.callees)

    @property
    def is_inlined(self) -> bool:
        """Whether a callee's code is there."""
        return any(fate.outcome == "inlined" for _, fate, _ in self.callees)

    @property
    def calls(self) -> int:
        """How often its profile says that it was called; 0 where there is none."""
        return max((receiver.total for receiver in self.receivers), default=0)

    @property
    def words(self) -> str:
        """What became of it, in one line: the same for sites that fared alike."""
        tried = sorted(
            {
                (stable(callee), fate.value if fate is not Fate.OTHER else said)
                for callee, fate, said in self.callees
            }
        )
        return "; ".join(f"{callee.rpartition('.')[2]} {said}" for callee, said in tried)


def newest_sites(log: InliningLog, *, under: str = "") -> dict[SiteKey, Site]:
    """Every call site in its newest compilation by C2.

    Args:
        log: of one JVM.
        under: only compilations of this method, or that have a call of it; empty for all.
    """
    newest: dict[tuple[str, int, str], _Copies] = {}
    for entry in log.mentions(under).all() if under else log:
        # A fragment says nothing of its level; somebody chose it.
        if entry.compilation.level in {C2_LEVEL, None}:
            for call in entry.tree().calls:
                key = (stable(call.caller), call.bci, own_name(call.callee))
                copies = newest.get(key)
                if copies is None or copies.number < entry.number:
                    newest[key] = _Copies(entry.number, entry.compilation, [call])
                elif copies.number == entry.number:
                    copies.calls.append(call)
    sites = (
        _site(SiteKey(*key), copies, log.given_up_ms(copies.compilation))
        for key, copies in newest.items()
        if key[0]
    )
    return {site.key: site for site in sites}


class _Copies(msgspec.Struct):
    """The calls at one site of one compilation; its caller may be in there several times."""

    number: int
    compilation: Compilation
    calls: list[Call]


def _site(key: SiteKey, copies: _Copies, given_up_ms: int | None) -> Site:
    # Calls that HotSpot holds for rare say nothing of how the site would be dispatched, where another copy of
    # the caller in the same compilation does say it.
    telling = [call for call in copies.calls if call.fate.outcome in {"inlined", "virtual"}] or copies.calls
    callees = dict.fromkeys((call.callee, call.fate, call.text) for call in telling)
    parents = {call.parent for call in copies.calls}
    seen = {receiver for call in telling for receiver in call.receivers}
    return Site(key, copies.compilation, tuple(callees), _newest(seen), len(parents), given_up_ms)


def _newest(seen: set[Receiver]) -> tuple[Receiver, ...]:
    """Of several type profiles of a site the newest: they belong to methods, not to copies, and only grow."""
    total = max((one.total for one in seen), default=0)
    newest = [one for one in seen if one.total == total]
    return tuple(sorted(newest, key=lambda one: (-one.count, one.name)))

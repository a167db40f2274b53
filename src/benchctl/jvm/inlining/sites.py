"""Call sites: what became of each, over all callees that were tried there."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchctl.jvm.inlining.fates import Fate
from benchctl.jvm.inlining.log import InliningLog
from benchctl.jvm.inlining.model import C2_LEVEL, Call, Compilation, Receiver, own_name, stable


@dataclass(frozen=True)
class SiteKey:
    """A call site, as it is named in another JVM, too.

    Attributes:
        caller: method that the call is in.
        bci: of the call.
        name: of the called method, without its class, which differs with how the call was dispatched.
    """

    caller: str
    bci: int
    name: str


@dataclass(frozen=True)
class Site:
    """What became of a call site in one compilation.

    Attributes:
        key: which site.
        compilation: the one that it is in.
        callees: (method, fate, HotSpot's words) that were tried, without repetition.
        receivers: what its type profile says, the most frequent first; of a virtual call HotSpot prints none.
        copies: how often the caller is in the compilation, in one place or another.
    """

    key: SiteKey
    compilation: Compilation
    callees: tuple[tuple[str, Fate, str], ...]
    receivers: tuple[Receiver, ...]
    copies: int

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


def sites_of(compilation: Compilation, calls: Iterable[Call]) -> dict[SiteKey, Site]:
    """All call sites of one compilation.

    Calls that HotSpot holds for rare say nothing of how the site would be dispatched, where another copy of
    the caller in the same compilation does say it; there they are left out.

    Args:
        compilation: which.
        calls: its tree.
    """
    groups: dict[SiteKey, list[Call]] = {}
    for call in calls:
        if call.caller:
            groups.setdefault(SiteKey(stable(call.caller), call.bci, own_name(call.callee)), []).append(call)
    return {key: _site(key, compilation, group) for key, group in groups.items()}


def _site(key: SiteKey, compilation: Compilation, group: list[Call]) -> Site:
    telling = [call for call in group if call.fate.outcome in {"inlined", "virtual"}] or group
    callees = dict.fromkeys((call.callee, call.fate, call.text) for call in telling)
    seen: dict[tuple[str, int, int], Receiver] = {}
    for call in telling:
        for receiver in call.receivers:
            seen[receiver.name, receiver.count, receiver.total] = receiver
    parents = {call.parent for call in group}
    ordered = sorted(seen.values(), key=lambda one: (-one.total, -one.count, one.name))
    # Profiles belong to methods, not to copies of them: the largest is the newest.
    newest = tuple(one for one in ordered if one.total == ordered[0].total)
    return Site(key, compilation, tuple(callees), newest, len(parents))


def newest_sites(log: InliningLog, *, under: str = "") -> dict[SiteKey, Site]:
    """Every call site in its newest compilation by C2.

    Args:
        log: of one JVM.
        under: only compilations of this method, or that have a call of it; empty for all.
    """
    if under:
        among = {one.number: one for one in (*log.rooted(under), *log.calling(under))}
        compilations = [among[number] for number in sorted(among)]
    else:
        compilations = list(log.compilations())
    found: dict[SiteKey, Site] = {}
    for compilation in compilations:
        # A fragment says nothing of its level; somebody chose it.
        if compilation.level in {C2_LEVEL, None}:
            found.update(sites_of(compilation, log.tree(compilation.number).calls))
    return found

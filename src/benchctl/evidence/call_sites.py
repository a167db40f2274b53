"""Call sites and methods in inlining logs: found, judged, compared, located in runs."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from benchctl.errors import UsageError, nearest
from benchctl.evidence.inlining_log import PACKED_SUFFIX, Entry, InliningLog
from benchctl.evidence.inlining_tree import (
    Call,
    Compilation,
    Fate,
    Receiver,
    Tree,
    names,
    own_name,
    simple,
    stable,
)
from benchctl.results.model import C2_LEVEL, BootRecord, ForkRecord, RunRecord
from benchctl.results.store import RunFolder

Found = Literal["inlined", "partly", "virtual", "refused", "absent"]
"""Fate of a call site: its calls are inlined; those of its most frequent receiver are, the others dispatched;
all are dispatched; neither (too big, for example); or no C2 compilation has the site."""


class SiteKey(NamedTuple):
    """A call site, identified across JVMs."""

    caller: str  # method that has the call
    bci: int  # of the call
    name: str  # of the called method, without its class, which depends on how the call was dispatched


class Site(msgspec.Struct, frozen=True):
    """The fate of a call site in one compilation."""

    key: SiteKey
    compilation: Compilation
    # (method, fate, HotSpot's words) that were tried, without repetition
    callees: tuple[tuple[str, Fate, str], ...]
    # of its type profile, the most frequent first; HotSpot prints none for a virtual call
    receivers: tuple[Receiver, ...]
    copies: int  # how many copies of the caller the compilation has
    # when the JVM stopped using the compilation, milliseconds since it started; None if never
    given_up_ms: int | None = None

    @property
    def is_virtual(self) -> bool:
        """Return whether a dispatched call remains."""
        return any(fate.outcome == "virtual" for _, fate, _ in self.callees)

    @property
    def is_inlined(self) -> bool:
        """Return whether a callee is inlined."""
        return any(fate.outcome == "inlined" for _, fate, _ in self.callees)

    @property
    def calls(self) -> int:
        """Number of calls in its profile; 0 without one."""
        return max((receiver.total for receiver in self.receivers), default=0)

    @property
    def words(self) -> str:
        """The fate in one line, equal for sites with the same fate."""
        tried = sorted(
            {
                (stable(callee), fate.value if fate is not Fate.OTHER else said)
                for callee, fate, said in self.callees
            }
        )
        return "; ".join(f"{callee.rpartition('.')[2]} {said}" for callee, said in tried)


def newest_sites(log: InliningLog, *, under: str = "") -> dict[SiteKey, Site]:
    """Return every call site in its newest C2 compilation.

    With `under`, only in compilations that are of this method or call it.
    """
    (newest,) = sites_at(log, [math.inf], under=under)
    return newest


def sites_at(
    log: InliningLog, moments_ms: Sequence[float], *, under: str = ""
) -> Iterator[dict[SiteKey, Site]]:
    """Yield every call site in the newest C2 compilation that had begun at each of these moments.

    Args:
        log: read once.
        moments_ms: milliseconds since the JVM started, ascending.
        under: only compilations that are of this method or call it; empty for all.
    """
    entries = sorted(
        # A fragment has no level, but was chosen by somebody.
        (
            entry
            for entry in (log.mentions(under).all() if under else log)
            if entry.compilation.level in {C2_LEVEL, None}
        ),
        key=lambda entry: entry.number,
    )
    newest: dict[SiteKey, Site] = {}
    done = 0
    for moment_ms in moments_ms:
        while done < len(entries) and (entries[done].compilation.stamp_ms or 0) <= moment_ms:
            newest |= _sites(entries[done], log)
            done += 1
        yield dict(newest)


def _sites(entry: Entry, log: InliningLog) -> dict[SiteKey, Site]:
    """The call sites of one compilation, which may have several copies of a caller."""
    calls: dict[SiteKey, list[Call]] = {}
    for call in entry.tree().calls:
        if call.caller:
            key = SiteKey(stable(call.caller), call.bci, own_name(call.callee))
            calls.setdefault(key, []).append(call)
    given_up_ms = log.given_up_ms(entry.compilation)
    return {key: _site(key, entry.compilation, own, given_up_ms) for key, own in calls.items()}


def _site(key: SiteKey, compilation: Compilation, calls: Sequence[Call], given_up_ms: int | None) -> Site:
    # Calls that HotSpot considers rare tell nothing about dispatch, if another copy of the caller in the same
    # compilation does.
    telling = [call for call in calls if call.fate.outcome in {"inlined", "virtual"}] or calls
    callees = dict.fromkeys((call.callee, call.fate, call.text) for call in telling)
    parents = {call.parent for call in calls}
    receivers = {receiver for call in telling for receiver in call.receivers}
    return Site(key, compilation, tuple(callees), _newest(receivers), len(parents), given_up_ms)


def _newest(seen: set[Receiver]) -> tuple[Receiver, ...]:
    """The newest of several type profiles of a site: they belong to methods, not to copies, and only grow."""
    total = max((receiver.total for receiver in seen), default=0)
    newest = [receiver for receiver in seen if receiver.total == total]
    return tuple(sorted(newest, key=lambda receiver: (-receiver.count, receiver.name)))


NotInlined = Literal["virtual", "refused"]
"""The fate of a call site without inlined callees: dispatched, or called directly."""

ENGINE_PACKAGES = ("org.apache.lucene.", "org.elasticsearch.", "org.opensearch.")


@dataclass(frozen=True)
class Difference:
    """A site with different fates; `moved` if matched by name only, since its bci differs."""

    baseline: Site
    contender: Site
    moved: bool

    @property
    def calls(self) -> int:
        """Number of calls, from the side that has a profile."""
        return max(self.baseline.calls, self.contender.calls)


@dataclass(frozen=True)
class Compared:
    """Two logs, site by site."""

    differences: tuple[Difference, ...]  # the most called first
    matched: int  # number of sites on both sides
    baseline_only: int  # number of the others
    contender_only: int
    # Call sites in scope that are inlined on one side and not on the other, by what they are there.
    inlined_in_baseline: Mapping[NotInlined, int]
    inlined_in_contender: Mapping[NotInlined, int]


def compare_sites(
    baseline: Mapping[SiteKey, Site],
    contender: Mapping[SiteKey, Site],
    *,
    everywhere: bool = False,
    refused: bool = False,
) -> Compared:
    """Find the sites that are inlined on one side and a virtual call on the other.

    Sites match by caller, bci and the called method's name. If the two sides have different versions of a
    class, bcis differ: then the n-th call of a name in a caller matches the n-th, provided both have equally
    many.

    `everywhere` includes all callers, not only those of Lucene and the engines; `refused` also finds sites
    that are inlined on one side and called directly on the other.
    """
    pairs, moved = _matched(baseline, contender)
    in_scope = [pair for pair in pairs if everywhere or pair[0].key.caller.startswith(ENGINE_PACKAGES)]
    differences = [
        Difference(one, other, (one, other) in moved)
        for one, other in in_scope
        if _differ(one, other) or (refused and one.is_inlined != other.is_inlined)
    ]
    differences.sort(key=lambda each: (-each.calls, each.baseline.key.caller, each.baseline.key.bci))
    return Compared(
        tuple(differences),
        len(pairs),
        len(baseline) - len(pairs),
        len(contender) - len(pairs),
        _not_inlined(in_scope),
        _not_inlined((other, one) for one, other in in_scope),
    )


def _not_inlined(pairs: Iterable[tuple[Site, Site]]) -> dict[NotInlined, int]:
    """Count the second of pairs whose first is inlined and whose second is not."""
    found: Counter[NotInlined] = Counter(
        "virtual" if other.is_virtual else "refused"
        for one, other in pairs
        if one.is_inlined and not other.is_inlined
    )
    return {"virtual": found["virtual"], "refused": found["refused"]}


def _differ(one: Site, other: Site) -> bool:
    if one.is_virtual == other.is_virtual:
        return False
    return other.is_inlined if one.is_virtual else one.is_inlined


def _matched(
    baseline: Mapping[SiteKey, Site], contender: Mapping[SiteKey, Site]
) -> tuple[list[tuple[Site, Site]], set[tuple[Site, Site]]]:
    pairs = [(site, contender[key]) for key, site in baseline.items() if key in contender]
    left = _by_name(site for key, site in baseline.items() if key not in contender)
    right = _by_name(site for key, site in contender.items() if key not in baseline)
    moved = [
        pair
        for name, sites in left.items()
        if len(sites) == len(right.get(name, ()))
        for pair in zip(sites, right[name], strict=True)
    ]
    return pairs + moved, set(moved)


def _by_name(sites: Iterable[Site]) -> dict[tuple[str, str], list[Site]]:
    found: dict[tuple[str, str], list[Site]] = {}
    for site in sorted(sites, key=lambda site: site.key.bci):
        found.setdefault((site.key.caller, site.key.name), []).append(site)
    return found


@dataclass(frozen=True)
class Called:
    """Calls of a name in a method, in the newest C2 compilation that shows how they are made."""

    found: Found  # what became of them
    words: str = ""  # HotSpot's own, by callee; empty if no compilation has such a call
    # of the call with the largest type profile, the most frequent first; HotSpot prints none for a virtual
    # call
    receivers: tuple[Receiver, ...] = ()
    calls: int = 0  # in this profile, over all receivers; 0 if none is printed
    # when the JVM stopped using that compilation, milliseconds since it started; None if never
    given_up_ms: int | None = None


def read_called(log: InliningLog, caller: str, callee: str) -> Called:
    """Look up the calls of `callee`, a name without its class, in a method, as `names` takes it.

    Raises:
        BenchctlError: If the log cannot be read.
    """
    newest = _newest_calls(log, caller, callee)
    if not newest:
        return Called("absent")
    kinds = {found_at(site) for site in newest}
    # A loop unrolled by javac or Lucene has the call several times, with similar profiles.
    most = max(newest, key=lambda site: site.calls)
    given_up = [site.given_up_ms for site in newest if site.given_up_ms is not None]
    return Called(
        found=kinds.pop() if len(kinds) == 1 else "partly",
        words=" | ".join(sorted({site.words for site in newest})),
        receivers=most.receivers,
        calls=most.calls,
        given_up_ms=max(given_up, default=None),
    )


def found_at(site: Site) -> Found:
    """Return what became of one call site."""
    if site.is_inlined:
        # With more than two receivers C2 inlines one that has 90% of the calls, without printing that it
        # dispatches the rest; the profile then counts more calls than its named receivers have.
        known = sum(receiver.count for receiver in site.receivers)
        return "partly" if site.is_virtual or known < site.calls else "inlined"
    return "virtual" if site.is_virtual else "refused"


def _newest_calls(log: InliningLog, caller: str, callee: str) -> Sequence[Site]:
    """Return the callee's calls in the method, from the newest C2 compilation that has any.

    Calls considered rare are left out if others show how they are made.
    """
    fitting = [
        one
        for key, one in newest_sites(log, under=caller).items()
        if key.name == callee and names(key.caller, caller)
    ]
    telling = [site for site in fitting if site.is_inlined or site.is_virtual] or fitting
    if not telling:
        return []
    last = max(telling, key=lambda site: site.compilation.stamp_ms or 0).compilation
    return [site for site in telling if site.compilation == last]


_MOST_NAMES = 5


@dataclass(frozen=True)
class FoundCompilation:
    """A compilation, reduced to what was asked for."""

    compilation: Compilation  # the newest that matches
    tree: Tree  # all of it; if the method is not the root, only its calls and what is inside them
    as_root: bool  # whether the method is the compiled one, rather than called in it
    others: int  # number of older compilations that match
    # when the JVM stopped using it, milliseconds since it started; None if never
    given_up_ms: int | None = None


def find_newest(log: InliningLog, method: str, level: int | None) -> FoundCompilation:
    """Return the newest compilation of a method, as `names` takes it; without any, the newest that calls it.

    `level` is that of the compilation, 1 to 4; None for any.

    Raises:
        UsageError: If there is none; suggests similar names.
    """
    mentions = log.mentions(method)
    for as_root, candidates in ((True, mentions.rooted), (False, mentions.calling)):
        fitting = [
            candidate
            for candidate in candidates
            if level is None or candidate.compilation.level in {level, None}
        ]
        if fitting:
            newest, tree = fitting[-1].compilation, fitting[-1].tree()
            if not as_root:
                tree = Tree(_around(tree.calls, method), tree.unread)
            return FoundCompilation(newest, tree, as_root, len(fitting) - 1, log.given_up_ms(newest))
    found = {entry.compilation.level for entry in mentions.all()}
    if found:
        levels = ", ".join(str(one) for one in sorted(number for number in found if number is not None))
        raise UsageError(f"no compilation of level {level} has {method}", hint=f"there are of level {levels}")
    raise UsageError(f"{method} was not compiled, according to the inlining log", hint=_near(log, method))


def _around(calls: tuple[Call, ...], method: str) -> tuple[Call, ...]:
    """The calls of a method, the path to them, and what is inside; parents are renumbered."""
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
            call.depth, call.caller, places[call.parent], call.bci, call.callee, call.size, call.fate,
            call.text, call.receivers,
        )
        for call in (calls[at] for at in sorted(kept))
    )  # fmt: skip


def _inside(calls: tuple[Call, ...], at: int, method: str) -> bool:
    while at >= 0:
        if names(calls[at].callee, method):
            return True
        at = calls[at].parent
    return False


def _near(log: InliningLog, method: str) -> str:
    known = {simple(method) for method in log.methods()}
    alike = sorted(one for one in known if own_name(one) == method.rpartition("::")[2])
    guess = nearest(simple(stable(method)), known)
    if "::" not in method and (near := nearest(method, {own_name(one) for one in known})):
        alike += sorted(one for one in known if own_name(one) == near)
    found = list(dict.fromkeys([*([guess] if guess else []), *alike]))[:_MOST_NAMES]
    return f"near are: {', '.join(found)}" if found else "write it as Class::method, as the JVM prints it"


_LOG_NAME = "jvm.log"
_STDOUT_NAME = "stdout.log"
_FLAG = "-XX:+PrintInlining"
_HOW = "benchctl run --evidence inlining keeps one of every node start"


@dataclass(frozen=True)
class RunLog:
    """The log of one node start."""

    path: Path
    variant: str = ""  # its name; empty for a file that belongs to no run
    block: int = 0  # which node start
    boot: int = 0
    schedules: tuple[int, ...] = ()  # positions of the challenges that ran on it

    @property
    def label(self) -> str:
        """The node start or file, for readers."""
        if not self.variant:
            return str(self.path)
        return f"{self.variant}, block {self.block}, boot {self.boot}"


def logs_of(folder: RunFolder, record: RunRecord) -> list[RunLog]:
    """Return all logs, by block and boot.

    They are kept as evidence, or are the standard output of nodes whose variant has the flag itself.
    """
    return [
        RunLog(path, fork.variant, fork.block, number, boot.schedules)
        for fork in sorted(record.forks, key=lambda fork: (fork.block, fork.position))
        for number, boot in enumerate(fork.boots)
        if (path := _kept(folder, fork, number, boot)) is not None
    ]


def choose(logs: Sequence[RunLog], variant: str | None, block: int | None, boot: int | None) -> RunLog:
    """Return the log that is asked for: the first block and its last boot, unless specified.

    Raises:
        UsageError: If there is none, or no variant is named where several have one.
    """
    if not logs:
        raise UsageError("the run has no inlining log", hint=_HOW)
    variants = list(dict.fromkeys(log.variant for log in logs))
    if variant is None:
        if len(variants) > 1:
            raise UsageError(
                f"several variants have an inlining log: {', '.join(variants)}",
                hint="select one with --variant",
            )
        variant = variants[0]
    if variant not in variants:
        raise UsageError(f"{variant} has no inlining log", hint=f"these have: {', '.join(variants)}")
    own = [log for log in logs if log.variant == variant]
    fitting = [log for log in own if block is None or log.block == block]
    fitting = [log for log in fitting if log.block == fitting[0].block and (boot is None or log.boot == boot)]
    if not fitting:
        there = ", ".join(f"{log.block} (boot {log.boot})" for log in own)
        raise UsageError(
            f"no inlining log for this block and boot of {variant}", hint=f"available blocks: {there}"
        )
    return fitting[-1]


def _kept(folder: RunFolder, fork: ForkRecord, number: int, boot: BootRecord) -> Path | None:
    evidence = folder.evidence_folder(fork.variant, fork.block, number)
    candidates = [evidence / _LOG_NAME, evidence / f"{_LOG_NAME}{PACKED_SUFFIX}"]
    if _FLAG in boot.command and boot.logs:
        candidates.append(folder.inside(boot.logs) / _STDOUT_NAME)
    return next((path for path in candidates if path.is_file()), None)

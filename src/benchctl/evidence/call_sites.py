"""Call sites and methods in inlining logs: found, judged, compared, located in runs."""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from benchctl.errors import UsageError, nearest
from benchctl.evidence.inlining_log import (
    LOG_NAME,
    PACKED_SUFFIX,
    Call,
    Compilation,
    Entry,
    InliningLog,
    Outcome,
    Receiver,
    Tree,
    names,
    own_name,
    simple,
    stable,
)
from benchctl.results.model import C2_LEVEL, RunRecord
from benchctl.results.store import RunFolder

Found = Literal["inlined", "partly", "virtual", "refused", "absent"]
"""Fate of a call site: its calls are inlined; those of its most frequent receiver are, the others dispatched;
all are dispatched; neither (too big, for example); or no C2 compilation has the site."""


class SiteKey(msgspec.Struct, frozen=True):
    """A call site, identified across JVMs."""

    caller: str  # method that has the call
    bci: int  # of the call
    name: str  # of the called method, without its class, which depends on how the call was dispatched


class Site(msgspec.Struct, frozen=True):
    """The fate of a call site in one compilation."""

    key: SiteKey
    found: Found
    compilation: Compilation
    # (method, outcome, HotSpot's words) that were tried, without repetition
    callees: tuple[tuple[str, Outcome, str], ...]
    # of its type profile, the most frequent first; HotSpot prints none for a virtual call
    receivers: tuple[Receiver, ...]
    # when the JVM stopped using the compilation, milliseconds since it started; None if never
    given_up_ms: int | None = None

    @property
    def is_virtual(self) -> bool:
        """Return whether a dispatched call remains."""
        return any(outcome == "virtual" for _, outcome, _ in self.callees)

    @property
    def is_inlined(self) -> bool:
        """Return whether a callee is inlined."""
        return self.found in {"inlined", "partly"}

    @property
    def calls(self) -> int:
        """Number of calls in its profile; 0 without one."""
        return max((receiver.total for receiver in self.receivers), default=0)

    @property
    def words(self) -> str:
        """The fate in one line, equal for sites with the same fate."""
        tried = sorted({(stable(callee), said) for callee, _, said in self.callees})
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
        (entry for entry in (log.mentions(under) if under else log) if entry.compilation.level == C2_LEVEL),
        key=lambda entry: entry.number,
    )
    newest: dict[SiteKey, Site] = {}
    done = 0
    for moment_ms in moments_ms:
        while done < len(entries) and entries[done].compilation.stamp_ms <= moment_ms:
            newest |= _sites(entries[done], log)
            done += 1
        yield dict(newest)


def _sites(entry: Entry, log: InliningLog) -> dict[SiteKey, Site]:
    """The call sites of one compilation, which may have several copies of a caller."""
    calls: dict[SiteKey, list[Call]] = {}
    for call in entry.tree().calls:
        key = SiteKey(stable(call.caller), call.bci, own_name(call.callee))
        calls.setdefault(key, []).append(call)
    given_up_ms = log.given_up_ms(entry.compilation)
    return {key: _site(key, entry.compilation, own, given_up_ms) for key, own in calls.items()}


def _site(key: SiteKey, compilation: Compilation, calls: Sequence[Call], given_up_ms: int | None) -> Site:
    # Calls that HotSpot considers rare tell nothing about dispatch, if another copy of the caller in the same
    # compilation does.
    telling = [call for call in calls if call.outcome != "refused"] or calls
    callees = dict.fromkeys((call.callee, call.outcome, call.text) for call in telling)
    receivers = _newest({receiver for call in telling for receiver in call.receivers})
    found = _found({outcome for _, outcome, _ in callees}, receivers)
    return Site(key, found, compilation, tuple(callees), receivers, given_up_ms)


def _found(outcomes: set[Outcome], receivers: Sequence[Receiver]) -> Found:
    if "inlined" not in outcomes:
        return "virtual" if "virtual" in outcomes else "refused"
    # With more than two receivers C2 inlines one that has 90% of the calls, without printing that it
    # dispatches the rest; the profile then counts more calls than its named receivers have.
    rest = max((receiver.total for receiver in receivers), default=0) - sum(
        receiver.count for receiver in receivers
    )
    return "partly" if "virtual" in outcomes or rest > 0 else "inlined"


def _newest(seen: set[Receiver]) -> tuple[Receiver, ...]:
    """The newest of several type profiles of a site: they belong to methods, not to copies, and only grow."""
    total = max((receiver.total for receiver in seen), default=0)
    newest = [receiver for receiver in seen if receiver.total == total]
    return tuple(sorted(newest, key=lambda receiver: (-receiver.count, receiver.name)))


ENGINE_PACKAGES = ("org.apache.lucene.", "org.elasticsearch.", "org.opensearch.")


def virtual_calls(sites: Mapping[SiteKey, Site]) -> list[Site]:
    """Return the sites in callers of Lucene and the engines at which a dispatched call remains.

    Those with a type profile come first, the most called before the others; then by caller.
    """
    virtual = [
        site for key, site in sites.items() if site.is_virtual and key.caller.startswith(ENGINE_PACKAGES)
    ]
    return sorted(virtual, key=lambda site: (-site.calls, site.key.caller, site.key.bci))


class Difference(msgspec.Struct, frozen=True):
    """A site with different fates; `moved` if matched by name only, since its bci differs."""

    baseline: Site
    contender: Site
    moved: bool

    @property
    def calls(self) -> int:
        """Number of calls, from the side that has a profile."""
        return max(self.baseline.calls, self.contender.calls)


class Compared(msgspec.Struct, frozen=True):
    """The call sites of two logs, one by one."""

    differences: tuple[Difference, ...]  # the most called first
    matched: int  # number of sites on both sides
    baseline_only: int  # number of the others
    contender_only: int


def compare_sites(
    baseline: Mapping[SiteKey, Site],
    contender: Mapping[SiteKey, Site],
    *,
    refused: bool = False,
    everywhere: bool = False,
) -> Compared:
    """Find the sites that are inlined on one side and a virtual call on the other.

    Sites match by caller, bci and the called method's name. If the two sides have different versions of a
    class, bcis differ: then the n-th call of a name in a caller matches the n-th, provided both have equally
    many. `refused` also finds sites that are inlined on one side and called directly on the other;
    `everywhere` looks at all callers, not only those of Lucene and the engines.
    """
    packages = ("",) if everywhere else ENGINE_PACKAGES
    baseline, contender = (
        {key: site for key, site in sites.items() if key.caller.startswith(packages)}
        for sites in (baseline, contender)
    )
    pairs = [(site, contender[key], False) for key, site in baseline.items() if key in contender]
    left = _by_name(site for key, site in baseline.items() if key not in contender)
    right = _by_name(site for key, site in contender.items() if key not in baseline)
    pairs += [
        (one, other, True)
        for name, sites in left.items()
        if len(sites) == len(right.get(name, ()))
        for one, other in zip(sites, right[name], strict=True)
    ]
    differences = [
        Difference(one, other, moved)
        for one, other, moved in pairs
        if _differ(one, other) or (refused and one.is_inlined != other.is_inlined)
    ]
    differences.sort(key=lambda each: (-each.calls, each.baseline.key.caller, each.baseline.key.bci))
    return Compared(tuple(differences), len(pairs), len(baseline) - len(pairs), len(contender) - len(pairs))


def _differ(one: Site, other: Site) -> bool:
    if one.is_virtual == other.is_virtual:
        return False
    return other.is_inlined if one.is_virtual else one.is_inlined


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

    Calls considered rare do not count if others show how they are made.

    Raises:
        BenchctlError: If the log cannot be read.
    """
    sites = [
        site
        for key, site in newest_sites(log, under=caller).items()
        if key.name == callee and names(key.caller, caller)
    ]
    telling = [site for site in sites if site.found != "refused"] or sites
    if not telling:
        return Called("absent")
    last = max(telling, key=lambda site: site.compilation.stamp_ms)
    newest = [site for site in telling if site.compilation == last.compilation]
    kinds = {site.found for site in newest}
    # A loop unrolled by javac or Lucene has the call several times, with similar profiles.
    most = max(newest, key=lambda site: site.calls)
    return Called(
        found=kinds.pop() if len(kinds) == 1 else "partly",
        words=" | ".join(sorted({site.words for site in newest})),
        receivers=most.receivers,
        calls=most.calls,
        given_up_ms=last.given_up_ms,
    )


class FoundCompilation(msgspec.Struct, frozen=True):
    """The compilation that shows best what became of a method."""

    compilation: Compilation
    tree: Tree
    as_root: bool  # whether the method is the compiled one, rather than called in it
    older: int  # number of older compilations that show it in the same way
    # when the JVM stopped using it, milliseconds since it started; None if never
    given_up_ms: int | None = None


def find_newest(log: InliningLog, method: str) -> FoundCompilation:
    """Return the newest compilation of a method, as `names` takes it; without any, the newest that calls it.

    One by C1 is returned only where C2 has none of either.

    Raises:
        UsageError: If there is none; suggests similar names.
    """
    mentions = log.mentions(method)
    if not mentions:
        raise UsageError(f"{method} was not compiled, according to the inlining log", hint=_near(log, method))
    rooted = [entry for entry in mentions if names(entry.compilation.method, method)]
    by_c2, rooted_by_c2 = (
        [entry for entry in entries if entry.compilation.level == C2_LEVEL] for entries in (mentions, rooted)
    )
    *older, newest = rooted_by_c2 or by_c2 or rooted or mentions
    return FoundCompilation(
        newest.compilation,
        newest.tree(),
        names(newest.compilation.method, method),
        len(older),
        log.given_up_ms(newest.compilation),
    )


def _near(log: InliningLog, method: str) -> str:
    compiled = {simple(entry.compilation.method) for entry in log}
    name = nearest(own_name(method), {own_name(each) for each in compiled})
    alike = sorted(each for each in compiled if own_name(each) == name)
    near = difflib.get_close_matches(simple(method), alike, n=5, cutoff=0)
    return f"near are: {', '.join(near)}" if near else "write it as Class::method, as the JVM prints it"


@dataclass(frozen=True)
class RunLog:
    """The log of one node start."""

    path: Path
    variant: str = ""  # its name; empty for a file that belongs to no run
    block: int = 0  # which node start
    boot: int = 0

    @property
    def label(self) -> str:
        """The node start or file, for readers."""
        if not self.variant:
            return str(self.path)
        return f"{self.variant}, block {self.block}, boot {self.boot}"


def logs_of(folder: RunFolder, record: RunRecord) -> list[RunLog]:
    """Return all logs that are kept as evidence, by block and boot."""
    return [
        RunLog(path, fork.variant, fork.block, boot)
        for fork in sorted(record.forks, key=lambda fork: (fork.block, fork.position))
        for boot in range(len(fork.boots))
        for path in _kept(folder.evidence_folder(fork.variant, fork.block, boot))
    ]


def _kept(evidence: Path) -> list[Path]:
    paths = (evidence / LOG_NAME, evidence / f"{LOG_NAME}{PACKED_SUFFIX}")
    return [path for path in paths if path.is_file()][:1]


def choose(logs: Sequence[RunLog], variant: str | None, block: int | None, boot: int | None) -> RunLog:
    """Return the log that is asked for: the first block and its last boot, unless specified.

    Raises:
        UsageError: If there is none, or no variant is named where several have one.
    """
    variants = list(dict.fromkeys(log.variant for log in logs))
    if not variants:
        raise UsageError(
            "the run has no inlining log",
            hint="collect them with: benchctl run --evidence inlining",
        )
    if variant is None and len(variants) > 1:
        raise UsageError(
            f"several variants have an inlining log: {', '.join(variants)}", hint="select one with --variant"
        )
    fitting = [log for log in logs if variant in {None, log.variant} and block in {None, log.block}]
    fitting = [log for log in fitting if log.block == fitting[0].block and boot in {None, log.boot}]
    if not fitting:
        available = "; ".join(log.label for log in logs[:10])
        raise UsageError("no inlining log of that variant, block and boot", hint=f"available: {available}")
    return fitting[-1]

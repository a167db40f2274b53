"""Inlining logs for readers: trees, how variants differ, and how call sites depend on what ran before."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from types import MappingProxyType

import msgspec

from benchctl.errors import BenchctlError
from benchctl.evidence.call_sites import (
    Compared,
    Difference,
    Found,
    FoundCompilation,
    RunLog,
    Site,
    SiteKey,
    choose,
    compare_sites,
    logs_of,
    sites_at,
)
from benchctl.evidence.inlining_log import (
    LIBRARY,
    Account,
    Call,
    Compilation,
    InliningLog,
    Receiver,
    cut_tree,
    simple,
)
from benchctl.evidence.profile import ForkProfile, fork_profiles, method_of, renamed
from benchctl.report.numbers import counted, visible
from benchctl.report.table import ABOVE, OPERATION, VARIANT, Cell, Table, plain, worded
from benchctl.results.model import C2_LEVEL, ForkRecord, RunRecord
from benchctl.results.plan import HISTORY, Place, Plan
from benchctl.results.samples import TaskWindow
from benchctl.results.store import RunFolder, reference, task_windows
from benchctl.stats.metrics import places, places_by_history, task_at

FOUND_WORDS: Mapping[Found, str] = MappingProxyType(
    {
        "inlined": "inlined",
        "partly": "inlined in part",
        "virtual": "virtual call",
        "refused": "not inlined",
        "absent": "not compiled by C2",
    }
)
PARTLY = "inlined in part: calls of some receivers are inlined, those of others dispatched"
"""Explanation of the outcome that HotSpot has no word for."""


_MS_PER_S = 1000
_BCI = "\0"


def tree_text(label: str, found: FoundCompilation, asked: str, account: Account) -> str:
    """Return a tree for readers, with what was cut, and what of the log could not be read."""
    lines = [f"{label}: {_title(found.compilation)}"]
    if found.given_up_ms is not None:
        lines.append(
            f"(given up {found.given_up_ms / _MS_PER_S:.2f} s after the JVM began, and not compiled again)"
        )
    if not found.as_root:
        lines.append("(never compiled by itself there: only its calls, and the way to them)")
    if found.older:
        lines.append(f"(the newest of {found.older + 1} such compilations)")
    shown = cut_tree(found.tree.calls, asked, within=not found.as_root)
    by_parent: dict[int, list[tuple[int, Call]]] = {}
    for at, call in shown:
        by_parent.setdefault(call.parent, []).append((at, call))
    lines += _site_lines(by_parent, -1)
    if cut := len(found.tree.calls) - len(shown):
        what = "calls within the Java library, accessors and similar"
        lines.append(f"{counted(cut, 'call')} not shown: {what}; see --format json")
    lines += [f"not parsed: {line.strip()}" for line in found.tree.unread]
    lines.append(f"log: {counted(account.lines, 'line')}, {counted(account.compilations, 'compilation')}")
    return visible("\n".join(lines) + "\n")


def _title(compilation: Compilation) -> str:
    size = "native" if compilation.size is None else f"{compilation.size} bytes"
    osr = "" if compilation.osr_bci is None else f", entered at bci {compilation.osr_bci}"
    compiler = "C2" if compilation.level == C2_LEVEL else "C1"
    when = f"{compilation.stamp_ms / _MS_PER_S:.2f} s after the JVM began"
    how = f"by {compiler}, level {compilation.level}, id {compilation.id}"
    return f"{compilation.method} ({size}{osr}), {how}, {when}"


def _site_lines(children: dict[int, list[tuple[int, Call]]], parent: int) -> list[str]:
    """The call sites of one caller; neighbours with the same in them stand together: `@ 35, 50, 72`."""
    folded: list[tuple[list[int], list[str]]] = []
    for bci, site in groupby(children.get(parent, ()), key=lambda one: one[1].bci):
        lines = [line for at, call in site for line in (*_call_lines(call), *_site_lines(children, at))]
        if folded and folded[-1][1] == lines:
            folded[-1][0].append(bci)
        else:
            folded.append(([bci], lines))
    return [line.replace(_BCI, ", ".join(map(str, bcis))) for bcis, lines in folded for line in lines]


def _call_lines(call: Call) -> list[str]:
    """Return a call's text, with a mark in place of its bci."""
    indent = "  " * (call.depth + 1)
    callee = call.callee if call.callee.startswith(LIBRARY) else simple(call.callee)
    size = "not loaded" if call.size is None else f"{call.size} bytes"
    lines = [f"{indent}@ {_BCI}  {callee} ({size})  {call.text}"]
    if call.receivers:
        lines.append(f"{indent}   saw {_receivers_text(call.receivers)}")
    return lines


def _receivers_text(receivers: Sequence[Receiver]) -> str:
    """Return `PointRangeQuery$1$1 274,304 of 274,431, ...`."""
    ordered = sorted(receivers, key=lambda receiver: (-receiver.count, receiver.name))
    seen = ", ".join(f"{simple(receiver.name)} {receiver.count:,}" for receiver in ordered)
    return f"{seen} of {ordered[0].total:,}"


class CallSites(msgspec.Struct, frozen=True):
    """The calls of a name in one caller that have the same outcomes on two sides."""

    caller: str
    name: str  # of the called method
    outcomes: tuple[str, str]  # such as `inlined: PointRangeQuery$1$1`
    bcis: tuple[int, ...]
    calls: int  # of the most called of them, by its type profile
    samples: tuple[int, int] = (0, 0)  # of profiles, in the caller itself or in what it calls there

    @property
    def label(self) -> str:
        """The calls for readers."""
        times = f" x {len(self.bcis)}" if len(self.bcis) > 1 else ""
        return f"{self.name} in {simple(self.caller)}{times}"


def call_sites(differences: Sequence[Difference]) -> list[CallSites]:
    """Return differences with the same outcomes together, the most called first."""
    groups: dict[tuple[str, str, tuple[str, str]], list[Difference]] = {}
    for each in differences:
        key = each.baseline.key
        outcomes = _outcome(each.baseline), _outcome(each.contender)
        groups.setdefault((key.caller, key.name, outcomes), []).append(each)
    return [
        CallSites(*key, tuple(sorted(each.baseline.key.bci for each in members)), members[0].calls)
        for key, members in groups.items()
    ]


def _outcome(site: Site) -> str:
    inlined = {
        simple(callee).partition("::")[0] for callee, outcome, _ in site.callees if outcome == "inlined"
    }
    refused = {said for _, outcome, said in site.callees if outcome == "refused"}
    return ": ".join(filter(None, (FOUND_WORDS[site.found], ", ".join(sorted(inlined or refused)))))


def differences_text(
    sides: tuple[str, str], labels: Sequence[str], compared: Compared, scope: str, width: int
) -> str:
    """Return what differs, the most called first; `sides` are short names, `labels` name the logs."""
    lines = [
        line
        for site in call_sites(compared.differences)
        for line in (
            (site.label, f"{site.calls:,}" if site.calls else "", sides[0], site.outcomes[0]),
            (ABOVE, "", sides[1], site.outcomes[1]),
        )
    ]
    title = f"Calls that are inlined on one side and virtual on the other, {scope}"
    table = Table.of(title, (worded("Call"), "Calls", VARIANT, worded("Outcome")), lines)
    moved = sum(each.moved for each in compared.differences)
    notes = [
        *(f"{side}: {label}" for side, label in zip(sides, labels, strict=True)),
        f"{counted(compared.matched, 'call site')} compiled by C2 on both sides.",
        f"Only in {sides[0]}: {compared.baseline_only:,}; only in {sides[1]}: {compared.contender_only:,}.",
        "Calls: counts of the type profile when C2 compiled.",
        *([f"{moved:,} matched by name and order: the classes differ."] if moved else []),
    ]
    return plain([[table if lines else f"{title}: none"], notes], width)


def virtual_text(label: str, sites: Sequence[Site], width: int) -> str:
    """Return the virtual calls of a log, whose name is `label`, as a table of at most 30."""
    lines = [
        (
            f"{site.key.name} in {simple(site.key.caller)}",
            f"{site.calls:,}" if site.calls else "",
            _outcome(site),
        )
        for site in sites[:_MOST_VIRTUAL]
    ]
    title = f"Virtual calls in callers of Lucene and the engines, {label}"
    table = Table.of(title, (worded("Call"), "Calls", worded("Outcome")), lines).without_empty("Calls")
    notes = [
        *([f"{len(sites) - len(lines):,} more."] if len(sites) > len(lines) else []),
        "All that C2 decided in and around one method: --method Class::method.",
    ]
    return plain([[table if lines else f"{title}: none"], notes], width)


# Call sites whose outcome in a variant depends on what its nodes ran before, by inlining log and profile.

_MOST_SITES = 3
_MOST_VIRTUAL = 30
_LEAST_SAMPLES = 5
# What is inlined at a call site, and into that, are frames of their own in a profile.
_DEEPEST = 3
# Each takes half a second or more, which is too much for a report of dozens.
_MOST_LOGS = 24
_ALL = ("", "")


class HistorySites(msgspec.Struct, frozen=True):
    """Two histories of a task of one variant."""

    operation: str
    variant: str
    block: int
    histories: tuple[str, str]
    samples: tuple[int, int]  # of the task's profile; 0 without one
    matched: int  # call sites of Lucene and the engine that C2 had compiled after both
    different: int
    sites: tuple[CallSites, ...]  # the costliest of these, at most three


def read_history_sites(
    folder: RunFolder, record: RunRecord, variant: str | None = None, block: int | None = None
) -> Iterator[HistorySites]:
    """Yield each further history of a task against its first, in one fork of each variant.

    What differs are calls that, when the task ends, are inlined after one history and virtual after the
    other, most calls first. With a profile, these and calls that are not inlined for another reason differ
    where at least five samples were taken, most samples first. `variant` is None for all, `block` for the
    first that has logs.

    Raises:
        UsageError: If there is no such log.
        BenchctlError: If a file cannot be read.
    """
    groups = histories(record.plan)
    logs = logs_of(folder, record)
    for name in [variant] if variant else dict.fromkeys(log.variant for log in logs) or [""]:
        first = choose(logs, name, block, None)
        own = [log for log in logs if (log.variant, log.block) == (name, first.block)]
        fork = next(fork for fork in record.forks if (fork.variant, fork.block) == (name, first.block))
        windows = task_windows(folder, fork)
        sites = _sites(fork, own, windows)
        profile = next(
            (own for own in fork_profiles(folder, record, name) if own.fork.block == fork.block), None
        )
        for group in groups:
            (base, baseline), *others = [pair for pair in group.items() if pair[1] in sites] or [("", (0, 0))]
            for history, place in others:
                taken = [_samples(folder, profile, task) for task in (baseline, place)]
                compared = compare_sites(sites[baseline], sites[place], refused=any(taken))
                yield HistorySites(
                    operation=task_at(record.plan, place).label,
                    variant=name,
                    block=fork.block,
                    histories=(base, history),
                    samples=(taken[0][_ALL], taken[1][_ALL]),
                    matched=compared.matched,
                    different=len(compared.differences),
                    sites=_costliest(call_sites(compared.differences), taken),
                )


def histories(plan: Plan) -> list[dict[str, Place]]:
    """Return tasks that run after different ones, each by what ran before; the first is the baseline."""
    if plan.swept is None:
        return places_by_history(plan, places(plan))
    groups: dict[object, dict[str, Place]] = {}
    for schedule, task in places(plan):
        swept, history = plan.swept.schedules[schedule], plan.history(schedule)
        fixed = tuple(point for point in swept.at.items() if point[0] != HISTORY)
        if history is not None:
            groups.setdefault((swept.of, fixed, task), {})[history] = schedule, task
    return [group for group in groups.values() if len(group) > 1]


def _sites(
    fork: ForkRecord, logs: Sequence[RunLog], windows: Mapping[Place, TaskWindow]
) -> dict[Place, dict[SiteKey, Site]]:
    """The call sites when each task ended; each log is read once."""
    found: dict[Place, dict[SiteKey, Site]] = {}
    for log in logs:
        origin_ns = fork.boots[log.boot].origin_ns or 0
        ends = sorted((window.end_ns, place) for place, window in windows.items() if window.boot == log.boot)
        moments = sites_at(InliningLog(log.path), [(end_ns - origin_ns) / 1e6 for end_ns, _ in ends])
        found |= {place: sites for (_, place), sites in zip(ends, moments, strict=True)}
    return found


def _samples(folder: RunFolder, profile: ForkProfile | None, task: Place) -> Counter[tuple[str, str]]:
    """Samples of a task by method, and by method and what it calls; none without a profile."""
    taken: Counter[tuple[str, str]] = Counter()
    stacks = Counter() if profile is None else renamed(profile.count(folder, [task]), method_of)
    for stack, count in stacks.items():
        inner = stack[-_DEEPEST - 1 :]
        calls = {(caller, callee.rpartition(".")[2]) for caller, callee in pairwise(inner)}
        taken.update(dict.fromkeys([*calls, (stack[-1], ""), _ALL], count))
    return taken


def _costliest(
    differences: Sequence[CallSites], taken: Sequence[Counter[tuple[str, str]]]
) -> tuple[CallSites, ...]:
    """The first few: those most called, or of two profiles those with the largest share of samples."""
    sites = list(differences)
    if any(taken):
        for at, site in enumerate(sites):
            caller = site.caller.replace("::", ".")
            first, second = (samples[caller, ""] + samples[caller, site.name] for samples in taken)
            sites[at] = msgspec.structs.replace(site, samples=(first, second))
        totals = [max(samples[_ALL], 1) for samples in taken]
        sites = [site for site in sites if max(site.samples) >= _LEAST_SAMPLES]
        sites.sort(key=lambda site: -max(site.samples[0] / totals[0], site.samples[1] / totals[1]))
    return tuple(sites[:_MOST_SITES])


def history_tables(folder: RunFolder, record: RunRecord) -> list[Table]:
    """Return a table of call sites and histories; none without any, or why it is not there."""
    logs = logs_of(folder, record) if histories(record.plan) else []
    if not logs:
        return []
    names = dict.fromkeys(log.variant for log in logs)
    first = {(log.variant, log.block) for log in (choose(logs, name, None, None) for name in names)}
    if sum((log.variant, log.block) in first for log in logs) > _MOST_LOGS:
        line = f"benchctl explain {reference(folder)} inlining"
        return [Table.of("Calls by what ran before", (worded("Show them with"),), ((line,),))]
    try:
        found = [*read_history_sites(folder, record)]
    except BenchctlError as err:
        return [Table.of("Calls by what ran before", (worded("Cannot be read"),), ((err.message,),))]
    return [history_table(found)] if found else []


def history_table(found: Sequence[HistorySites]) -> Table:
    """Return a line per call site and history."""
    forks = ", ".join(dict.fromkeys(f"fork {pair.block} of {pair.variant}" for pair in found))
    title = (
        f"Calls that are inlined or not, depending on what ran before: at most {_MOST_SITES} a task, the "
        f"costliest first, in one fork per variant ({forks})"
    )
    columns = (OPERATION, VARIANT, worded("Call"), worded("Ran before"), worded("Outcome"), "Samples")
    lines = [line for pair in found for line in _lines(pair)]
    return Table.of(title, columns, lines).without_empty("Samples")


def _lines(pair: HistorySites) -> Iterator[tuple[Cell | str, ...]]:
    if not pair.sites:
        differ = f" that has {_LEAST_SAMPLES} samples: {pair.different:,} differ" if pair.different else ""
        none = f"none of {pair.matched:,}{differ}"
        yield (pair.operation, pair.variant, none, " / ".join(pair.histories), "", "")
    for number, site in enumerate(pair.sites):
        for place, (history, outcome) in enumerate(zip(pair.histories, site.outcomes, strict=True)):
            head = (ABOVE, "") if number or place else (pair.operation, pair.variant)
            total = pair.samples[place]
            samples = f"{site.samples[place]:,} of {total:,}" if total else ""
            yield (*head, "" if place else site.label, history, outcome, samples)

"""Call sites whose outcome in a variant depends on what its nodes ran before, by inlining log and profile."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from benchctl.errors import BenchctlError
from benchctl.evidence.call_sites import (
    ENGINE_PACKAGES,
    Difference,
    RunLog,
    Site,
    SiteKey,
    choose,
    compare_sites,
    found_at,
    logs_of,
    sites_at,
)
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import FOUND_WORDS
from benchctl.evidence.inlining_tree import simple
from benchctl.evidence.profile import Choice, ForkProfile, count_fork, fork_profiles, without_lines
from benchctl.report.table import ABOVE, OPERATION, VARIANT, Cell, Table, worded
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import HISTORY, Place, Plan
from benchctl.results.reading import TaskWindow, task_windows
from benchctl.results.store import RunFolder
from benchctl.stats.metrics import places, task_at
from benchctl.stats.order import places_by_history

Samples = Counter[tuple[str, str]]
_ALL = ("", "")

_MOST_SITES = 3
_LEAST_SAMPLES = 5
# What is inlined at a call site, and into that, are frames of their own in a profile.
_DEEPEST = 3
# Each takes half a second or more, which is too much for a report of dozens.
_MOST_LOGS = 24


class HistorySite(msgspec.Struct, frozen=True):
    """A call site, or several of one caller with the same outcomes, after two histories."""

    caller: str
    name: str  # of the called method
    outcomes: tuple[str, str]  # such as `inlined: PointRangeQuery$1$1`
    samples: tuple[int, int]  # of the task's profile, in the caller itself or in what it calls there
    bcis: tuple[int, ...] = ()


class HistorySites(msgspec.Struct, frozen=True):
    """Two histories of a task of one variant."""

    operation: str
    variant: str
    block: int
    histories: tuple[str, str]
    samples: tuple[int, int]  # of the task's profile; 0 without one
    matched: int  # call sites of Lucene and the engine that C2 had compiled after both
    different: int
    sites: tuple[HistorySite, ...]  # the costliest of these, at most three


def read_history_sites(
    folder: RunFolder,
    record: RunRecord,
    variant: str | None = None,
    block: int | None = None,
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
    logs = logs_of(folder, record) if groups else []
    for name in dict.fromkeys(log.variant for log in logs) if variant is None or not groups else [variant]:
        first = choose(logs, name, block, None)
        own = [log for log in logs if (log.variant, log.block) == (name, first.block)]
        fork = next(fork for fork in record.forks if (fork.variant, fork.block) == (name, first.block))
        windows = task_windows(folder, fork)
        sites = _sites(fork, own, windows)
        profiles = [own for own in fork_profiles(folder, record, name) if own.fork.block == fork.block]
        for group in groups:
            (base, baseline), *others = [pair for pair in group.items() if pair[1] in sites] or [("", (0, 0))]
            for history, place in others:
                taken = [_samples(folder, profiles, task, windows[task].boot) for task in (baseline, place)]
                compared = compare_sites(sites[baseline], sites[place], refused=any(taken))
                yield HistorySites(
                    operation=task_at(record.plan, place).label,
                    variant=name,
                    block=fork.block,
                    histories=(base, history),
                    samples=(taken[0][_ALL], taken[1][_ALL]),
                    matched=compared.matched,
                    different=len(compared.differences),
                    sites=_costliest(compared.differences, taken),
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
    """The call sites of Lucene and the engine when each task ended; each log is read once."""
    found = {}
    for log in logs:
        origin_ns = fork.boots[log.boot].origin_ns
        ends = sorted((one.end_ns, place) for place, one in windows.items() if one.boot == log.boot)
        moments = sites_at(InliningLog(log.path), [(end_ns - (origin_ns or 0)) / 1e6 for end_ns, _ in ends])
        for (_, place), sites in zip(ends, moments, strict=True):
            own = {key: site for key, site in sites.items() if key.caller.startswith(ENGINE_PACKAGES)}
            found[place] = own
    return found


def _samples(folder: RunFolder, profiles: Sequence[ForkProfile], task: Place, boot: int) -> Samples:
    """Samples of a task by method, and by method and what it calls; none without a profile."""
    taken: Samples = Counter()
    for profile in profiles:
        own = {number: samples for number, samples in profile.boots.items() if number == boot}
        counts = count_fork(ForkProfile(profile.fork, own), Choice(), folder=folder, tasks=[task])
        for stack, count in without_lines(counts).stacks.items():
            inner = stack[-_DEEPEST - 1 :]
            calls = {(caller, callee.rpartition(".")[2]) for caller, callee in pairwise(inner)}
            taken.update(dict.fromkeys([*calls, (stack[-1], ""), _ALL], count))
    return taken


def _costliest(differences: Sequence[Difference], taken: Sequence[Samples]) -> tuple[HistorySite, ...]:
    found: dict[HistorySite, list[int]] = {}
    for difference in differences:
        key = difference.baseline.key
        caller = key.caller.replace("::", ".")
        first, second = (samples[caller, ""] + samples[caller, key.name] for samples in taken)
        outcomes = _outcome(difference.baseline), _outcome(difference.contender)
        found.setdefault(HistorySite(key.caller, key.name, outcomes, (first, second)), []).append(key.bci)
    sites = [msgspec.structs.replace(site, bcis=tuple(sorted(bcis))) for site, bcis in found.items()]
    if any(taken):
        totals = [max(samples[_ALL], 1) for samples in taken]
        sites = [site for site in sites if max(site.samples) >= _LEAST_SAMPLES]
        sites.sort(key=lambda site: -max(site.samples[0] / totals[0], site.samples[1] / totals[1]))
    return tuple(sites[:_MOST_SITES])


def _outcome(site: Site) -> str:
    inlined = {
        simple(callee).partition("::")[0] for callee, fate, _ in site.callees if fate.outcome == "inlined"
    }
    refused = {fate.value for _, fate, _ in site.callees if fate.outcome == "refused"}
    return ": ".join(filter(None, (FOUND_WORDS[found_at(site)], ", ".join(sorted(inlined or refused)))))


def history_tables(folder: RunFolder, record: RunRecord) -> list[Table]:
    """Return a table of call sites and histories; none without any, or why it is not there."""
    logs = logs_of(folder, record) if histories(record.plan) else []
    names = dict.fromkeys(log.variant for log in logs)
    first = {(log.variant, log.block) for log in (choose(logs, name, None, None) for name in names)}
    if sum((log.variant, log.block) in first for log in logs) > _MOST_LOGS:
        line = f"benchctl explain {record.id} inlining"
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
        times = f" x {len(site.bcis)}" if len(site.bcis) > 1 else ""
        call = f"{site.name} in {simple(site.caller)}{times}"
        for place, (history, outcome) in enumerate(zip(pair.histories, site.outcomes, strict=True)):
            head = (ABOVE, "") if number or place else (pair.operation, pair.variant)
            total = pair.samples[place]
            samples = f"{site.samples[place]:,} of {total:,}" if total else ""
            yield (*head, "" if place else call, history, outcome, samples)

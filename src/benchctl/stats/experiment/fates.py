"""Call sites beside figures: forks by what the JVM did there, and the expectations about that."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from benchctl.results.experiment import CallSite, Dispatch, FateExpectation, Found, SeenCall, SeenReceiver
from benchctl.results.model import RunRecord
from benchctl.stats.compare import Series
from benchctl.stats.experiment.model import FateGroup, FateResult, Outcome, SiteResult, SiteVariant
from benchctl.stats.metrics import THROUGHPUT, ForkSummaries, collect, fork_values, task_at, unit_of

FORKS_FOR_OUTCOME = 3
"""Forks with a log that an outcome takes: of fewer, all often fare alike by chance."""
_SURENESS = 0.95
_NO_LOG = "no fork has an inlining log"
_OPPOSITE: Mapping[Dispatch, Dispatch] = {"inlined": "virtual", "virtual": "inlined"}


def site_results(
    sites: Sequence[CallSite], runs: Mapping[str, RunRecord], seen: Sequence[SeenCall]
) -> tuple[SiteResult, ...]:
    """What became of every call site, variant by variant, with the throughput of the forks that fared alike.

    Args:
        sites: in order.
        runs: measurement -> its run.
        seen: of all forks that were to keep a log.

    Raises:
        BenchctlError: a run's tasks are not those that the experiment names.
    """
    return tuple(_site(site, runs.get(site.measurement), seen) for site in sites)


def judge_fates(
    expectations: Sequence[FateExpectation], results: Sequence[SiteResult]
) -> tuple[FateResult, ...]:
    """Judge all: confirmed when every fork shows it, refuted when every one with a log shows the opposite.

    Where n forks of n show it, at least a share of 0.05^(1/n) of all node starts would, at 95 %: the
    one-sided bound of Clopper and Pearson (Biometrika 26, 1934).
    """
    known = {(site.name, one.variant): one for site in results for one in site.variants}
    return tuple(_judged(one, known[one.call_site, one.variant]) for one in expectations)


def _site(site: CallSite, run: RunRecord | None, seen: Sequence[SeenCall]) -> SiteResult:
    own = [one for one in seen if one.site == site.name]
    found = {variant: _summaries(site, variant, run) for variant in site.variants}
    return SiteResult(
        name=site.name,
        unit=THROUGHPUT.counting(unit_of(found.values())).unit,
        variants=tuple(
            _variant(variant, [one for one in own if one.variant == variant], found[variant])
            for variant in site.variants
        ),
    )


def _summaries(site: CallSite, variant: str, run: RunRecord | None) -> ForkSummaries:
    """Of its task, in all finished forks: those for evidence alone are the ones with logs, as a rule."""
    if run is None:
        return []
    place = site.task_of(variant).place_in(run.plan)
    return collect({variant: run.done(variant)}, place, task_at(run.plan, place))[variant]


def _variant(name: str, seen: Sequence[SeenCall], summaries: ForkSummaries) -> SiteVariant:
    groups: dict[Found, list[SeenCall]] = {}
    for one in sorted(seen, key=lambda each: each.block):
        if one.found is not None:
            groups.setdefault(one.found, []).append(one)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return SiteVariant(
        variant=name,
        groups=tuple(_group(found, members, summaries) for found, members in ordered),
        unread=tuple(one for one in seen if one.found is None),
    )


def _group(found: Found, members: Sequence[SeenCall], summaries: ForkSummaries) -> FateGroup:
    blocks = {one.block for one in members}
    values = fork_values(THROUGHPUT, [one for one in summaries if one[0] in blocks])
    counts: Counter[str] = Counter()
    for one in members:
        counts.update({receiver.name: receiver.calls for receiver in one.receivers})
    return FateGroup(
        found=found,
        forks=tuple(members),
        receivers=tuple(SeenReceiver(name, calls) for name, calls in counts.most_common()),
        calls=sum(one.calls for one in members),
        throughput_per_s=Series.of(values).value,
    )


def _judged(expectation: FateExpectation, seen: SiteVariant) -> FateResult:
    counts = {group.found: len(group.forks) for group in seen.groups}
    total = sum(counts.values())
    showing = counts.get(expectation.is_, 0)
    least = (1 - _SURENESS) ** (1 / total) if total else 0.0
    return FateResult(
        statement=expectation.statement,
        call_site=expectation.call_site,
        variant=expectation.variant,
        is_=expectation.is_,
        outcome=_outcome(showing, counts.get(_OPPOSITE[expectation.is_], 0), total, unread=len(seen.unread)),
        showing=showing,
        forks=total,
        needs=expectation.needs,
        doubts=tuple(_doubts(seen, total)),
        at_least=least if total and showing == total else None,
        at_most=1 - least if total and not showing else None,
        place=expectation.place,
    )


def _outcome(showing: int, opposite: int, total: int, *, unread: int) -> Outcome:
    if total < FORKS_FOR_OUTCOME:
        return "inconclusive"
    if showing == total and not unread:
        return "confirmed"
    return "refuted" if opposite == total else "inconclusive"


def _doubts(seen: SiteVariant, total: int) -> Iterator[str]:
    if not total:
        yield _NO_LOG
    elif total < FORKS_FOR_OUTCOME:
        yield f"{total} {'fork' if total == 1 else 'forks'} with a log: {FORKS_FOR_OUTCOME} are needed"
    if total and seen.unread:
        yield f"{len(seen.unread)} of {total + len(seen.unread)} forks have no inlining log"
    if any(one.given_up for group in seen.groups for one in group.forks):
        yield "in some forks the JVM stopped using that compilation later on"

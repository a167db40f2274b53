"""Doubts as data: what weakens a figure, in words that tell the reader what to make of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from benchctl.results.model import FORKS_FOR_VERDICT, RunRecord

CaveatCode = Literal[
    "answers-differ",
    "builds",
    "builds-differ",
    "busy-host",
    "cached-builds",
    "coarse",
    "copied-shards",
    "counted-less",
    "counted-more",
    "cut-short",
    "course",
    "deterministic-build",
    "disturbed",
    "driver-floor",
    "driver-limited",
    "evidence",
    "failed-forks",
    "failures",
    "few-builds",
    "few-forks",
    "few-runs",
    "few-samples",
    "hits-changed",
    "ignored-errors",
    "imported",
    "lower-bound",
    "missed-states",
    "missing-values",
    "no-ratio",
    "no-redline",
    "no-spread",
    "not-cold",
    "node-lost",
    "not-restarted",
    "not-steady",
    "nothing-found",
    "offered-rate",
    "one-index-build",
    "other-clocks",
    "other-tasks",
    "run",
    "same-builds",
    "saturated",
    "separate-runs",
    "shared-host",
    "single-build",
    "single-fork",
    "single-run",
    "small-scale",
    "stalled",
    "test-mode",
    "unfinished",
    "unlike",
    "unlike-units",
    "unpaired",
    "unsupported",
    "whole-clients",
]


class Caveat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A doubt."""

    code: CaveatCode
    text: str  # for readers; one sentence without a final full stop


def run_doubts(record: RunRecord) -> Iterator[Caveat]:
    """Yield what must stand with every figure of a run: that it was a trial, or has not ended."""
    if record.plan.test_mode:
        yield Caveat("test-mode", f"run {record.id} was a trial (--test-mode): its values mean nothing")
    if record.unfinished:
        done = record.total - len(record.missing())
        unless_measured = "unless it is being measured, " if record.status == "running" else ""
        yield Caveat(
            "unfinished",
            f"run {record.id} is unfinished ({record.unfinished}): {done} of {record.total} forks are done; "
            f"{unless_measured}resume it with: benchctl run --resume {record.id}",
        )


Replicate = Literal["fork", "build", "run"]
"""What intervals count."""
_SINGLE: dict[Replicate, tuple[CaveatCode, str]] = {
    "fork": ("single-fork", "1 node start {}: start-to-start variance unobserved, no interval, no p"),
    "build": ("single-build", "1 index build {}: build-to-build variance unobserved, no interval, no p"),
    "run": (
        "single-run",
        "1 run {}: host, day and index build differ from run to run, unobserved; no interval, no p",
    ),
}
_FEW: dict[Replicate, tuple[CaveatCode, str]] = {
    "fork": ("few-forks", "forks"),
    "build": ("few-builds", "index builds"),
    "run": ("few-runs", "runs"),
}


def single(replicate: Replicate, counts: Mapping[str, int]) -> Caveat:
    """Return the warning that a side rests on one unit (variant -> units)."""
    code, text = _SINGLE[replicate]
    return Caveat(code, text.format(_alone(counts)))


def few(replicate: Replicate, fewest: int, needed: int) -> Caveat:
    """Return the warning that there is a spread, but not enough of it for a verdict."""
    code, units = _FEW[replicate]
    return Caveat(code, f"{fewest} {units} a side: a verdict needs {needed}")


def _alone(counts: Mapping[str, int]) -> str:
    """Return which side has only one, with the numbers of both."""
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    alone = [name for name, count in counts.items() if count == 1]
    return f"{'a side' if len(alone) == len(counts) else f'of {alone[0]}'} ({listed})"


def few_samples(variant: str, fewest: int, title: str, error: float, spread: float | None) -> Caveat:
    """A percentile whose own standard error is a large part of the SD between forks (both of logarithms)."""
    differing = "" if spread is None else f", and forks differ by {_sd(spread)}"
    return Caveat(
        "few-samples",
        f"{title} of {variant} rests on {_requests(fewest)} a fork: their chance alone is "
        f"{_sd(error)}{differing}; more requests narrow the interval",
    )


def _sd(log_sd: float) -> str:
    return f"{100 * math.expm1(log_sd):.2g}%"


def uneven_samples(title: str, counts: Mapping[str, int]) -> Caveat:
    """A percentile of so few requests that their number decides on it (variant -> requests a fork)."""
    listed = " and ".join(f"{_requests(count)} of {variant}" for variant, count in counts.items())
    return Caveat("few-samples", f"{title} rests on {listed} a fork, and depends on their number: no verdict")


def unbounded(variant: str, title: str, share: float) -> Caveat:
    """A value that failed requests leave without an upper bound (largest share of a fork, 0 to 1)."""
    return Caveat(
        "missing-values",
        f"{title} of {variant} has no upper bound, since up to {100 * share:.2g}% of a fork's requests "
        "failed: no verdict",
    )


def cut_short(variant: str, fork: int, sent: int, planned: int, others: int) -> Caveat:
    """Tasks that ended before all of their requests were sent."""
    more = f", and {_forks(others)} more did so" if others else ""
    return Caveat(
        "cut-short", f"cut short: fork {fork} of {variant} sent {sent:,} of {planned:,} requests{more}"
    )


def unlike_units(units: Mapping[str, str]) -> Caveat:
    """Variants whose requests count differently (variant -> what one of its requests counts)."""
    listed = ", of ".join(f"{variant} {unit}" for variant, unit in units.items())
    return Caveat("unlike-units", f"a request of {listed}: what they count is not the same, so no verdict")


def coarse(variants: Sequence[str], title: str, step: str, least: str) -> Caveat:
    """A figure that is counted in steps as large as differences that matter."""
    return Caveat(
        "coarse",
        f"{title} is counted in steps of {step}; that of {' and '.join(variants)} is under {least}, "
        "too little for a verdict",
    )


def extreme_samples(variants: Sequence[str], fewest: int, title: str, least: int, extreme: str) -> Caveat:
    """A percentile that rests on so few requests that it is that of the `slowest` or `fastest`."""
    return Caveat(
        "few-samples",
        f"{title} of {' and '.join(variants)} rests on {_requests(fewest)} a fork: with fewer than "
        f"{least:,} it is the {extreme} of them, so there is no verdict",
    )


def only_of(labels: Sequence[str], tasks: Sequence[str]) -> Caveat:
    """Tasks that the runs of other sides do not have."""
    return Caveat("other-tasks", f"only in the run of {' and '.join(labels)}: {', '.join(tasks)}")


def ran_differently(before: Mapping[str, str]) -> Caveat:
    """Return what the node had run before a task, where that is not the same on all sides (label -> what)."""
    return Caveat("other-tasks", f"ran {'; '.join(f'{what} ({label})' for label, what in before.items())}")


def failures(variant: str, counts: dict[str, int], reason: str = "", retries: int = 0) -> Caveat:
    """Requests that failed, `retries` of them to be sent again."""
    listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(counts.items()))
    example = f", such as: {reason}" if reason else ""
    again = (
        f"; {retries:,} were sent again after a pause, which throughput and latency include and service time "
        "does not"
        if retries
        else ""
    )
    return Caveat(
        "failures",
        f"failed requests of {variant}, ranked above every response in percentiles and in no other value: "
        f"{listed}{example}{again}",
    )


def ignored_errors(variant: str, ignored: int, measured: int) -> Caveat:
    """Errors that an operation counts as success."""
    return Caveat(
        "ignored-errors",
        f"{ignored:,} of {_requests(measured)} of {variant} were answered with an error status that the "
        "operation ignores: they are in the figures",
    )


def unsupported(variant: str, reason: str) -> Caveat:
    """An operation that a node cannot do."""
    return Caveat("unsupported", f"{variant} cannot do this operation: {reason}")


def unknown_figure(variant: str, title: str, *, asked: bool) -> Caveat:
    """A figure that no fork has, though the task was measured; a running cluster is asked for it."""
    why = ": a running cluster looks at itself once a second, which takes a task of several" if asked else ""
    return Caveat("missing-values", f"{title} of {variant} is not known{why}")


def missing_values(variant: str, missing: int, forks: int) -> Caveat:
    """Forks without a figure for this task; leaving them out would flatter the variant."""
    return Caveat(
        "missing-values",
        f"{missing} of {forks} values of {variant} are missing, which may not be chance: no verdict",
    )


def not_kept(variant: str, missing: int, builds: int) -> Caveat:
    """Index builds that were interrupted, and lack the figure."""
    return Caveat(
        "missing-values",
        f"not kept of {missing} of {builds} index builds of {variant}, which were interrupted; what is "
        "deleted from indices/ in benchctl's home is built again",
    )


def nothing_found(variant: str) -> Caveat:
    """Searches of which every one was answered with no hits."""
    return Caveat(
        "nothing-found",
        f"every search of {variant} found 0 documents: the index may be empty, not refreshed or another than "
        "meant, or the query matches nothing",
    )


def nothing_measured(variant: str, warmup_samples: int) -> Caveat:
    """A task that ended before anything of it was measured (requests of its warm-up, in all forks)."""
    why = f": all {warmup_samples:,} requests were its warm-up's" if warmup_samples else ""
    return Caveat("missing-values", f"nothing of this task was measured on {variant}{why}")


def all_zero(variants: Sequence[str], replicates: int, kind: str) -> Caveat:
    """Counts and pauses that never happened, in so many forks or builds of a variant."""
    return Caveat(
        "no-ratio",
        f"0 in every {kind} of {' and '.join(variants)}, so there is no ratio; what happens in "
        f"{_missed_percent(replicates):.0f} % of {kind}s or fewer may have been missed",
    )


def near_zero(variant: str) -> Caveat:
    """A ratio to almost nothing."""
    return Caveat("no-ratio", f"so little on {variant} that the ratio has no upper limit")


def not_above_0(variant: str) -> Caveat:
    """A derived value that a ratio cannot be to."""
    return Caveat("no-ratio", f"{variant} is not clearly above 0: there is no ratio to it, only a difference")


def no_spread(kind: str) -> Caveat:
    """Identical values of forks or builds cannot be independent measurements."""
    return Caveat("no-spread", f"the values of all {kind}s are identical: nothing to test with")


def offered_rate(target_per_s: float | None, scheduler: str | None = None) -> Caveat:
    """The throughput of a throttled task is what was asked for, known or not."""
    if scheduler is not None:
        what = f"spaced by the track's own scheduler '{scheduler}'"
    elif target_per_s is None:
        what = "taken to be throttled, because its latency is not its service time"
    else:
        what = f"throttled to {target_per_s:g} requests/s"
    return Caveat("offered-rate", f"{what}: this is the offered rate, judge its latency instead")


def rate_of_mix() -> Caveat:
    """The throughput of one task of a mix is that of all of them, in other words."""
    text = "its requests take turns with those of other tasks: judge its service time instead"
    return Caveat("offered-rate", text)


def other_clocks(targets: Sequence[str], title: str, clocks: str, own: str) -> Caveat:
    """Targets tell a figure by other means than the nodes that benchctl starts."""
    who = ", ".join(targets)
    return Caveat("other-clocks", f"{title} of {who} is by {clocks}, over all nodes; of others from {own}")


def imported(tools: Mapping[str, Sequence[str]]) -> Caveat:
    """Figures of other tools, by their own definitions (tool -> variants that it measured)."""
    if all(tool.startswith("JMH") for tool in tools):
        measured = ", ".join(f"{' and '.join(variants)} by {tool}" for tool, variants in tools.items())
        return Caveat("imported", f"measured by another tool: {measured}; its file says nothing of the host")
    who = ", ".join(f"{' and '.join(variants)} by {tool}" for tool, variants in tools.items())
    return Caveat(
        "imported",
        f"measured by another tool, one race a fork, without samples: {who}. Throughput is the median of "
        "running averages that carry the warm-up in, percentiles and service times are by the tool's own "
        "definitions, numbers of requests are the least that its percentiles need; steady or not, driver, "
        "node restarts and index builds are unknown",
    )


def unknown_hosts() -> Caveat:
    """Imported results of several races say nothing of where they were measured."""
    return Caveat("imported", "nothing says that they were measured on the same host")


def saturated(variant: str, achieved_per_s: float, target_per_s: float) -> Caveat:
    """The offered load could not be served."""
    return Caveat(
        "saturated",
        f"saturated: {variant} completed {achieved_per_s:.3g} of the offered {target_per_s:g} requests/s, "
        "so requests queued: no verdict",
    )


def driver_limited(variant: str, limits: Sequence[str], withheld: Sequence[str], advice: str) -> Caveat:
    """The driver, not the engine, decided on some figures (clauses whose subject is benchctl)."""
    return Caveat(
        "driver-limited",
        f"driver-limited: on {variant}, benchctl {' and '.join(limits)}: "
        f"no verdict on {' and '.join(withheld)}; {advice}",
    )


def driver_floor(variant: str, service_ns: float, error_ns: float, factor: int) -> Caveat:
    """Answers so fast that the driver's own error shows."""
    return Caveat(
        "driver-floor",
        f"the median service time of {variant}, {service_ns / 1e6:.3g} ms, is under {factor} times the "
        f"driver's own error on this machine ({error_ns / 1e6:.2g} ms, calibrated)",
    )


def stalled(variant: str, fork: int, texts: Sequence[str], others: int) -> Caveat:
    """Waits of a task: clauses about the fork in which they took most, and how many others have some."""
    more = f"; and in {others} more {'fork' if others == 1 else 'forks'}" if others else ""
    return Caveat("stalled", f"stalled: {variant}: in fork {fork}, {' and '.join(texts)}{more}")


def not_steady(variant: str, trend: str, text: str, advice: str = "") -> Caveat:
    """The figures are not those of a settled engine (what it is, a clause about the variant, what to do)."""
    return Caveat("not-steady", f"{trend}: {variant} {text}{advice and f'; {advice}'}")


def course(variant: str, text: str) -> Caveat:
    """A course that is worth knowing although the figures stand (clause whose subject is the variant)."""
    return Caveat("course", f"{variant} {text}")


def missed_states(replicates: int, kind: str) -> Caveat:
    """Return what so many forks or builds may not have shown, such as a JIT that rarely lands elsewhere.

    An interval fails exactly where a rare state was not drawn, so that no data can say so.
    """
    share = _missed_percent(replicates)
    text = f"with {replicates} {kind}s a side, a state of up to {share:.0f}% of {kind}s may have been missed"
    return Caveat("missed-states", text)


def _missed_percent(replicates: int) -> float:
    """Share of all that so many miss with a chance of 5 %: (1 - share) ** n."""
    return 100 * (1 - math.pow(0.05, 1 / replicates))


def lower_bound(variant: str, text: str, bounded: int, forks: int) -> Caveat:
    """A red-line that lies somewhere above what was found."""
    return Caveat(
        "lower-bound",
        f"the red-line of {variant} is a lower bound, so there is no verdict: {text} "
        f"({bounded} of {forks} forks)",
    )


def no_redline(variant: str, text: str, missed: int, forks: int) -> Caveat:
    """No rate met the objective, or none can be relied on."""
    return Caveat("no-redline", f"{variant} is n/a: {text} ({missed} of {forks} forks)")


def close_clients(variants: Sequence[str], step: int) -> Caveat:
    """Numbers of clients that differ by no more than the grid on which they were searched for."""
    return Caveat(
        "coarse",
        f"clients are searched for in steps of {step}, and {' and '.join(variants)} are less than two "
        "steps apart: too little for a verdict",
    )


def same_clients(variant: str, clients: float, forks: int, step: int) -> Caveat:
    """Forks that agree because there is nothing between whole numbers."""
    return Caveat(
        "whole-clients",
        f"all {forks} forks of {variant} found {clients:g} clients: what they differ by is less than a step "
        f"of {step}, which the interval does not include",
    )


def short_steps(variant: str, percentile: str, fewest: int, needed: int) -> Caveat:
    """A percentile that rests on few requests a step."""
    return Caveat(
        "few-samples",
        f"{percentile} of {variant} rests on {fewest:,} requests a step; it needs {needed:,} to be precise: "
        "raise --step-time",
    )


def answers_differ(variant: str, baseline: str, detail: str) -> Caveat:
    """A timing beside which the answers are not the same."""
    return Caveat("answers-differ", f"{variant} and {baseline} do not answer alike: {detail}")


def hits_changed(variant: str, fork: int, least: int, most: int, others: int) -> Caveat:
    """The same request that found different documents within a fork, and in how many others it did so."""
    more = f", and in {others} more {'fork' if others == 1 else 'forks'}" if others else ""
    counted = (
        f"from {least:,} to {most:,} documents"
        if least < most
        else f"{most:,} documents, and at least so many"
    )
    return Caveat(
        "hits-changed",
        f"hits changed: in fork {fork}{more}, the same request to {variant} matched {counted}: the documents "
        "changed while they were searched, so there is no verdict",
    )


def hits_differ(variant: str, hits: Sequence[int]) -> Caveat:
    """Requests that found other documents in other forks."""
    listed = " or ".join(f"{count:,}" for count in (min(hits), max(hits)))
    return Caveat(
        "hits-changed",
        f"hits changed: the same request to {variant} matched {listed} documents, depending on the fork: the "
        "documents are not the same, so there is no verdict",
    )


def cached_builds() -> Caveat:
    """Builds that another run made, some other time."""
    return Caveat(
        "cached-builds", "some index builds are from the cache: a drift of the host is in the difference"
    )


def shared_builds(variants: Sequence[str]) -> Caveat:
    """Variants whose forks ran on copies of the same indices."""
    return Caveat("same-builds", f"{' and '.join(variants)} have the same index builds: none are compared")


def deterministic_build(measurements: Sequence[str] = ()) -> Caveat:
    """Every build is the same, and so is the order that was drawn; of some of several measurements."""
    where = f"{', '.join(measurements)}: " if measurements else ""
    return Caveat(
        "deterministic-build",
        f"{where}the deterministic build: another one is the same index; what another order of documents "
        "would do is not in the intervals",
    )


def builds_differ(contents: Mapping[str, Sequence[str]]) -> Caveat:
    """Builds that were to be the same and are not (variant -> digests of their content)."""
    listed = "; ".join(
        f"{label} {', '.join(digest[:12] for digest in dict.fromkeys(found))}"
        for label, found in contents.items()
    )
    return Caveat("builds-differ", f"builds that were to be the same differ in content: {listed}")


def one_index_build(measurements: Sequence[str] = ()) -> Caveat:
    """Document order decides the point tree, and it was drawn once; of some of several measurements."""
    where = f"{', '.join(measurements)}: " if measurements else ""
    text = f"{where}one index build per engine: differences between builds are not in the intervals"
    return Caveat("one-index-build", text)


def builds(forks: Mapping[str, Sequence[int]]) -> Caveat:
    """The design of a run with several builds (variant -> forks on each of them)."""
    counts = {count for numbers in forks.values() for count in numbers}
    sizes = {len(numbers) for numbers in forks.values()}
    unit = "the index build is the unit of intervals and p-values"
    if len(counts) == 1 and len(sizes) == 1:
        return Caveat("builds", f"{sizes.pop()} builds a side, {_forks(counts.pop())} each: {unit}")
    listed = ", ".join(f"{name} {' '.join(map(str, numbers)) or 'none'}" for name, numbers in forks.items())
    return Caveat(
        "builds", f"{unit}; forks on each build: {listed}: uneven, and every build counts alike all the same"
    )


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _forks(count: int) -> str:
    return "1 fork" if count == 1 else f"{count} forks"


def not_restarted(variants: Sequence[str]) -> Caveat:
    """Forks that are passes over one running cluster."""
    whose = " and ".join(variants)
    return Caveat(
        "not-restarted",
        f"{whose} ran already and was not restarted: the JIT's state carries over from pass to pass, so its "
        "forks are not independent node starts, and the intervals are too narrow",
    )


def failed_forks(variant: str, failed: int) -> Caveat:
    """Forks that did not finish."""
    what = "1 fork of {} failed and is" if failed == 1 else f"{failed} forks of {{}} failed and are"
    return Caveat("failed-forks", f"{what.format(variant)} not in the figures")


def separate_runs(runs: Sequence[int]) -> Caveat:
    """Return the note that runs are compared, of which every side has so many."""
    text = "from several runs: these count, not their forks, since host, day and index build differ"
    if min(runs) >= FORKS_FOR_VERDICT:
        return Caveat("separate-runs", text)
    few = "one run" if min(runs) == 1 else f"{min(runs)} runs"
    return Caveat(
        "few-runs",
        f"{text}; {few} per variant cannot show by how much, and a verdict needs {FORKS_FOR_VERDICT}",
    )


def unpaired(variant: str, forks: int) -> Caveat:
    """Forks of pairs whose other half is missing."""
    return Caveat(
        "unpaired",
        f"forks of {variant} without a partner in their block: {forks}; they are in its value, and not in "
        "the differences",
    )


def failures_within(variant: str, most: float) -> Caveat:
    """Requests that failed and are in the figures all the same (largest share of a fork, 0 to 1)."""
    return Caveat(
        "failures", f"failed requests of {variant} are in the figures: up to {100 * most:.3g} % of a fork's"
    )


def busy_host(share: float, busy: int, forks: int, processes: Mapping[str, float]) -> Caveat:
    """Return that other processes took CPUs from the nodes (name -> share of the CPUs, 0 to 1)."""
    return Caveat(
        "busy-host",
        f"busy host: other processes used {100 * share:.0f} % of the CPUs in {busy} of {_forks(forks)}"
        f"{processes_named(processes)}: stop them, or measure on a quiet host",
    )


def processes_named(shares: Mapping[str, float]) -> str:
    """Return the processes that used CPU in brackets; nothing where none has a name."""
    listed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
    return f" ({listed})" if listed else " (of processes that cannot be seen, or had ended)"


def noisy_host(variant: str, forks: Sequence[int]) -> Caveat:
    """The host was another one than in the rest of the run around forks whose figures stand out, too."""
    return Caveat(
        "disturbed",
        f"noisy host: a host probe stands out around {_which(forks)} of {variant}, and so do the figures "
        "(kept)",
    )


def shared_host(variant: str, by_host: Mapping[str, Sequence[str]]) -> Caveat:
    """Several nodes that benchctl started, some of them on the same host; empty for that of benchctl."""
    if len(by_host) == 1:
        text = (
            f"the {len(*by_host.values())} nodes of {variant} share one host's CPUs, memory and disk: this "
            "says nothing about how it scales over hosts"
        )
    else:
        shared = "; ".join(
            f"{' and '.join(nodes)} share {f'host {host}' if host else 'the host of benchctl'}"
            for host, nodes in by_host.items()
            if len(nodes) > 1
        )
        text = f"not every node of {variant} has a host of its own: {shared}"
    return Caveat("shared-host", text)


def node_lost(variant: str, forks: Sequence[int], nodes: Sequence[str]) -> Caveat:
    """Nodes that went without anybody having asked for it."""
    return Caveat(
        "node-lost",
        f"{variant} went on without {' and '.join(nodes)} in {_which(forks)} (--on-node-loss continue): the "
        "figures are those of fewer nodes",
    )


def counted_less(variant: str, forks: Sequence[int], counted: int, sent: int) -> Caveat:
    """Searches that were answered, and that the nodes do not count (of the fork that lacks most)."""
    return Caveat(
        "counted-less",
        f"nodes of {variant} counted {counted:,} of {sent:,} searches in {_which(forks)}: something else, "
        "such as a caching proxy, answered the rest, and the figures are not the nodes'",
    )


def replayed(variant: str, took_ns: float, service_ns: float) -> Caveat:
    """Searches that report more time than it took to answer them."""
    return Caveat(
        "counted-less",
        f"searches of {variant} report {took_ns / 1e6:.3g} ms of their own and were answered within "
        f"{service_ns / 1e6:.3g} ms: something else, such as a caching proxy, answered them",
    )


def counted_more(variant: str, forks: Sequence[int], counted: int, sent: int) -> Caveat:
    """Searches that benchctl did not send (of the fork that has most)."""
    return Caveat(
        "counted-more",
        f"nodes of {variant} counted {counted:,} searches in {_which(forks)} where benchctl sent {sent:,}: "
        "those of others take time and change what the JIT learns (ES 9.2 counts a kNN search twice)",
    )


def copied_shards(variant: str, forks: Sequence[int], most_bytes: int) -> Caveat:
    """Copies of shards that nodes did not find in their own folders."""
    return Caveat(
        "copied-shards",
        f"in {_which(forks)} of {variant} nodes copied up to {most_bytes:,} bytes of shards from each other "
        "when they started: not all of the index is as it was prepared",
    )


def warmed_by_start(variant: str, most_share: float) -> Caveat:
    """A page cache that was empty before nodes started, and is not when their tasks begin."""
    return Caveat(
        "not-cold",
        f"starting nodes of {variant} read up to {100 * most_share:.0f} % of the index: so much of it was in "
        "the page cache, which had been emptied, when tasks began",
    )


def warmed_by_requests() -> Caveat:
    """Tasks that warm up what was to be cold."""
    return Caveat(
        "not-cold",
        "what the page cache lacked was read during the warm-up, which is not measured: without it, say "
        "warmup-iterations 0 in the challenge, or --param warmup_iterations=0 where it has that parameter",
    )


def _which(forks: Sequence[int]) -> str:
    return f"fork{'' if len(forks) == 1 else 's'} {' '.join(map(str, forks))}"


def small_scale(times_fewer: str) -> Caveat:
    """A corpus so small that the JIT sees far less work."""
    return Caveat(
        "small-scale",
        f"up to {times_fewer} times fewer document visits than in the blog: "
        "the JIT may not have settled, small corpora need more iterations",
    )

"""Disturbances of forks: other processes, and waits in a task's measured time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, OtherLoad
from benchctl.stats.caveat import Caveat, counted

# Of the measured time. What changes throughput by clearly more than the practical margin (3%) matters.
LARGE_SHARE = 0.05
# Shorter waits, for a garbage collection say, are everyday life, and so are long ones where all are long.
_LEAST_STALL_S = 1.0

# Those that are more than a fiftieth of the requests are a second kind of request, or a host that is slow.
_MOST_STALLED_SHARE = 0.02
_LEAST_STALLED_S = 0.5
_WHOLE_PERCENT = 10  # shares from here on are told without decimals


# More than this share of the nodes' own CPU, and differences are those of a host that is shared.
BUSY_SHARE = 0.05
# So many more CPUs on one side than on the other, and so is their difference.
_LEAST_APART = 0.05
_LEVEL = 0.05
_MOST_NAMED = 3
_LEAST_NAMED = 0.05  # CPUs; less is printed as none


def busy_host(forks: Mapping[str, Sequence[ForkRecord]], *, together: bool = False) -> Caveat | None:
    """Return that other processes used CPU, on average or on one side more than on the other.

    None where it is little, or unknown. With `together`, the variants of a block were measured at the same
    moments: that shifts levels, but leaves their ratio, and is a mere note.
    """
    loads = [fork.others for group in forks.values() for fork in group if fork.others is not None]
    if not loads:
        return None
    own = mean(load.own for load in loads)
    share = mean(load.used for load in loads) / (own or 1.0)
    used = ""
    if share > BUSY_SHARE:
        used = cpus_used(loads, f", {100 * share:.0f}% of what the nodes used" if own else "")
    if not (used := used or _unequal(forks)):
        return None
    if together:
        used += "; do not compare times and rates with other runs; ratios within this run are valid"
    return Caveat("run" if together else "busy-host", f"other processes used {used}")


def _unequal(forks: Mapping[str, Sequence[ForkRecord]]) -> str:
    """Return what others used during forks of a side, if clearly more than on the other; else empty."""
    # Imports scipy, which the look at the host before a run need not wait for.
    from benchctl.stats.inference import contrast  # noqa: PLC0415 - see above

    first, *others = ((label, _by_block(group)) for label, group in forks.items())
    for side in others:
        common = sorted(first[1].keys() & side[1].keys())
        apart = [side[1][block].used - first[1][block].used for block in common]
        found = contrast(np.array(apart))
        # Adjusted for the number of variants.
        if found and abs(found.estimate) >= _LEAST_APART and found.p * len(others) <= _LEVEL:
            less, more = (first, side) if found.estimate > 0 else (side, first)
            than = f"{abs(found.estimate):.2f} more than during those of {less[0]}"
            return cpus_used([more[1][block] for block in common], f" during forks of {more[0]}, {than}")
    return ""


def _by_block(forks: Sequence[ForkRecord]) -> dict[tuple[int, int], OtherLoad]:
    """CPU of others by index build, or run, and block."""
    return {(fork.index_build, fork.block): fork.others for fork in forks if fork.others is not None}


def cpus_used(loads: Sequence[OtherLoad], during: str = "") -> str:
    """Return `1.7 of 2 CPUs (java pid 4711: 1.2, cc1: 0.4)`: means, with `during` before the names."""
    used = Counter[str]()
    for load in loads:
        used.update({name: cpus / len(loads) for name, cpus in load.processes.items()})
    cpus = loads[0].cpus
    named = [f"{name}: {own:.2f}" for name, own in used.most_common(_MOST_NAMED) if own >= _LEAST_NAMED]
    who = ", ".join(named) or "of hidden or short-lived processes"
    return f"{mean(load.used for load in loads):.2f} of {counted(cpus, 'CPU')}{during} ({who})"


class Stall(NamedTuple):
    """Long interruptions in a task of a fork."""

    text: str  # as a clause
    share: float  # of the measured time, 0 to 1; 0 if no clock of the task includes it


def stalls(summary: TaskSummary) -> Iterator[Stall]:
    """Yield waits that took a large share of a task's time, and all in which the driver stood still."""
    driver = summary.driver
    if driver is None or not driver.window_s:
        return
    if driver.suspended_s >= _LEAST_STALL_S:
        yield Stall(f"the machine was suspended for {driver.suspended_s:,.0f} s", 0.0)
    if driver.stopped_s:
        yield _stall("benchctl itself did not run for", driver.stopped_s, driver.window_s)
    if (share := stalled_share(summary)) > 0:
        count, of = summary.stalled, summary.samples + sum(summary.failures.values())
        yield Stall(_took(f"{count:,} of {of:,} requests took", summary.stalled_s, share), share)


def stalled_share(summary: TaskSummary) -> float:
    """Return what a few requests far beyond the typical one took of a task's time; 0 if it is little.

    What benchctl itself did not run is in these requests, and does not count.
    """
    driver = summary.driver
    stopped = 0.0 if driver is None or not driver.window_s else driver.stopped_s / driver.window_s
    requests = summary.samples + sum(summary.failures.values())
    few = summary.stalled <= max(1, _MOST_STALLED_SHARE * requests)
    large = summary.stalled_s >= _LEAST_STALLED_S and summary.stalled_share - stopped >= LARGE_SHARE
    return summary.stalled_share if few and large else 0.0


def large_stalls(summary: TaskSummary) -> list[Stall]:
    """Return those that took so large a share that the task's drift is mostly about them."""
    return [stall for stall in stalls(summary) if stall.share >= LARGE_SHARE]


def most_stalled(summaries: Iterable[TaskSummary]) -> float:
    """Return the largest such share of any fork; 0 where it is little in every fork."""
    return max((stall.share for summary in summaries for stall in large_stalls(summary)), default=0.0)


def _stall(what: str, seconds: float, window_s: float) -> Stall:
    share = seconds / window_s
    return Stall(_took(what, seconds, share), share)


def _took(what: str, seconds: float, share: float) -> str:
    percent = 100 * share
    return (
        f"{what} {seconds:.1f} s, {percent:.{0 if percent >= _WHOLE_PERCENT else 1}f}% of the measured time"
    )

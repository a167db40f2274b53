"""Fitness of a host to measure, checked before anything starts; for nights, by their suite's limits."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Final, Literal

import msgspec
import psutil
from msgspec import Meta

from benchctl.disk import FreeBytes, free_bytes
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.quantities import DURATION, PERCENT, Duration, Percent
from benchctl.report.numbers import duration
from benchctl.results.model import Environment, OtherLoad
from benchctl.results.plan import Plan
from benchctl.run.host import look, used_by_others
from benchctl.spec import BusyAction
from benchctl.stats.disturbed import cpus_used

SAMPLE_S: Final = 2.0
"""Observation time of the CPUs, seconds: other load is rarely idle for longer."""

MOST_STEAL: Final = 0.02
_MOST_OTHERS = 0.2  # CPUs; what nodes are going to use is not known yet
"""Share of CPU time stolen by the hypervisor beyond which a host is noisy."""

BESIDE_HEAP_MB: Final = 1024
"""Memory that a node needs beside its heap, MiB: native memory, and some of its index in the page cache."""
# Before an interactive run: long enough to tell 10% from nothing.
_GLANCE_S: Final = 0.5
LONGEST_WAIT_S: Final = 600.0
"""For a quiet host, with `--on-busy wait`."""
_SETTLE_POLL_S: Final = 10.0
_CLOCK_SLACK: Final = timedelta(minutes=5)  # network time may step the clock so far
_FIRST_YEAR: Final = 2026  # earlier, the clock has not been set
_GB: Final = 1e9
_MIB: Final = 2**20

Reaction = Literal["mark", "refuse"]
"""Measure, but mark the night as noisy; or do not measure."""

NotNegative = Annotated[float, Meta(ge=0)]


class HostLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Limits that a host has to meet."""

    max_load: NotNegative = 0.5  # maximum one-minute load average per CPU
    max_busy: Percent = "20%"  # maximum share of CPU time in use
    settle: Duration = "10m"  # longest wait for a quiet host, before the night
    governor: Annotated[str, Meta(min_length=1)] | None = None  # required CPU governor; by default any
    least_free_gb: NotNegative = 5.0  # required disk space for benchctl's home, GB; less is always refused
    # Required memory, GB, by default the heap and 1 GiB; less is always refused.
    least_free_memory_gb: NotNegative | None = None
    other_java: Reaction = "mark"  # what to do if other Java processes are running


@dataclass(frozen=True)
class Snapshot:
    """The state of a host."""

    now: datetime  # with its offset
    load1: float  # one-minute load average
    busy: float  # share of all CPUs' time
    others: OtherLoad | None  # of that, what others use; None where it is not known
    steal: float | None  # share that the hypervisor took; None where the kernel does not report it
    free_disk_bytes: int
    free_memory_bytes: int  # available without swapping


@dataclass(frozen=True)
class Fitness:
    """Outcome of a check of the host."""

    refused: tuple[str, ...] = ()  # reasons not to measure
    noise: tuple[str, ...] = ()  # reasons to mark the night as noisy
    notes: tuple[str, ...] = ()


def snapshot(
    home: Home,
    *,
    sample_s: float = SAMPLE_S,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone(),
    free: FreeBytes = free_bytes,
) -> Snapshot:
    """Observe the host: its CPUs for `sample_s` seconds, the disk of the home, its memory and load."""
    before = look()
    busy, steal = _cpu_shares(pause, sample_s)
    return Snapshot(
        now=now(),
        load1=psutil.getloadavg()[0],
        busy=busy,
        others=used_by_others(before, look(), os.getpid()),
        steal=steal,
        free_disk_bytes=free(home.root),
        free_memory_bytes=psutil.virtual_memory().available,
    )


def settle(
    limits: HostLimits,
    note: Callable[[str], None],
    *,
    cpus: int | None = None,
    look: Callable[[], tuple[float, float]] | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> float:
    """Wait until the host is quiet, or for as long as the limits allow, and return the seconds waited.

    `look` returns (load, busy share); None for the host's own. `note` is called once if it waits.
    """
    look = look or (lambda: (psutil.getloadavg()[0], _cpu_shares(pause)[0]))
    cpus = cpus or psutil.cpu_count() or 1
    begun = clock()
    waiting = False
    while noisy := _load_noise(limits, cpus, *look()):
        left_s = DURATION.parse(limits.settle) - (clock() - begun)
        if left_s <= 0:
            break
        if not waiting:
            note(f"{'; '.join(noisy)}: waiting for a quiet host, {limits.settle} at most")
            waiting = True
        pause(min(_SETTLE_POLL_S, left_s))
    return clock() - begun if waiting else 0.0


def examine(
    environment: Environment,
    seen: Snapshot,
    limits: HostLimits,
    heap_mb: int,
    last: tuple[int, str] | None,
    on_busy: BusyAction,
) -> Fitness:
    """Check a host against a suite's limits; with `fail`, one that is not quiet is refused.

    `last` is number and start, ISO 8601, of the last measured night; `heap_mb` is of a node.
    """
    refused = _lacks(seen, limits, heap_mb)
    noise: list[str] = []
    if environment.other_java:
        reason = f"other Java processes are up: {', '.join(environment.other_java)}"
        (noise if limits.other_java == "mark" else refused).append(reason)
    usual = _load_noise(limits, environment.cpus, seen.load1, seen.busy)
    if seen.steal is not None and seen.steal > MOST_STEAL:
        usual.append(f"the hypervisor took {seen.steal:.0%} of the CPUs' time")
    if limits.governor not in {None, environment.governor} and environment.governor is not None:
        usual.append(f"the CPU governor is '{environment.governor}', not '{limits.governor}'")
    (refused if on_busy == "fail" else noise).extend(usual)
    notes = _clock_notes(seen.now, last)
    if limits.governor is not None and environment.governor is None:
        notes.append(f"the kernel does not say whether the CPU governor is '{limits.governor}'")
    return Fitness(tuple(refused), tuple(noise), tuple(notes))


def check_quiet(
    home: Home,
    plans: Iterable[Plan],
    note: Callable[[str], None],
    on_busy: BusyAction | None,
    *,
    glance: Callable[[Home], Snapshot] | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Warn that the host is busy, or short of memory or disk, before runs; first wait for its end, or fail.

    The load average is not considered: it still includes what has just ended, such as the previous run. Runs
    in test mode are exempt from the warning, which is what None is, too.

    Raises:
        BenchctlError: If the host is busy, and `on_busy` is `fail`.
    """
    reacting = on_busy not in {None, "warn"}
    heaps = [
        0 if spec.target else spec.heap_mb or plan.heap_mb
        for plan in plans
        if reacting or not plan.test_mode
        for spec in plan.variants
    ]
    if not heaps:
        return
    glance = glance or partial(snapshot, sample_s=_GLANCE_S)
    begun, waiting = clock(), False
    while wrong := "; ".join(_busy(glance(home), max(heaps))):
        if on_busy == "fail":
            raise BenchctlError(f"host is busy: {wrong}", hint="stop other processes, or use: --on-busy warn")
        left_s = LONGEST_WAIT_S - (clock() - begun) if on_busy == "wait" else 0.0
        if left_s <= 0:
            note(f"warning: host is busy, results may be inconclusive: {wrong}")
            return
        if not waiting:
            note(f"waiting for a quiet host, for {duration(LONGEST_WAIT_S)} at most: {wrong}")
            waiting = True
        pause(min(_SETTLE_POLL_S, left_s))


def _busy(seen: Snapshot, heap_mb: int) -> list[str]:
    """Return what is wrong with a host for an interactive run."""
    return [*_lacks(seen, HostLimits(), heap_mb), *used_elsewhere(seen)]


def used_elsewhere(seen: Snapshot) -> list[str]:
    """Return what else uses the CPUs, as far as results would show it."""
    wrong = []
    if seen.others is not None and seen.others.used > _MOST_OTHERS:
        wrong.append(f"other processes use {cpus_used([seen.others])}")
    if seen.steal is not None and seen.steal > MOST_STEAL:
        wrong.append(f"the hypervisor took {seen.steal:.0%} of the CPUs' time")
    return wrong


def _lacks(seen: Snapshot, limits: HostLimits, heap_mb: int) -> list[str]:
    """Resources that do not suffice to measure at all."""
    reasons = []
    if seen.free_disk_bytes < limits.least_free_gb * _GB:
        reasons.append(
            f"{seen.free_disk_bytes / _GB:.1f} GB are free on the disk of benchctl's home, "
            f"{limits.least_free_gb:g} GB are wanted"
        )
    if limits.least_free_memory_gb is None:
        wanted = (heap_mb + BESIDE_HEAP_MB) * _MIB
        why = f" for a node with a heap of {heap_mb} MiB"
    else:
        wanted, why = round(limits.least_free_memory_gb * _GB), ""
    if seen.free_memory_bytes < wanted:
        reasons.append(
            f"{seen.free_memory_bytes / _GB:.1f} GB of memory are free, {wanted / _GB:.1f} GB are wanted{why}"
        )
    return reasons


def _load_noise(limits: HostLimits, cpus: int, load1: float, busy: float) -> list[str]:
    reasons = []
    if load1 > limits.max_load * cpus:
        reasons.append(
            f"the load is {load1:.1f} on {cpus} CPU{'s' if cpus > 1 else ''}, "
            f"more than {limits.max_load:g} each"
        )
    if busy > PERCENT.parse(limits.max_busy):
        reasons.append(f"the CPUs are {busy:.0%} busy, more than {limits.max_busy}")
    return reasons


def _clock_notes(now: datetime, last: tuple[int, str] | None) -> list[str]:
    """A clock that cannot be right; nights are ordered by number, so it does not matter to them."""
    notes = []
    if now.year < _FIRST_YEAR:
        notes.append(f"the clock says {now:%Y-%m-%d}: it has not been set")
    if last is not None and now + _CLOCK_SLACK < datetime.fromisoformat(last[1]):
        notes.append(
            f"the clock went back: it says {now:%Y-%m-%d %H:%M}, and night {last[0]} before this one "
            f"began at {last[1]}"
        )
    return notes


def _cpu_shares(pause: Callable[[float], None], sample_s: float = SAMPLE_S) -> tuple[float, float | None]:
    """(busy, stolen) shares of all CPUs' time during a sample; waiting for a disk is not busy."""
    before = psutil.cpu_times()
    pause(sample_s)
    after = psutil.cpu_times()
    # Guest time is included in user and nice.
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    spent = {name: getattr(after, name, 0.0) - getattr(before, name, 0.0) for name in names}
    total = sum(spent.values())
    if total <= 0:
        return 0.0, None
    idle = spent["idle"] + spent["iowait"]
    steal = spent["steal"] / total if hasattr(after, "steal") else None
    return min(1.0, max(0.0, 1.0 - idle / total)), steal

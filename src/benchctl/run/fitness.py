"""Fitness of this host to measure: who else uses it, what is free, and what the load driver costs here."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
import psutil
from msgspec import Meta

from benchctl.disk import FreeBytes, free_bytes
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.floor import floor_stub, measure_floor
from benchctl.quantities import Duration
from benchctl.report.numbers import duration
from benchctl.results.figures import Calibration
from benchctl.results.model import OtherLoad
from benchctl.results.plan import Plan
from benchctl.run.bench import Bench, Observer
from benchctl.run.host import look, used_by_others
from benchctl.run.plan import checked_hosts
from benchctl.spec import BusyAction
from benchctl.stats.disturbed import cpus_used

SAMPLE_S: Final = 2.0
"""Observation time of the CPUs, seconds: other load is rarely idle for longer."""
# Before an interactive run: long enough to tell 10% from nothing.
_GLANCE_S: Final = 0.5
MOST_STEAL: Final = 0.02
"""Share of CPU time stolen by the hypervisor beyond which a host is noisy."""
_MOST_OTHERS = 0.2  # CPUs; what nodes are going to use is not known yet
_MOST_BUSY = 0.2  # share of all CPUs, where it is not known whose load it is
BESIDE_HEAP_MB: Final = 1024
"""Memory that a node needs beside its heap, MiB: native memory, and some of its index in the page cache."""
LONGEST_WAIT_S: Final = 600.0
"""For a quiet host, with `--on-busy wait`."""
_POLL_S: Final = 10.0
_GB: Final = 1e9
_MIB: Final = 2**20


class HostLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Limits that a suite sets for the host of its nights."""

    settle: Duration = "10m"  # longest wait for a quiet host, before the night
    # Required disk space for benchctl's home, GB; less is always refused.
    least_free_gb: Annotated[float, Meta(ge=0)] = 5.0


@dataclass(frozen=True)
class Snapshot:
    """The state of a host."""

    busy: float  # share of all CPUs' time
    others: OtherLoad | None  # of that, what others use; None where it is not known
    steal: float | None  # share that the hypervisor took; None where the kernel does not report it
    free_disk_bytes: int
    free_memory_bytes: int  # available without swapping

    def lacks(self, limits: HostLimits, *heaps_mb: int) -> list[str]:
        """Return the resources that do not suffice for nodes with such heaps that are up together."""
        reasons = []
        if self.free_disk_bytes < limits.least_free_gb * _GB:
            reasons.append(
                f"{self.free_disk_bytes / _GB:.1f} GB are free on the disk of benchctl's home, "
                f"{limits.least_free_gb:g} GB are required"
            )
        wanted = sum(heap_mb + BESIDE_HEAP_MB for heap_mb in heaps_mb) * _MIB
        if self.free_memory_bytes < wanted:
            free = f"{self.free_memory_bytes / _GB:.1f} GB of memory are free"
            nodes = "a node with a heap" if len(heaps_mb) == 1 else "nodes with heaps"
            sizes = " and ".join(map(str, heaps_mb))
            reasons.append(f"{free}, {wanted / _GB:.1f} GB are required for {nodes} of {sizes} MiB")
        return reasons

    def noise(self) -> list[str]:
        """Return what else uses the CPUs, as far as results would show it.

        The load average is not considered: it still includes what has just ended, such as the previous run.
        """
        wrong = []
        if self.others is not None and self.others.used > _MOST_OTHERS:
            wrong.append(f"other processes use {cpus_used([self.others])}")
        if self.others is None and self.busy > _MOST_BUSY:
            wrong.append(f"the CPUs are {self.busy:.0%} busy")
        if self.steal is not None and self.steal > MOST_STEAL:
            wrong.append(f"the hypervisor took {self.steal:.0%} of the CPUs' time")
        return wrong


def snapshot(home: Home, *, sample_s: float = SAMPLE_S, free: FreeBytes = free_bytes) -> Snapshot:
    """Observe the host: its CPUs for `sample_s` seconds, the disk of the home, and its memory."""
    before = look()
    shares = psutil.cpu_times_percent(sample_s)
    steal: float | None = getattr(shares, "steal", None)
    return Snapshot(
        # Waiting for a disk is not busy.
        busy=1.0 - min(1.0, (shares.idle + getattr(shares, "iowait", 0.0)) / 100),
        others=used_by_others(before, look(), os.getpid()),
        steal=None if steal is None else steal / 100,
        free_disk_bytes=free(home.root),
        free_memory_bytes=psutil.virtual_memory().available,
    )


def settle(
    observe: Callable[[], Snapshot],
    wrong: Callable[[Snapshot], list[str]],
    longest_s: float,
    note: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """Observe the host until nothing is wrong, or for so many seconds; `note` is called once if it waits."""
    begun, waiting = clock(), False
    while reasons := wrong(seen := observe()):
        left_s = longest_s - (clock() - begun)
        if left_s <= 0:
            break
        if not waiting:
            note(f"waiting for a quiet host, for {duration(longest_s)} at most: {'; '.join(reasons)}")
            waiting = True
        pause(min(_POLL_S, left_s))
    return seen


def check_quiet(
    home: Home,
    plans: Iterable[Plan],
    note: Callable[[str], None],
    on_busy: BusyAction | None,
    *,
    glance: Callable[[Home], Snapshot] = lambda home: snapshot(home, sample_s=_GLANCE_S),
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Warn that the host is busy, or short of memory or disk, before runs; first wait for its end, or fail.

    Runs in test mode are exempt from the warning, which is what None is, too.

    Raises:
        BenchctlError: If the host is busy, and `on_busy` is `fail`.
    """
    plans = [plan for plan in plans if on_busy in {"wait", "fail"} or not plan.test_mode]
    if not plans:
        return
    heaps_mb = max((heaps for plan in plans for heaps in _heaps_mb(plan)), key=sum)

    def wrong(seen: Snapshot) -> list[str]:
        return [*seen.lacks(HostLimits(), *heaps_mb), *seen.noise()]

    longest_s = LONGEST_WAIT_S if on_busy == "wait" else 0.0
    seen = settle(lambda: glance(home), wrong, longest_s, note, clock=clock, pause=pause)
    reasons = "; ".join(wrong(seen))
    if reasons and on_busy == "fail":
        raise BenchctlError(f"host is busy: {reasons}", hint="stop other processes, or use: --on-busy warn")
    if reasons:
        note(f"warning: host is busy, results may be inconclusive: {reasons}")


def _heaps_mb(plan: Plan) -> list[list[int]]:
    """Return the heaps of the nodes that are up at the same time, MiB; nothing for running clusters."""
    heap_mb = {spec.name: spec.heap_mb or plan.heap_mb for spec in plan.variants if spec.target is None}
    names = [spec.name for spec in plan.variants]
    groups = plan.compared_together(names) if plan.together else [[name] for name in names]
    return [[heap_mb[name] for name in group if name in heap_mb] for group in groups]


# What the driver costs on this host, and how many processes a plan's clients need.


def calibrate(observer: Observer, stop: threading.Event, plan: Plan | None = None) -> Calibration:
    """Measure the driver against the built-in server, for about four seconds.

    Nothing else may be measuring on this host: call it with the host lock held. Setting `stop` ends it with
    an error. Where the load of the plan comes from other hosts, it is their drivers that are measured.

    Raises:
        BenchctlError: If the server does not start, a request fails, it is stopped, or a host cannot be used.
    """
    observer.stage("calibration: overhead of the driver itself")
    by_host: dict[str, Calibration] = {}
    if plan is not None and plan.load_hosts:
        # Dask takes a second to load, and is there only where hosts are.
        from benchctl.hosts.pool import calibrate_hosts  # noqa: PLC0415 - see above

        by_host = calibrate_hosts(checked_hosts(plan))
    if plan is None or len(by_host) < max(len(plan.load_hosts), 1):
        with floor_stub() as base_url:
            here = measure_floor(base_url, stop=stop)
        local = () if plan is None else (name for name in plan.load_hosts if name not in by_host)
        by_host[next(iter(local), "")] = here
    costliest = max(by_host.values(), key=lambda calibration: calibration.error_p50_ns)
    by_name = {name: one for name, one in by_host.items() if name}
    return msgspec.structs.replace(costliest, hosts=by_name)


def calibration_of(bench: Bench, plan: Plan, *, is_needed: bool = False) -> Calibration | None:
    """Return what the driver costs where a plan's load comes from: of other hosts, or if it `is_needed`."""
    return calibrate(bench.observer, bench.stop, plan) if is_needed or plan.load_hosts else None


# One process of clients sent ten times as many requests a second on every machine tried.
EASY_PER_S = 1_000.0
# Beyond half of a process's maximum against a server that does nothing, lag becomes visible.
_COMFORTABLE = 0.5


def most_offered_per_s(plan: Plan) -> float:
    """Return the highest total rate of tasks that run together, requests a second; 0 without targets."""
    search = plan.redline
    if search is not None:
        return search.max_per_s or 0.0
    steps = (
        [challenge.schedule[place] for place in step]
        for challenge in (*plan.all_warmups, *plan.schedules)
        for step in challenge.steps
    )
    return max((sum(task.rate_per_s or 0.0 for task in tasks) for tasks in steps), default=0.0)


def needs_calibration(plan: Plan) -> bool:
    """Return whether only a measurement can show that one process handles the plan's load."""
    return most_offered_per_s(plan) > EASY_PER_S


def with_workers(plan: Plan, calibration: Calibration, cpus: int) -> Plan:
    """The plan with as many processes as its load needs on each of its hosts, at most one per CPU."""
    drivers = calibration.hosts.values() or [calibration]
    comfortable = _COMFORTABLE * min(max(driver.clients_per_s, driver.one_client_per_s) for driver in drivers)
    needed = math.ceil(most_offered_per_s(plan) / comfortable / len(drivers))
    return msgspec.structs.replace(plan, workers=max(1, min(needed, cpus)))

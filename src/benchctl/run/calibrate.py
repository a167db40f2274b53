"""The driver's floor on this machine, what readings cost, and how many processes a plan's clients need."""

import math
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import msgspec
import numpy as np
import psutil

import benchctl
from benchctl.engine.usage import Meter, ProcessGauge
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.floor import floor_stub, measure_floor
from benchctl.results.figures import Calibration, ReadingCost
from benchctl.results.folders import read_versioned, write_versioned
from benchctl.results.plan import Plan
from benchctl.run.bench import Bench, Observer
from benchctl.run.checks import checked_hosts
from benchctl.run.telemetry import INTERVAL_S


def calibrate(observer: Observer, stop: threading.Event, plan: Plan | None = None) -> Calibration:
    """Measure the driver against the built-in server, and what readings cost, for about four seconds.

    Nothing else may be measuring on this host: call it with the host lock held. Setting `stop` ends it with
    an error. Where the load of the plan comes from other hosts, it is their drivers that are measured.

    Raises:
        BenchctlError: If the server does not start, a request fails, it is stopped, or a host cannot be used.
    """
    observer.stage("calibration: what the driver itself costs")
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
    return msgspec.structs.replace(costliest, reading=measure_readings(), hosts=by_name)


_KEPT_NAME = "calibration.json"
_KEPT_VERSION = 1


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    machine: str
    calibration: Calibration
    calibration_version: int = _KEPT_VERSION


def _machine() -> str:
    return (
        f"{platform.node()}, {platform.release()}, {psutil.cpu_count()} CPUs, benchctl {benchctl.__version__}"
    )


def keep_calibration(home: Home, calibration: Calibration) -> None:
    """Keep what the driver costs here, for all runs that follow on this host."""
    write_versioned(home.root / _KEPT_NAME, _Kept(_machine(), calibration))


def kept_calibration(home: Home) -> Calibration | None:
    """Return what the driver costs here; None before it was measured on this host by this benchctl."""
    try:
        kept = read_versioned(home.root / _KEPT_NAME, _Kept, "calibration", _KEPT_VERSION)
    except BenchctlError:
        return None  # it is measured again
    return kept.calibration if kept is not None and kept.machine == _machine() else None


def calibration_of(bench: Bench, plan: Plan, *, is_needed: bool = False) -> Calibration | None:
    """Return what the driver costs where a plan's load comes from.

    Of this host, it is what `benchctl doctor` or an earlier run kept, and measured only if `is_needed`;
    other hosts are always measured.
    """
    if plan.load_hosts:
        return calibrate(bench.observer, bench.stop, plan)
    calibration = kept_calibration(bench.home)
    if calibration is None and is_needed:
        calibration = calibrate(bench.observer, bench.stop, plan)
        keep_calibration(bench.home, calibration)
    return calibration


# A node has 40 on two CPUs, and pools that grow with the CPUs.
_THREADS = 150
_READINGS = 100
_STAND_IN = """
import sys, threading
end = threading.Event()
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=end.wait, daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


def measure_readings(threads: int = _THREADS, readings: int = _READINGS) -> ReadingCost:
    """Read an idle process as a node is read, and count the CPU time."""
    command = [sys.executable, "-I", "-S", "-c", _STAND_IN, str(threads)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
        Meter(process.pid) as meter,
    ):
        if process.stdout is not None:
            process.stdout.readline()
        bound_ns = _cpu_ns(meter.read, readings)
        telemetry_ns = _cpu_ns(ProcessGauge(process.pid).read, readings)
        # It ends with its standard input.
        process.communicate()
    low, high = (np.quantile([bound_ns, telemetry_ns], at, axis=1).round().astype(int) for at in (0.5, 0.99))
    return ReadingCost(
        threads=threads,
        bound_p50_ns=int(low[0]),
        bound_p99_ns=int(high[0]),
        telemetry_p50_ns=int(low[1]),
        telemetry_p99_ns=int(high[1]),
        share=float(np.mean(telemetry_ns)) / 1e9 / INTERVAL_S,
    )


def _cpu_ns(read: Callable[[], object], times: int) -> list[int]:
    """CPU time of this thread for each of several calls, after one that opens what later ones keep open."""
    read()
    spent_ns = []
    for _ in range(times):
        begin_ns = time.thread_time_ns()
        read()
        spent_ns.append(time.thread_time_ns() - begin_ns)
    return spent_ns


# One process of clients sent ten times as many requests a second on every machine tried.
EASY_PER_S = 1_000.0
# Beyond half of a process's maximum against a server that does nothing, lag becomes visible.
_COMFORTABLE = 0.5


def most_offered_per_s(plan: Plan) -> float:
    """Return the highest total rate of tasks that run together, requests a second; 0 without targets."""
    search = plan.redline
    if search is not None and search.by == "rate":
        return search.max_per_s or 0.0
    factor = 1.0 if search is None or search.by != "factor" else search.max_per_s or 1.0
    steps = (
        [challenge.schedule[place] for place in step]
        for challenge in (*plan.all_warmups, *plan.schedules)
        for step in challenge.steps
    )
    return factor * max((sum(task.rate_per_s or 0.0 for task in tasks) for tasks in steps), default=0.0)


def needs_calibration(plan: Plan) -> bool:
    """Return whether only a measurement can show that one process handles the plan's load."""
    return most_offered_per_s(plan) > EASY_PER_S


def with_workers(plan: Plan, calibration: Calibration, cpus: int) -> Plan:
    """The plan with as many processes as its load needs on each of its hosts, at most one per CPU."""
    drivers = calibration.hosts.values() or [calibration]
    comfortable = _COMFORTABLE * min(max(driver.clients_per_s, driver.one_client_per_s) for driver in drivers)
    needed = math.ceil(most_offered_per_s(plan) / comfortable / len(drivers))
    return msgspec.structs.replace(plan, workers=max(1, min(needed, cpus)))

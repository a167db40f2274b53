"""The driver's floor on this machine, and how many processes a plan's clients need."""

import math
import platform
import threading

import msgspec
import psutil

import benchctl
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.floor import floor_stub, measure_floor
from benchctl.results.figures import Calibration
from benchctl.results.plan import Plan
from benchctl.results.store import read_versioned, write_versioned
from benchctl.run.bench import Bench, Observer
from benchctl.run.checks import checked_hosts


def calibrate(observer: Observer, stop: threading.Event, plan: Plan | None = None) -> Calibration:
    """Measure the driver against the built-in server, for about four seconds.

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
    return msgspec.structs.replace(costliest, hosts=by_name)


_KEPT_NAME = "calibration.json"
_KEPT_VERSION = 2


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

"""The driver's floor on this machine, and how many processes the clients of a plan need."""

import math
import threading

import msgspec

from benchctl.load.floor import floor_stub, measure_floor
from benchctl.results.figures import Calibration
from benchctl.results.plan import Plan
from benchctl.run.bench import Observer


def calibrate(observer: Observer, stop: threading.Event) -> Calibration:
    """Measure the driver against the built-in server, for about three seconds.

    Nothing else may be measuring on this host: call it with the host lock held. Setting `stop` ends it with
    an error.

    Raises:
        BenchctlError: the server did not start, a request failed, or it was stopped.
    """
    observer.stage("calibration: what the driver itself costs")
    with floor_stub() as base_url:
        return measure_floor(base_url, stop=stop)


# One process of clients sent ten times as many requests a second on every machine tried.
EASY_PER_S = 1_000.0
# Beyond half of a process's maximum against a server that does nothing, lag becomes visible.
_COMFORTABLE = 0.5


def most_offered_per_s(plan: Plan) -> float:
    """The highest total target rate of tasks that run together, requests a second; 0 without targets."""
    steps = (
        [challenge.schedule[place] for place in step]
        for challenge in (*plan.all_warmups, *plan.schedules)
        for step in challenge.steps
    )
    return max((sum(task.rate_per_s or 0.0 for task in tasks) for tasks in steps), default=0.0)


def needs_calibration(plan: Plan) -> bool:
    """Whether one process can handle the plan's load is unknown without a measurement."""
    return most_offered_per_s(plan) > EASY_PER_S


def with_workers(plan: Plan, calibration: Calibration, cpus: int) -> Plan:
    """The plan with as many processes as its load needs, at most one per CPU."""
    comfortable = _COMFORTABLE * max(calibration.clients_per_s, calibration.one_client_per_s)
    needed = math.ceil(most_offered_per_s(plan) / comfortable)
    return msgspec.structs.replace(plan, workers=max(1, min(needed, cpus)))

"""The driver's floor on this machine, and how many processes the clients of a plan need."""

import math
import threading

import msgspec

from benchctl.load.floor import floor_stub, measure_floor
from benchctl.results.figures import Calibration
from benchctl.results.plan import Plan
from benchctl.run.bench import Observer

# The driver's floor on this machine, for a run's record or for its own sake.


def calibrate(observer: Observer, stop: threading.Event) -> Calibration:
    """Start the built-in server, measure the driver against it, and stop it; about three seconds.

    Nothing else may be measuring on this host meanwhile: call it with the host lock held.

    Args:
        observer: told what happens.
        stop: ends it with an error.

    Raises:
        BenchctlError: the server did not start, a request failed, or it was stopped.
    """
    observer.stage("calibration: what the driver itself costs")
    with floor_stub() as base_url:
        return measure_floor(base_url, stop=stop)


# How many processes the clients of a plan need: one, unless it is asked for more than one can offer here.


# One process of clients offered ten times as many requests a second on every machine that was tried.
EASY_PER_S = 1_000.0
# Beyond half of what a process can do against a server without work of its own, its lag begins to show.
_COMFORTABLE = 0.5


def most_offered_per_s(plan: Plan) -> float:
    """The highest rate that tasks of one step are to offer together, requests a second; 0 without targets."""
    steps = (
        [challenge.schedule[place] for place in step]
        for challenge in (*plan.all_warmups, *plan.schedules)
        for step in challenge.steps
    )
    return max((sum(task.rate_per_s or 0.0 for task in tasks) for tasks in steps), default=0.0)


def needs_calibration(plan: Plan) -> bool:
    """Whether only a measurement can say that one process offers the plan's load."""
    return most_offered_per_s(plan) > EASY_PER_S


def with_workers(plan: Plan, calibration: Calibration, cpus: int) -> Plan:
    """The plan with as many processes as its load needs, at most one a CPU.

    Args:
        plan: asks for one process so far.
        calibration: what one process can do here.
        cpus: of this host.
    """
    comfortable = _COMFORTABLE * max(calibration.clients_per_s, calibration.one_client_per_s)
    needed = math.ceil(most_offered_per_s(plan) / comfortable)
    return msgspec.structs.replace(plan, workers=max(1, min(needed, cpus)))

"""How many processes the clients of a plan need: one, unless it is asked for more than one can offer here."""

import math

import msgspec

from benchctl.results.figures import Calibration
from benchctl.results.plan import Plan

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

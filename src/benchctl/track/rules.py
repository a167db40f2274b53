"""What a schedule must keep to, in Rally's rules; files and parameters alike can break them."""

from collections.abc import Mapping, Sequence

from benchctl.track.model import Challenge, Task
from benchctl.track.operations.search import MOST_WAIT_S, Operation
from benchctl.track.template.document import Document

# A client is a thread and a connection.
MOST_CLIENTS = 4096
MOST_REQUESTS = 10**12
# One a nanosecond, the grain of all clocks here.
MOST_PER_S = 10**9


def check_challenge(
    challenge: Challenge, operations: Mapping[str, Operation], document: Document, where: str = "$"
) -> None:
    """Check every task of a challenge.

    Args:
        challenge: as read, parameters set.
        operations: the track's and its own.
        document: that it stands in.
        where: its JSON path.

    Raises:
        UsageError: names the first task that breaks a rule.
    """
    if not challenge.schedule:
        raise document.refuse(f"{where}.schedule", "is empty")
    for element, places in enumerate(challenge.steps):
        tasks = [challenge.schedule[place] for place in places]
        if (clients := _clients_of(tasks)) > MOST_CLIENTS and tasks[0].group is not None:
            raise document.refuse(
                f"{where}.schedule[{element}].parallel",
                f"{clients:,} clients at the same time, at most {MOST_CLIENTS:,}",
                hint="give the parallel element `clients`: its tasks then take turns on so many",
            )
        completing = sum(task.completes for task in tasks)
        for inner, task in enumerate(tasks):
            # Beside a task that completes them all, a task may go on without an end of its own.
            ends = completing > task.completes or operations[task.operation].ends
            problem = _task_problem(task, ends=ends) or _rate_problem(task)
            if problem:
                inside = f".parallel.tasks[{inner}]" if task.group is not None else ""
                raise document.refuse(f"{where}.schedule[{element}]{inside}", problem)


def _clients_of(tasks: Sequence[Task]) -> int:
    """Clients that are at work in a step at the same time."""
    together = sum(task.clients for task in tasks)
    return min([together, *(task.lanes for task in tasks if task.lanes is not None)])


def _rate_problem(task: Task) -> str:
    """A rate at which no clock could tell requests apart, or nobody would wait for the second one."""
    least = 1 / MOST_WAIT_S
    if task.rate_per_s is None or least <= task.rate_per_s <= MOST_PER_S:
        return ""
    return f"the target is {task.rate_per_s:g} requests a second: not from {least:g} to {MOST_PER_S:,}"


def _task_problem(task: Task, *, ends: bool) -> str:
    """What is wrong with a task, in Rally's rules; empty when nothing is.

    Args:
        task: the task.
        ends: whether it comes to an end without iterations or a time period.
    """
    counts = (task.iterations, task.warmup_iterations)
    periods = (task.time_period, task.warmup_time_period)
    throttled = task.target_throughput is not None or task.target_interval is not None
    rules = (
        (not 1 <= task.clients <= MOST_CLIENTS, f"clients must be at least 1, at most {MOST_CLIENTS:,}"),
        (task.iterations is not None and task.iterations < 1, "iterations must be at least 1"),
        (any((count or 0) > MOST_REQUESTS for count in counts), f"more than {MOST_REQUESTS:,} iterations"),
        (task.warmup_iterations is not None and task.warmup_iterations < 0, "warmup-iterations is negative"),
        (task.time_period is not None and task.time_period <= 0, "time-period must be above 0"),
        (
            task.warmup_time_period is not None and task.warmup_time_period < 0,
            "warmup-time-period is negative",
        ),
        (
            task.warmup_time_period is not None and task.time_period is None and not ends,
            "a warmup-time-period needs a time-period",
        ),
        (any((period or 0) > MOST_WAIT_S for period in periods), f"more than {MOST_WAIT_S:,} seconds"),
        (
            any(count is not None for count in counts) and any(period is not None for period in periods),
            "iterations and time periods do not mix",
        ),
        (
            task.target_throughput is not None and task.target_interval is not None,
            "target-throughput and target-interval say the same thing: give one",
        ),
        (
            task.target_throughput is not None and task.target_throughput <= 0,
            "target-throughput must be above 0",
        ),
        (task.target_interval is not None and task.target_interval <= 0, "target-interval must be above 0"),
        (
            task.schedule == "poisson" and not throttled,
            "a poisson schedule needs target-throughput or target-interval",
        ),
        (
            task.schedule == "unthrottled" and throttled,
            "an unthrottled schedule has no target-throughput and no target-interval",
        ),
        (
            (task.ramp_up_time_period or 0) < 0,
            "ramp-up-time-period is negative",
        ),
        (
            (task.ramp_up_time_period or 0) > (task.warmup_time_period or 0),
            "a ramp-up-time-period needs a warmup-time-period that is at least as long",
        ),
    )
    return next((text for broken, text in rules if broken), "")

"""`--test-mode`: everything is started, asked and compared as ever, but hardly repeated."""

import msgspec

from benchctl.results.plan import Plan
from benchctl.track.model import Challenge, Task

TRIAL_DOCUMENTS = 100_000
"""Documents of the corpus unless the user says otherwise: from there on, all of big5 finds something."""

TRIAL_FORKS = 1
"""Forks unless the user says otherwise."""

_ITERATIONS = 3
_WARMUP_ITERATIONS = 1
_PERIOD_S = 2.0


def as_trial(plan: Plan) -> Plan:
    """The plan with tasks as short as they can be while all that can go wrong still can.

    Every task asks at most three times a client, after one warm-up, or for two seconds, and as fast as it
    can; a task that ends by itself, such as one that sends a corpus, is left to that.
    """
    return msgspec.structs.replace(
        plan,
        schedules=tuple(map(_shortened, plan.schedules)),
        warmup_challenges=tuple(map(_shortened, plan.warmup_challenges)),
        variant_warmups={
            name: tuple(map(_shortened, warmups)) for name, warmups in plan.variant_warmups.items()
        },
        test_mode=True,
    )


def _shortened(challenge: Challenge) -> Challenge:
    return msgspec.structs.replace(challenge, schedule=tuple(map(_short, challenge.schedule)))


def _short(task: Task) -> Task:
    return msgspec.structs.replace(
        task,
        iterations=None if task.iterations is None else min(task.iterations, _ITERATIONS),
        warmup_iterations=None
        if task.warmup_iterations is None
        else min(task.warmup_iterations, _WARMUP_ITERATIONS),
        time_period=None if task.time_period is None else min(task.time_period, _PERIOD_S),
        warmup_time_period=None,
        ramp_up_time_period=None,
        target_throughput=None,
        target_interval=None,
        # Without a rate there are no arrivals to space.
        schedule="deterministic" if task.schedule == "poisson" else task.schedule,
        scheduler=None,
    )

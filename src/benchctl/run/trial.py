"""`--test-mode`: everything is started, asked and compared as usual, but hardly repeated."""

import msgspec

from benchctl.results.plan import (
    Plan,
)
from benchctl.track.model import Challenge, Task

TEST_MODE_DOCUMENTS = 100_000
"""Default corpus: the smallest in which all of big5 finds something."""

TEST_MODE_FORKS = 1
"""Default number of forks."""

_ITERATIONS = 3

_WARMUP_ITERATIONS = 1

_PERIOD_S = 2.0

_MICRO_TEST_MODE = ("-wi", "1", "-i", "1", "-w", "50ms", "-r", "50ms")


def in_test_mode(plan: Plan) -> Plan:
    """The plan with tasks as short as possible that still exercise everything.

    Every task sends at most three requests per client after one warm-up, or runs for two seconds,
    unthrottled; a task
    that ends by itself, such as indexing a corpus, does. A microbenchmark has one iteration of 50 ms.
    """
    if plan.micro is not None:
        pairs = zip(*[iter(_MICRO_TEST_MODE)] * 2, strict=True)
        words = list(plan.micro.arguments)
        for name, value in pairs:
            if name in words:
                words[words.index(name) + 1] = value
            else:
                words += [name, value]
        plan = msgspec.structs.replace(
            plan, micro=msgspec.structs.replace(plan.micro, arguments=tuple(words))
        )
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
        # Arrivals need a rate.
        schedule="deterministic" if task.schedule == "poisson" else task.schedule,
        scheduler=None,
    )

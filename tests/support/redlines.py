"""Red-line searches made by hand."""

from collections.abc import Sequence
from typing import Any

import msgspec

from benchctl.results.figures import CurvePoint, StepVerdict, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.track.model import Challenge, Task
from builders import NS_PER_MS, make_fork, make_plan, make_summary

SEARCH = RedlineSpec(
    operation="range",
    percentile=90.0,
    limit_ns=50_000_000,
    clients=16,
    schedule="poisson",
    warm_up_s=10.0,
    settle_s=2.0,
    step_s=5.0,
    tolerance=0.03,
)


def redline_plan(search: RedlineSpec = SEARCH, **changes: Any) -> Plan:
    """A plan that searches instead of running its schedule."""
    task = Task(
        search.operation,
        clients=search.clients,
        time_period=search.step_s,
        warmup_time_period=search.settle_s,
        schedule=search.schedule,
    )
    challenge = Challenge(f"redline-{search.operation}", (task,))
    return make_plan(**{"schedules": (challenge,), "forks": 3, "redline": search, **changes})


def make_point(
    rung: int, p90_ms: float, *, verdict: StepVerdict = "pass", step: int = 1, **changes: Any
) -> CurvePoint:
    """A step at one rung; rung 155 is about 100 a second."""
    rate = 1.03**rung
    p90_ns = p90_ms * NS_PER_MS
    base = CurvePoint(
        step=step,
        rung=rung,
        phase="search",
        rate_per_s=rate,
        achieved_per_s=rate,
        samples=500,
        failures=0,
        p50_ns=p90_ns / 2,
        p90_ns=p90_ns,
        p99_ns=p90_ns * 2,
        objective_ns=p90_ns,
        undelayed_ns=p90_ns,
        growth=0.0,
        verdict=verdict,
        reason="" if verdict == "pass" else f"p90 is {p90_ms:.4g} ms",
    )
    return msgspec.structs.replace(base, **changes)


def redline_summary(rate_per_s: float | None, **changes: Any) -> TaskSummary:
    """What a fork's search found."""
    end = "missed" if rate_per_s is None else "found"
    return make_summary(
        "range",
        10.0,
        **{"redline_per_s": rate_per_s, "redline_end": end, "drift": None, **changes},
    )


def redline_fork(
    variant: str, block: int, rate_per_s: float | None, points: Sequence[CurvePoint] = (), **changes: Any
) -> ForkRecord:
    """A fork that searched."""
    return make_fork(variant, block, redline_summary(rate_per_s, **changes), curve=tuple(points))

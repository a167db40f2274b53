"""Sweeps with plain values: noise-free lines times the luck of every fork."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan, VariantSpec
from benchctl.run.plan import RunSpec, plan_run
from benchctl.stats.analysis import SweepAxis, SweepCurve
from benchctl.stats.compare import Comparison, Side, adjust, compare_sides
from benchctl.stats.metrics import metric_of, places, task_at
from benchctl.sweep.curve import ByBlock, judged_curves, sweep_curve
from builders import CORPUS, ES, OS, make_fork, make_record, make_summary

AXIS = SweepAxis("clients", ("1", "2", "4", "8"), (1.0, 2.0, 4.0, 8.0))
BLOCKS = 6
CANDIDATES = SweepAxis("candidates", ("10", "20", "50", "100", "200"), (10.0, 20.0, 50.0, 100.0, 200.0))


def forks(
    truth: Callable[[float], float] | float,
    axis: SweepAxis = AXIS,
    *,
    seed: int = 1,
    sd: float = 0.02,
    blocks: int = BLOCKS,
) -> list[ByBlock]:
    """By point, one value a block: of a line, or a constant; points without numbers are 1, 2, 3..."""
    places = axis.numbers or range(1, len(axis.labels) + 1)
    luck = np.exp(np.random.default_rng(seed).normal(0, sd, (len(places), blocks)))
    return [
        dict(enumerate(((truth(place) if callable(truth) else truth) * factors).tolist()))
        for place, factors in zip(places, luck, strict=True)
    ]


def compared(values: Mapping[str, Sequence[ByBlock]], metric: str) -> list[list[Comparison]]:
    """What runs compute anyway: every further variant against the first, point by point."""
    known = metric_of(metric)
    (baseline, first), *others = values.items()
    return [
        [
            compare_sides(
                known,
                *(
                    msgspec.structs.replace(
                        Side.plain([*points[place].values()], additive=known.additive), label=label
                    )
                    for label, points in ((baseline, first), (name, own))
                ),
                paired=True,
                judged=True,
                replicate="fork",
            )
            for name, own in others
        ]
        for place in range(len(first))
    ]


def make_curve(
    values: Mapping[str, Sequence[ByBlock]],
    axis: SweepAxis = AXIS,
    *,
    metric: str = "service_time_p90",
    **more: Any,
) -> SweepCurve:
    """A curve of whole blocks, compared."""
    more = {"task": "range", "challenge": "big5"} | more
    if "comparisons" not in more:
        more["comparisons"] = compared(values, metric)
    return sweep_curve(values, axis, metric=metric, **more)


def two_laws(**more: Any) -> SweepCurve:
    """os grows more slowly than es, and is faster from 3 clients on."""
    return make_curve(
        {"es": forks(lambda x: 4 * x**0.9), "os": forks(lambda x: 4 * 3**0.3 * x**0.6, seed=2)}, **more
    )


def recalls(missing: float, *, seed: int = 1, sd: float = 0.02, blocks: int = BLOCKS) -> list[ByBlock]:
    """Recall by point: of so many neighbours over the candidates, none is found."""
    misses = forks(lambda x: missing / x, CANDIDATES, seed=seed, sd=sd, blocks=blocks)
    return [{block: 1 - (value or 0) for block, value in point.items()} for point in misses]


def searches(per_s: float, *, seed: int = 1, sd: float = 0.02, blocks: int = BLOCKS) -> list[ByBlock]:
    """Throughput by point."""
    return forks(lambda x: per_s / x**0.6, CANDIDATES, seed=seed, sd=sd, blocks=blocks)


def recall_curve(missing: Mapping[str, float], *, blocks: int = BLOCKS, **more: Any) -> SweepCurve:
    """A judged curve of variants that miss so many; the first answers 4,000 times a second, others 3,000."""
    names = dict(enumerate(missing))
    found = {name: recalls(missing[name], seed=place, blocks=blocks) for place, name in names.items()}
    values = {
        name: searches(3000 if place else 4000, seed=10 + place, blocks=blocks)
        for place, name in names.items()
    }
    comparisons = [adjust(point) for point in compared(values, "throughput")] if len(values) > 1 else ()
    more = {"recalls": found, "task": "knn", "challenge": "knn", "comparisons": comparisons} | more
    (curve,) = judged_curves([make_curve(values, CANDIDATES, **{"metric": "throughput"} | more)])
    return curve


def recall_record(run_id: str = "sweep", **changes: Any) -> RunRecord:
    """A run over clients, which stand for candidates: os is slower, and finds less."""
    plan = swept_record(sweep=("clients=1,2,4,8",), **changes).plan
    luck = np.random.default_rng(3)

    def typical_ms(spec: VariantSpec, place: Place) -> float:
        return (4.0 if spec.name == "os" else 3.0) * task_at(plan, place).clients ** 0.6

    def found(fork: ForkRecord) -> Iterator[TaskSummary]:
        missing = (0.25 if fork.variant == "os" else 0.2) * float(np.exp(luck.normal(0, 0.02)))
        for summary in fork.summaries:
            clients = task_at(plan, (summary.schedule, summary.task)).clients
            yield msgspec.structs.replace(summary, meters={"recall": 1 - missing / clients**1.2})

    record = timed_record(plan, typical_ms, run_id)
    forks_ = (msgspec.structs.replace(fork, summaries=tuple(found(fork))) for fork in record.forks)
    return msgspec.structs.replace(record, forks=tuple(forks_))


def swept_record(
    run_id: str = "sweep", *, sweep: Sequence[str] = (), blocks: int = BLOCKS, **changes: Any
) -> RunRecord:
    """A run over 1, 2 and 4 clients: os is slower, but grows more slowly."""
    options: dict[str, Any] = {
        "variants": (ES, OS),
        "challenges": ("range-only-short",),
        "forks": blocks,
        "seed": 1,
        "heap_mb": 512,
        "track": "big5",
        "corpus": CORPUS,
        "params": {},
        "sweep": tuple(sweep) or ("clients=1,2,4",),
    }
    plan, _ = plan_run(RunSpec(**{**options, **changes}))
    assert plan.swept is not None

    def typical_ms(spec: VariantSpec, place: Place) -> float:
        power, first_ms = (1.0, 2.0) if spec.engine == "elasticsearch" else (0.5, 3.0)
        return first_ms * task_at(plan, place).clients ** power * ((spec.documents or 1000) / 1000) ** 0.8

    return timed_record(plan, typical_ms, run_id, blocks=blocks)


def timed_record(
    plan: Plan,
    typical_ms: Callable[[VariantSpec, Place], float],
    run_id: str = "sweep",
    *,
    blocks: int = BLOCKS,
    sd: float = 0.02,
) -> RunRecord:
    """A run of a plan whose tasks take so long, but for the luck of every fork."""
    luck = np.random.default_rng(1)
    made = []
    for spec in plan.variants:
        for block in range(blocks):
            summaries = []
            for place in places(plan):
                task = task_at(plan, place)
                own = make_summary(
                    task.operation, typical_ms(spec, place) * float(np.exp(luck.normal(0, sd)))
                )
                placed = {"schedule": place[0], "task": place[1], "label": task.label}
                summaries.append(msgspec.structs.replace(own, **placed))
            made.append(make_fork(spec.name, block, *summaries))
    return make_record(run_id, status="complete", plan=plan, forks=tuple(made))


def histories_record(
    run_id: str, factors: Mapping[str, float], *, blocks: int = BLOCKS, **changes: Any
) -> RunRecord:
    """A run of `range` by history; os takes 2 ms times its factor there, es 2 ms."""
    plan = swept_record(sweep=(f"history={','.join(factors)}",), **changes).plan

    def typical_ms(spec: VariantSpec, place: Place) -> float:
        return 2 * (factors[plan.history(place[0]) or ""] if spec.name == "os" else 1.0)

    return timed_record(plan, typical_ms, run_id, blocks=blocks, sd=0.005)


def tasks_record(
    challenge: str = "big5", histories: str = "fresh,scheduled", *, effect: float = 1.3, **changes: Any
) -> RunRecord:
    """A run whose every fifth task is slower on os than on es unless its node is fresh."""
    plan = swept_record(sweep=(f"history={histories}",), challenges=(challenge,), **changes).plan

    def typical_ms(spec: VariantSpec, place: Place) -> float:
        depends = spec.name == "os" and plan.history(place[0]) != "fresh" and place[1] % 5 == 2
        return 5 * (effect if depends else 1.0)

    return timed_record(plan, typical_ms, sd=0.01)

"""Samples of a run's forks -> the shapes of every task: what charts that need samples are drawn from."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from benchctl.errors import BenchctlError
from benchctl.results.figures import Course
from benchctl.results.plan import Place, Plan
from benchctl.results.reading import ForkSource
from benchctl.results.samples import Columns, select
from benchctl.stats.shape import Box, boxes
from benchctl.stats.task_shape import HitTimes, Sequel, Survey, TaskShape, successes
from benchctl.stats.usage import Usage, task_usage
from benchctl.stats.values import places, task_at

_MOST_POINTS = 400
_LEAST_POINTS = 120
# Of all courses of a page together: what it takes to load is bounded, whatever the number of forks.
_POINTS_OF_A_PAGE = 40_000
# Of the forks of one variant, which are drawn over each other: more would be noise.
_POINTS_OF_A_PANEL = 1_500


class ForkShape(msgspec.Struct, frozen=True):
    """One task of one fork.

    Attributes:
        label: what tables call its variant.
        block: which of its forks.
        shape: of its samples.
        course: the segments of its service times; None where they are not known.
        usage: telemetry of the task; None when none was kept.
    """

    label: str
    block: int
    shape: TaskShape
    course: Course | None
    usage: Usage | None

    @property
    def name(self) -> str:
        """What charts call it: `es, fork 3`."""
        return fork_name(self.label, self.block)


class HitBoxes(msgspec.Struct, frozen=True):
    """Service times of one task and variant by order of magnitude of the hits, over all forks' requests.

    Attributes:
        boxes: ascending.
        unknown: requests whose hits nobody knows; they are in no box.
        bounded: requests whose hits the engine stopped counting: they belong where they are, or higher.
    """

    boxes: tuple[Box, ...]
    unknown: int
    bounded: int


class TaskShapes(msgspec.Struct, frozen=True):
    """One task, by variant.

    Attributes:
        timed: it runs for some time, not for a number of requests.
        throttled: its requests were due at given times.
        unit: what its throughput counts.
        forks: label -> forks with samples, in order of their blocks.
        hits: label -> its boxes; empty when all requests had the same number of hits, or nobody knows.
    """

    timed: bool
    throttled: bool
    unit: str
    forks: dict[str, tuple[ForkShape, ...]]
    hits: dict[str, HitBoxes]


class RunShapes(msgspec.Struct, frozen=True):
    """Every task of which there are samples.

    Attributes:
        tasks: by place.
        absent: forks of which something is not there or cannot be read: `es, fork 3: no samples were kept`.
    """

    tasks: dict[Place, TaskShapes]
    absent: tuple[str, ...] = ()


def fork_name(label: str, block: int) -> str:
    """One fork among those of all variants."""
    return f"{label}, fork {block}"


def run_shapes(plan: Plan, sources: Iterable[ForkSource]) -> RunShapes:
    """Read all samples, fork after fork, and keep only what is drawn.

    Every fork is read twice, in chunks: memory is bounded by one chunk and the tallies of one fork.

    Args:
        plan: of the forks. The samples of a red-line search are those of its steps, not of a task: for it
            there is nothing, and nothing is read.
        sources: the forks, in the order in which they are to be shown.

    Raises:
        BenchctlError: samples could be read once, and not again.
    """
    if plan.redline is not None:
        return RunShapes({})
    throttled = {place: task_at(plan, place).throttled for place in places(plan)}
    points = _points(plan)
    forks: dict[Place, dict[str, list[ForkShape]]] = {place: {} for place in throttled}
    hits: dict[Place, dict[str, HitTimes]] = {place: {} for place in throttled}
    units: dict[Place, str] = {}
    absent = []
    for source in sources:
        name = fork_name(source.label, source.block)
        if source.absent:
            absent.append(f"{name}: {source.absent}")
        if source.samples is None:
            continue
        try:
            surveys = _surveys(source.samples, throttled)
        except BenchctlError:
            # One damaged file of many: the others are drawn.
            absent.append(f"{name}: its samples cannot be read")
            continue
        mine = {place: hits[place].setdefault(source.label, HitTimes()) for place in throttled}
        shapes = _fork_shapes(source.samples, surveys, mine, points)
        summaries = {(summary.schedule, summary.task): summary for summary in source.summaries}
        for place, shape in shapes.items():
            summary = summaries.get(place)
            course = None if summary is None else summary.course
            forks[place].setdefault(source.label, []).append(
                ForkShape(source.label, source.block, shape, course, _usage(source, shape))
            )
            if summary is not None:
                units.setdefault(place, summary.unit)
    return RunShapes(
        {
            place: TaskShapes(
                timed=_timed(plan, place),
                throttled=throttled[place],
                unit=units.get(place, "queries"),
                forks={label: tuple(group) for label, group in found.items()},
                hits=_hit_boxes(hits[place]),
            )
            for place, found in forks.items()
            if found
        },
        tuple(absent),
    )


def _points(plan: Plan) -> int:
    """How many points the course of one fork's task gets."""
    courses = len(places(plan)) * plan.forks * len(plan.variants)
    wanted = min(_POINTS_OF_A_PAGE // max(courses, 1), _POINTS_OF_A_PANEL // max(plan.forks, 1))
    return min(max(wanted, _LEAST_POINTS), _MOST_POINTS)


def _surveys(chunks: Iterable[Columns], throttled: Mapping[Place, bool]) -> dict[Place, Survey]:
    """The first reading of one fork, of all that the second one reads."""
    surveys: dict[Place, Survey] = {}
    for place, rows in _by_place(chunks):
        if place in throttled:
            surveys.setdefault(place, Survey(throttled=throttled[place])).add(rows)
    return surveys


def _fork_shapes(
    chunks: Iterable[Columns],
    surveys: Mapping[Place, Survey],
    hits: Mapping[Place, HitTimes],
    points: int,
) -> dict[Place, TaskShape]:
    """The tasks of one fork that sent anything."""
    sequels = {place: Sequel(survey, points) for place, survey in surveys.items() if survey.began}
    for place, rows in _by_place(chunks):
        if place in sequels:
            sequels[place].add(rows)
            hits[place].add(select(ok := successes(rows), ~ok["warmup"]))
    return {place: sequels[place].shape() for place in sorted(sequels)}


def _by_place(chunks: Iterable[Columns]) -> Iterator[tuple[Place, Columns]]:
    for chunk in chunks:
        keys = chunk["schedule"].astype(np.int64) << 16 | chunk["task"]
        for key in np.unique(keys).tolist():
            yield (key >> 16, key & 0xFFFF), select(chunk, keys == key)


def _usage(source: ForkSource, shape: TaskShape) -> Usage | None:
    if source.telemetry is None:
        return None
    flow = shape.flow
    begin_ns, end_ns = (shape.origin_ns + round(second * 1e9) for second in (flow.begin_s, flow.end_s))
    return task_usage(source.telemetry, begin_ns, end_ns, shape.origin_ns)


def _timed(plan: Plan, place: Place) -> bool:
    task = task_at(plan, place)
    return task.time_period is not None or task.warmup_time_period is not None


def _hit_boxes(found: Mapping[str, HitTimes]) -> dict[str, HitBoxes]:
    """Nothing to tell apart where every request of a variant had the same number of hits."""
    if not any(one.vary for one in found.values()):
        return {}
    return {label: HitBoxes(boxes(one.service_ns), one.unknown, one.bounded) for label, one in found.items()}

"""Forks become shapes, task by task and variant by variant; what is not there is said, not guessed."""

from collections.abc import Iterator, Sequence

from benchctl.errors import BenchctlError
from benchctl.results.figures import Course
from benchctl.results.samples import Columns, concatenate
from benchctl.stats.task_shape import run_shapes
from benchctl.track.model import Challenge, Task
from builders import make_plan, make_summary
from redlines import redline_plan
from sampled import make_samples, make_source, make_telemetry

PLAN = make_plan(
    schedules=(
        Challenge("first", (Task("range", iterations=3), Task("bulk", time_period=5.0))),
        Challenge("second", (Task("range", iterations=3, target_throughput=10.0),)),
    )
)


class Unreadable(Sequence[Columns]):
    def __getitem__(self, index: object) -> Columns:  # type: ignore[override]
        raise AssertionError("was read")

    def __len__(self) -> int:
        raise AssertionError("was read")


def test_tasks_are_told_apart_wherever_chunks_are_cut():
    tasks = {
        (0, 0): make_samples([1.0] * 3, schedule=0, task=0),
        (0, 1): make_samples([2.0] * 5, schedule=0, task=1),
        (1, 0): make_samples([3.0] * 7, schedule=1, task=0),
    }
    rows = concatenate(list(tasks.values()))
    chunks = [{name: values[start : start + 4] for name, values in rows.items()} for start in range(0, 15, 4)]
    found = run_shapes(PLAN, [make_source(chunks)])
    assert {place: shapes.forks["es"][0].shape.samples for place, shapes in found.tasks.items()} == {
        (0, 0): 3,
        (0, 1): 5,
        (1, 0): 7,
    }
    assert [shapes.timed for shapes in found.tasks.values()] == [False, True, False]
    assert [shapes.throttled for shapes in found.tasks.values()] == [False, False, True]


def test_forks_are_with_their_variant_in_the_order_in_which_they_came():
    sources = [make_source([make_samples([1.0])], label, block) for block in (0, 1) for label in ("es", "os")]
    found = run_shapes(PLAN, sources).tasks[0, 0]
    assert {label: [fork.name for fork in forks] for label, forks in found.forks.items()} == {
        "es": ["es, fork 0", "es, fork 1"],
        "os": ["os, fork 0", "os, fork 1"],
    }


def test_what_the_summary_knows_comes_along():
    course = Course("flat", 0, 1, (0,), (1e6,))
    summary = make_summary("range", 1.0, course=course, unit="docs")
    found = run_shapes(PLAN, [make_source([make_samples([1.0])], summaries=(summary,))]).tasks[0, 0]
    assert found.unit == "docs"
    assert found.forks["es"][0].course == course


def test_telemetry_is_cut_to_the_task():
    rows = make_samples([500.0] * 2, start_ms=1_500)
    source = make_source([rows], telemetry=make_telemetry(4, node_cpu_percent=150.0))
    found = run_shapes(PLAN, [source]).tasks[0, 0].forks["es"][0]
    assert found.usage.node_cpu_percent.tolist() == [150, 150]
    assert found.usage.seconds.tolist() == [0.5, 1.5]


def test_forks_without_samples_are_named_and_their_tasks_left_out():
    found = run_shapes(PLAN, [make_source(None, "os", 3, absent="no samples were kept")])
    assert (found.tasks, found.absent) == ({}, ("os, fork 3: no samples were kept",))


class Damaged(Sequence[Columns]):
    def __getitem__(self, index: object) -> Columns:  # type: ignore[override]
        raise IndexError(index)

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[Columns]:
        yield make_samples([9.0], hits=[900])
        raise BenchctlError("cannot read the rest")


def test_forks_whose_samples_are_damaged_are_named_and_count_for_nothing():
    sources = [
        make_source(Damaged(), "es", 0),
        make_source([make_samples([1.0, 2.0], hits=[5, 50])], "es", 1, absent="its telemetry cannot be read"),
    ]
    found = run_shapes(PLAN, sources)
    assert found.absent == (
        "es, fork 0: its samples cannot be read",
        "es, fork 1: its telemetry cannot be read",
    )
    shapes = found.tasks[0, 0]
    assert [fork.block for fork in shapes.forks["es"]] == [1]


def test_samples_of_a_red_line_search_are_not_read():
    assert run_shapes(redline_plan(), [make_source(Unreadable())]).tasks == {}


def test_rows_that_the_plan_does_not_know_are_passed_over():
    found = run_shapes(PLAN, [make_source([make_samples([1.0], schedule=9, task=9)])])
    assert found.tasks == {}


def test_a_task_of_which_everything_was_cut_off_is_none():
    assert run_shapes(PLAN, [make_source([make_samples([1.0], outcome=8)])]).tasks == {}


def test_more_forks_get_fewer_points_each():
    chunks = [make_samples([1.0] * 2_000)]
    sizes = []
    for forks in (1, 10, 1_000):
        plan = make_plan(forks=forks)
        course = run_shapes(plan, [make_source(chunks)]).tasks[0, 0].forks["es"][0].shape.course
        assert course.requests.sum() == 2_000
        sizes.append(course.requests.size)
    assert sizes == [400, 143, 118]

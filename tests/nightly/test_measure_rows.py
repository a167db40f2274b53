import math

import msgspec
import pytest

from benchctl.nightly.folder import FigureRow
from benchctl.nightly.measure import figure_rows, task_names
from benchctl.results.figures import Quantiles
from benchctl.results.model import EngineFacts, RunRecord
from benchctl.track.model import Challenge, Task
from builders import NS_PER_MS, make_fork, make_plan, make_record, make_summary

FACTS = EngineFacts("es", "8.11.0", "b", "9.8.0", "sha", "Temurin", (), ())


def rows(record: RunRecord, **labels: str) -> list[FigureRow]:
    return list(figure_rows(record, night=7, labels=labels or {"es": "es"}))


def run(*tasks: Task, **summary: object) -> RunRecord:
    """One fork of es, whose summaries are all alike."""
    summaries = [
        make_summary(task.label, 2.0, **{"task": place} | summary) for place, task in enumerate(tasks)
    ]
    return make_record(
        plan=make_plan(schedules=(Challenge("c", tasks),)),
        forks=(make_fork("es", 0, *summaries, started="2026-11-21T03:05:00Z"),),
        engines=(FACTS,),
    )


def test_a_row_says_whose_figure_it_is():
    throughput, service = rows(run(Task("range")), es="es@latest")
    assert throughput == FigureRow(
        night=7,
        variant="es@latest",
        challenge="c",
        task="range",
        metric="throughput",
        unit="queries/s",
        higher_is_better=True,
        fork=0,
        value=500.0,
    )
    assert (service.metric, service.unit, service.higher_is_better) == ("service_time_p90", "ms", False)
    assert service.value == pytest.approx(2.2)


def test_a_throttled_task_is_followed_by_latency_and_not_by_what_was_asked_for():
    latency = Quantiles(*(5 * NS_PER_MS,) * 3)
    found = rows(run(Task("range", target_throughput=10.0), latency=latency))
    assert [(one.metric, one.value) for one in found] == [
        ("service_time_p90", pytest.approx(2.2)),
        ("latency_p90", 5.0),
    ]


def test_challenges_of_one_name_are_told_apart():
    plan = make_plan(
        schedules=(
            Challenge("c", (Task("a"), Task("b"))),
            Challenge("d", (Task("a"),)),
            Challenge("c", (Task("a"),)),
        )
    )
    names = task_names(plan)
    assert names == {
        (0, 0): ("c (1 of 2)", "a"),
        (0, 1): ("c (1 of 2)", "b"),
        (1, 0): ("d", "a"),
        (2, 0): ("c (2 of 2)", "a"),
    }
    assert len(set(names.values())) == len(names)


@pytest.mark.parametrize("value", [None, 0.0, -1.0, math.nan, math.inf])
def test_what_has_no_value_has_no_row(value: float | None):
    found = rows(run(Task("range"), throughput_per_s=value, service_time=None))
    assert found == []


def test_failed_forks_hidden_tasks_and_other_variants_have_none():
    record = run(Task("range"))
    failed = make_fork("es", 1, make_summary("range", 2.0), status="failed")
    hidden = make_fork("es", 2, make_summary("range", 2.0, reported=False))
    other = make_fork("os", 0, make_summary("range", 2.0))
    record = msgspec.structs.replace(record, forks=(*record.forks, failed, hidden, other))
    assert {(one.variant, one.fork) for one in rows(record)} == {("es", 0)}
    assert {one.variant for one in rows(record, os="os", gone="gone")} == {"os"}

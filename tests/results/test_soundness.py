"""Records that say what cannot be are refused as damaged, before anything is made of them."""

from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.results.figures import Course
from benchctl.results.model import RunRecord
from benchctl.results.store import RunFolder, contradiction
from builders import make_fork, make_plan, make_record, make_summary

COURSE = Course("warm-up", 40, 200, (0, 40), (8e6, 4e6))


def record(**course: object) -> RunRecord:
    summary = make_summary("range", 3.0, course=msgspec.structs.replace(COURSE, **course))
    return make_record(forks=(make_fork("es", 0, summary), make_fork("os", 0, make_summary("range", 3.0))))


def test_nothing_is_wrong_with_a_record_that_fits():
    assert contradiction(record()) == ""


@pytest.mark.parametrize(
    "course",
    [
        {"levels_ns": ()},
        {"levels_ns": (), "bounds": ()},
        {"levels_ns": (8e6, 0.0)},
        {"levels_ns": (8e6, -1.0)},
        {"bounds": (1, 40)},
        {"bounds": (0, 0)},
        {"bounds": (0, 200)},
    ],
)
def test_courses_have_a_level_for_every_segment(course: dict[str, object]):
    assert contradiction(record(**course)) == "fork 0 of es has a course whose levels do not fit its segments"


@pytest.mark.parametrize("place", [{"schedule": 1}, {"task": 1}, {"schedule": -1}, {"task": -1}])
def test_figures_are_of_a_task_of_the_plan(place: dict[str, int]):
    summary = msgspec.structs.replace(make_summary("range", 3.0), **place)
    assert (
        contradiction(make_record(forks=(make_fork("os", 2, summary),)))
        == "fork 2 of os has figures of a task that is not in its plan"
    )


def test_a_fork_is_listed_once():
    fork = make_fork("es", 1, make_summary("range", 3.0))
    failed = msgspec.structs.replace(fork, status="failed")
    assert contradiction(make_record(forks=(fork, failed))) == "it lists fork 1 of es 2 times"


def test_what_is_wrong_is_said_when_a_record_is_read(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.save(make_record(plan=make_plan(variants=())))
    with pytest.raises(BenchctlError, match=r"run\.json is damaged: its plan has no variant"):
        folder.load()

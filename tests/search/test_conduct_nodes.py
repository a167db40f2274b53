"""What whoever watches a search is told of its runs, and what not."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from benchctl.home import Home
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench
from benchctl.run.documents import FileOptions
from benchctl.run.open_run import OpenRun
from benchctl.run.study import Side
from benchctl.search.conduct import Job, Nodes, _CalmObserver, _Until
from benchctl.track.model import Track
from builders import make_fork, make_plan, make_record


class Heard:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def note(self, text: str) -> None:
        self.told.append(("note", text))

    def stage(self, text: str) -> None:
        self.told.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        self.told.append((what, done, total))

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        self.told.append((variant, number, total, remaining_s))

    def fork_done(self, record: Any) -> None:
        self.told.append(record.block)


def test_what_is_fetched_and_built_is_told_once_and_of_forks_everything_but_when_all_are_done() -> None:
    heard = Heard()
    observer = _CalmObserver(heard)
    observer.stage("building an index")
    observer.progress("documents", 1, 2)
    observer.note("5 forks see 10%")
    observer.prepared = True
    observer.stage("looking for the index again")
    observer.fork_started("es", 1, 24, 99.0)
    observer.stage("a task")
    observer.fork_done(make_fork("es", 3))
    observer.stage("after it")
    assert heard.told == [
        "building an index",
        ("documents", 1, 2),
        ("es", 1, 24, None),
        "a task",
        3,
    ]


class OpenedAnew(Exception):  # noqa: N818 - what happened, and no mistake
    """Runs are made instead of gone on with."""


class NoNodes(Nodes):
    """Opens nothing."""

    def _new(self, job: Job) -> list[OpenRun]:
        del job
        raise OpenedAnew


def test_a_question_whose_runs_are_gone_is_asked_anew(tmp_path: Path) -> None:
    heard, store = Heard(), RunStore(tmp_path / "runs")
    track = Track(name="t", indices=(), operations={}, digest="")
    nodes = NoNodes(Bench(Home(tmp_path), store, heard, Event()), store, track, FileOptions())
    kept = store.create("kept")
    kept.save(make_record(kept.path.name))
    names = (kept.path.name, "20260101-gone")
    with pytest.raises(OpenedAnew):
        nodes.measure(Job((make_plan(),), names, started=print, enough=str, left_s=None))
    assert heard.told == [("note", "20260101-gone is gone; its forks are measured again")]


@pytest.mark.parametrize(
    ("planned", "reason", "further"),
    [(2, "", (Side(0, "es"), Side(0, "os"))), (2, "answered", "answered"), (3, "", "")],
)
def test_runs_of_a_question_that_may_take_more_pairs_get_further_blocks(
    planned: int, reason: str, further: Any
) -> None:
    job = Job((make_plan(forks=3),), (), started=print, enough=lambda _: reason, left_s=None)
    assert _Until(job).further([make_record("r", plan=make_plan(forks=planned))]) == further

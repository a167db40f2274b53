"""What whoever watches a search is told of its runs, and what not."""

import math
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench
from benchctl.run.documents import FileOptions
from benchctl.run.open_run import OpenRun
from benchctl.run.questions import Inquiry, Job, Nodes, _CalmObserver, ask
from benchctl.stats.answers import Reply
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
    observer.note("5 forks see 10 %")
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


class Scripted:
    """A measurer of runs that are nothing but blocks."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks

    def measure(self, job: Job) -> tuple[RunRecord, ...]:
        record = make_record("r", plan=job.plans[0])
        job.started(("r",))
        for block in range(self.blocks):
            if job.enough([record]):
                break
            record = make_record("r", plan=job.plans[0], forks=(*record.forks, make_fork("es", block)))
        return (record,)


def asked(values: list[tuple[float, float]], most: int = 8) -> tuple[Reply, list[Reply]]:
    kept: list[Reply] = []

    def keep(reply: Reply) -> Reply:
        kept.append(reply)
        return reply

    inquiry = Inquiry(
        plans=(make_plan(forks=most),),
        values=lambda records: tuple(zip(*values[: len(records[0].forks)], strict=True)) or ((), ()),  # type: ignore[arg-type, return-value]
        answer=lambda pairs: "present" if len(pairs) >= 3 else "undecided" if max(pairs) > 9 else "measuring",
        others=[],
        left_s=None,
    )
    reply, _ = ask(Scripted(len(values)), inquiry, Reply(), keep)
    return reply, kept


def test_a_question_is_kept_block_by_block_and_ends_with_its_answer() -> None:
    reply, kept = asked([(2.0, 1.0)] * 6)
    assert (reply.verdict, reply.runs, reply.contender, reply.reference) == (
        "present", ("r",), (2.0,) * 3, (1.0,) * 3,
    )  # fmt: skip
    assert reply.effect_percent == pytest.approx(100)
    assert [len(one.pairs) for one in kept] == [0, 0, 1, 2, 3, 3]


def test_a_block_without_a_value_is_no_pair() -> None:
    reply, _ = asked([(2.0, 1.0), (0.0, 1.0), (1.0, float("nan")), (1.0, 4.0)])
    assert reply.verdict == "measuring"
    assert reply.pairs == pytest.approx((math.log(2), -math.log(4)))


def test_what_stays_open_says_after_how_many_pairs() -> None:
    reply, _ = asked([(1.0, 1e-5)])
    assert (reply.verdict, reply.reason) == ("undecided", "no answer after 1 pair of forks")

"""A run with a stop rule, or with more blocks: from the first fork to the record; forks are made up."""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.load.turns import Member
from benchctl.results.model import AnswerCheck, ForkRecord, RunRecord
from benchctl.results.plan import EvidenceSpec, Plan, StopSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run import orchestrate, study
from benchctl.run.bench import Bench
from benchctl.run.fork import ForkJob
from benchctl.run.orchestrate import More, extended
from benchctl.run.session import AnySubject
from benchctl.spec import DEFAULT_FORKS, MOST_FORKS
from benchctl.track.model import Track
from builders import make_fork, make_plan, make_record, make_summary
from observed import Told


def mean_ms(name: str, block: int) -> float:
    """Alike on both sides on the mean, and not block by block."""
    return 10.0 + 0.1 * ((block + (name == "os")) % 3)


@dataclass
class Engines:
    """Forks that take ten seconds; the job that `breaks` is asked about may fail or be interrupted."""

    breaks: Callable[[ForkJob], str | None] = lambda _: None
    jobs: list[tuple[int, str]] = field(default_factory=list)

    def run(self, job: ForkJob, _member: Member) -> tuple[ForkRecord, None]:
        name = job.subject.spec.name
        how = self.breaks(job)
        if how == "interrupt":
            raise KeyboardInterrupt
        self.jobs.append((job.block, name))
        summary = make_summary("range", mean_ms(name, job.block))
        status = "failed" if how == "fail" else "done"
        return make_fork(name, job.block, summary, wall_s=10.0, status=status), None


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[RunRecord, Told]]:
    """Run what a record is missing."""

    def go(record: RunRecord, engines: Engines, fork_s: float | None = None) -> tuple[RunRecord, Told]:
        monkeypatch.setattr(study, "StepRunner", lambda *_args, **_named: None)
        monkeypatch.setattr(study, "ForkRunner", lambda *_args: engines)
        notes = Told()
        bench = Bench(Home(tmp_path), RunStore(tmp_path / "runs"), notes, threading.Event())
        Home(tmp_path).scratch.mkdir(parents=True, exist_ok=True)
        subjects = [cast("AnySubject", SimpleNamespace(spec=spec)) for spec in record.plan.variants]
        folder = RunFolder(tmp_path / "runs" / record.id)
        run = study.OpenRun(bench, folder, record, cast("Track", None), subjects, fork_s=fork_s)
        try:
            return orchestrate._measured(bench, run), notes
        except BenchctlError:
            return folder.load(), notes

    return go


def planned(**stop: Any) -> RunRecord:
    plan = make_plan(forks=50, stop=StopSpec(**stop), apart="asked for")
    return make_record(plan=plan, answers=AnswerCheck((), {}, ()))


def test_a_decided_run_ends_after_whole_blocks_and_is_complete(execute: Callable[..., Any]):
    engines = Engines()
    record, notes = execute(planned(decided=True, margin=0.1), engines)
    assert record.status == "complete"
    assert sorted(engines.jobs) == [(block, name) for block in range(5) for name in ("es", "os")]
    assert record.stopped.startswith("ended after 5 forks per variant, of at most 50")
    assert record.stopped in record.caveats
    assert notes.notes == [record.stopped]
    assert (record.blocks, record.total, record.missing()) == (5, 10, ())


def test_a_budget_is_kept_in_whole_blocks(execute: Callable[..., Any]):
    engines = Engines()
    record, notes = execute(planned(budget_s=75.0), engines)
    assert len(engines.jobs) == 6
    assert "does not fit into the 75s" in record.stopped
    assert record.stopped not in record.caveats  # it lasted as long as it was to last
    assert notes.left == [75.0, 65.0, 55.0, 45.0, 35.0, 25.0]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("fork_s", [1.0, None])
def test_time_left_is_that_of_the_forks_so_far_from_the_first_one_on(
    execute: Callable[..., Any], fork_s: float | None, *, fails: bool
):
    jobs: list[ForkJob] = []

    def breaks(job: ForkJob) -> str | None:
        jobs.append(job)
        return "fail" if fails and len(jobs) == 1 else None

    record = make_record(plan=make_plan(forks=3, apart="asked for"), answers=AnswerCheck((), {}, ()))
    _, notes = execute(record, Engines(breaks), fork_s)
    unknown = fails and fork_s is None
    assert notes.left == [None if fork_s is None else 6.0, None if unknown else 50.0, 40.0, 30.0, 20.0, 10.0]
    assert [*notes.left_after.values()] == [*notes.left[1:], 0.0]


def test_a_budget_that_ends_first_says_what_is_not_decided(execute: Callable[..., Any]):
    record, notes = execute(planned(decided=True, margin=0.0001, budget_s=200.0), Engines())
    assert len(record.forks) == 20
    assert "does not fit into the 200s for forks (--budget), of which 3 min 20 s are used" in record.stopped
    assert record.caveats[-1].startswith("not decided: ")
    assert notes.notes == list(record.caveats)


def test_all_forks_without_a_decision_are_said_to_be_short_of_it(execute: Callable[..., Any]):
    record, _ = execute(
        make_record(
            plan=make_plan(apart="asked for", forks=9, stop=StopSpec(decided=True, margin=0.0001)),
            answers=AnswerCheck((), {}, ()),
        ),
        Engines(),
    )
    assert (record.stopped, record.status) == ("", "complete")
    assert record.caveats[-1].startswith("not decided: ")


def test_a_resumed_run_goes_on_with_what_is_left_of_its_budget(execute: Callable[..., Any]):
    interrupted, _ = execute(
        planned(budget_s=75.0), Engines(lambda job: "interrupt" if job.block == 2 else None)
    )
    assert (interrupted.status, len(interrupted.forks), interrupted.stopped) == ("interrupted", 4, "")
    engines = Engines()
    resumed, _ = execute(interrupted, engines)
    assert {block for block, _ in engines.jobs} == {2}
    assert (resumed.status, len(resumed.forks)) == ("complete", 6)


def test_a_run_that_goes_on_says_that_it_is_running(execute: Callable[..., Any], tmp_path: Path):
    """Or else somebody might delete it, or take what there is of it for all."""
    interrupted, _ = execute(planned(budget_s=75.0), Engines(lambda _: "interrupt"))
    seen: list[str] = []

    def look(_job: ForkJob) -> None:
        path = RunFolder(tmp_path / "runs" / interrupted.id).record_path
        seen.append(json.loads(path.read_text())["status"])

    resumed, _ = execute(interrupted, Engines(look))
    assert (interrupted.status, set(seen), resumed.status) == ("interrupted", {"running"}, "complete")


def test_a_block_that_was_cut_by_an_interruption_is_finished_before_anything_ends(
    execute: Callable[..., Any],
):
    def breaks(job: ForkJob) -> str | None:
        cut.append((job.block, job.subject.spec.name))
        return "interrupt" if len(cut) == 6 else None

    cut: list[tuple[int, str]] = []
    interrupted, _ = execute(planned(budget_s=75.0), Engines(breaks))
    assert len(interrupted.forks) == 5
    engines = Engines()
    resumed, _ = execute(interrupted, engines)
    assert engines.jobs == [cut[-1]]
    assert resumed.stopped != ""


def test_failed_forks_of_a_run_that_ended_early_are_missing_and_can_be_run_again(
    execute: Callable[..., Any],
):
    def breaks(job: ForkJob) -> str | None:
        return "fail" if (job.block, job.subject.spec.name) == (1, "os") else None

    record, _ = execute(planned(budget_s=75.0), Engines(breaks))
    assert record.status == "failed"
    assert record.missing() == ((1, "os"),)
    engines = Engines()
    again, _ = execute(record, engines)
    assert engines.jobs == [(1, "os")]
    assert (again.status, again.stopped) == ("complete", record.stopped)


def with_evidence(**stop: Any) -> RunRecord:
    plan = make_plan(
        apart="asked for", forks=50, stop=StopSpec(**stop), evidence=EvidenceSpec(("profile",), 2)
    )
    return make_record(plan=plan, answers=AnswerCheck((), {}, ()))


def test_forks_for_evidence_run_behind_the_others_however_early_these_end(execute: Callable[..., Any]):
    engines = Engines()
    record, notes = execute(with_evidence(decided=True, margin=0.1), engines)
    assert [block for block, _ in engines.jobs] == sorted([*range(5), *range(5), 50, 50, 51, 51])
    assert record.stopped.startswith("ended after 5 forks per variant, of at most 50")
    assert (record.status, record.missing(), notes.notes) == ("complete", (), [record.stopped])


def test_a_budget_leaves_time_for_the_forks_for_evidence(execute: Callable[..., Any]):
    engines = Engines()
    execute(with_evidence(budget_s=125.0), engines)
    assert sorted({block for block, _ in engines.jobs}) == [0, 1, 2, 3, 50, 51]


def test_forks_for_evidence_that_were_cut_off_are_run_again_and_no_other(execute: Callable[..., Any]):
    interrupted, _ = execute(
        with_evidence(decided=True, margin=0.1), Engines(lambda job: "interrupt" if job.block == 51 else None)
    )
    assert interrupted.status == "interrupted"
    engines = Engines()
    again, _ = execute(interrupted, engines)
    assert {block for block, _ in engines.jobs} == {51}
    assert (again.status, again.stopped) == ("complete", interrupted.stopped)


def test_resuming_a_run_that_ended_early_says_that_there_is_nothing_to_do(tmp_path: Path):
    notes = Told()
    record = make_record(
        "x",
        status="complete",
        forks=tuple(make_fork(name, 0) for name in ("es", "os")),
        stopped="ended after 1 of at most 2 forks per variant, because of a rule",
    )
    folder = RunFolder(tmp_path / "x")
    folder.save(record)
    bench = Bench(Home(tmp_path), RunStore(tmp_path), notes, threading.Event())
    assert orchestrate.resume_run(bench, folder, cast("Track", None)) == record
    (said,) = notes.notes
    assert said == f"run x is complete: it {record.stopped}; nothing is measured"


def blocks(engines: Engines) -> list[int]:
    return sorted({block for block, _ in engines.jobs})


def finished(**changes: Any) -> RunRecord:
    """Two blocks of ten seconds a fork."""
    return made(make_plan(apart="asked for", **changes), range(2))


def made(plan: Plan, of: Iterable[int], **changes: Any) -> RunRecord:
    forks = [
        make_fork(name, block, make_summary("range", mean_ms(name, block)), wall_s=10.0)
        for block in of
        for name in ("es", "os")
    ]
    return make_record(
        plan=plan, forks=tuple(forks), status="complete", answers=AnswerCheck((), {}, ()), **changes
    )


def test_more_blocks_come_behind_those_that_a_run_has(execute: Callable[..., Any]):
    engines, before = Engines(), finished()
    record, _ = execute(extended(before, More(3)), engines)
    assert blocks(engines) == [2, 3, 4]
    assert record.forks[:4] == before.forks
    assert (record.status, record.plan.forks, record.looks, record.blocks) == ("complete", 5, 2, 5)
    again, _ = execute(extended(record, More(1)), Engines())
    assert (again.plan.forks, again.looks, len(again.forks)) == (6, 3, 12)


def test_more_blocks_that_are_interrupted_are_gone_on_with(execute: Callable[..., Any]):
    cut, _ = execute(extended(finished(), More(3)), Engines(lambda j: "interrupt" if j.block == 3 else None))
    assert (cut.status, len(cut.forks), cut.looks) == ("interrupted", 6, 2)
    with pytest.raises(UsageError, match=r"not finished \(interrupted\)"):
        extended(cut, More(1))
    engines = Engines()
    record, _ = execute(cut, engines)
    assert blocks(engines) == [3, 4]
    assert (record.status, record.total, record.looks) == ("complete", 10, 2)


def test_what_was_said_of_an_end_is_taken_back_when_more_is_added(execute: Callable[..., Any]):
    ended, _ = execute(planned(decided=True, margin=0.0001, budget_s=75.0), Engines())
    assert (len(ended.caveats), ended.blocks) == (2, 3)
    engines = Engines()
    found, _ = execute(extended(ended, More(4)), engines)
    assert (blocks(engines), found.stopped, found.caveats) == ([3, 4, 5, 6], "", ())
    assert (found.status, found.plan.stop) == ("complete", StopSpec(margin=0.0001))


def test_who_adds_to_what_ended_by_its_verdicts_has_looked_at_it():
    found = extended(finished(stop=StopSpec(decided=True, margin=0.1)), More(3))
    assert (found.looks, found.plan.stop) == (None, StopSpec(margin=0.1))
    assert extended(msgspec.structs.replace(finished(), looks=None), More(3)).looks is None


def test_a_budget_for_more_counts_from_what_is_spent(execute: Callable[..., Any]):
    engines = Engines()
    record, _ = execute(extended(finished(), More(50, 65.0)), engines)
    assert blocks(engines) == [2, 3, 4]
    assert record.stopped.startswith("ended after 5 forks per variant, of at most 52")
    assert (record.status, record.total) == ("complete", 10)


def test_forks_for_evidence_stay_where_they_are_when_more_is_added(execute: Callable[..., Any]):
    plan = make_plan(forks=2, evidence=EvidenceSpec(("profile",), 2))
    engines, before = Engines(), made(plan, range(4))
    record, _ = execute(extended(before, More(2, 41.0)), engines)
    assert blocks(engines) == [4, 5]
    assert [fork.block for fork in record.compared("es")] == [0, 1, 4, 5]
    assert (record.own_blocks, record.block_numbers) == ((0, 1, 4, 5), (0, 1, 4, 5, 2, 3))
    early, _ = execute(with_evidence(decided=True, margin=0.1), Engines())
    assert extended(early, More(2)).block_numbers == (*range(7), 50, 51)


def test_what_is_not_finished_cannot_be_added_to():
    with pytest.raises(UsageError, match="not finished"):
        extended(msgspec.structs.replace(finished(), status="failed"), More(1))


def test_what_is_to_be_decided_is_so_from_then_on_and_has_as_many_forks_as_a_run_has_at_most():
    found = extended(finished(), More(until_decided=True))
    assert found.plan.stop is not None
    assert (found.plan.stop.decided, found.plan.forks) == (True, MOST_FORKS)
    assert extended(finished(), More()).plan.forks == finished().plan.forks + DEFAULT_FORKS


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3))),
    evidence=st.integers(0, 2),
)
def test_blocks_that_are_added_are_missing_and_nothing_else_changes(
    steps: list[tuple[int, int]], evidence: int
):
    """Any gaps: what a run has stays its own, and what it misses is what was added."""
    plan = make_plan(forks=2, evidence=EvidenceSpec(("inlining",), evidence) if evidence else None)
    record = made(plan, range(2 + evidence))
    for gap, number in steps:
        before = record
        first = 1 + max(*before.own_blocks, *plan.extra_blocks, 0) + gap
        added = range(first, first + number)
        record = before.with_blocks(added, None)
        assert set(record.missing()) == {(block, name) for block in added for name in ("es", "os")}
        assert record.own_blocks == (*before.own_blocks, *added)
        assert record.total == before.total + number * 2
        assert record.plan.extra_blocks == plan.extra_blocks
        done = [make_fork(name, block) for block, name in record.missing()]
        record = msgspec.structs.replace(record, forks=(*record.forks, *done))
        assert record.compared("es")[: len(before.compared("es"))] == before.compared("es")

from pathlib import Path

from benchctl.results.likeness import JoinedRuns, joined
from benchctl.results.store import fork_sources
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from stored import ROWS, described

FIRST = make_plan(schedules=(Challenge("c", (Task("a"), Task("b"))), Challenge("d", (Task("a"),))))
SECOND = make_plan(schedules=(Challenge("d", (Task("x"), Task("a"))), Challenge("c", (Task("b"), Task("b")))))


def labels(challenges: tuple[Challenge, ...]) -> dict[str, list[str]]:
    return {one.name: [task.label for task in one.schedule] for one in challenges}


def test_every_task_of_every_plan_has_a_place_in_the_joined_one():
    plan, (first, second) = joined([FIRST, SECOND])
    assert labels(plan.schedules) == {"c": ["a", "b", "b"], "d": ["a", "x"]}
    assert first == {(0, 0): (0, 0), (0, 1): (0, 1), (1, 0): (1, 0)}
    assert second == {(0, 0): (1, 1), (0, 1): (1, 0), (1, 0): (0, 1), (1, 1): (0, 2)}


def test_figures_and_samples_move_with_their_tasks(tmp_path: Path):
    run = described(tmp_path, "r")
    places = {(0, 0): (1, 1), (0, 1): (0, 0)}
    joined_runs = JoinedRuns(FIRST, {run.record.id: places}, {run.record.id: 0})
    fork = make_fork("es", 0, make_summary("a", 1.0), make_summary("b", 2.0, task=1), index_build=4)
    (there,) = joined_runs.moved(run.record, [fork])
    assert [(one.label, one.schedule, one.task) for one in there.summaries] == [("a", 1, 1), ("b", 0, 0)]
    assert there.index_build == 4
    source = joined_runs.moved_source(run.record, next(fork_sources(run.folder, run.record.forks)))
    assert source.samples is not None
    for _ in range(2):
        (chunk,) = source.samples
        assert chunk["schedule"].tolist() == [1] * ROWS
        assert chunk["task"].tolist() == [1] * ROWS


def test_blocks_of_several_runs_of_a_side_differ_and_a_fork_knows_its_run():
    runs = [
        make_record(name, plan=FIRST, forks=tuple(make_fork("es", block) for block in range(2)))
        for name in ("r1", "r2", "r3")
    ]
    apart = JoinedRuns.of([runs[:1], runs[1:2]])
    assert [(fork.block, fork.index_build) for fork in apart.moved(runs[1], runs[1].forks)] == [
        (0, 1),
        (1, 1),
    ]
    pooled = JoinedRuns.of([runs[:2], runs[1:]])
    assert [
        (fork.block, fork.index_build) for run in runs for fork in pooled.moved(run, run.forks)
    ] == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (5, 2)]  # fmt: skip

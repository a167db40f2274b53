from pathlib import Path

from benchctl.results.alignment import common_schedules, joined, moved, moved_source, task_keys
from benchctl.results.reading import fork_sources
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_summary
from stored import ROWS, described

FIRST = make_plan(schedules=(Challenge("c", (Task("a"), Task("b"))), Challenge("d", (Task("a"),))))
SECOND = make_plan(schedules=(Challenge("d", (Task("x"), Task("a"))), Challenge("c", (Task("b"), Task("b")))))


def labels(challenges: tuple[Challenge, ...]) -> dict[str, list[str]]:
    return {one.name: [task.label for task in one.schedule] for one in challenges}


def test_every_task_of_every_plan_has_a_place_in_the_joined_one():
    plan, (first, second) = joined([FIRST, SECOND], by_label=False)
    assert labels(plan.schedules) == {"c": ["a", "b", "b"], "d": ["a", "x"]}
    assert first == {(0, 0): (0, 0), (0, 1): (0, 1), (1, 0): (1, 0)}
    assert second == {(0, 0): (1, 1), (0, 1): (1, 0), (1, 0): (0, 1), (1, 1): (0, 2)}


def test_challenges_that_only_others_have_come_behind():
    other = make_plan(schedules=(Challenge("e", (Task("a"), Task("f"))),))
    plan, (_, places) = joined([FIRST, other], by_label=False)
    assert labels(plan.schedules) == {"c": ["a", "b"], "d": ["a"], "e": ["a", "f"]}
    assert places == {(0, 0): (2, 0), (0, 1): (2, 1)}


def test_by_label_a_name_is_found_in_any_challenge_unless_it_is_ambiguous():
    other = make_plan(schedules=(Challenge("e", (Task("a"), Task("b"))),))
    plan, (_, places) = joined([FIRST, other], by_label=True)
    assert places == {(0, 0): (2, 0), (0, 1): (0, 1)}
    assert labels(plan.schedules)["e"] == ["a"]
    assert ("", 1, "b", 1) in task_keys(FIRST, by_label=True)
    assert ("c", 1, "a", 1) in task_keys(FIRST, by_label=True)


def test_common_schedules_are_those_of_both_in_one_order():
    assert [labels(each) for each in common_schedules((FIRST, SECOND))] == [{"c": ["b"], "d": ["a"]}] * 2


def test_figures_move_with_their_tasks():
    fork = make_fork("es", 0, make_summary("a", 1.0), make_summary("b", 2.0, task=1))
    (there,) = moved([fork], {(0, 0): (1, 1), (0, 1): (0, 0)})
    assert [(one.label, one.schedule, one.task) for one in there.summaries] == [("a", 1, 1), ("b", 0, 0)]


def test_samples_move_with_their_tasks(tmp_path: Path):
    run = described(tmp_path, "r")
    source = next(fork_sources(run.folder, run.record.forks))
    there = moved_source(source, {(0, 0): (2, 3)})
    assert there.samples is not None
    for _ in range(2):
        (chunk,) = there.samples
        assert chunk["schedule"].tolist() == [2] * ROWS
        assert chunk["task"].tolist() == [3] * ROWS
    assert [(one.schedule, one.task) for one in there.summaries] == [(2, 3)]

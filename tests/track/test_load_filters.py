"""Filters keep or take away tasks by name, type and tag."""

import json
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.track.load import filter_tasks, load_track, parse_filters
from foreign_tracks import BOOKS, write_files


def left(folder: Path, include: str = "", exclude: str = "") -> list[str]:
    track, _ = load_track(str(write_files(folder / "books", BOOKS)), {})
    challenge = track.challenges["lend-and-search"]
    (found,) = filter_tasks(
        [challenge],
        track.operations,
        include=parse_filters(include),
        exclude=parse_filters(exclude),
    )
    return [task.label for task in found.schedule]


@pytest.mark.parametrize(
    ("include", "exclude", "names"),
    [
        (" type:search,,", "", ["all", "old", "all-beside"]),
        ("name:old", "", ["old"]),
        ("tag:fast, delete-index", "", ["delete-index", "all"]),
        ("", "type:search", ["delete-index", "create-index", "index-append"]),
        ("type:search", "old", ["all", "all-beside"]),
    ],
)
def test_tasks_are_kept_and_taken_away(tmp_path: Path, include: str, exclude: str, names: list[str]):
    assert left(tmp_path, include, exclude) == names


@pytest.mark.parametrize(
    ("include", "words"),
    [("al", "'all'"), ("type:serch", "'type:search'"), ("tag:zzz", "known: tag:fast, tag:search")],
)
def test_a_filter_that_matches_nothing_names_the_nearest(tmp_path: Path, include: str, words: str):
    with pytest.raises(UsageError, match="matches the filter") as caught:
        left(tmp_path, include)
    assert words in caught.value.hint


def test_some_task_has_to_be_left(tmp_path: Path):
    with pytest.raises(UsageError, match="leave no task"):
        left(tmp_path, "all", "all")


def test_a_filter_may_match_in_one_of_several_challenges(tmp_path: Path):
    track, _ = load_track(str(write_files(tmp_path / "books", BOOKS)), {})
    both = tuple(track.challenges.values())
    found = filter_tasks(both, track.operations, exclude=parse_filters("old"))
    assert [len(challenge.schedule) for challenge in found] == [5, 2]
    with pytest.raises(UsageError, match="'lend-and-search' or 'authors' matches the filter 'olf'"):
        filter_tasks(both, track.operations, exclude=parse_filters("olf"))
    with pytest.raises(UsageError, match="leave no task of challenge 'authors'"):
        filter_tasks(both, track.operations, include=parse_filters("old"))


def test_a_task_that_lost_its_end_is_refused(tmp_path: Path):
    bulk = '{"name": "send", "operation": {"operation-type": "bulk", "bulk-size": 5}}'
    parallel = f'{{"warmup-time-period": 1, "completed-by": "send", "tasks": [{bulk}, {{"operation": "s"}}]}}'
    operations = '[{"name": "s", "operation-type": "search"}]'
    text = f'{{"operations": {operations}, "schedule": [{{"parallel": {parallel}}}]}}'
    track, _ = load_track(str(write_files(tmp_path, {"track.json": text})), {})
    with pytest.raises(UsageError, match="'send' of challenge 'default', whose end ends 's'"):
        filter_tasks([track.challenges["default"]], track.operations, exclude=parse_filters("send"))


@pytest.mark.parametrize(
    ("exclude", "names"), [("b", ["a", "c"]), ("a", ["b", "c"]), ("a,b", ["c"]), ("c", ["a", "b"])]
)
def test_of_tasks_that_end_with_any_of_them_some_may_go(tmp_path: Path, exclude: str, names: list[str]):
    tasks = [{"name": name, "operation": "s", "iterations": 1} for name in ("a", "b", "c")]
    parallel = {"parallel": {"completed-by": "any", "tasks": tasks[:2]}}
    main = {"operations": [{"name": "s", "operation-type": "search"}], "schedule": [parallel, tasks[2]]}
    track, _ = load_track(str(write_files(tmp_path, {"track.json": json.dumps(main)})), {})
    challenge = track.challenges["default"]
    (found,) = filter_tasks([challenge], track.operations, exclude=parse_filters(exclude))
    assert [task.label for task in found.schedule] == names

"""Tracks and challenges load as Rally would read them, and mistakes are named by file and place."""

import json
import shutil
from pathlib import Path

import pytest

from benchctl.errors import ExitCode, UsageError
from benchctl.track.library import challenge_names, shipped, track_names
from benchctl.track.load import load_challenge, load_track, reject_unused
from benchctl.track.model import IndexBody, Track
from golden import Cases

BLOG = {
    "range-only": [
        {"operation": "range", "warmup-iterations": 10, "iterations": 100, "target-throughput": 2}
    ],
    "range-only-short": [{"operation": "range", "iterations": 10}],
    "big5rangedebug": [
        {"operation": "desc_sort_timestamp", "iterations": 10},
        {"operation": "composite-date_histogram-daily", "iterations": 10},
        {"operation": "range", "iterations": 10},
    ],
    "big5rangedebug-histo-size-1": [
        {"operation": "desc_sort_timestamp", "iterations": 10},
        {"operation": "composite-date_histogram-daily-size-1", "iterations": 10},
        {"operation": "range", "iterations": 10},
    ],
}


@pytest.fixture(scope="module")
def track() -> Track:
    return load_track("big5", {})[0]


def write(folder: Path, text: str) -> str:
    path = folder / "mine.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", sorted(BLOG))
def test_shipped_challenges_have_exactly_the_form_of_the_blog(name: str):
    text = (shipped("challenges") / f"{name}.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"name": name, "default": False, "schedule": BLOG[name]}


def test_everything_shipped_loads(track: Track):
    assert "big5" in track_names()
    for name in challenge_names():
        assert load_challenge(name, track, {})[0].schedule


@pytest.mark.parametrize(
    ("settings", "shards"),
    [
        ({}, 1),
        ({"index.number_of_shards": 3}, 3),
        ({"number_of_shards": "2"}, 2),
        ({"index": {"number_of_shards": 4}}, 4),
    ],
)
def test_shards_are_where_engines_look_for_them(settings: dict[str, object], shards: int):
    assert IndexBody(settings=settings).shards == shards


def test_parameters_set_the_key_of_every_task(track: Track):
    challenge, used = load_challenge("big5rangedebug", track, {"iterations": 300})
    assert [task.iterations for task in challenge.schedule] == [300, 300, 300]
    assert used == {"iterations"}


def test_parameters_leave_alone_what_they_mean_nothing_for(track: Track, tmp_path: Path):
    bulk = {"operation-type": "bulk", "bulk-size": 10}
    periods = {"warmup-time-period": 5, "time-period": 5, "ramp-up-time-period": 3}
    schedule = [
        {"operation": "force-merge"},
        {"operation": {"name": "all", **bulk}},
        {"operation": {"name": "some", **bulk}, "iterations": 5},
        {"operation": "range", **periods},
    ]
    path = write(tmp_path, json.dumps({"name": "t", "schedule": schedule}))
    tasks = load_challenge(path, track, {"iterations": 7, "clients": 3})[0].schedule
    assert [task.iterations for task in tasks] == [None, None, 7, 7]
    assert [task.clients for task in tasks] == [1, 3, 3, 3]
    assert tasks[3].ramp_up_time_period is None


def test_a_rate_of_zero_takes_the_rate_away(track: Track):
    challenge, _ = load_challenge("range-only", track, {"target_throughput": 0})
    assert challenge.schedule[0].rate_per_s is None


def test_documents_may_warm_up_for_a_time_and_go_on_to_their_end_as_in_rally(track: Track, tmp_path: Path):
    text = (
        '{"name": "x", "schedule": [{'
        '"operation": {"operation-type": "bulk", "bulk-size": 10, "looped": false},'
        ' "warmup-time-period": 240, "ramp-up-time-period": 60, "clients": 8}]}'
    )
    (task,) = load_challenge(write(tmp_path, text), track, {})[0].schedule
    assert (task.warmup_time_period, task.time_period) == (240, None)
    with pytest.raises(UsageError, match="needs a time-period"):
        load_challenge(write(tmp_path, text.replace("false", "true")), track, {})


def test_a_template_variable_is_not_applied_a_second_time(track: Track, tmp_path: Path):
    path = write(
        tmp_path,
        '{"name": "t", "schedule": [{"operation": "range", "iterations": {{ iterations | default(7) }}},'
        '{"operation": "range", "name": "again", "iterations": 3}]}',
    )
    challenge, used = load_challenge(path, track, {"iterations": 5})
    assert [task.iterations for task in challenge.schedule] == [5, 3]
    assert used == {"iterations"}
    assert [task.iterations for task in load_challenge(path, track, {})[0].schedule] == [7, 3]


def test_an_unused_parameter_is_an_error_that_names_the_nearest():
    with pytest.raises(UsageError) as caught:
        reject_unused({"iteratons": 5}, set())
    assert "iteratons" in caught.value.message
    assert "did you mean 'iterations'" in caught.value.hint
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_broken_challenge_is_named_by_file_and_place(cases: Cases, track: Track, tmp_path: Path):
    cases("challenges", lambda text: load_challenge(write(tmp_path, text), track, {}), tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "mine.json/x"])
def test_a_name_that_no_file_can_have_is_a_usage_error(track: Track, name: str):
    with pytest.raises(UsageError, match="challenge"):
        load_challenge(name, track, {})


def test_an_unknown_challenge_names_the_nearest(track: Track):
    with pytest.raises(UsageError) as caught:
        load_challenge("rangeonly", track, {})
    assert "did you mean 'range-only'" in caught.value.hint


def test_the_digest_follows_the_meaning_not_the_white_space(tmp_path: Path):
    shutil.copytree(shipped("tracks") / "big5", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "operations" / "search.json"
    text = path.read_text(encoding="utf-8")
    original = load_track("big5", {})[0].digest
    path.write_text(text.replace("\n", "\n  "), encoding="utf-8")
    assert load_track(str(tmp_path), {})[0].digest == original
    path.write_text(text.replace("2023-01-03", "2023-01-04"), encoding="utf-8")
    assert load_track(str(tmp_path), {})[0].digest != original


def test_another_log_is_another_track_and_only_a_file_beside_it_is_one(tmp_path: Path):
    entry = {"indices": [{"name": "i"}], "query-log": {"source-file": "q.json"}, "pollution": "q.json"}
    (tmp_path / "track.json").write_text(json.dumps(entry), encoding="utf-8")
    (tmp_path / "q.json").write_text('{"timestamp": 1, "body": {}}\n', encoding="utf-8")
    first = load_track(str(tmp_path), {})[0]
    assert [log.name for log in first.logs] == ["query-log", "pollution"]
    (tmp_path / "q.json").write_text('{"timestamp": 2, "body": {}}\n', encoding="utf-8")
    assert load_track(str(tmp_path), {})[0].digest != first.digest
    for name in ("nothing.json", "../q.json", "q.json.zst"):
        (tmp_path / "track.json").write_text(json.dumps({**entry, "query-log": {"source-file": name}}))
        with pytest.raises(UsageError, match="query-log: the log of queries"):
            load_track(str(tmp_path), {})


def test_searches_of_a_log_need_one(tmp_path: Path):
    operation = {"name": "all", "operation-type": "logged-search"}
    entry = {"indices": [{"name": "i"}], "schedule": [{"operation": operation, "iterations": 5}]}
    (tmp_path / "track.json").write_text(json.dumps(entry), encoding="utf-8")
    with pytest.raises(UsageError, match="needs the key 'query-log' of the track"):
        load_challenge("default", load_track(str(tmp_path), {})[0], {})

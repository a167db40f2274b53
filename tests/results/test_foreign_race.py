import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.foreign import read_race, read_races
from golden import Cases
from races import race, run_of_osb, task_of, write


def test_a_race_of_rally_is_read_as_far_as_it_says(tmp_path: Path):
    found = read_race(write(tmp_path / "race.json", race()))
    assert (found.tool, found.tool_version, found.id) == ("rally", "2.9.1", "0000-1")
    assert (found.created, found.environment, found.car) == ("2026-01-01T01:00:00+00:00", "local", "4gheap")
    assert (found.engine_version, found.revision) == ("8.11.0", "d9ec3fa6")
    assert (found.track, found.challenge, found.params) == ("big5", "big5rangedebug", {"iterations": 300})
    assert [task.task for task in found.tasks] == ["range", "desc_sort_timestamp"]


def test_a_test_run_of_opensearch_benchmark_has_other_names_for_the_same(tmp_path: Path):
    found = read_race(write(tmp_path / "test_run.json", run_of_osb()))
    assert (found.tool, found.tool_version, found.id) == ("opensearch-benchmark", "2.0.0", "1111-1")
    assert (found.track, found.challenge, found.car) == ("big5", "big5rangedebug", "external")
    assert (found.engine_version, found.params) == ("2.11.0", {})


@pytest.mark.parametrize(
    ("removed", "changes", "tool", "challenge"),
    [
        (
            ("test-run-id", "test-run-timestamp", "test_procedure"),
            {"test-execution-id": "x", "test-execution-timestamp": "20260102T010000Z", "scenario": "s"},
            "opensearch-benchmark",
            "s",
        ),
        (("rally-version", "race-id", "challenge"), {"trial-id": "x"}, "rally", ""),
    ],
)
def test_names_of_older_versions_are_known(
    tmp_path: Path, removed: tuple[str, ...], changes: dict[str, Any], tool: str, challenge: str
):
    document = run_of_osb() if tool == "opensearch-benchmark" else race()
    older = {key: value for key, value in document.items() if key not in removed} | changes
    found = read_race(write(tmp_path / "a.json", older))
    assert (found.tool, found.challenge, found.id) == (tool, challenge, "x")


def test_files_that_cannot_be_taken_say_why(cases: Cases, tmp_path: Path):
    cases("race", lambda document: read_race(write(tmp_path / "a.json", json.loads(document))), tmp_path)


def test_the_other_tool_is_refused(tmp_path: Path):
    with pytest.raises(BenchctlError, match="written by Rally, not by OpenSearch Benchmark"):
        read_race(write(tmp_path / "a.json", race()), "opensearch-benchmark")


def test_several_files_are_forks_in_their_order(tmp_path: Path):
    paths = tuple(write(tmp_path / f"{number}.json", race(number)) for number in (2, 1))
    assert [one.id for one in read_races(paths)] == ["0000-2", "0000-1"]


def test_all_bad_files_are_named_in_a_line_each(tmp_path: Path):
    good = write(tmp_path / "good.json", race(1))
    bad = [
        write(tmp_path / "copy.json", race(1)),
        write(tmp_path / "track.json", race(2, track="geonames")),
        write(tmp_path / "params.json", race(3, **{"track-params": {"iterations": 10}})),
        write(tmp_path / "tasks.json", race(4, task_of("range"))),
        write(tmp_path / "tool.json", run_of_osb(5)),
        tmp_path / "missing.json",
    ]
    with pytest.raises(UsageError) as caught:
        read_races((good, *bad))
    first, *lines = caught.value.message.splitlines()
    assert first == "6 of 7 files cannot be imported:"
    assert [line.split(": ", 1)[1] for line in lines] == [
        f"the same race as {good}",
        "no fork of the same run: its track is geonames, not big5",
        'no fork of the same run: its params is {"iterations":10}, not {"iterations":300}',
        f"no fork of the same run: its tasks are not those of {good}",
        "no fork of the same run: its tool is opensearch-benchmark, not rally",
        "No such file or directory",
    ]


def test_one_file_is_not_two_forks(tmp_path: Path):
    anonymous = write(tmp_path / "a.json", race(1)["results"])
    with pytest.raises(UsageError, match="1 of 2 files"):
        read_races((anonymous, anonymous), "rally")


def test_a_time_before_all_calendars_is_refused(tmp_path: Path):
    early = write(tmp_path / "a.json", race(**{"race-timestamp": "0001-01-01T00:00:00+14:00"}))
    with pytest.raises(BenchctlError, match="is not a time of a race"):
        read_race(early)

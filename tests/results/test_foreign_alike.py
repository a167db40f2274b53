import json
from pathlib import Path
from typing import Any

from benchctl.results.foreign import read_race, record_of
from benchctl.results.likeness import unlike
from benchctl.results.model import RunRecord
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_plan, make_record
from golden import Cases
from races import race, run_of_osb, task_of, write

OURS = make_record("ours", plan=make_plan(schedules=(Challenge("c", (Task("range"), Task("sort"))),)))


def rally(tmp_path: Path, **changes: Any) -> RunRecord:
    document = race(1, task_of("range"), task_of("sort"), **changes)
    return record_of([read_race(write(tmp_path / "a.json", document))], ES, "rally")


def test_races_of_one_tool_are_alike_when_all_that_they_say_is(tmp_path: Path):
    other = rally(tmp_path, **{"race-id": "0000-9", "race-timestamp": "20270101T000000Z"})
    assert unlike(rally(tmp_path), other) == ()


def test_what_differs_is_named(cases: Cases, tmp_path: Path):
    cases(
        "foreign",
        lambda changes: "\n".join(unlike(rally(tmp_path), rally(tmp_path, **json.loads(changes)))),
        tmp_path,
    )


def test_rally_is_not_opensearch_benchmark(tmp_path: Path):
    document = run_of_osb(1, task_of("range"), task_of("sort"), **{"workload-params": {"iterations": 300}})
    other = record_of([read_race(write(tmp_path / "b.json", document))], OS, "osb")
    assert unlike(rally(tmp_path, car="external"), other) == (
        "measured by different tools (Rally 2.9.1, OpenSearch Benchmark 2.0.0)",
    )


def test_a_race_and_a_run_of_ours_have_clear_reasons(tmp_path: Path):
    expected = (
        "measured by different tools (benchctl, Rally 2.9.1)",
        "host, heap and documents of Rally 2.9.1 are unknown, and its throughput is another figure",
    )
    assert unlike(OURS, rally(tmp_path)) == expected
    assert unlike(rally(tmp_path), OURS)[1:] == expected[1:]

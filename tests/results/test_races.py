"""Records in other tools' shapes: their fields, their ids, and that what is exported can be imported."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.figures import Quantiles
from benchctl.results.foreign import read_race
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.races import (
    BODY_SAMPLES,
    RECORDS_A_SAMPLE,
    Body,
    Layout,
    Race,
    bulk_of,
    races_of,
    sample_bodies,
)
from benchctl.results.samples import CHUNK_ROWS, Columns, Outcome, empty_columns
from benchctl.results.store import RunFolder
from builders import make_fork, make_plan, make_record, make_summary
from stored import stored

STARTED = "2026-01-31T23:59:59+00:00"


def make_race(layout: Layout | None = None, **changes: Any) -> Race:
    fork = make_fork("es", 1, make_summary("range", 4.0, **changes), started=STARTED)
    record = make_record("run-1", status="complete", forks=(fork,), tags=("before",), caveats=("noisy",))
    (race,) = races_of(record, fork, layout or Layout())
    return race


def lines_of(body: Body) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(action, record) of every record; each action has one verb."""
    lines = [json.loads(line) for line in body.content.splitlines()]
    assert body.content.endswith(b"\n")
    assert len(lines) == 2 * body.records
    return list(zip(lines[::2], lines[1::2], strict=True))


def test_an_exported_race_is_imported_with_its_figures(tmp_path: Path):
    open_loop = Quantiles(*(ns * 1e6 for ns in (6.0, 7.0, 9.0)))
    race = make_race(latency=open_loop, target_per_s=10.0, unit="docs")
    path = tmp_path / "race.json"
    path.write_bytes(msgspec.json.encode(race.document()))
    found = read_race(path)
    assert (found.id, found.track, found.challenge, found.car) == (race.id, "big5", "c", "es")
    assert (found.engine_version, found.created) == ("8.11.0", "2026-01-31T23:59:59+00:00")
    (task,) = found.tasks
    assert task.service_time == {
        "50_0": 4.0, "90_0": 4.4, "99_0": 5.2, "100_0": 6.0, "mean": 4.0, "unit": "ms",
    }  # fmt: skip
    assert task.latency == {"50_0": 6.0, "90_0": 7.0, "99_0": 9.0, "unit": "ms"}
    assert (task.throughput or {})["median"] == 250.0
    assert (task.throughput or {})["unit"] == "docs/s"
    assert task.error_rate == 0.0


def test_every_figure_that_a_task_has_is_exported():
    meters = {one.name: 1.5 for one in METRIC_KINDS if not one.field}
    names = {record["name"]: record["value"] for _, record in make_race(meters=meters).results()}
    assert {name: names[name]["single"] for name in meters} == meters
    assert names["cpu"]["unit"] == "ms"


def test_a_percentile_needs_requests_enough_for_it():
    def names(samples: int) -> set[str]:
        (found,) = (
            r["value"] for _, r in make_race(samples=samples).results() if r["name"] == "service_time"
        )
        return {name for name in found if name.endswith("_0")}

    assert names(1) == {"100_0"}
    assert names(9) == {"50_0", "100_0"}
    assert names(99) == {"50_0", "90_0", "100_0"}
    assert names(100) == {"50_0", "90_0", "99_0", "100_0"}


def test_failures_are_the_error_rate_and_a_task_that_cannot_be_done_has_nothing_else():
    some = {r["name"]: r["value"] for _, r in make_race(samples=3, failures={"http_error": 1}).results()}
    assert some["error_rate"] == {"single": 0.25}
    nothing = {"samples": 0, "throughput_per_s": None, "service_time": None, "mean_ns": None, "max_ns": None}
    (cannot,) = [record for _, record in make_race(**nothing, unsupported="no module").results()]
    assert (cannot["name"], cannot["value"]) == ("error_rate", {"single": 1.0})
    assert cannot["meta"]["unsupported"] == "no module"
    assert not list(make_race(**nothing).results())


def test_streams_only_take_what_is_new_and_want_a_time():
    race = make_race(Layout(streams=True))
    ((action, record),) = lines_of(bulk_of(race, "races", [(race.id, race.document())]))
    assert action == {"create": {"_index": "rally-races-v1", "_id": race.id}}
    assert record["@timestamp"] == 1_769_903_999_000


# Samples.


def samples_of(run_folder: Path, columns: Columns, layout: Layout | None = None) -> list[dict[str, Any]]:
    """All records, by the way of the file."""
    folder = RunFolder(run_folder)
    (folder.path / "forks").mkdir(parents=True, exist_ok=True)
    race = make_race(layout)
    relative = folder.write_samples([columns], "es", 1)
    race = Race(race.layout, race.record, msgspec.structs.replace(race.fork, samples=relative), 0)
    found: dict[str, dict[str, Any]] = {}
    for body in sample_bodies(folder, race):
        for action, record in lines_of(body):
            ((_, where),) = action.items()
            assert where["_index"] == race.index("metrics")
            assert where["_id"] not in found
            found[where["_id"]] = record
    return list(found.values())


def test_every_sample_is_three_records_that_say_what_its_metric_would(tmp_path: Path):
    columns = empty_columns(2)
    columns["start_ns"][:] = (1_000_000_000, 2_000_000_500)
    columns["intended_ns"][:] = columns["start_ns"] - 250_000
    columns["end_ns"][:] = columns["start_ns"] + 4_000_000
    columns["processing_ns"][:] = 5_000_000
    columns["client"][:] = (0, 3)
    columns["warmup"][0] = True
    columns["outcome"][1] = Outcome.HTTP_ERROR
    columns["status"][1] = 503
    found = samples_of(tmp_path / "run", columns)
    assert len(found) == 2 * RECORDS_A_SAMPLE
    race = make_race()
    first, second = found[:3], found[3:]
    assert [(one["name"], one["value"]) for one in first] == [
        ("latency", 4.25), ("service_time", 4.0), ("processing_time", 5.0),
    ]  # fmt: skip
    whole = race.metric("latency", 4.25, "ms", race.fork.summaries[0])
    whole |= {"@timestamp": race.epoch_ms + 1_000, "relative-time": 1000.0, "sample-type": "warmup"}
    assert first[0] == whole | {"meta": whole["meta"] | {"client_id": 0, "success": True}}
    assert second[0]["sample-type"] == "normal"
    assert second[0]["meta"] == race.meta | {
        "loop": "closed", "client_id": 3, "success": False, "error-type": "api", "http-status": 503,
    }  # fmt: skip


def test_what_is_no_operation_of_the_race_is_left_out(tmp_path: Path):
    columns = empty_columns(4)
    columns["part"][:] = (0, 1, 0, 0)
    columns["outcome"][2] = Outcome.CANCELLED
    columns["schedule"][3] = 1
    columns["outcome"][0] = Outcome.REFUSED
    found = samples_of(tmp_path / "run", columns)
    assert len(found) == RECORDS_A_SAMPLE
    assert {one["meta"]["error-type"] for one in found} == {"transport"}


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(0, 2 * BODY_SAMPLES + 1), tasks=st.integers(1, 3))
def test_bodies_hold_every_sample_once(rows: int, tasks: int, tmp_path_factory: pytest.TempPathFactory):
    columns = empty_columns(rows)
    columns["task"][:] = np.arange(rows) % tasks
    columns["start_ns"][:] = np.arange(rows) * 1_000_000
    columns["intended_ns"][:] = columns["start_ns"]
    columns["end_ns"][:] = columns["start_ns"] + np.arange(rows) * 1_000
    found = samples_of(tmp_path_factory.mktemp("runs") / "run", columns)
    times: Mapping[str, list[float]] = {
        kind: sorted(one["value"] for one in found if one["name"] == kind)
        for kind in ("latency", "service_time")
    }
    assert times["latency"] == times["service_time"] == [row / 1000 for row in range(rows)]


def test_samples_of_two_forks_have_ids_of_their_own(tmp_path: Path):
    run = stored(tmp_path, "r1")
    ids = set()
    for fork in run.record.forks:
        (race,) = races_of(run.record, fork, Layout())
        for body in sample_bodies(run.folder, race):
            ids |= {where["_id"] for action, _ in lines_of(body) for where in action.values()}
    assert len(ids) == 4 * 4 * RECORDS_A_SAMPLE


def test_ids_go_on_from_one_row_group_to_the_next(tmp_path: Path):
    folder, race = RunFolder(tmp_path / "run"), make_race()
    (folder.path / "forks").mkdir(parents=True)
    rows = CHUNK_ROWS + 10
    whole = empty_columns(rows)
    halves = [{name: part[:CHUNK_ROWS] for name, part in whole.items()}]
    halves.append({name: part[CHUNK_ROWS:] for name, part in whole.items()})
    relative = folder.write_samples(halves, "es", 1)
    race = Race(race.layout, race.record, msgspec.structs.replace(race.fork, samples=relative), 0)
    ids = set()
    for body in sample_bodies(folder, race):
        ids |= set(body.content.splitlines()[::2])
    assert len(ids) == rows * RECORDS_A_SAMPLE


def test_records_of_a_trial_and_of_a_run_that_has_not_ended_say_so():
    fork = make_fork("es", 0, make_summary("range", 4.0))
    record = make_record("r", plan=make_plan(test_mode=True), status="interrupted", forks=(fork,))
    (race,) = races_of(record, fork, Layout())
    for _, one in (*race.results(), *race.metrics(), ("", race.document())):
        assert (one["meta"]["test_mode"], one["meta"]["unfinished"]) == (True, "interrupted")


def test_tags_with_keys_are_user_tags_as_rally_has_them():
    fork = make_fork("es", 0, make_summary("range", 4.0))
    record = make_record("r", forks=(fork,), tags=("env:lab", "x", "tag:y"))
    (race,) = races_of(record, fork, Layout())
    assert race.document()["user-tags"] == {"tag": ["x", "tag:y"], "env": "lab"}

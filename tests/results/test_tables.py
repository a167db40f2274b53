from collections.abc import Sequence
from pathlib import Path

import duckdb
import msgspec
import pytest

from benchctl.nightly.folder import SuiteFolder, nights_view
from benchctl.results.figures import CurvePoint
from benchctl.results.sql import (
    ONE_ROW,
    FileView,
    StoredRun,
    ViewName,
    create_file_view,
    create_samples,
    create_tables,
    view_columns,
)
from benchctl.track.model import Challenge, Task
from builders import make_driver, make_fork, make_plan, make_record, make_summary
from redlines import SEARCH
from stored import ROWS, stored
from three_years import make_store

VIEWS = (*ONE_ROW, nights_view(list))


def named(view: ViewName | FileView) -> str:
    return view.name if isinstance(view, FileView) else view


def opened(*runs: StoredRun, suites: Sequence[SuiteFolder] = ()) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    create_tables(connection, runs)
    create_samples(connection, runs)
    create_file_view(connection, nights_view(lambda: suites))
    return connection


@pytest.mark.parametrize("view", VIEWS, ids=named)
def test_the_documented_columns_are_those_that_a_view_has(tmp_path: Path, view: ViewName | FileView):
    suite = make_store(tmp_path / "suite", nights=2, tasks=1, variants=1, forks=1)
    found = opened(stored(tmp_path, "r1"), suites=[suite]).execute(f"DESCRIBE {named(view)}").fetchall()
    assert [(name, kind) for name, kind, *_ in found] == [column[:2] for column in view_columns(view)]


@pytest.mark.parametrize("view", VIEWS, ids=named)
def test_every_column_says_what_it_means(view: ViewName | FileView):
    assert all(meaning for *_, meaning in view_columns(view))
    for name, kind, meaning in view_columns(view):
        if kind == "DOUBLE" and name.endswith(("_ms", "_s")) and not name.endswith("_per_s"):
            assert "ms" in meaning or "seconds" in meaning, name


def test_samples_know_whose_they_are(tmp_path: Path):
    connection = opened(stored(tmp_path, "r1"), stored(tmp_path, "r2"))
    found = connection.execute(
        "SELECT run, variant, block, any_value(challenge), any_value(label), any_value(operation), count(*), "
        "max(service_ms), max(latency_ms) FROM samples GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert found[0] == ("r1", "es", 0, "c", "range", "range", ROWS, 1.0, 2.0)
    assert [(run, variant, block) for run, variant, block, *_ in found] == [
        (run, variant, block) for run in ("r1", "r2") for variant in ("es", "os") for block in (0, 1)
    ]


def test_steps_of_a_search_have_the_name_of_its_operation(tmp_path: Path):
    point = CurvePoint(1, 0, "search", 10.0, 10.0, 5, 0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, "pass")
    plan = make_plan(redline=SEARCH, schedules=(Challenge("redline-range", (Task("range"),)),))
    run = stored(tmp_path, "r1", make_record(plan=plan))
    forks = tuple(msgspec.structs.replace(fork, curve=(point,)) for fork in run.record.forks)
    searching = StoredRun(run.folder, msgspec.structs.replace(run.record, forks=forks))
    assert list(searching.task_names()) == [
        (0, 0, "redline-range", "range", "range"),
        (0, 1, "redline-range", "range", "range"),
    ]
    assert opened(searching).execute("SELECT DISTINCT label FROM samples").fetchall() == [("range",)]


def test_tasks_have_their_figures_in_readable_units(tmp_path: Path):
    summary = make_summary("range", 2.0, failures={"timeout": 2, "reset": 1}, driver=make_driver())
    run = stored(tmp_path, "r1")
    record = msgspec.structs.replace(run.record, forks=(make_fork("es", 3, summary),))
    found = opened(StoredRun(run.folder, record)).execute("SELECT * FROM tasks")
    names = [column[0] for column in found.description or []]
    (row,) = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    assert (row["p50_ms"], row["p90_ms"], row["mean_ms"], row["max_ms"]) == (2.0, 2.2, 2.0, 3.0)
    assert (row["failures"], row["block"], row["latency_p50_ms"], row["lag_p99_ns"]) == (3, 3, None, 90_000)
    assert row["throughput_per_s"] == 500.0


def test_runs_and_forks_have_theirs(tmp_path: Path):
    connection = opened(stored(tmp_path, "r1"))
    found = connection.execute(
        "SELECT run, tags, variants, challenges, documents, imported FROM runs"
    ).fetchall()
    assert found == [("r1", ["a", "b"], ["es", "os"], ["c"], 1_000_000, None)]
    forks = connection.execute("SELECT variant, block, engine, version, start_s FROM forks").fetchall()
    assert forks[:2] == [("es", 0, "elasticsearch", None, None), ("os", 0, "opensearch", None, None)]


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-11-21T13:01:18+02:00", "2026-11-21 11:01:18"),
        ("2026-11-21T13:01:18.5Z", "2026-11-21 13:01:18.500000"),
        ("2026-11-21 13:01:18", "2026-11-21 13:01:18"),
        ("yesterday", None),
        ("", None),
        ("0001-01-01T00:00:00+09:00", None),
    ],
)
def test_moments_are_in_utc_and_what_is_none_is_null(tmp_path: Path, created: str, expected: str | None):
    run = stored(tmp_path, "r1", make_record("r1", plan=make_plan(), created=created))
    (found,) = opened(run).execute("SELECT strftime(created, '%Y-%m-%d %H:%M:%S') FROM runs").fetchall()
    assert found == (None if expected is None else expected[:19],)

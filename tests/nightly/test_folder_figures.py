import math
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.nightly.folder import COLUMNS, FigureRow, SuiteFolder, read_series, write_figures
from benchctl.nightly.model import SeriesKey
from full_disk import nearly_full

KEY = SeriesKey("es", "big5", "range", "throughput")


def refused(message: str) -> None:
    raise AssertionError(message)


def row(night: int = 1, fork: int = 0, value: float = 1.0, **changes: object) -> FigureRow:
    usual = FigureRow(
        night=night,
        night_id=f"{night:05d}-20261121-0300",
        run=f"r{night}",
        started="2026-11-21T03:05:00+00:00",
        variant="es",
        version="8.11.0",
        challenge="big5",
        task="range",
        metric="throughput",
        unit="queries/s",
        higher_is_better=True,
        fork=fork,
        value=value,
        samples=100,
        disturbed=False,
    )
    return usual._replace(**changes)


def kept(suite: SuiteFolder, *nights: list[FigureRow]) -> None:
    for rows in nights:
        write_figures(rows, night_folder(suite) / "figures.parquet")


def night_folder(suite: SuiteFolder) -> Path:
    return suite.night_path(suite.begin("big5", datetime(2026, 11, 21, 3, 0, tzinfo=UTC)).id)


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFolder:
    return SuiteFolder(tmp_path / "it's a suite")


def test_the_columns_are_the_fields_of_a_row():
    assert tuple(COLUMNS) == FigureRow._fields


def test_a_file_holds_every_field_with_its_type(tmp_path: Path):
    path = tmp_path / "figures.parquet"
    write_figures([row(3, 1, 2.5, disturbed=True)], path)
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        assert found == [tuple(row(3, 1, 2.5, disturbed=True))]
        types = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        assert [kind for _, kind, *_ in types] == [kind for kind, _ in COLUMNS.values()]


def test_figures_become_series_sorted_by_night_then_fork(suite: SuiteFolder):
    kept(
        suite,
        [
            row(1, 1, 11.0),
            row(1, 0, 10.0),
            row(1, 0, 7.0, metric="service_time_p90", unit="ms", higher_is_better=False),
        ],
        [row(2, 0, 20.0), row(2, 0, 5.0, variant="canary")],
    )
    canary, service, throughput = suite.series(None, None, refused)
    assert (canary.key.variant, service.key.metric, throughput.key) == ("canary", "service_time_p90", KEY)
    assert throughput.nights.tolist() == [1, 1, 2]
    assert throughput.forks.tolist() == [0, 1, 0]
    assert throughput.values.tolist() == [10.0, 11.0, 20.0]
    assert (throughput.unit, throughput.higher_is_better) == ("queries/s", True)
    assert (service.unit, service.higher_is_better) == ("ms", False)
    assert (throughput.nights.dtype, throughput.forks.dtype) == (np.int64, np.int64)


def test_only_the_nights_and_variants_that_are_wanted(suite: SuiteFolder):
    kept(suite, *([row(n, value=float(n)), row(n, variant="os")] for n in (1, 2, 3)))
    (one,) = suite.series(["es"], [1, 3, 99], refused)
    assert (one.key.variant, one.nights.tolist()) == ("es", [1, 3])
    assert suite.series(["es"], [], refused) == []
    assert suite.series([], None, refused) == []
    assert [one.key.variant for one in suite.series(["o'", "os"], None, refused)] == ["os"]


def test_nights_without_figures_stay_missing(suite: SuiteFolder):
    kept(suite, [row(1)])
    night_folder(suite)
    kept(suite, [row(3)])
    kept(suite, [])
    (one,) = suite.series(None, None, refused)
    assert one.nights.tolist() == [1, 3]
    assert SuiteFolder(suite.root / "none").series(None, None, refused) == []


@pytest.mark.parametrize("damage", ["cut off", "no parquet", "empty", "other columns", "overwritten"])
def test_a_damaged_file_is_told_and_the_others_read(suite: SuiteFolder, damage: str):
    kept(suite, [row(1)], [row(2, fork) for fork in range(50)], [row(3)])
    path = suite.figure_files()[1]
    content = path.read_bytes()
    if damage == "other columns":
        with duckdb.connect() as connection:
            connection.sql("SELECT 1 AS night").write_parquet(str(path))
    else:
        path.write_bytes(
            {
                "cut off": content[:-10],
                "no parquet": b"x" * 500,
                "empty": b"",
                "overwritten": content[:4] + b"\xff" * (len(content) // 2) + content[len(content) // 2 + 4 :],
            }[damage]
        )
    told: list[str] = []
    (one,) = suite.series(None, None, told.append)
    assert one.nights.tolist() == [1, 3]
    (text,) = told
    assert text.startswith(f"the figures in {path} are left out: ")
    assert "\n" not in text


def test_all_files_damaged_is_no_figures(suite: SuiteFolder):
    kept(suite, [row(1)], [row(2)])
    for path in suite.figure_files():
        path.write_bytes(b"rubbish")
    told: list[str] = []
    assert suite.series(None, None, told.append) == []
    assert len(told) == 2


def test_what_no_logarithm_can_be_taken_of_is_no_value(suite: SuiteFolder):
    kept(suite, [row(1, fork, value) for fork, value in enumerate([1.0, 0.0, -1.0, math.nan, math.inf])])
    (one,) = suite.series(None, None, refused)
    assert one.values.tolist() == [1.0]


def test_a_full_disk_leaves_the_figures_from_before_and_no_rubbish(tmp_path: Path):
    path = tmp_path / "figures.parquet"
    write_figures([row(1)], path)
    rows = [row(1, fork, task=f"task {fork * 7919}") for fork in range(2000)]
    with nearly_full(1500), pytest.raises(BenchctlError, match=r"cannot write .*figures\.parquet") as caught:
        write_figures(rows, path)
    assert "free some space" in caught.value.hint
    (one,) = read_series([path], None, refused)
    assert one.nights.tolist() == [1]
    assert list(tmp_path.iterdir()) == [path]


names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)


@given(
    st.lists(
        st.builds(
            row,
            st.integers(1, 9),
            st.integers(0, 5),
            st.floats(1e-9, 1e12),
            variant=names,
            challenge=names,
            task=names,
            metric=st.sampled_from(["throughput", "latency_p90"]),
        ),
        max_size=30,
        unique_by=lambda one: (one.variant, one.challenge, one.task, one.metric, one.night, one.fork),
    )
)
def test_every_figure_comes_back_in_its_series(
    tmp_path_factory: pytest.TempPathFactory, rows: list[FigureRow]
):
    path = tmp_path_factory.mktemp("figures") / "figures.parquet"
    write_figures(rows, path)
    found = read_series([path], None, refused)
    back = {
        (*(getattr(one.key, name) for name in ("variant", "challenge", "task", "metric")), night, fork): value
        for one in found
        for night, fork, value in zip(
            one.nights.tolist(), one.forks.tolist(), one.values.tolist(), strict=True
        )
    }
    assert back == {
        (one.variant, one.challenge, one.task, one.metric, one.night, one.fork): one.value for one in rows
    }
    for one in found:
        assert list(zip(one.nights, one.forks, strict=True)) == sorted(
            zip(one.nights, one.forks, strict=True)
        )

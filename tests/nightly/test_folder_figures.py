import math
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import strategies as st

from benchctl.nightly.folder import FigureRow, SuiteFolder, write_figures
from benchctl.nightly.model import SeriesKey

KEY = SeriesKey("es", "big5", "range", "throughput")


def refused(message: str) -> None:
    raise AssertionError(message)


def row(night: int = 1, fork: int = 0, value: float = 1.0, **changes: object) -> FigureRow:
    usual = FigureRow(
        night=night,
        variant="es",
        challenge="big5",
        task="range",
        metric="throughput",
        unit="queries/s",
        higher_is_better=True,
        fork=fork,
        value=value,
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


def test_a_file_holds_every_field_with_its_type(tmp_path: Path):
    path = tmp_path / "figures.parquet"
    write_figures([row(3, 1, 2.5)], path)
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        assert found == [tuple(row(3, 1, 2.5))]
        types = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        assert [kind for _, kind, *_ in types] == ["BIGINT", *["VARCHAR"] * 5, "BOOLEAN", "BIGINT", "DOUBLE"]


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


def test_what_no_logarithm_can_be_taken_of_is_no_value(suite: SuiteFolder):
    kept(suite, [row(1, fork, value) for fork, value in enumerate([1.0, 0.0, -1.0, math.nan, math.inf])])
    (one,) = suite.series(None, None, refused)
    assert one.values.tolist() == [1.0]


names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)

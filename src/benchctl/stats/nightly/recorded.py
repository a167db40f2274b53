"""Recorded series from CSV: rows of time and value, one series or several, read strictly."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from benchctl.errors import UsageError
from benchctl.results.nightly.model import Series, SeriesKey

_DELIMITERS = ",;\t"
_METRIC = "value"


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are read. Names are compared without regard to case.

    Attributes:
        time: name of the column of times; a file without a header has them first.
        value: name of the column of values; a file without a header has them second.
        series: name of the column of series; None where there is one series.
    """

    time: str = "time"
    value: str = "value"
    series: str | None = None


@dataclass(frozen=True, eq=False)
class Recorded:
    """What a file holds.

    Attributes:
        series: in the order in which they come up; rows of the same time are forks of one night.
        times: of night 1 and on, as written; nights are counted over all series.
    """

    series: tuple[Series, ...]
    times: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    line: int
    time: str
    moment: float
    value: float
    series: str


def read_recorded(
    lines: Iterable[str], *, source: str, columns: Columns, higher_is_better: bool = False
) -> Recorded:
    """Read a file of recorded values.

    The first line is a header unless its second cell is a number. Cells are separated by commas,
    semicolons or tabs, whichever the first line has most of. Times are numbers or ISO 8601, and decide on the
    order.

    Args:
        lines: of the file.
        source: its name, for messages.
        columns: which are read.
        higher_is_better: which way is faster.

    Raises:
        UsageError: no rows, a column that is not there, a time that is none, times of both kinds, a value
            that is not a positive number; with the line.
    """
    rows = list(_rows(lines, source, columns))
    if not rows:
        raise UsageError(f"{source}: there are no values", hint="rows of time and value are expected")
    moments = {row.moment: row.time for row in rows}
    number_of = {moment: number for number, moment in enumerate(sorted(moments), start=1)}
    by_series: dict[str, list[_Row]] = {}
    for row in rows:
        by_series.setdefault(row.series, []).append(row)
    return Recorded(
        tuple(
            _series(name, members, number_of, higher_is_better=higher_is_better)
            for name, members in by_series.items()
        ),
        tuple(moments[moment] for moment in sorted(moments)),
    )


def _series(
    name: str, rows: Sequence[_Row], number_of: dict[float, int], *, higher_is_better: bool
) -> Series:
    ordered = sorted(rows, key=lambda row: (row.moment, row.line))
    nights = np.array([number_of[row.moment] for row in ordered], np.int64)
    starts = np.searchsorted(nights, nights)
    return Series(
        key=SeriesKey(variant="recorded", challenge="", task=name, metric=_METRIC),
        unit="",
        higher_is_better=higher_is_better,
        nights=nights,
        forks=np.arange(nights.size, dtype=np.int64) - starts + 1,
        values=np.array([row.value for row in ordered]),
    )


def _rows(lines: Iterable[str], source: str, columns: Columns) -> Iterator[_Row]:
    places: tuple[int, int, int | None] | None = None
    kind = ""
    for line, cells in _cells(lines, source):
        where = f"{source}, line {line}"
        if places is None:
            places = _places(cells, where, columns)
            if not _without_header(cells):
                continue
        time, value, series = places
        needed = max(time, value, series or 0)
        if len(cells) <= needed:
            raise UsageError(f"{where}: {len(cells)} cells, where at least {needed + 1} are needed")
        moment, found = _moment(cells[time].strip(), where)
        if kind not in ("", found):
            raise UsageError(f"{where}: {cells[time].strip()} is a {found}, times before it are {kind}s")
        kind = found
        name = "" if series is None else cells[series].strip()
        yield _Row(line, cells[time].strip(), moment, _value(cells[value].strip(), where), name)


def _cells(lines: Iterable[str], source: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their last line; empty ones are passed over."""
    first, *rest = list(lines) or [""]
    reader = csv.reader([first, *rest], delimiter=max(_DELIMITERS, key=first.count))
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as err:
        raise UsageError(f"{source}, line {reader.line_num}: {err}") from err


def _without_header(cells: Sequence[str]) -> bool:
    return len(cells) > 1 and _number(cells[1].strip()) is not None


def _places(cells: Sequence[str], where: str, columns: Columns) -> tuple[int, int, int | None]:
    if _without_header(cells):
        if columns.series is not None:
            raise UsageError(f"{where}: no header, so there is no column {columns.series}")
        return 0, 1, None
    names = [cell.strip().casefold() for cell in cells]

    def place(name: str, option: str) -> int:
        if name.casefold() in names:
            return names.index(name.casefold())
        there = ", ".join(cell.strip() for cell in cells)
        raise UsageError(f"{where}: no column {name}", hint=f"name one of {there} with {option}")

    series = None if columns.series is None else place(columns.series, "--series-column")
    return place(columns.time, "--time"), place(columns.value, "--value"), series


def _moment(text: str, where: str) -> tuple[float, str]:
    number = _number(text)
    if number is not None:
        return number, "number"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{where}: {text or 'an empty cell'} is no time", hint="a number or ISO 8601, such as 2026-11-21"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp(), "date"


def _value(text: str, where: str) -> float:
    number = _number(text)
    if number is None or number <= 0:
        raise UsageError(
            f"{where}: {text or 'an empty cell'} is no positive number",
            hint="nights without a value are left out",
        )
    return number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None

"""Plain tables, such as lists and answers of queries, as text, Markdown, CSV, JSON or HTML."""

import csv
import datetime as dt
import io
import json
import math
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest

from benchctl.report.numbers import visible
from benchctl.report.table import Table, table, worded

_RULE = "─"
_GAP = "  "


class Share(float):
    """A fraction of 1 that readers get in per cent; programs get the number."""


@dataclass(frozen=True)
class Listing:
    """Columns and rows."""

    columns: tuple[str, ...]
    # One value a column; None where there is none. May be readable once only.
    rows: Iterable[tuple[object, ...]]
    # Positions of the columns that hold numbers, which are set flush right.
    numeric: frozenset[int] = frozenset()
    grouped: bool = False
    title: str = ""


def pieces(listing: Listing, output_format: str, width: int | None = None) -> Iterator[str]:
    """Yield the listing, a piece at a time, so that a long one needs no memory in CSV and JSON.

    Text, Markdown and HTML (a page) are for readers; csv (empty for no value, a semicolon between the items
    of a list) and json (an array of objects) for programs. Text is folded between words to `width` columns,
    None for as wide as it is; a word is never broken, so that an id can be copied and found by grep.
    """
    match output_format:
        case "csv":
            return _csv(listing)
        case "json":
            return _json(listing)
        case "markdown":
            words = frozenset(range(len(listing.columns))) - listing.numeric
            lines = ([cell(value, grouped=listing.grouped) for value in row] for row in listing.rows)
            return iter([table(listing.columns, lines, words) + "\n"])
        case "html":
            return _html(listing)
        case _:
            return _plain(listing, width)


def cell(value: object, *, grouped: bool = False) -> str:
    """Return a value for readers: empty without one, six digits of a fraction, no line breaks."""
    match value:
        case None:
            return ""
        case Share():
            return f"{100 * value:g} %"
        case float():
            return f"{value:.6g}"
        case list() | tuple():
            return ", ".join(cell(one) for one in value)
        case int() if grouped and not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return visible(" ".join(str(value).split()))


def _plain(listing: Listing, width: int | None) -> Iterator[str]:
    names = tuple(map(visible, listing.columns))
    lines = [tuple(cell(value, grouped=listing.grouped) for value in row) for row in listing.rows]
    widths = _widths([names, *lines], listing.numeric, width)

    def folded(cells: Iterable[str]) -> Iterator[str]:
        parts = (
            textwrap.wrap(text, most, break_long_words=False, break_on_hyphens=False)
            if len(text) > most
            else [text]
            for text, most in zip(cells, widths, strict=True)
        )
        for line in zip_longest(*parts, fillvalue=""):
            sides = [
                text.rjust(most) if place in listing.numeric else text.ljust(most)
                for place, (text, most) in enumerate(zip(line, widths, strict=True))
            ]
            yield _GAP.join(sides).rstrip() + "\n"

    yield from folded(names)
    yield _RULE * (sum(widths) + len(_GAP) * (len(widths) - 1)) + "\n"
    for line in lines:
        yield from folded(line)


def _widths(lines: Sequence[tuple[str, ...]], numeric: Collection[int], width: int | None) -> list[int]:
    """As wide as the cells; if that is too much, the widest columns give way first."""
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    if width is None:
        return widths
    # Numbers stay whole, and their names take a further line before text does.
    least = [
        max(
            len(word)
            for line, text in enumerate(column)
            for word in ([text] if line and place in numeric else text.split() or [""])
        )
        for place, column in enumerate(columns)
    ]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0:
        # Those that can still give way, the widest of them.
        place = max(
            range(len(widths)), key=lambda one: (widths[one] > least[one], one in numeric, widths[one])
        )
        if widths[place] == least[place]:
            break
        widths[place] -= 1
        excess -= 1
    return widths


def _html(listing: Listing) -> Iterator[str]:
    # Templates take a while to load, which no other form needs.
    from benchctl.report.html.parts import render_tables  # noqa: PLC0415 - see above

    rows = ([cell(value, grouped=listing.grouped) for value in row] for row in listing.rows)
    columns = (
        one if place in listing.numeric else worded(one)
        for place, one in enumerate(map(visible, listing.columns))
    )
    yield render_tables(listing.title, [Table.of(listing.title, columns, rows)])


def _csv(listing: Listing) -> Iterator[str]:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(listing.columns)
    for row in listing.rows:
        writer.writerow([";".join(map(str, one)) if isinstance(one, (list, tuple)) else one for one in row])
        yield stream.getvalue()
        stream.seek(0)
        stream.truncate()
    yield stream.getvalue()


def _json(listing: Listing) -> Iterator[str]:
    before = "["
    for row in listing.rows:
        values = dict(zip(listing.columns, map(_json_value, row), strict=True))
        yield f"{before}\n {json.dumps(values, ensure_ascii=False)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _json_value(value: object) -> object:
    """Return what JSON can say; it has no NaN and no infinity."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return float(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | tuple():
            return [_json_value(one) for one in value]
        case dict():
            return {str(key): _json_value(one) for key, one in value.items()}
        case _:
            return value if value is None or isinstance(value, (int, str)) else str(value)

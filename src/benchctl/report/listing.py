"""Plain tables, such as lists and answers of queries, as text, Markdown, CSV, JSON or HTML."""

import csv
import datetime as dt
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from benchctl.report.markdown import table
from benchctl.report.visible import visible

_RULE = "─"
_GAP = "  "


@dataclass(frozen=True)
class Listing:
    """Columns and rows.

    Attributes:
        columns: their names.
        rows: one value a column; None where there is none. May be readable once only.
        numeric: positions of the columns that hold numbers, which are set flush right.
        grouped: whether readers get the digits of whole numbers in groups of three.
        title: what the table is of, where it stands by itself, as on a page.
    """

    columns: tuple[str, ...]
    rows: Iterable[tuple[object, ...]]
    numeric: frozenset[int] = frozenset()
    grouped: bool = False
    title: str = ""


def pieces(listing: Listing, output_format: str) -> Iterator[str]:
    """The listing, a piece at a time, so that a long one needs no memory in CSV and JSON.

    Args:
        listing: what to print.
        output_format: text, Markdown and HTML (a page) for readers; csv (empty where there is no value, a
            semicolon between the items of a list) and json (an array of objects) for programs.
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
            return _plain(listing)


def cell(value: object, *, grouped: bool = False) -> str:
    """A value for readers: nothing where there is none, six digits of a fraction, and no line breaks."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:.6g}"
        case list() | tuple():
            return ", ".join(cell(one) for one in value)
        case int() if grouped and not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return visible(" ".join(str(value).split()))


def _plain(listing: Listing) -> Iterator[str]:
    """As wide as it is: lines of a file or a pipe are not folded, programs read them."""
    lines = [tuple(cell(value, grouped=listing.grouped) for value in row) for row in listing.rows]
    widths = [max(map(len, column)) for column in zip(listing.columns, *lines, strict=True)]

    def line(cells: Iterable[str]) -> str:
        sides = [
            text.rjust(width) if place in listing.numeric else text.ljust(width)
            for place, (text, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return _GAP.join(sides).rstrip() + "\n"

    yield line(map(visible, listing.columns))
    yield _RULE * (sum(widths) + len(_GAP) * (len(widths) - 1)) + "\n"
    yield from map(line, lines)


def _html(listing: Listing) -> Iterator[str]:
    # Templates take a while to load, which no other form needs.
    from benchctl.report.html.tables import listed, render_tables  # noqa: PLC0415 - see above

    rows = ([cell(value, grouped=listing.grouped) for value in row] for row in listing.rows)
    columns = [visible(column) for column in listing.columns]
    yield render_tables(listing.title, [listed(listing.title, columns, rows, listing.numeric)])


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
    """What JSON can say; it has no NaN and no infinity."""
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

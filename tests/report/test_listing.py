import csv
import datetime as dt
import io
import json
import math
from decimal import Decimal

import pytest

from benchctl.report.listing import Listing, pieces
from report.html.outline import outline

ROWS: list[tuple[object, ...]] = [
    ("a", 12_000, 0.123456789, None, ["x", "y z"]),
    ("b|c\nd", -1, math.nan, True, []),
]
LISTING = Listing(("name", "count", "share", "flag", "items"), ROWS, frozenset({1, 2}), grouped=True)


def written(listing: Listing, output_format: str) -> str:
    return "".join(pieces(listing, output_format))


def test_text_stands_in_columns_without_blanks_at_the_end():
    assert written(LISTING, "text").splitlines() == [
        "name    count     share  flag  items",
        "─────────────────────────────────────",
        "a      12,000  0.123457        x, y z",
        "b|c d      -1       nan  True",
    ]


def test_text_is_folded_between_words_to_fit_and_ids_stay_whole():
    rows = [("20261121-152017-big5", 1_000, ["one x10", "two-words x10", "three x10"]), ("b", 2, ["four"])]
    listing = Listing(("run", "count", "schedule"), rows, frozenset({1}), grouped=True)
    assert "".join(pieces(listing, "text", 48)).splitlines() == [
        "run                   count  schedule",
        "────────────────────────────────────────────────",
        "20261121-152017-big5  1,000  one x10, two-words",
        "                             x10, three x10",
        "b                         2  four",
    ]
    # What cannot be folded is as wide as it is.
    narrow = "".join(pieces(listing, "text", 10)).splitlines()
    assert narrow[2].startswith("20261121-152017-big5  1,000  one")
    assert max(map(len, narrow)) == len("20261121-152017-big5  1,000  two-words")


def test_names_of_numbers_are_folded_before_text_is():
    listing = Listing(("state", "memory free GiB"), [("cannot be used now", 12.5)], frozenset({1}))
    assert "".join(pieces(listing, "text", 30)).splitlines() == [
        "state                   memory",
        "                      free GiB",
        "──────────────────────────────",
        "cannot be used now        12.5",
    ]


def test_markdown_keeps_pipes():
    assert written(LISTING, "markdown").splitlines() == [
        "| name | count | share | flag | items |",
        "| --- | ---: | ---: | --- | --- |",
        "| a | 12,000 | 0.123457 |  | x, y z |",
        "| b\\|c d | -1 | nan | True |  |",
    ]


def test_csv_is_in_full_precision_with_nothing_for_no_value():
    rows = list(csv.reader(io.StringIO(written(LISTING, "csv"))))
    assert rows == [
        ["name", "count", "share", "flag", "items"],
        ["a", "12000", "0.123456789", "", "x;y z"],
        ["b|c\nd", "-1", "nan", "True", ""],
    ]


def test_json_is_an_array_of_objects():
    assert json.loads(written(LISTING, "json")) == [
        {"name": "a", "count": 12000, "share": 0.123456789, "flag": None, "items": ["x", "y z"]},
        {"name": "b|c\nd", "count": -1, "share": None, "flag": True, "items": []},
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Decimal("1.5"), 1.5),
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2026-01-02T03:04:05+00:00"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.timedelta(seconds=90), "0:01:30"),
        (2**100, 2**100),
        ({1: math.inf, "b": (1, None)}, {"1": None, "b": [1, None]}),
        (b"a", "b'a'"),
    ],
)
def test_json_can_say_whatever_a_query_gives(value: object, expected: object):
    assert json.loads(written(Listing(("v",), [(value,)]), "json")) == [{"v": expected}]


@pytest.mark.parametrize(
    ("output_format", "expected"),
    [
        ("text", "a  b\n────\n"),
        ("csv", "a,b\n"),
        ("json", "[]\n"),
        ("markdown", "| a | b |\n| --- | --- |\n"),
    ],
)
def test_no_rows_still_have_their_columns(output_format: str, expected: str):
    assert written(Listing(("a", "b"), []), output_format) == expected


def test_rows_may_be_readable_once_only():
    assert written(Listing(("a",), iter([(1,), (2,)])), "csv") == "a\n1\n2\n"


def test_a_page_has_one_table_with_its_caption_and_no_cell_joined_to_another():
    rows = [("a", 1), (None, 2), ("", 3_000)]
    page = outline(written(Listing(("name", "n"), rows, frozenset({1}), grouped=True, title="Some"), "html"))
    assert [text for _, text in page.headings()] == ["Some"]
    assert [element.text for element in page.all("caption")] == ["Some"]
    assert [element.text for element in page.all("th", scope="row")] == ["a", "", ""]
    assert [element.text for element in page.all("td", class_="figure")] == ["1", "2", "3,000"]
    assert page.all("script") == []

import csv
import datetime as dt
import io
import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.html import render_blocks
from benchctl.report.table import (
    ABOVE,
    INTERVAL,
    NOTES,
    OPERATION,
    VERDICT,
    Cell,
    Column,
    Share,
    Table,
    bounds,
    break_name,
    judged,
    markdown_lines,
    pieces,
    plain,
    text_lines,
)
from report.html.outline import outline

FIRSTS = st.lists(st.sampled_from(["", "a", ABOVE]), max_size=12)
ROWS: list[tuple[object, ...]] = [
    ("a", 12_000, 0.123456789, None, ["x", "y z"]),
    ("b|c\nd", -1, math.nan, True, []),
]
COUNT, SHARE = Column("count", grouped=True), Column("share")
LIST = Table.listed("Some", ("name", COUNT, SHARE, "flag", "items"), ROWS)
RUNS = Table.listed(
    "",
    ("run", COUNT, "schedule"),
    [("20261121-152017-big5", 1_000, ["one x10", "two-words x10", "three x10"]), ("b", 2, ["four"])],
)


def written(table: Table, output_format: str, width: int | None = None) -> str:
    return "".join(pieces(table, output_format, width))


def text(table: Table, width: int) -> list[str]:
    return [line.plain for line in text_lines(table, width)]


def test_numbers_of_notes_are_links_on_a_page_and_other_remarks_stay_words():
    table = Table.of("t", (OPERATION, NOTES), [("range", Cell("saturated 3", notes=(1, 12))), ("sort", "")])
    assert table.texts == (("range", "saturated 3 [1] [12]"), ("sort", ""))
    page = render_blocks("t", [table])
    assert 'saturated 3 <a href="#note-1" aria-label="note 1">1</a> <a href="#note-12"' in page
    assert "#note-3" not in page


def test_what_a_cell_is_decides_how_it_is_drawn_not_what_it_says():
    columns = (OPERATION, INTERVAL, "Verdict")
    meant = Table.of("t", columns, [("range", bounds(-1.0, 2.0), judged("slower", "slower", "cold"))])
    said = Table.of("t", columns, [("range", "-1.0..+2.0", "slower, cold")])
    assert meant.texts == said.texts
    assert markdown_lines(meant) == markdown_lines(said)
    assert plain([[meant]]) == plain([[said]])
    assert ['class="figure slower"' in render_blocks("t", [one]) for one in (meant, said)] == [True, False]


def test_lines_that_continue_a_row_share_its_heading():
    table = Table.of("t", (OPERATION, "Value"), (("a", "1"), (ABOVE, "2"), (ABOVE, "3"), ("", "4")))
    assert table.spans == (3, 0, 0, 1)
    page = render_blocks("t", [table])
    assert page.count('rowspan="3"') == page.count("rowspan") == 1
    assert 'class="fold"' not in page
    assert 'class="fold"' in render_blocks("t", [Table.of("t", (OPERATION,), (("a",), ("b",)))])


@given(FIRSTS)
def test_headings_span_every_line_exactly_once(firsts: list[Cell | str]):
    spans = Table.of("t", (OPERATION,), ((first,) for first in firsts)).spans
    assert sum(spans) == len(firsts) == len(spans)
    place = 0
    while place < len(spans):
        assert spans[place] > 0
        assert not any(spans[place + 1 : place + spans[place]])
        assert {*firsts[place + 1 : place + spans[place]]} <= {ABOVE}
        place += spans[place]


def test_columns_go_with_their_cells():
    table = Table.of("t", ("a", "b", "c"), (("1", "", "3"), ("4", "", "")))
    assert table.without("a", "c").texts == (("",), ("",))
    assert (table.without_empty("b", "c").titles, table.without_empty("b").texts[0]) == (
        ("a", "c"),
        ("1", "3"),
    )


def test_text_stands_in_columns_without_blanks_at_the_end():
    assert written(LIST, "text").splitlines() == [
        "name    count     share  flag  items",
        "─────────────────────────────────────",
        "a      12,000  0.123457        x, y z",
        "b|c d      -1       nan  True",
    ]


@pytest.mark.parametrize(
    ("table", "width", "lines"),
    [
        (
            RUNS,
            48,
            [
                "run                  count schedule",
                "─────────────────────────────────────────────",
                "20261121-152017-big5 1,000 one x10, two-words",
                "                           x10, three x10",
                "b                        2 four",
            ],
        ),
        (  # What cannot be folded is as wide as it is.
            Table.listed("", ("run", COUNT), [("20261121-152017-big5", 1_000)]),
            10,
            ["run                  count", "─" * 26, "20261121-152017-big5 1,000"],
        ),
        (
            Table.listed("", ("state", Column("memory free GiB")), [("cannot be used now", 12.5)]),
            30,
            [
                "state          memory free GiB",
                "─" * 30,
                "cannot be used            12.5",
                "now",
            ],
        ),
        (
            Table.of(
                "",
                (OPERATION, INTERVAL, VERDICT),
                [
                    (
                        "composite-date_histogram-daily",
                        bounds(-1.0, 2.0),
                        judged("slower", "slower?", "stalled"),
                    )
                ],
            ),
            40,
            [
                "Operation           95% CI Verdict",
                "───────────────────────────────────",
                "composite-date_ -1.0..+2.0 slower?,",
                "histogram-daily            stalled",
            ],
        ),
    ],
)
def test_text_is_folded_to_fit_and_no_word_is_broken(table: Table, width: int, lines: list[str]):
    assert text(table, width) == lines


WORDS = st.lists(st.text("ab-", min_size=1, max_size=12), max_size=6).map(" ".join)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4), st.integers(1, 60))
def test_every_word_is_there_at_every_width(rows: list[tuple[str, str, str]], width: int):
    table = Table.of("", (OPERATION, VERDICT, "Figure"), rows)
    lines = text(table, width)
    assert sorted("".join(lines[2:]).replace(" ", "")) == sorted(
        "".join("".join(row) for row in rows).replace(" ", "")
    )
    assert max(map(len, lines)) <= max(width, *map(len, text(table, 1)))


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("range", ["range"]),
        ("composite-date_histogram-daily", ["composite-date_", "histogram-daily"]),
        ("a" * 45, ["a" * 20, "a" * 20, "a" * 5]),
    ],
)
def test_names_break_at_joints(name: str, lines: list[str]):
    assert break_name(name, 20).split("\n") == lines


def test_markdown_keeps_pipes():
    assert written(LIST, "markdown").splitlines() == [
        "| name | count | share | flag | items |",
        "| --- | ---: | ---: | --- | --- |",
        "| a | 12,000 | 0.123457 |  | x, y z |",
        "| b\\|c d | -1 | nan | True |  |",
    ]


def test_csv_is_in_full_precision_with_nothing_for_no_value():
    rows = list(csv.reader(io.StringIO(written(LIST, "csv"))))
    assert rows == [
        ["name", "count", "share", "flag", "items"],
        ["a", "12000", "0.123456789", "", "x;y z"],
        ["b|c\nd", "-1", "nan", "True", ""],
    ]


@pytest.mark.parametrize(
    ("value", "shown", "expected"),
    [
        (Share(0.05), "5%", 0.05),
        (["x", "y z"], "x, y z", ["x", "y z"]),
        (math.nan, "nan", None),
        (Decimal("1.5"), "1.5", 1.5),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02 00:00:00+00:00", "2026-01-02T00:00:00+00:00"),
        (dt.date(2026, 1, 2), "2026-01-02", "2026-01-02"),
        (dt.timedelta(seconds=90), "0:01:30", "0:01:30"),
        (2**100, str(2**100), 2**100),
        ({1: math.inf, "b": (1, None)}, "{1: inf, 'b': (1, None)}", {"1": None, "b": [1, None]}),
        (b"a", "b'a'", "b'a'"),
    ],
)
def test_a_value_has_a_form_for_readers_and_one_for_programs(value: object, shown: str, expected: object):
    table = Table.listed("", ("v",), [(value,)])
    assert table.texts == ((shown,),)
    assert json.loads(written(table, "json")) == [{"v": expected}]


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
    assert written(Table.listed("", ("a", "b"), []), output_format) == expected


def test_rows_may_be_readable_once_only():
    assert written(Table.listed("", ("a",), iter([(1,), (2,)])), "csv") == "a\n1\n2\n"


def test_a_page_has_one_table_with_its_caption_and_no_cell_joined_to_another():
    rows = [("a", 1), (None, 2), ("", 3_000)]
    page = outline(render_blocks("Some", [Table.listed("Some", ("name", COUNT), iter(rows))]))
    assert [text for _, text in page.headings()] == ["Some"]
    assert [element.text for element in page.all("caption")] == ["Some"]
    assert [element.text for element in page.all("th", scope="row")] == ["a", "", ""]
    assert [element.text for element in page.all("td", class_="figure")] == ["1", "2", "3,000"]
    assert page.all("script") == []

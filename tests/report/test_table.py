from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.html.parts import render_tables
from benchctl.report.table import ABOVE, INTERVAL, NOTES, OPERATION, Cell, Table, bounds, grid_table, judged
from benchctl.report.tables import render_page

FIRSTS = st.lists(st.sampled_from(["", "a", ABOVE]), max_size=12)


def test_numbers_of_notes_are_links_on_a_page_and_other_remarks_stay_words():
    line = ("range", Cell(("saturated 3",), notes=(1, 12)))
    grid = Table.of("t", (OPERATION, NOTES), (line, ("sort", "")))
    assert grid.texts == (("range", "saturated 3 1 12"), ("sort", ""))
    page = render_tables("t", [grid])
    assert 'saturated 3 <a href="#note-1" aria-label="note 1">1</a> <a href="#note-12"' in page
    assert "#note-3" not in page


def test_what_a_cell_is_decides_how_it_is_drawn_not_what_it_says():
    columns = (OPERATION, INTERVAL, "Verdict")
    meant = Table.of("t", columns, [("range", bounds(-1.0, 2.0), judged("slower", "slower", "cold"))])
    said = Table.of("t", columns, [("range", "-1.0 to +2.0", "slower, cold")])
    assert meant.texts == said.texts
    assert grid_table(meant) == grid_table(said)
    assert render_page([meant], [], 100) == render_page([said], [], 100)
    assert ("-1.0 to\n" in meant.lines[0][1].stacked, "\n" in said.lines[0][1].stacked) == (True, False)
    assert ['class="figure slower"' in render_tables("t", [grid]) for grid in (meant, said)] == [True, False]


def test_lines_that_continue_a_row_share_its_heading():
    grid = Table.of("t", (OPERATION, "Value"), (("a", "1"), (ABOVE, "2"), (ABOVE, "3"), ("", "4")))
    assert grid.spans == (3, 0, 0, 1)
    page = render_tables("t", [grid])
    assert page.count('rowspan="3"') == page.count("rowspan") == 1
    assert 'class="fold"' not in page
    assert 'class="fold"' in render_tables("t", [Table.of("t", (OPERATION,), (("a",), ("b",)))])


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
    grid = Table.of("t", ("a", "b", "c"), (("1", "", "3"), ("4", "", "")))
    assert grid.without("a", "c").texts == (("",), ("",))
    assert (grid.without_empty("b", "c").titles, grid.without_empty("b").texts[0]) == (("a", "c"), ("1", "3"))

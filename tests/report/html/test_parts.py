import json
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from benchctl.report.charts import Chart
from benchctl.report.charts.panels import plot_layout
from benchctl.report.html.parts import (
    Figure,
    Figures,
    Group,
    anchor,
    breakable,
    embedded,
    figure,
    flagged,
    groups,
)
from figures import drawn

TEXTS = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def make_chart(title: str, group: str, key: str = "k") -> Chart:
    return Chart(key, group, title, "How to read it.", (), plot_layout("", "", height=300))


def figures_of(group: Group) -> Sequence[Figure]:
    (block,) = group.blocks
    assert isinstance(block, Figures)
    return block.figures


@given(JSON)
def test_embedded_json_means_the_same_and_ends_no_script(value: object):
    text = embedded(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_numbers_of_arrays_are_seven_digits_and_what_is_none_stays_none():
    layout = plot_layout("", "")
    chart = Chart("k", "g", "t", "a", (go.Scatter(x=np.array([1234567.0, np.nan, -1e-9])),), layout)
    assert drawn(chart)["data"][0]["x"] == [1234570.0, None, -1e-9]


@given(TEXTS)
def test_breaks_add_nothing_but_breaks(text: str):
    broken = breakable(text)
    assert Markup("").join(broken.split("<wbr>")).unescape() == text or "<wbr>" in text
    assert "<" not in broken.replace("<wbr>", "").replace("&lt;", "")


def test_options_are_kept_together_and_nothing_is_markup():
    assert flagged("flags: -Xmx1g <b> -D<i>") == (
        'flags: <span class="flag">-Xmx1g</span> &lt;b&gt; <span class="flag">-D&lt;i&gt;</span>'
    )
    assert flagged(Markup("<a>slower by -5%</a>")) == "<a>slower by -5%</a>"


@given(TEXTS)
def test_an_anchor_needs_no_escaping(key: str):
    assert set(anchor(key)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")


def test_a_figure_keeps_the_place_that_its_chart_will_take():
    assert figure(make_chart("Course", "range")).height_px > 300


def test_charts_are_grouped_in_the_order_of_the_tables_and_unknown_tasks_come_last():
    charts = [make_chart("Course", name) for name in ("other", "sort", "range", "sort")]
    found = groups(charts, ["range", "empty", "sort"])
    assert [(group.title, len(figures_of(group))) for group in found] == [
        ("range", 1),
        ("sort", 2),
        ("other", 1),
    ]
    assert len({group.key for group in found}) == 3


@pytest.mark.parametrize("title", ["Course", "Forks"])
def test_how_to_read_a_kind_of_chart_is_explained_once_before_it_is_folded_away(title: str):
    charts = [make_chart(title, "a"), make_chart("Another", "a"), make_chart(title, "b")]
    (first, second), (third,) = map(figures_of, groups(charts, ["a", "b"]))
    assert [first.explained, second.explained, third.explained] == [False, False, True]

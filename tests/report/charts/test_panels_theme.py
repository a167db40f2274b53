import itertools

import pytest

from benchctl.report.charts import DARK_PAPER, LIGHT_PAPER, VariantStyle, dark_palette, tint, variant_style
from benchctl.report.charts.panels import plain, plot_layout
from benchctl.report.html.parts import STYLE, text_of

STYLES = [variant_style(position) for position in range(6)]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("style", STYLES)
def test_marks_stand_out_on_light_and_dark_pages(style: VariantStyle):
    assert contrast(style.colour, LIGHT_PAPER) >= 3
    assert contrast(style.colour, DARK_PAPER) >= 3  # while a page changes, and where it cannot
    assert contrast(style.on_dark, DARK_PAPER) >= 6


def test_dark_pages_exchange_every_colour_and_its_tints_and_nothing_twice():
    pairs = dark_palette()
    assert {tint(style.colour, 0.5).replace(*dict_pair) for style in STYLES for dict_pair in pairs} >= {
        tint(style.on_dark, 0.5) for style in STYLES
    }
    written = [one for one, _ in pairs]
    assert len(set(written)) == len(pairs) == 12
    assert not set(written) & {other for _, other in pairs}


def test_the_style_sheet_has_the_papers_that_colours_were_chosen_for():
    assert f"--paper: light-dark({LIGHT_PAPER}, {DARK_PAPER})" in text_of(STYLE)


def test_words_of_the_page_stand_out_on_both_papers():
    for line in text_of(STYLE).splitlines():
        name, _, value = line.strip().partition(": light-dark(")
        if name in {"--ink", "--faint", "--link", "--faster", "--slower", "--different"}:
            light, dark = value.removesuffix(");").split(", ")
            assert min(contrast(light, LIGHT_PAPER), contrast(dark, DARK_PAPER)) >= 4.5, name


def test_six_variants_differ_in_each_of_colour_symbol_and_dash():
    for one, other in itertools.combinations(STYLES, 2):
        assert one.colour != other.colour
        assert one.on_dark != other.on_dark
        assert one.symbol != other.symbol
        assert one.dash != other.dash
    assert variant_style(6) == STYLES[0]


def test_a_tint_is_the_same_colour_seen_through():
    assert tint("#0072b2", 0.5) == "rgba(0,114,178,0.5)"


def test_axes_have_their_settings_and_titles():
    layout = plot_layout("x, ms", "y", xaxis={"type": "log"})
    assert (layout.xaxis.type, layout.xaxis.title.text, layout.yaxis.title.text) == ("log", "x, ms", "y")


def test_a_chart_without_legend_leaves_no_room_for_one():
    assert plot_layout("", "", height=100).height > plot_layout("", "", height=100, showlegend=False).height


def test_text_is_no_markup_to_plotly():
    assert plain("<b>a</b> & b") == "&lt;b&gt;a&lt;/b&gt; &amp; b"

"""The tables of the blog and of the luceneutil talk, from their own figures."""

import math

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.report.grid import Grid
from benchctl.report.layout import Notes, collect_notes, result_grids
from benchctl.report.styles import Style, luceneutil_grids, render_styled
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT, metric
from report.conftest import complete_record
from report.published import (
    BLOG_MS,
    BLOG_QPS,
    FROM_UNROUNDED,
    JVMS,
    TALK,
    TalkLine,
    blog_record,
    talk_record,
)

BLOG = {**BLOG_MS, **BLOG_QPS}


def blog_analysis(name: str) -> Analysis:
    return analyse_run(blog_record(name), metrics=(SERVICE_TIME if name in BLOG_MS else THROUGHPUT,))


def talk_analysis(jvms: int) -> Analysis:
    return analyse_run(talk_record(jvms), metrics=(THROUGHPUT,))


def column(grid: Grid, header: str) -> dict[str, str]:
    place = grid.titles.index(header)
    return {line[0]: line[place] for line in grid.texts}


@pytest.mark.parametrize("name", BLOG)
def test_every_figure_of_the_blog_gives_its_difference(name: str):
    text = render_styled(blog_analysis(name), "blog", "text", width=200)
    unit = "ms" if name in BLOG_MS else "queries/s"
    for line in BLOG[name]:
        words = [line.operation, f"{line.es:g} {unit}", f"{line.os:g} {unit}", line.diff]
        assert any(all(word in printed for word in words) for printed in text.splitlines()), words


@pytest.mark.parametrize("name", BLOG)
def test_our_own_tables_say_the_same_with_one_decimal(name: str):
    analysis = blog_analysis(name)
    (grid,) = result_grids(analysis, collect_notes(analysis))
    found = column(grid, "Diff %")
    for line in BLOG[name]:
        assert float(found[line.operation]) == pytest.approx(float(line.diff.rstrip("%")), abs=0.056)


def test_one_node_start_a_side_has_no_interval_and_says_so():
    text = render_styled(blog_analysis("big5rangedebug"), "blog", "text", width=200)
    assert "95 % interval" not in text
    assert "1 node start a side, as in the blog: there is no interval" in text


def test_the_blogs_style_has_intervals_where_there_are_forks():
    text = render_styled(analyse_run(complete_record()), "blog", "text", width=120)
    assert "95 % interval" in text
    assert "from geometric means over forks (es 5, os 5)" in text


@pytest.mark.parametrize("jvms", [1, JVMS])
def test_every_figure_of_the_talk_gives_its_difference(jvms: int):
    (grid,) = luceneutil_grids(talk_analysis(jvms), Notes((), ()))
    found = column(grid, "Pct diff (low - high)")
    for line in TALK:
        expected = FROM_UNROUNDED.get(line.task, line.diff)
        assert found[line.task].split(" (")[0] == expected, line.task


@pytest.mark.parametrize(
    "line", [line for line in TALK if line.task in FROM_UNROUNDED], ids=lambda one: one.task
)
def test_where_rounded_figures_give_another_difference_unrounded_ones_can_give_the_talks(line: TalkLine):
    half = 0.005
    least = 100 * ((line.candidate - half) / (line.base + half) - 1)
    most = 100 * ((line.candidate + half) / (line.base - half) - 1)
    assert least - 0.05 <= float(line.diff.rstrip("%")) <= most + 0.05


def test_spreads_are_those_of_the_talk_in_percent_of_their_own_mean():
    (grid,) = luceneutil_grids(talk_analysis(JVMS), Notes((), ()))
    base, candidate = column(grid, "QPS es (stddev)"), column(grid, "QPS os (stddev)")
    for line in TALK:
        assert base[line.task] == f"{line.base:.2f} ({line.base_sd:.1f}%)"
        own = line.candidate_sd * line.base / line.candidate
        assert candidate[line.task] == f"{line.candidate:.2f} ({own:.1f}%)"


@pytest.mark.parametrize("line", TALK, ids=lambda line: line.task)
def test_luceneutils_own_columns_are_what_the_legend_says_they_are(line: TalkLine):
    """Both deviations in percent of the base; corners one of them apart; a normal distribution's p."""
    base_sd, candidate_sd = (line.base * sd / 100 for sd in (line.base_sd, line.candidate_sd))
    low = 100 * ((line.candidate - candidate_sd) / (line.base + base_sd) - 1)
    high = 100 * ((line.candidate + candidate_sd) / (line.base - base_sd) - 1)
    # Cut to whole percent, from figures that the talk rounds.
    assert line.low == pytest.approx(low, abs=2)
    assert line.high == pytest.approx(high, abs=2)
    together = math.sqrt((base_sd**2 + candidate_sd**2) / 2)
    distance = (line.candidate - line.base) / (together * math.sqrt(2 / JVMS))
    assert line.p == pytest.approx(1 - math.erf(distance / math.sqrt(2)), abs=0.005)


def test_true_intervals_are_narrower_than_luceneutils_ranges_with_twenty_jvms():
    for row in talk_analysis(JVMS).rows:
        line = next(one for one in TALK if one.task == row.label)
        comparison = row.comparisons[0]
        assert comparison.low_percent is not None
        assert comparison.high_percent is not None
        assert line.low < comparison.low_percent < comparison.high_percent < line.high


def test_lines_are_sorted_by_their_difference():
    (grid,) = luceneutil_grids(analyse_run(complete_record(), metrics=(THROUGHPUT,)), Notes((), ()))
    differences = [float(line[3].split("%")[0]) for line in grid.texts]
    assert differences == sorted(differences)
    assert len(differences) == 3


def test_several_contenders_have_a_table_each():
    analysis = analyse_run(complete_record(("es", "os", "noinline")), metrics=(THROUGHPUT,))
    for style in ("luceneutil", "blog"):
        text = render_styled(analysis, style, "text")  # type: ignore[arg-type]
        assert text.count("big5rangedebug: throughput") == 2


def test_notes_stand_below_the_tables_of_others_too():
    analysis = analyse_run(complete_record())
    for style in ("luceneutil", "blog"):
        text = render_styled(analysis, style, "text", width=120)  # type: ignore[arg-type]
        assert "  1  os and es do not answer alike" in text
        assert "all  one index build per engine" in text


def test_markdown_has_the_same_cells():
    text = render_styled(talk_analysis(JVMS), "luceneutil", "markdown")
    assert "| PKLookup | 153.45 (4.3%) | 155.13 (3.8%) |" in text
    assert "| --- | ---: |" in text


def test_one_variant_cannot_be_compared():
    with pytest.raises(UsageError, match="only es"):
        render_styled(analyse_run(complete_record(("es",))), "blog", "text")


@pytest.mark.parametrize("style", ["luceneutil", "blog"])
def test_what_is_0_is_a_figure_in_the_tables_of_others_too(style: Style):
    record = complete_record(edit=lambda summary, *_: msgspec.structs.replace(summary, meters={"gc": 0.0}))
    text = render_styled(analyse_run(record, metrics=[metric("gc")]), style, "text", width=100)
    assert f" {'0 ms' if style == 'blog' else '0'} " in text

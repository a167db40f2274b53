"""Charts: `golden/effects.txt` has those of effects and forks scene by scene."""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from benchctl.errors import BenchctlError
from benchctl.report.charts import (
    Chart,
    VariantStyle,
    dark_palette,
    tint,
    variant_style,
)
from benchctl.report.charts.plots import (
    _ticks,
    forest_charts,
    fork_charts,
    request_charts,
    scaled_axis,
)
from benchctl.report.html import STYLE, text_of
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.samples import Columns, concatenate
from benchctl.results.store import ForkSource
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import own_interval
from benchctl.stats.metrics import metric
from builders import make_fork, make_plan, make_record, make_summary
from figures import chart_text, drawn
from report.conftest import changed, complete_record
from sampled import make_samples, make_source

GOLDEN = Path(__file__).parent / "golden" / "effects.txt"
CPU_AND_TIME = [metric("cpu"), metric("service_time")]


def metered(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    return msgspec.structs.replace(summary, meters={"cpu": {"es": 10.0, "os": 6.0}[variant] + block})


def holed(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    missing = (variant, block) == ("os", 2)
    return msgspec.structs.replace(summary, throughput_per_s=None) if missing else summary


def unable(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
    if variant == "es":
        return summary
    return TaskSummary(0, summary.task, summary.label, summary.operation, unsupported="no such thing")


def with_comparisons(**changes: float | None) -> Analysis:
    return changed(analyse_run(complete_record()), lambda _, one: msgspec.structs.replace(one, **changes))


SCENES: dict[str, Callable[[], Sequence[Chart]]] = {
    "right is faster, and what work takes up is not called fast": lambda: forest_charts(
        analyse_run(complete_record(edit=metered), metrics=CPU_AND_TIME)
    ),
    "every contender has its own colour and mark": lambda: forest_charts(
        analyse_run(complete_record(variants=("es", "os", "noinline")))
    )[:1],
    "a single fork has an effect and no interval": lambda: forest_charts(
        analyse_run(complete_record(forks=1))
    )[:1],
    "an interval without an end has none": lambda: forest_charts(with_comparisons(low_percent=-100.0))[:1],
    "intervals of many powers of ten run off": lambda: forest_charts(
        with_comparisons(low_percent=-99.9999, high_percent=1e8)
    )[:1],
    "a fork without a value is no dot": lambda: fork_charts(analyse_run(complete_record(edit=holed)))[:1],
    "one side cannot do it": lambda: fork_charts(analyse_run(complete_record(edit=unable)))[:1],
}


def test_every_scene_is_drawn_as_before(request: pytest.FixtureRequest):
    scenes = [
        f"# {name}\n{''.join(map(chart_text, scene())) or chart_text(None)}" for name, scene in SCENES.items()
    ]
    golden.agree(request.config, GOLDEN, "\n".join(scenes))


def test_what_has_no_place_on_a_ratio_scale_is_left_out():
    assert forest_charts(analyse_run(complete_record(variants=("es",)))) == []
    assert forest_charts(with_comparisons(effect_percent=None)) == []


def test_names_are_text():
    analysis = analyse_run(complete_record())
    found = changed(analysis, lambda _, one: msgspec.structs.replace(one, contender="<i>v</i>"))
    rows = tuple(
        msgspec.structs.replace(
            row,
            label="<b>x</b>",
            figures=(row.figures[0], msgspec.structs.replace(row.figures[1], variant="<i>v</i>")),
        )
        for row in found.rows
    )
    found = msgspec.structs.replace(found, rows=rows, variants=("es", "<i>v</i>"))
    for chart in (*forest_charts(found), *fork_charts(found)):
        text = json.dumps(drawn(chart)).replace("<b>&lt;b", "").replace("b&gt;</b>", "")
        assert "<b>" not in text
        assert "<i>" not in text
    alone = msgspec.structs.replace(analysis_of(), variants=("<b>es",))
    (chart,), _ = request_charts([requests([5.0] * 6, "<b>es")], alone)
    assert traces(chart)[0][0] == "&lt;b&gt;es"


def test_effects_stand_in_the_order_of_the_tables_on_a_ratio_scale(record: RunRecord):
    analysis = analyse_run(record)
    throughput, _ = forest_charts(analysis)
    (trace,) = drawn(throughput)["data"]
    effects = [row.comparisons[0] for row in analysis.rows if row.metric == "throughput"]
    for field, ends, sign in (
        ("effect_percent", [0, 0, 0], 0),
        ("low_percent", trace["error_x"]["arrayminus"], -1),
        ("high_percent", trace["error_x"]["array"], 1),
    ):
        found = [x + sign * end for x, end in zip(trace["x"], ends, strict=True)]
        logs = [math.log1p(getattr(one, field) / 100) for one in effects]
        assert found == pytest.approx(logs, abs=2e-5)


def test_the_mean_of_forks_has_its_own_interval(record: RunRecord):
    analysis = analyse_run(record)
    charts = fork_charts(analysis)
    assert len(charts) == len(analysis.rows) == len({chart.key for chart in charts})
    for chart, row in zip(charts, analysis.rows, strict=True):
        mean, dots = drawn(chart)["data"][2:]
        side = row.figures[1]
        assert dots["x"] == pytest.approx(side.values, rel=1e-4)
        low, high = own_interval(side.values)
        assert mean["x"][0] + mean["error_x"]["array"][0] == pytest.approx(high, rel=1e-4)
        assert mean["x"][0] - mean["error_x"]["arrayminus"][0] == pytest.approx(low, rel=1e-4)


@given(st.floats(math.log(1.05), 6.0))
def test_ticks_are_inside_the_axis_apart_from_each_other_and_have_the_middle(reach: float):
    found = _ticks(reach)
    places = found["tickvals"]
    assert "0" in found["ticktext"]
    assert len(places) == len(found["ticktext"])
    assert all(abs(place) <= reach + 1e-5 for place in places)
    assert all(after - before > 0.17 * reach for before, after in itertools.pairwise(places))


# Requests.

FAILED = 3


def analysis_of() -> Analysis:
    forks = tuple(make_fork(name, 0, make_summary("range", 5.0)) for name in ("es", "os"))
    return analyse_run(make_record(plan=make_plan(), forks=forks))


def chart_of(*sources: ForkSource) -> Chart:
    (chart,), absent = request_charts(sources, analysis_of())
    assert absent == ()
    return chart


def requests(
    service_ms: list[float], label: str = "es", block: int = 0, *, warmup: int = 0, **columns: Any
) -> ForkSource:
    """Requests one after the other, the first of them warm-up, in chunks of three."""
    rows = make_samples(service_ms, warmup=np.arange(len(service_ms)) < warmup, **columns)
    starts = range(0, len(service_ms), 3)
    return make_source(
        [{name: values[at : at + 3] for name, values in rows.items()} for at in starts], label, block
    )


def traces(chart: Chart) -> list[tuple[str, list[float], list[float]]]:
    return [(trace["name"], trace["x"], trace["y"]) for trace in drawn(chart)["data"]]


def test_a_point_is_the_median_over_forks_and_the_band_goes_from_the_least_to_the_greatest():
    chart = chart_of(
        requests([9.0, 3.0, 1.0, 1.0, 1.0, 1.0], block=0, warmup=2),
        requests([8.0, 4.0, 2.0, 2.0, 2.0, 2.0], block=1, warmup=2),
        requests([1.0, 5.0, 6.0, 6.0, 6.0, 7.0], block=2, warmup=2),
        requests([5.0, 5.0, 5.0, 5.0, 5.0, 5.0], "os", warmup=2),
    )
    x = [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    highest, lowest = [9.0, 5.0, 6.0, 6.0, 6.0, 7.0], [1.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    assert traces(chart) == [
        ("es", x + x[::-1], highest + lowest[::-1]),
        ("es", x, [8.0, 4.0, 2.0, 2.0, 2.0, 2.0]),
        ("os", x, [5.0] * 6),
    ]
    layout = drawn(chart)["layout"]
    assert [(shape["type"], shape["x0"], shape["x1"]) for shape in layout["shapes"]] == [
        ("rect", -1.5, 0.5),
        ("line", 0.5, 0.5),
    ]
    assert layout["yaxis"]["type"] == "log"
    assert layout["xaxis"]["title"]["text"] == "Request, from the first measured one"
    assert "The shaded part is warm-up" in chart.about
    assert "differ in length" not in chart.about
    assert chart.table is not None
    assert chart.table.texts == (
        ("es", "3", "2", "4", "0", "2.000", "2.000"),
        ("os", "1", "2", "4", "0", "5.000", "5.000"),
    )


def test_requests_that_failed_keep_their_number_and_have_no_point():
    outcome = [0, 0, FAILED, FAILED, 0, 0, 0, 0]
    chart = chart_of(requests([5.0, 5.0, 0.1, 0.1, 5.0, 5.0, 5.0, 6.0], outcome=outcome))
    assert traces(chart) == [
        ("es", [1.0, 2.0], [5.0, 5.0]),
        ("es", [5.0, 6.0, 7.0, 8.0], [5.0, 5.0, 5.0, 6.0]),
    ]
    layout = drawn(chart)["layout"]
    assert layout["xaxis"]["title"]["text"].endswith("; 2 failed or cut off, not drawn")
    assert "shapes" not in layout
    assert [trace["showlegend"] for trace in drawn(chart)["data"]] == [True, False]
    assert chart.table is not None
    assert chart.table.texts[0][4] == "2"
    nothing = chart_of(requests([5.0] * 6), requests([0.1] * 6, "os", outcome=FAILED))
    assert {name for name, _, _ in traces(nothing)} == {"es"}
    assert nothing.table is not None
    assert nothing.table.texts[1] == ("os", "1", "0", "6", "6", "n/a", "n/a")


def test_many_requests_share_a_point_and_warm_up_shares_none_with_measured_ones():
    warm, measured = [9.0] * 7, [1.0, 2.0, 3.0, 4.0, 5.0] * 200
    chart = chart_of(requests(warm + measured, warmup=7))
    ((_, x, y),) = traces(chart)
    assert (x[:4], y[:4]) == ([-6.0, -2.5, 3.5, 9.5], [9.0, 9.0, 2.5, 2.5])
    assert (len(x), x[-1], y[-1]) == (2 + 167, 998.5, 3.5)
    assert drawn(chart)["layout"]["xaxis"]["title"]["text"].endswith("; up to 6 per point")
    assert "of the median of up to 6 successive requests" in chart.about


def test_where_short_forks_have_ended_points_are_of_the_others():
    chart = chart_of(requests([1.0] * 6), requests([3.0] * 9, block=1))
    *_, (_, x, y) = traces(chart)
    assert (x, y) == ([float(n) for n in range(1, 10)], [2.0] * 6 + [3.0] * 3)
    assert "Forks differ in length" in chart.about
    assert drawn(chart)["data"][1]["text"][-1] == "3.000 to 3.000, 1 of 2 forks"


def test_the_order_is_that_of_starts_and_parts_of_an_operation_are_none():
    rows = make_samples([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    parts = make_samples([100.0] * 6, part=1)
    mixed = concatenate([rows, parts])
    order = np.random.default_rng(2).permutation(12)
    chart = chart_of(make_source([{name: values[order] for name, values in mixed.items()}]))
    assert traces(chart) == [("es", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]


def test_few_points_are_no_chart():
    assert request_charts([requests([5.0] * 4)], analysis_of()) == ([], ())
    assert request_charts([requests([5.0] * 9, outcome=FAILED)], analysis_of()) == ([], ())


def test_forks_without_samples_and_damaged_ones_are_named():
    class Damaged:
        def __iter__(self) -> Any:
            yield make_samples([5.0] * 6)
            raise BenchctlError("damaged")

    charts, absent = request_charts(
        [
            requests([5.0] * 6),
            make_source(None, "es", 1, absent="no samples were kept"),
            make_source(Damaged(), "os", 2),
        ],
        analysis_of(),
    )
    assert absent == ("es, fork 1: no samples were kept", "os, fork 2: its samples cannot be read")
    assert {name for name, _, _ in traces(charts[0])} == {"es"}


def sources(record: RunRecord, count: int = 30) -> list[ForkSource]:
    """Every fork of a record with samples of all its tasks."""
    random = np.random.default_rng(1)

    def task(place: int) -> Columns:
        times = random.lognormal(1, 0.3, count)
        return make_samples(times, start_ms=1_000.0 * place, task=place, warmup=np.arange(count) < count // 5)

    return [
        make_source([concatenate([task(n) for n in range(len(fork.summaries))])], fork.variant, fork.block)
        for fork in record.forks
    ]


def test_every_task_has_its_chart_in_the_order_of_the_tables(record: RunRecord):
    charts, _ = request_charts(sources(record), analyse_run(record))
    assert [chart.key for chart in charts] == [
        "requests-0-0-desc-sort-timestamp",
        "requests-0-1-composite-date-histogram-daily",
        "requests-0-2-range",
    ]
    for chart in charts:
        assert json.loads(json.dumps(drawn(chart), allow_nan=False)) == drawn(chart)
        assert chart.table is not None
        assert all(len(line) == len(chart.table.titles) for line in chart.table.lines)


def test_figures_of_a_usual_page_stay_small_and_hidden_tasks_have_none():
    def hidden(summary: TaskSummary, *_: object) -> TaskSummary:
        return msgspec.structs.replace(summary, reported=summary.label == "range")

    record = complete_record(forks=10, edit=hidden)
    (chart,), _ = request_charts(sources(record, 4_000), analyse_run(record))
    assert chart.group == "range"
    assert len(json.dumps(drawn(chart), separators=(",", ":"))) < 70_000


# Looks.

LIGHT_PAPER, DARK_PAPER = "#ffffff", "#14181d"
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


def test_words_of_the_page_stand_out_on_both_papers():
    assert f"--paper: light-dark({LIGHT_PAPER}, {DARK_PAPER})" in text_of(STYLE)
    for line in text_of(STYLE).splitlines():
        name, _, value = line.strip().partition(": light-dark(")
        if name in {"--ink", "--faint", "--link", "--faster", "--slower", "--different"}:
            light, dark = value.removesuffix(");").split(", ")
            assert min(contrast(light, LIGHT_PAPER), contrast(dark, DARK_PAPER)) >= 4.5, name


def test_six_variants_differ_in_each_of_colour_symbol_and_dash():
    for field in VariantStyle.__struct_fields__:
        assert len({getattr(style, field) for style in STYLES}) == len(STYLES)
    assert variant_style(6) == STYLES[0]


@pytest.mark.parametrize(
    ("values", "wide"),
    [([], False), ([0.0], False), ([5.0, 14.0], False), ([0.0, 1.0], False), ([1, 3.1], True)],
)
def test_a_wide_axis_is_logarithmic(values: list[float], *, wide: bool):
    assert (scaled_axis(values).get("type") == "log") == wide

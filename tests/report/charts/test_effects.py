"""What the charts of effects and forks show: `golden/effects.txt` has them scene by scene."""

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from benchctl.report.charts import Chart
from benchctl.report.charts.effects import _ticks, forest_charts, fork_charts
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import own_interval
from benchctl.stats.metrics import metric
from figures import chart_text, drawn
from report.conftest import complete_record

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


def renamed() -> Analysis:
    analysis = analyse_run(complete_record())
    rows = tuple(msgspec.structs.replace(row, label="<a href='x'>x</a>") for row in analysis.rows)
    return msgspec.structs.replace(analysis, rows=rows)


def renamed_variants() -> Analysis:
    analysis = analyse_run(complete_record())
    rows = tuple(
        msgspec.structs.replace(
            row, figures=tuple(msgspec.structs.replace(one, variant="<i>v</i>") for one in row.figures)
        )
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


def with_comparisons(**changes: float | None) -> Analysis:
    analysis = analyse_run(complete_record())
    rows = tuple(
        msgspec.structs.replace(
            row, comparisons=tuple(msgspec.structs.replace(one, **changes) for one in row.comparisons)
        )
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


SCENES: dict[str, Callable[[], Sequence[Chart]]] = {
    "right is faster whichever way a metric counts": lambda: forest_charts(analyse_run(complete_record())),
    "what work takes up is not called fast": lambda: forest_charts(
        analyse_run(complete_record(edit=metered), metrics=CPU_AND_TIME)
    ),
    "every contender has its own colour and mark": lambda: forest_charts(
        analyse_run(complete_record(variants=("es", "os", "noinline")))
    )[:1],
    "a single fork has an effect and no interval": lambda: forest_charts(
        analyse_run(complete_record(forks=1))
    )[:1],
    "one variant has no effects": lambda: forest_charts(analyse_run(complete_record(variants=("es",)))),
    "effects without a place on a ratio scale are left out": lambda: forest_charts(
        with_comparisons(effect_percent=None)
    ),
    "an interval without an end has none": lambda: forest_charts(with_comparisons(low_percent=-100.0))[:1],
    "intervals of many powers of ten run off": lambda: forest_charts(
        with_comparisons(low_percent=-99.9999, high_percent=1e8)
    )[:1],
    "names are text": lambda: forest_charts(renamed())[:1],
    "forks are dots in the order of their blocks": lambda: fork_charts(analyse_run(complete_record()))[:1],
    "a fork without a value is no dot": lambda: fork_charts(analyse_run(complete_record(edit=holed)))[:1],
    "one fork is a dot without interval": lambda: fork_charts(analyse_run(complete_record(forks=1)))[:1],
    "one side cannot do it": lambda: fork_charts(analyse_run(complete_record(edit=unable)))[:1],
    "names of variants are text": lambda: fork_charts(renamed_variants())[:1],
}


def test_every_scene_is_drawn_as_before(request: pytest.FixtureRequest):
    scenes = [
        f"# {name}\n{''.join(map(chart_text, scene())) or chart_text(None)}" for name, scene in SCENES.items()
    ]
    golden.agree(request.config, GOLDEN, "\n".join(scenes))


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

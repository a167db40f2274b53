"""Curves for readers: `golden/report.txt` has tables, plots and what is said of them, scene by scene."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
from benchctl.redline.report import curve_tables, redline_curves
from benchctl.report.charts.plots import forest_charts
from benchctl.report.formats import render, render_screen
from benchctl.report.layout import change_cells, collect_notes, result_tables, value_text
from benchctl.report.numbers import figure
from benchctl.results.figures import CurvePoint, RedlineEnd
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.stats.analyse import analyse
from benchctl.stats.analysis import RedlineCurves
from builders import make_record
from redlines import SEARCH, make_point, redline_fork, redline_plan
from report.conftest import fact_lines

GOLDEN = Path(__file__).parent / "golden" / "report.txt"


def points(capacity: float) -> list[CurvePoint]:
    """An M/M/1-like curve: 5 ms / (1 - load) at every tenth rung."""
    found = []
    for step, rung in enumerate(range(60, 160, 10), 1):
        load = 1.03**rung / capacity
        p90_ms = 5.0 / (1 - load) if load < 1 else 600.0
        verdict = "pass" if p90_ms <= 50 else "fail"
        found.append(make_point(rung, p90_ms, step=step, verdict=verdict))
    return found


def forks(variant: str, capacity: float) -> list[ForkRecord]:
    return [redline_fork(variant, block, capacity * 0.9, points(capacity)) for block in range(3)]


SIDES = {"es": forks("es", 100.0), "os": forks("os", 60.0)}


def curves(*alone: CurvePoint, search: RedlineSpec = SEARCH) -> RedlineCurves:
    """Those of both variants, or of one whose forks have a step each."""
    if not alone:
        return redline_curves(SIDES, search)
    return redline_curves({"es": [redline_fork("es", n, 90.0, [one]) for n, one in enumerate(alone)]}, search)


def shown(found: RedlineCurves) -> list[str]:
    lines = []
    for table in curve_tables(found):
        lines += [table.title, *(" | ".join(row) for row in (table.titles, *table.texts))]
    return lines


def first_lines(search: RedlineSpec, loads: Sequence[float | None], **changes: Any) -> list[str]:
    """The verdict, which every form begins with."""
    found = [redline_fork("es", block, load, **changes) for block, load in enumerate(loads)]
    plan = redline_plan(search)
    analysis = analyse({"es": found}, plan)
    texts = (
        render_screen(analysis, plan=plan, width=200).plain,
        render(analysis, "text", plan=plan, width=200),
        render(analysis, "markdown", plan=plan),
    )
    return [next(line for line in text.splitlines() if "red-line of" in line) for text in texts]


def sought(plan: Plan) -> list[str]:
    """What the facts of a run say of its search."""
    return [line for line in fact_lines(make_record(plan=plan)) if line.startswith("  ")][:4]


SCENES: dict[str, Callable[[], list[str]]] = {
    "two variants": lambda: shown(curves()),
    "a single point": lambda: shown(curves(make_point(155, 50.0))),
    "a range over forks": lambda: shown(curves(*(make_point(155, p90) for p90 in (40.0, 44.0, 48.0)))),
    "a step that the driver spoilt": lambda: shown(curves(make_point(155, 70.0, verdict="driver-limited"))),
    "an objective beside the usual percentiles": lambda: shown(
        curves(make_point(155, 40.0), search=msgspec.structs.replace(SEARCH, percentile=99.9))
    ),
    "a search for a rate": lambda: sought(redline_plan()),
    "an interval": lambda: first_lines(SEARCH, (100.0, 102.0, 98.0)),
    "one fork": lambda: first_lines(SEARCH, (100.0,)),
    "none": lambda: first_lines(SEARCH, (None, None), redline_text="p90 is 61 ms"),
    "no fork": lambda: first_lines(SEARCH, ()),
    "the most that was tried": lambda: first_lines(SEARCH, (9.0, 8.0), redline_end="max-rate"),
    "the driver was the limit": lambda: first_lines(SEARCH, (9.0, 8.0), redline_end="driver-limited"),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = (
        "\n".join([f"# {name}", *(line.rstrip() for line in scene()), ""]) for name, scene in SCENES.items()
    )
    golden.agree(request.config, GOLDEN, "\n".join(texts))


def test_every_format_holds_the_comparison_and_the_curve():
    plan = redline_plan()
    analysis = analyse(SIDES, plan)
    text = render(analysis, "text", plan=plan)
    assert "redline-range: red-line, queries/s (higher is better)" in text
    assert "os: range by offered rate" in text
    assert "os: range by offered rate" in render(analysis, "markdown", plan=plan)
    assert '"rung": 60' in render(analysis, "json")
    assert ",redline,queries/s,True," in render(analysis, "csv")


def test_a_lower_bound_is_marked_in_the_table():
    bounded = [
        redline_fork("es", block, 90.0 + block, redline_end="max-rate", redline_text="met at 92/s")
        for block in range(3)
    ]
    text = render(analyse({"es": bounded}, redline_plan()), "text")
    assert ">= 91 " in text
    # What bounds differ by says nothing of what nodes can do.
    assert "CV" not in text
    assert analyse({"es": bounded}, redline_plan()).rows[0].figures[0].cv_percent is None


@pytest.mark.parametrize(
    ("ends", "change"),
    [
        (("found", "found"), "-20.0"),
        (("found", "max-rate"), ">= -20.0"),
        (("max-rate", "found"), "<= -20.0"),
        (("max-rate", "max-rate"), "n/a"),
    ],
)
def test_a_change_from_or_to_a_bound_is_one_without_an_interval(ends: tuple[RedlineEnd, ...], change: str):
    plan = redline_plan()
    sides = {
        name: [redline_fork(name, block, load + block / 10, redline_end=end) for block in range(3)]
        for name, load, end in zip(("es", "os"), (100.0, 80.0), ends, strict=True)
    }
    analysis = analyse(sides, plan)
    (grid,) = result_tables(analysis, collect_notes(analysis))
    assert (grid.texts[0][3], grid.texts[0][4] == "n/a") == (change, "max-rate" in ends)
    (line,) = [
        one for one in render_screen(analysis, plan=plan).plain.splitlines() if one.startswith("range ")
    ]
    assert f" {change}  " in line
    assert bool(forest_charts(analysis)) is ("max-rate" not in ends)


def test_a_search_that_found_nothing_leaves_the_others_and_no_change():
    forks = {
        "es": [redline_fork("es", 0, 38.0), redline_fork("es", 1, 40.0), redline_fork("es", 2, None)],
        "os": [redline_fork("os", block, rate) for block, rate in enumerate((144.0, 436.0, 17.0))],
    }
    row = analyse(forks, redline_plan()).rows[0]
    comparison = row.comparisons[0]
    assert comparison.gapped
    assert comparison.verdict == "insufficient"
    # Of all that were found: what another part of the report says of it, too.
    assert [value_text(side, comparison) for side in row.figures] == [
        figure(side.value) for side in row.figures
    ]
    assert row.figures[1].value == pytest.approx((144 * 436 * 17) ** (1 / 3))
    assert change_cells(comparison, row.figures)[0] == "n/a"

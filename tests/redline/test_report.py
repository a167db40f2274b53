"""Curves for readers: tables and a plot in plain characters."""

from typing import Any

import msgspec
import pytest

from benchctl.redline.judge import redline_curves
from benchctl.redline.report import curve_plot, curve_tables
from benchctl.report.charts.effects import forest_charts
from benchctl.report.facts import objective_text
from benchctl.report.formats import render
from benchctl.report.layout import change_cells, collect_notes, result_tables, value_text
from benchctl.report.numbers import figure
from benchctl.report.screen import render_screen
from benchctl.results.figures import CurvePoint, RedlineEnd
from benchctl.results.model import ForkRecord
from benchctl.results.plan import RedlineSpec
from benchctl.stats.analyse import analyse
from benchctl.stats.parts import RedlineCurves
from benchctl.track.model import Challenge, Task
from builders import make_record
from redlines import SEARCH, make_point, redline_fork, redline_plan
from report.conftest import fact_lines

OVER_FORKS = "median over forks (range)"


def points(capacity: float, *, shift: float = 1.0) -> list[CurvePoint]:
    """An M/M/1-like curve: 5 ms / (1 - load) at every tenth rung."""
    found = []
    for step, rung in enumerate(range(60, 160, 10), 1):
        load = 1.03**rung / capacity
        p90_ms = shift * 5.0 / (1 - load) if load < 1 else 600.0
        verdict = "pass" if p90_ms <= 50 else "fail"
        found.append(make_point(rung, p90_ms, step=step, verdict=verdict))
    return found


def forks(variant: str, capacity: float) -> list[ForkRecord]:
    return [redline_fork(variant, block, capacity * 0.9, points(capacity)) for block in range(3)]


def curves() -> RedlineCurves:
    return redline_curves({"es": forks("es", 100.0), "os": forks("os", 60.0)}, SEARCH)


def test_the_plot_shows_every_variant_and_the_objective():
    assert curve_plot(curves(), 80) == [
        "p90 of latency, ms, by offered rate, 1/s: o es, x os, ? several, - objective",
        "   612.0 |                                                            x       x",
        "         |",
        "         |",
        "         |",
        "         |",
        "         |",
        "         |",
        "   66.18 |",
        "      50 |---------------------------------------------------------------------",
        "         |                                                                    o",
        "         |                                                     x",
        "         |",
        "         |                                             x              o",
        "         |                                      x              o",
        "         |                       x      ?       o      o",
        "   5.209 |?       ?      ?       o",
        "         +---------------------------------------------------------------------",
        "          5.776                           22.28                           85.94",
    ]


def test_the_plot_keeps_to_the_width_and_to_plain_characters():
    for width in (60, 80, 120):
        for line in curve_plot(curves(), width):
            assert len(line) <= width
            assert line.isascii()


def test_a_single_point_and_none_can_be_drawn():
    alone = redline_curves({"es": [redline_fork("es", 0, 100.0, [make_point(155, 50.0)])]}, SEARCH)
    assert sum(line.count("o") for line in curve_plot(alone, 80)[1:]) == 1
    assert curve_plot(redline_curves({"es": []}, SEARCH), 80) == []


def test_every_rate_is_a_line_of_its_variants_table():
    first, second = curve_tables(curves())
    assert first.title == f"es: range by offered rate; latency in ms, {OVER_FORKS}"
    assert first.titles == ("Rate/s", "Achieved/s", "p50", "p90", "p99", "Met", "Forks")
    assert first.texts[0] == ("5.892", "5.892", "2.657", "5.313", "10.63", "3 of 3", "3")
    assert second.texts[-1][5] == "0 of 3"


def test_a_range_over_forks_stands_behind_its_median():
    forks = [
        redline_fork("es", block, 100.0, [make_point(155, p90_ms)])
        for block, p90_ms in enumerate((40.0, 44.0, 48.0))
    ]
    (grid,) = curve_tables(redline_curves({"es": forks}, SEARCH))
    assert grid.texts[0][3] == "44.00 (40.00-48.00)"


def test_a_step_that_the_driver_spoilt_is_named_in_the_table():
    spoilt = [make_point(155, 70.0, verdict="driver-limited")]
    (grid,) = curve_tables(redline_curves({"es": [redline_fork("es", 0, 90.0, spoilt)]}, SEARCH))
    assert grid.texts[0][5] == "0 of 1, driver-limited"


def test_an_objective_beside_the_usual_percentiles_has_a_column():
    search = type(SEARCH)(
        **{name: getattr(SEARCH, name) for name in SEARCH.__struct_fields__} | {"percentile": 99.9}
    )
    found = redline_curves({"es": forks("es", 100.0)}, search)
    assert curve_tables(found)[0].titles[2:6] == ("p50", "p90", "p99", "p99.9")
    assert objective_text(search) == "p99.9 of latency within 50 ms"


def test_every_format_holds_the_comparison_and_the_curve():
    sides = {"es": forks("es", 100.0), "os": forks("os", 60.0)}
    plan = redline_plan()
    analysis = analyse(sides, plan)
    text = render(analysis, "text", plan=plan)
    assert "redline-range: red-line, queries/s (higher is better)" in text
    assert "os: range by offered rate" in text
    assert "o es, x os" in text
    markdown = render(analysis, "markdown", plan=plan)
    assert "```text" in markdown
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
    assert f"{change}{'' if change == 'n/a' else '%'}  " in line
    assert bool(forest_charts(analysis)) is ("max-rate" not in ends)


CLIENTS = msgspec.structs.replace(SEARCH, by="clients", clients=64)


@pytest.mark.parametrize(
    ("search", "found", "changes", "said"),
    [
        (SEARCH, (100.0, 102.0, 98.0), {}, "es 99.99 queries/s (95% interval 95.14 to 105.1)"),
        (SEARCH, (100.0,), {}, "es 100.0 queries/s (one fork: no interval)"),
        (SEARCH, (None, None), {"redline_text": "p90 is 61 ms"}, "es none in 2 of 2 forks"),
        (SEARCH, (), {}, "es n/a"),
        (SEARCH, (9.0, 8.0), {"redline_end": "max-rate"}, "es at least 8.485 queries/s (no more was tried)"),
        (
            SEARCH,
            (9.0, 8.0),
            {"redline_end": "driver-limited", "redline_unit": "queries/s"},
            "es at least 8.485 queries/s (the driver was the limit)",
        ),
        (
            msgspec.structs.replace(SEARCH, by="factor"),
            (1.5, 1.5),
            {"redline_unit": "x"},
            "es 1.500x (the same in all 2 forks)",
        ),
        (
            CLIENTS,
            (12.0, 12.0, 12.0),
            {"redline_unit": "clients", "throughput_per_s": 836.1},
            (
                "es 12 clients (the same in all 3 forks), 836.1 queries/s (836.1 to 836.1) in the last step "
                "there"
            ),
        ),
    ],
)
def test_the_red_line_comes_first_with_its_interval_or_as_a_bound(
    search: RedlineSpec, found: tuple[float | None, ...], changes: dict[str, Any], said: str
):
    forks = [redline_fork("es", block, load, **changes) for block, load in enumerate(found)]
    plan = redline_plan(search)
    analysis = analyse({"es": forks}, plan)
    for text in (
        render_screen(analysis, plan=plan, width=200).plain,
        render(analysis, "text", plan=plan, width=200),
        render(analysis, "markdown", plan=plan),
    ):
        (line,) = [line for line in text.splitlines() if line.startswith(("VERDICT", "**Verdict"))]
        assert f": {said}." in line


def test_the_red_line_stays_on_the_screen_and_its_curve_gives_way():
    twelve = [
        redline_fork(
            "es", block, 12.0, points(100.0), redline_unit="clients", throughput_per_s=800.0 + block
        )
        for block in range(3)
    ]  # fmt: skip
    plan = redline_plan(CLIENTS)
    analysis = analyse({"es": twelve}, plan)
    screen = render_screen(analysis, plan=plan, lines=24).plain
    assert len(screen.splitlines()) <= 24
    assert "red-line, clients" in screen
    assert "throughput, queries/s" in screen
    tall = render_screen(analysis, plan=plan, lines=40).plain
    assert "p90 of latency, ms, by clients" in tall
    assert len(tall.splitlines()) <= 40
    assert "red-line, clients" in render_screen(analysis, plan=plan, lines=10).plain


def test_a_node_that_still_got_faster_while_clients_were_searched_for_is_no_settled_one():
    def fork(block: int, *achieved: float) -> ForkRecord:
        steps = [
            make_point(11, 40.0, step=step, rate_per_s=12.0, achieved_per_s=one)
            for step, one in enumerate(achieved, 1)
        ]
        return redline_fork("es", block, 12.0, steps, redline_unit="clients", throughput_per_s=achieved[-1])

    plan = redline_plan(CLIENTS)
    rising = {"es": [fork(0, 400.0, 600.0, 820.0), fork(1, 400.0, 800.0), fork(2, 300.0, 700.0)]}
    analysis = analyse(rising, plan)
    (doubt,) = [one for one in analysis.rows[0].caveats if one.code == "not-steady"]
    assert doubt.text == (
        "not warmed up: es got 105% more done in its last step than in its first with as many clients; "
        "raise --warm-up"
    )
    assert analysis.rows[0].figures[0].steady.trend == "not warmed up"
    screen = render_screen(analysis, plan=plan).plain
    assert "not warmed up: forks were still getting faster" in screen
    assert "Next (nodes changed while it searched)" in screen
    assert "--warm-up 30 " in screen
    settled = {"es": [fork(0, 400.0, 430.0), fork(1, 400.0, 380.0), fork(2, 500.0)]}
    assert not any(one.code == "not-steady" for one in analyse(settled, plan).rows[0].caveats)


def test_the_proposed_command_repeats_the_search():
    plan = redline_plan()
    text = render(analyse({"es": forks("es", 100.0), "os": forks("os", 60.0)}, plan), "json")
    assert text
    proposal = render(
        analyse({"es": forks("es", 100.0), "os": forks("os", 60.0)}, plan), "markdown", plan=plan
    )
    assert (
        "`benchctl redline --operation range --slo p90=50ms --clients 16 --schedule poisson --warm-up 10 "
        "--settle 2 --step-time 5 --tolerance 3% --docs 1m --unpaired --heap 512m --forks 6`"
    ) in proposal.replace("\\", "")


def test_the_facts_of_a_run_say_what_was_searched_for():
    lines = fact_lines(make_record(plan=redline_plan()))
    assert "  red-line of range on a fresh node a fork: p90 of latency within 50 ms" in lines
    assert (
        "  10 s closed loop, then 5 s a rate after 2 s, poisson arrivals, 16 clients, rates 3% apart" in lines
    )
    assert not any("challenges:" in line for line in lines)


FACTOR = msgspec.structs.replace(SEARCH, by="factor", operation="mixed", tasks=("range",))
MIXED = Challenge(
    "redline-mixed",
    (
        Task("range", target_throughput=20.0),
        Task("bulk", name="send", target_interval=0.5, per_request=100.0),
    ),
)


def test_a_factor_says_which_rates_it_means():
    plan = redline_plan(FACTOR, schedules=(MIXED,), sources={"mixed": "/c/mixed.json"})
    sides = {
        variant: [
            redline_fork(variant, block, factor, points(capacity), redline_unit="x")
            for block in range(3)
        ]
        for variant, factor, capacity in (("es", 2.5, 100.0), ("os", 1.25, 60.0))
    }  # fmt: skip
    analysis = analyse(sides, plan)
    assert analysis.redline is not None
    rates, first, _ = curve_tables(analysis.redline)
    assert rates.titles == ("Task", "Unit", "As written: 1x", "es: 2.5x", "os: 1.25x")
    assert rates.texts[0] == ("range", "queries/s", "20.00", "50.00", "25.00")
    assert rates.texts[1] == ("send", "units/s", "200.0", "500.0", "250.0")
    assert first.title == (
        f"es: mixed by factor of all rates; latency of the task closest to its limit in ms, {OVER_FORKS}"
    )
    assert first.titles[:2] == ("Factor", "Achieved")
    assert curve_plot(analysis.redline, 80)[0].startswith("p90 of latency, ms, by factor of all rates: ")
    screen = render_screen(analysis, plan=plan, width=100).plain
    assert "es: 2.5x: range 50.00 queries/s, send 500.0 units/s" in screen
    assert "mixed" in screen
    assert "benchctl redline --challenge /c/mixed.json --task range --slo p90=50ms --warm-up 10" in " ".join(
        screen.replace("\\", "").split()
    )
    lines = fact_lines(make_record(plan=plan))
    assert (
        "  red-line of all rates of challenge mixed on a fresh node a fork: "
        "p90 of latency within 50 ms (range)"
    ) in lines
    assert "  10 s warm-up, then 5 s a factor after 2 s, factors 3% apart" in lines
    for markup in ("markdown", "csv", "json"):
        assert "mixed" in render(analysis, markup, plan=plan)


def test_clients_are_called_what_they_are():
    clients = msgspec.structs.replace(SEARCH, by="clients", clients=64)
    twelve = [redline_fork("es", 0, 12.0, [make_point(11, 40.0, rate_per_s=12.0)])]
    (grid,) = curve_tables(redline_curves({"es": twelve}, clients))
    assert grid.titles[:2] == ("Clients", "Throughput/s")
    assert grid.texts[0][0] == "12"
    lines = fact_lines(make_record(plan=redline_plan(clients)))
    assert (
        "  10 s warm-up, then 5 s a step after 2 s in a closed loop, 1 to 64 clients, 3% apart or by one"
        in lines
    )


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

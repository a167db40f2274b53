"""What the driver did is a table beside the results; where it decided on them, every table says so."""

import csv
import io
from collections.abc import Callable

import msgspec

from benchctl.report.details import driver_table
from benchctl.report.facts import calibration_lines, fact_sections
from benchctl.report.formats import Document, document, render
from benchctl.results.figures import Calibration, PacedLag, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from builders import make_driver

CALIBRATION = Calibration(
    error_p50_ns=41_000,
    error_p99_ns=95_000,
    cpu_ns_per_request=28_400,
    one_client_per_s=14_800.4,
    clients=8,
    clients_per_s=30_120.0,
    paced=(PacedLag(100.0, 30_000, 160_000, 412_000), PacedLag(1000.0, 22_000, 140_000, 1_530_000)),
    seconds=2.9,
)


def driven(summary: TaskSummary, variant: str, block: int):
    """A quiet driver, but for `range`: its clients paused on os, else it was as busy as it can be."""
    driver = make_driver(offered_per_s=summary.throughput_per_s, gap_s=0.008 + 0.001 * block)
    if summary.label == "range":
        changes = {"think_share": 0.08} if variant == "os" else {"cpu_share": 0.9}
        driver = msgspec.structs.replace(
            driver, clients=8, lag_p50_ns=260_000, lag_p99_ns=310_000, lag_max_ns=14_000_000, **changes
        )
    return msgspec.structs.replace(summary, driver=driver)


def test_results_alone_have_no_table_of_the_driver_but_name_what_it_limited(build: Callable[..., RunRecord]):
    text = render(analyse_run(build(edit=driven)), width=120)
    assert "Driver:" not in text
    _, _, throughput, service_time, _ = text.split("\n\n", 4)
    for table in (throughput, service_time):
        line = next(line for line in table.splitlines() if line.startswith("range"))
        assert "driver-limited" in line


def test_json_and_csv_say_it_for_each_side(build: Callable[..., RunRecord]):
    analysis = analyse_run(build(edit=driven))
    decoded = msgspec.json.decode(render(analysis, "json"), type=Document)
    assert decoded == document(analysis, ())
    assert [(row.label, row.variant, row.load) for row in decoded.drivers][-2:] == [
        ("range", "es", ("driver-limited",)),
        ("range", "os", ()),
    ]
    rows = [row for row in decoded.rows if row.label == "range"]
    assert all([figures.load for figures in row.figures] == [("driver-limited",), ()] for row in rows)
    lines = list(csv.DictReader(io.StringIO(render(analysis, "csv"))))
    assert {(one["load_baseline"], one["load_contender"]) for one in lines if one["label"] != "range"} == {
        ("", "")
    }
    (throughput, _) = [one for one in lines if one["label"] == "range"]
    assert (throughput["load_baseline"], throughput["load_contender"]) == ("driver-limited", "")
    assert "driver-limited" in throughput["caveats"].split()
    assert throughput["verdict"] == "n/a"


def test_old_records_have_no_table_of_the_driver(record: RunRecord):
    assert driver_table(analyse_run(record)) is None
    assert "Driver:" not in render(analyse_run(record), "text", details=True)


def test_unknown_figures_are_not_available_and_long_lags_have_no_decimals(build: Callable[..., RunRecord]):
    def unknown(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        driver = make_driver(
            gap_s=None, think_share=None, cpu_share=None, offered_per_s=None, lag_p99_ns=1_234_000_000
        )
        if variant == "os":
            driver = msgspec.structs.replace(driver, lag_p50_ns=None, lag_p99_ns=None, lag_max_ns=None)
        return msgspec.structs.replace(summary, driver=driver)

    grid = driver_table(analyse_run(build(edit=unknown)))
    assert grid is not None
    assert grid.texts[0][2:] == ("n/a", "0.040", "1,234", "0.400", "n/a", "n/a", "")
    assert grid.texts[1][2:] == ("n/a",) * 6 + ("",)


def test_the_rate_stands_before_its_target_and_processes_before_their_share(build: Callable[..., RunRecord]):
    def throttled(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        driver = make_driver(offered_per_s=99.8, possible_per_s=100.0, cpu_share=0.25, workers=2)
        return msgspec.structs.replace(summary, driver=driver)

    record = build(edit=throttled)
    (challenge,) = record.plan.schedules
    tasks = tuple(msgspec.structs.replace(task, target_throughput=100.0) for task in challenge.schedule)
    plan = msgspec.structs.replace(
        record.plan, schedules=(msgspec.structs.replace(challenge, schedule=tasks),)
    )
    grid = driver_table(analyse_run(msgspec.structs.replace(record, plan=plan)))
    assert grid is not None
    assert (grid.texts[0][2], grid.texts[0][6]) == ("99.80/100", "2 x 25.0%")


def test_a_calibration_is_part_of_the_facts_where_there_is_one(record: RunRecord):
    assert tuple(calibration_lines(None)) == ()
    assert "Driver floor" not in [section.heading for section in fact_sections(record)]
    measured = msgspec.structs.replace(record, calibration=CALIBRATION)
    lines = next(one.lines for one in fact_sections(measured) if one.heading == "Driver floor")
    assert lines == (
        "service time is overstated by 41 us (p50), 95 us (p99); a request costs 28 us of CPU",
        "at most 14,800 requests/s with 1 client, 30,120 requests/s with 8",
        "open loop at 100/s: sent late by 30 us (p50), 160 us (p99), 412 us (most)",
        "open loop at 1000/s: sent late by 22 us (p50), 140 us (p99), 1,530 us (most)",
    )

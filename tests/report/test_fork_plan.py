"""The table of `benchctl plan` in all its forms."""

import csv
import io

import msgspec
import pytest

from benchctl.report.fork_plan import render_fork_plan
from benchctl.stats.forecast import Forecast
from benchctl.stats.metrics import MetricKey
from benchctl.stats.outlook import SCHEMA_VERSION, ForkPlan, Need, Prospect, Requirement
from report.html.outline import outline


def need(forks: int, cv_percent: float = 10.0, seconds: float | None = None) -> Need:
    return Need(cv_percent, Forecast(forks, forks - 10, forks + 20, 100_000, 1.0), seconds)


ASSUMED = (need(18, 5.0), need(148, 15.0))
PILOT = "benchctl run --challenge c --forks 5"


def requirement(task: int, label: str, metric: MetricKey, forks: int, contender: str = "os") -> Requirement:
    prospect = Prospect(0, task, label, metric, "es", contender, 0.1, 18.0, "same")
    return Requirement(prospect, need(forks, seconds=forks * 36.0), 3.0)


def fork_plan(*requirements: Requirement, **changes: object) -> ForkPlan:
    base = ForkPlan(
        schema_version=SCHEMA_VERSION,
        effect_percent=5.0,
        power_percent=80.0,
        paired=False,
        requirements=requirements,
        unknown=(),
        earlier_forks=20,
        runs=("a",),
        block_s=36.0,
        assumed=ASSUMED,
        command="benchctl run --challenge c --forks 69",
    )
    return msgspec.structs.replace(base, **changes)


KNOWN = fork_plan(requirement(0, "sort", "throughput", 30), requirement(1, "range", "service_time_p90", 69))


def test_known_spreads_give_forks_and_time():
    assert render_fork_plan(KNOWN, width=100) == (
        "Forks a side for 5% (80% power; a range that holds 80%), from 20 earlier forks on this machine\n"
        "Operation    Metric            CV of forks   Forks a side         Time\n"
        "──────────────────────────────────────────────────────────────────────\n"
        "sort         throughput              10.0%  30 (20 to 50)  18 min 00 s\n"
        "range        p90 service time        10.0%  69 (59 to 89)  41 min 24 s\n"
        "all of them                                 69 (59 to 89)  41 min 24 s\n"
        "\n"
        "Found is faster or slower, with p adjusted for the other rows of the metric.\n"
        "To measure it:\n"
        "  benchctl run --challenge c --forks 69\n"
    )


@pytest.mark.parametrize(("forks", "offered"), [(4, True), (80, False)])
def test_cpu_of_the_node_is_offered_where_it_takes_fewer_forks(forks: int, *, offered: bool):
    found = msgspec.structs.replace(KNOWN, beside=(requirement(1, "range", "cpu", forks),))
    text = render_fork_plan(found, width=300)
    assert (
        "CPU per operation, which is compared beside these, takes 4 forks a side instead of 69" in text
    ) == offered


def test_without_earlier_runs_the_spreads_are_said_to_be_assumed():
    text = render_fork_plan(fork_plan(earlier_forks=0, runs=(), block_s=None, command=PILOT), width=100)
    assert text == (
        "Forks a side for 5% (80% power; a range that holds 80%) at CVs that are ASSUMED, not measured\n"
        "Assumed CV      Forks a side\n"
        "────────────────────────────\n"
        "      5.0%      18 (8 to 38)\n"
        "     15.0%  148 (138 to 168)\n"
        "\n"
        "No earlier run of this on this machine says how much its forks differ.\n"
        "First measure a few forks, then ask again:\n"
        "  benchctl run --challenge c --forks 5\n"
    )


def test_what_rests_on_other_sizes_or_on_nothing_is_said():
    other = msgspec.structs.replace(KNOWN.requirements[0].prospect, match="similar")
    rows = (msgspec.structs.replace(KNOWN.requirements[0], prospect=other), KNOWN.requirements[1])
    untimed = [
        msgspec.structs.replace(one, need=msgspec.structs.replace(one.need, seconds=None)) for one in rows
    ]
    text = render_fork_plan(fork_plan(*untimed, unknown=("c: terms",), block_s=None), width=120)
    assert "* 10.0%" in text
    assert "* from runs of the same task with other sizes" in text
    assert "no earlier run has them: c: terms" in text
    assert "How long a fork takes is not known" in text
    assert "Time" not in text
    assert "* 10.0%" not in render_fork_plan(KNOWN)


def test_the_most_forks_that_are_looked_for_are_no_answer():
    found = requirement(0, "sort", "throughput", 100)
    for chance, hardly in ((0.4, False), (0.05, True)):
        never = Need(10.0, Forecast(None, 400, None, 100_000, chance), 3_600_000.0)
        text = render_fork_plan(fork_plan(msgspec.structs.replace(found, need=never)), width=120)
        assert "over 100,000 (400 or more)  over 1000 h 00 min" in text
        assert ("Hardly to be found within 100,000: sort" in text) == hardly


def test_a_difference_within_the_margin_is_said_to_be_different_at_most():
    text = render_fork_plan(KNOWN, width=300)
    assert "can only be called different" not in text
    within = [msgspec.structs.replace(one, margin_percent=5.0) for one in KNOWN.requirements[1:]]
    text = render_fork_plan(fork_plan(KNOWN.requirements[0], *within), width=300)
    assert "5% is not beyond the margin (p90 service time 5%): it can only be called different" in text
    assert "Found is faster or slower" in text
    assert "Found is faster or slower" not in render_fork_plan(fork_plan(*within), width=300)


def test_pairs_and_several_contenders_have_words_and_a_column():
    rows = [requirement(0, "sort", "throughput", 30, name) for name in ("os", "es-again")]
    text = render_fork_plan(fork_plan(*rows, paired=True), width=120)
    assert "Pairs for 5%" in text
    assert "Variant" in text
    assert "es-again" in text


def test_tasks_of_several_challenges_are_told_apart():
    rows = [
        msgspec.structs.replace(
            one, prospect=msgspec.structs.replace(one.prospect, schedule=place, challenge=name)
        )
        for place, name in enumerate(("short", "long"))
        for one in (requirement(0, "range", "throughput", 30),)
    ]
    lines = render_fork_plan(fork_plan(*rows), width=120).splitlines()
    assert any(line.startswith("Challenge  Operation") for line in lines)
    assert [line.split()[:2] for line in lines if "throughput  " in line] == [
        ["short", "range"],
        ["long", "range"],
    ]
    assert "Challenge" not in render_fork_plan(KNOWN)
    table = csv.DictReader(io.StringIO(render_fork_plan(fork_plan(*rows), "csv")))
    assert [row["challenge"] for row in table] == ["short", "long"]


def test_markdown_is_a_table_and_the_command_is_code():
    text = render_fork_plan(KNOWN, "markdown")
    assert "| Operation | Metric | CV of forks | Forks a side | Time |" in text
    assert "- To measure it: `benchctl run --challenge c --forks 69`" in text


def test_json_reads_back_and_csv_has_a_line_a_row():
    assert msgspec.json.decode(render_fork_plan(KNOWN, "json"), type=ForkPlan) == KNOWN
    rows = list(csv.DictReader(io.StringIO(render_fork_plan(KNOWN, "csv"))))
    assert [(row["label"], row["forks"], row["forks_high"]) for row in rows] == [
        ("sort", "30", "50"),
        ("range", "69", "89"),
    ]
    assert rows[0]["seconds"] == "1080.0"
    nothing = fork_plan(block_s=None, command=PILOT)
    assumed = list(csv.DictReader(io.StringIO(render_fork_plan(nothing, "csv"))))
    assert [(row["match"], row["cv_percent"], row["forks"]) for row in assumed] == [
        ("assumed", "5.0", "18"),
        ("assumed", "15.0", "148"),
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_it_may_be(width: int):
    assert max(map(len, render_fork_plan(KNOWN, width=width).splitlines())) <= width


def test_a_page_has_the_tables_the_sentences_and_the_command():
    hostile = "</td><script>alert(1)</script>"
    page = outline(render_fork_plan(fork_plan(requirement(0, hostile, "throughput", 30)), "html"))
    assert (len(page.all("table")), page.all("script")) == (1, [])
    assert page.all("th", scope="row")[0].text == hostile
    assert [text for _, text in page.headings()] == ["Forks for a difference of 5%", "To measure it"]
    assert [element.text for element in page.all("pre")] == ["benchctl run --challenge c --forks 69"]
    assert "Found is faster or slower" in page.all("main")[0].text

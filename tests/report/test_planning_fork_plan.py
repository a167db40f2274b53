"""The table of `benchctl plan` in all its forms."""

import csv
import io
from pathlib import Path

import msgspec
import pytest

import golden
from benchctl.report.planning import render_fork_plan
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


def similar() -> ForkPlan:
    """What rests on other sizes or on nothing, and takes nobody knows how long."""
    other = msgspec.structs.replace(KNOWN.requirements[0].prospect, match="similar")
    rows = (msgspec.structs.replace(KNOWN.requirements[0], prospect=other), KNOWN.requirements[1])
    untimed = [
        msgspec.structs.replace(one, need=msgspec.structs.replace(one.need, seconds=None)) for one in rows
    ]
    return fork_plan(*untimed, unknown=("c: terms",), block_s=None)


def never(chance: float) -> ForkPlan:
    need = Need(10.0, Forecast(None, 400, None, 100_000, chance), 3_600_000.0)
    return fork_plan(msgspec.structs.replace(requirement(0, "sort", "throughput", 100), need=need))


def beside(forks: int) -> ForkPlan:
    return msgspec.structs.replace(KNOWN, beside=(requirement(1, "range", "cpu", forks),))


WITHIN = msgspec.structs.replace(KNOWN.requirements[1], margin_percent=5.0)
PAIRS = [requirement(0, "sort", "throughput", 30, name) for name in ("os", "es-again")]
CHALLENGES = [
    msgspec.structs.replace(
        one, prospect=msgspec.structs.replace(one.prospect, schedule=place, challenge=name)
    )
    for place, name in enumerate(("short", "long"))
    for one in (requirement(0, "range", "throughput", 30),)
]
SCENES: dict[str, ForkPlan] = {
    "known spreads": KNOWN,
    "CPU takes fewer forks": beside(4),
    "CPU takes more": beside(80),
    "no earlier run": fork_plan(earlier_forks=0, runs=(), block_s=None, command=PILOT),
    "other sizes, and a task that is unknown": similar(),
    "beyond the most that is looked for": never(0.4),
    "hardly ever": never(0.05),
    "one is within its margin": fork_plan(KNOWN.requirements[0], WITHIN),
    "all are": fork_plan(WITHIN),
    "pairs and several contenders": fork_plan(*PAIRS, paired=True),
    "several challenges": fork_plan(*CHALLENGES),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = [f"# {name}\n{render_fork_plan(scene, width=120)}" for name, scene in SCENES.items()]
    texts += [f"# Markdown\n{render_fork_plan(KNOWN, 'markdown')}"]
    golden.agree(request.config, Path(__file__).parent / "golden" / "fork_plan.txt", "\n".join(texts))


def test_json_reads_back_and_csv_has_a_line_a_row():
    assert msgspec.json.decode(render_fork_plan(KNOWN, "json"), type=ForkPlan) == KNOWN
    rows = list(csv.DictReader(io.StringIO(render_fork_plan(KNOWN, "csv"))))
    assert [(row["label"], row["forks"], row["forks_high"]) for row in rows] == [
        ("sort", "30", "50"),
        ("range", "69", "89"),
    ]
    assert rows[0]["seconds"] == "1080.0"
    table = csv.DictReader(io.StringIO(render_fork_plan(fork_plan(*CHALLENGES), "csv")))
    assert [row["challenge"] for row in table] == ["short", "long"]
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
    assert [text for _, text in page.headings()] == ["Forks for a difference of 5%"]
    assert [element.text for element in page.all("pre")] == ["benchctl run --challenge c --forks 69"]
    assert "Found is faster or slower" in page.all("main")[0].text

"""What is said of index builds: headline, verdict, tables, every format, the screen and `show --host`."""

import csv
import io
import json

import msgspec

from benchctl.report.facts import fact_sections
from benchctl.report.formats import render
from benchctl.report.html.page import render_page, run_subject
from benchctl.report.layout import baseline_of
from benchctl.report.planning import next_command
from benchctl.report.screen import render_screen
from benchctl.report.sentences import headline, verdict
from benchctl.report.table import Format
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.decisions import gate
from builders import ES, make_fork, make_plan, make_summary
from made_builds import builds, built, built_record


def side(seconds: float, size: int):
    wobble = (1.0, 1.01, 0.99, 1.005)
    return tuple(built(seconds * by, int(size * by**0.1), took_s=9.0 + seconds * by / 3) for by in wobble)


RECORD = built_record(es=side(10.0, 2_000_000), os=side(20.0, 2_002_000)[::-1])
FOUND = analyse_run(RECORD)


def lines_of(record: RunRecord, heading: str) -> list[str]:
    (found,) = (one.lines for one in fact_sections(record) if one.heading == heading)
    return list(found)


def test_a_run_that_only_built_has_a_headline_verdicts_and_a_table():
    """`: os vs es (baseline), 0 forks each` and `os vs es, 0 tasks: .` is what it was."""
    assert (
        headline(FOUND)
        == "index builds: os 2.11.0 vs es 8.11.0 (baseline), 4 index builds each, 1m documents"
    )
    assert verdict(FOUND) == (
        "Index builds of os against es: slower? in docs/s (-50.0%) and "
        "force-merge (+100.0%); equal? (misses 53%) in size. Provisional: fewer than 5 index builds per "
        "variant."
    )
    shown = render_screen(FOUND, plan=RECORD.plan).plain
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("docs/s "))
    assert row == ["docs/s", "99.88", "49.94", "-50.0%", "-51..-49%", "<0.001", "SLOWER?"]
    assert "Next" not in shown
    assert next_command(FOUND, RECORD.plan) is None
    assert lines_of(RECORD, "Run")[1] == "4 index builds of every variant, and no forks"


def test_points_of_a_sweep_have_the_baseline_of_their_own():
    swept = msgspec.structs.replace(FOUND, variants=("es.a", "es", "os"))
    assert "Index builds of os against es: " in verdict(swept)
    assert baseline_of(swept.rows) == "es"
    apart = [msgspec.structs.replace(one, baseline="es.a") for one in FOUND.rows[0].comparisons]
    assert (
        baseline_of([*FOUND.rows, msgspec.structs.replace(FOUND.rows[0], comparisons=apart)]) == "the first"
    )


def test_builds_from_the_cache_are_marked_on_the_first_screen():
    shown = render_screen(analyse_run(built_record(es=builds(10.0, 10.1), os=builds(9.0, 9.1, cached=True))))
    assert "index builds from the cache" in shown.plain
    assert "from the cache" not in render_screen(FOUND).plain


def test_one_variant_has_its_builds_alone():
    found = analyse_run(built_record({"variants": (ES,)}, es=builds(10.0, 10.1, 9.9)))
    shown = render_screen(found).plain
    assert "index builds: es 8.11.0, 3 index builds" in shown
    assert "CV of builds" in shown
    assert "| size, MB | 2.000 | 0.0% |" in render(found, "markdown")


def test_every_format_has_the_builds():
    rows = [
        (row["metric"], row["level"], row["comparisons"][0]["replicate"])
        for row in json.loads(render(FOUND, "json", records=[RECORD]))["rows"]
    ]
    assert rows[0] == ("build_rate", "build", "build")
    lines = list(csv.DictReader(io.StringIO(render(FOUND, "csv"))))
    assert [line["metric"] for line in lines] == ["build_rate", "force_merge", "index_size"]
    assert lines[0]["units_baseline"] == "4"
    formats: tuple[Format, ...] = ("text", "markdown", "junit", "github")
    for kind in formats:
        assert "docs/s" in render(FOUND, kind)
    page = render_page(run_subject(RECORD, FOUND))
    assert "<title>index builds: es and os" in page
    assert "4 index builds of es, 4 index builds of os on host" in page
    assert "paired t over builds, which were made in turns" in page


def test_beside_forks_they_are_on_the_first_screen():
    forks = tuple(
        make_fork(name, block, make_summary("range", 3.0 + 0.1 * block), index_build=block)
        for name in ("es", "os")
        for block in range(4)
    )
    plan = msgspec.structs.replace(RECORD.plan, schedules=make_plan().schedules, forks=4)
    record = msgspec.structs.replace(RECORD, plan=plan, forks=forks)
    found = analyse_run(record)
    assert headline(found) == "c: os vs es (baseline), 4 forks each, 4 index builds each, 1m documents"
    assert "index builds" in render_screen(found, plan=plan).plain
    assert verdict(found).startswith("os vs es on range: ")
    assert "Index builds of os against es: slower? in docs/s" in verdict(found)
    asked = msgspec.structs.replace(record, plan=msgspec.structs.replace(plan, metrics="build_rate"))
    further = next_command(analyse_run(asked), msgspec.structs.replace(plan, words=("run",)))
    assert further is not None
    assert "--index-builds 8" in further.line
    asked = msgspec.structs.replace(record, plan=msgspec.structs.replace(plan, metrics="throughput"))
    assert "4 forks each on 4 index builds," in headline(analyse_run(asked))


def test_a_gate_is_about_builds_where_it_is_asked():
    found = analyse_run(RECORD)
    holm = msgspec.structs.replace(found, method="holm")
    assert gate(holm).outcome == "inconclusive"
    assert gate(holm).reasons[0].startswith("os in index build, docs/s: ")

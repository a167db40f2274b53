"""The formats for readers and programs: each over one table, and what CSV and JSON hold in full."""

import csv
import io
from typing import Any, get_args

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.report.formats import Document, document, render, render_screen
from benchctl.report.html.page import render_page, run_subject
from benchctl.report.table import Format
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SCHEMA_VERSION, Analysis
from report.conftest import complete_record, driven


def lines_of(analysis: Analysis) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(analysis, "csv"))))


def unsupported(reason: str) -> Any:
    def edit(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None, unsupported=reason)

    return edit


@pytest.mark.parametrize(
    ("reason", "output_format", "shown"),
    [
        ("a|b\nc <d>", "markdown", r"a\|b c \<d>"),
        ("[bold]no[/bold] [x]", "text", "[bold]no[/bold] [x]"),
    ],
)
def test_reasons_are_shown_as_they_are(reason: str, output_format: Format, shown: str):
    assert shown in render(analyse_run(complete_record(edit=unsupported(reason))), output_format)


def test_csv_has_a_line_for_every_contender_in_full_precision():
    analysis = analyse_run(complete_record(variants=("es", "os", "noinline")))
    lines = lines_of(analysis)
    assert len(lines) == 3 * 2 * 2
    row = analysis.rows[2]
    comparison = row.comparisons[0]
    line = next(one for one in lines if (one["label"], one["contender"]) == ("range", "os"))
    for name in ("effect_percent", "p", "p_adjusted"):
        assert float(line[name]) == getattr(comparison, name)
    assert line["verdict"] == "slower"
    assert [float(value) for value in line["values_baseline"].split()] == list(row.figures[0].values)
    assert line["caveats"].split() == ["answers-differ", *(doubt.code for doubt in analysis.caveats)]


def test_csv_leaves_unknown_values_empty():
    line = lines_of(analyse_run(complete_record(forks=1)))[0]
    assert (line["p"], line["low_percent"], line["mde_percent"]) == ("", "", "")


def kind_of(values: list[str]) -> str:
    """What `pd.read_csv` makes of a column: its default NA words are holes, the rest decides."""
    known = [value for value in values if value not in {"", "n/a", "nan", "NaN", "NA", "None", "null"}]
    if not known:
        return "empty"
    if set(known) <= {"True", "False"}:
        return "bool"
    try:
        return "number" if [float(value) for value in known] else "empty"
    except ValueError:
        return "text"


@pytest.mark.parametrize("forks", [0, 1, 2, 5])
def test_csv_loads_with_clean_types(forks: int):
    analysis = analyse_run(complete_record(variants=("es", "os", "noinline"), forks=forks))
    header, *rows = csv.reader(io.StringIO(render(analysis, "csv")))
    assert len(set(header)) == len(header)
    assert {len(row) for row in rows} <= {len(header)}
    kinds = {name: kind_of([row[place] for row in rows]) for place, name in enumerate(header)}
    flags = {name for name, kind in kinds.items() if kind == "bool"}
    assert flags <= {"higher_is_better", "paired", "judged", "provisional"}
    numbers = ("schedule", "task", "n_baseline", "baseline_value", "effect_percent", "p", "low_percent")
    assert {kinds[name] for name in numbers} <= {"number", "empty"}


def test_csv_of_one_variant_has_its_values():
    def second_fork_failed(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None) if block == 1 else summary

    analysis = analyse_run(complete_record(variants=("es",), edit=second_fork_failed))
    lines = lines_of(analysis)
    assert len(lines) == len(analysis.rows)
    assert {(line["baseline"], line["contender"], line["verdict"]) for line in lines} == {("es", "", "")}
    assert float(lines[0]["baseline_value"]) == analysis.rows[0].figures[0].value
    assert (lines[0]["n_baseline"], lines[0]["values_contender"]) == ("4", "")
    values = lines[0]["values_baseline"].split()
    assert (len(values), values[1]) == (5, "nan")


def test_what_the_driver_limited_is_said_for_each_side():
    analysis = analyse_run(complete_record(edit=driven))
    decoded = msgspec.json.decode(render(analysis, "json"), type=Document)
    assert decoded == document(analysis, ())
    assert [(row.label, row.variant, row.load) for row in decoded.drivers][-2:] == [
        ("range", "es", ("driver-limited",)),
        ("range", "os", ()),
    ]
    lines = lines_of(analysis)
    assert {(one["load_baseline"], one["load_contender"]) for one in lines if one["label"] != "range"} == {
        ("", "")
    }
    limited = [one for one in lines if one["label"] == "range"]
    assert limited
    for line in limited:
        assert (line["load_baseline"], line["load_contender"]) == ("driver-limited", "")
        assert "driver-limited" in line["caveats"].split()
        assert line["verdict"] == "n/a"


def test_json_reads_back_as_the_analysis_with_each_source_once(record: RunRecord):
    analysis = analyse_run(record)
    found = document(analysis, [record, record])
    assert msgspec.json.decode(render(analysis, "json", records=[record]), type=Document) == found
    printed = msgspec.to_builtins(found)
    assert {**msgspec.to_builtins(analysis), "sources": printed["sources"], "gate": None} == printed
    assert next(iter(printed)) == "schema_version"
    assert printed["schema_version"] == SCHEMA_VERSION == 9
    (source,) = found.sources
    assert (source.run, source.environment, source.engines) == (record.id, record.environment, record.engines)
    assert source.variants == record.plan.variants
    assert source.indices == {name: (facts,) for name, facts in record.indices.items()}


def test_every_build_of_an_index_is_there():
    facts = complete_record().indices["es"]
    record = complete_record(builds={"es": (facts, facts)})
    (source,) = document(analyse_run(record), [record]).sources
    assert {name: len(builds) for name, builds in source.indices.items()} == {"es": 2, "os": 1}


def test_an_unknown_format_is_a_usage_error(record: RunRecord):
    assert render(analyse_run(record)) == render(analyse_run(record), "text")
    with pytest.raises(UsageError, match="no output format 'xml'"):
        render(analyse_run(record), "xml")


def test_a_run_without_forks_says_what_there_is(record: RunRecord):
    nothing = analyse_run(msgspec.structs.replace(record, forks=()))
    assert "VERDICT  Nothing was measured: no fork was finished." in render(nothing)
    plan = msgspec.structs.replace(record.plan, schedules=(), forks=0)
    text = render(analyse_run(msgspec.structs.replace(record, plan=plan, forks=())), plan=plan)
    assert text.startswith("index builds: os 2.11.0 vs es 8.11.0 (baseline)")
    assert "VERDICT  Index builds of os against es: too few builds in docs/s" in text
    assert "one index build" not in text


@pytest.mark.parametrize("output_format", get_args(Format))
@pytest.mark.parametrize(("code", "word"), [("test-mode", "test-mode"), ("unfinished", "being measured")])
def test_a_trial_and_a_run_that_has_not_ended_are_named_in_every_format(
    record: RunRecord, output_format: Format, code: str, word: str
):
    trial = code == "test-mode"
    changes: dict[str, Any] = (
        {"plan": msgspec.structs.replace(record.plan, test_mode=True)} if trial else {"status": "running"}
    )
    changed = msgspec.structs.replace(record, **changes)
    analysis = analyse_run(changed)
    page = output_format == "html"
    text = render_page(run_subject(changed, analysis)) if page else render(analysis, output_format)
    assert (code if output_format == "csv" else word) in text
    assert word not in render(analyse_run(record), "text")
    assert word in " ".join(str(render_screen(analysis)).split())

import csv
import io
from collections.abc import Callable
from typing import Any, get_args
from xml.etree import ElementTree as ET

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.report.formats import Document, document, render
from benchctl.report.html.page import render_page, run_subject
from benchctl.report.screen import render_screen
from benchctl.report.table import Format
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import SCHEMA_VERSION, Analysis
from benchctl.stats.decisions import GateResult, gate
from report.conftest import complete_record
from report.test_layout_tables import difficult
from sweeps import swept_record


def test_markdown_keeps_pipes_and_lines_of_reasons_inside_the_text(build: Callable[..., RunRecord]):
    def reasoned(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None, unsupported="a|b\nc <d>")

    assert r"a\|b c \<d>" in render(analyse_run(build(edit=reasoned)), "markdown")


def test_csv_has_a_line_for_every_contender_in_full_precision(build: Callable[..., RunRecord]):
    record = build(variants=("es", "os", "noinline"))
    analysis = analyse_run(record)
    lines = list(csv.DictReader(io.StringIO(render(analysis, "csv"))))
    assert len(lines) == 3 * 2 * 2
    comparison = analysis.rows[2].comparisons[0]
    line = next(one for one in lines if (one["label"], one["contender"]) == ("range", "os"))
    assert float(line["effect_percent"]) == comparison.effect_percent
    assert float(line["p"]) == comparison.p
    assert float(line["p_adjusted"]) == comparison.p_adjusted
    assert line["verdict"] == "slower"
    assert [float(value) for value in line["values_baseline"].split()] == list(
        analysis.rows[2].figures[0].values
    )
    assert line["caveats"].split() == ["answers-differ", *(doubt.code for doubt in analysis.caveats)]


def test_csv_leaves_unknown_values_empty(build: Callable[..., RunRecord]):
    line = next(csv.DictReader(io.StringIO(render(analyse_run(build(forks=1)), "csv"))))
    assert (line["p"], line["low_percent"], line["mde_percent"]) == ("", "", "")


def test_json_reads_back_as_the_same_analysis(record: RunRecord):
    analysis = analyse_run(record)
    text = render(analysis, "json", records=[record])
    assert msgspec.json.decode(text, type=Document) == document(analysis, [record])
    assert msgspec.json.decode(text)["schema_version"] == SCHEMA_VERSION == 7


def test_text_is_the_default(record: RunRecord):
    assert render(analyse_run(record)) == render(analyse_run(record), "text")


def test_an_unknown_format_is_a_usage_error(record: RunRecord):
    with pytest.raises(UsageError, match="no output format 'xml'"):
        render(analyse_run(record), "xml")


def as_pandas_would(text: str) -> dict[str, str]:
    """Column -> what `pd.read_csv` makes of it: its default NA words are holes, the rest decides."""
    header, *rows = csv.reader(io.StringIO(text))
    assert len(set(header)) == len(header)
    assert all(len(row) == len(header) for row in rows)
    return {name: kind_of([row[place] for row in rows]) for place, name in enumerate(header)}


def kind_of(values: list[str]) -> str:
    known = [value for value in values if value not in {"", "n/a", "nan", "NaN", "NA", "None", "null"}]
    if not known:
        return "empty"
    if set(known) <= {"True", "False"}:
        return "bool"
    try:
        return "number" if [float(value) for value in known] else "empty"
    except ValueError:
        return "text"


NAMES = {"challenge", "label", "operation", "metric", "unit", "baseline", "contender", "verdict"}
FLAGS = {"higher_is_better", "paired", "judged", "provisional"}


def test_csv_loads_with_clean_types(build: Callable[..., RunRecord]):
    kinds = as_pandas_would(render(analyse_run(build(variants=("es", "os", "noinline"))), "csv"))
    assert {name for name, kind in kinds.items() if kind == "bool"} == FLAGS
    assert {name for name, kind in kinds.items() if kind == "text"} >= NAMES
    numbers = {name for name, kind in kinds.items() if kind == "number"}
    assert numbers >= {
        "schedule",
        "task",
        "n_baseline",
        "baseline_value",
        "effect_percent",
        "p",
        "mde_percent",
    }


def test_csv_of_fewer_forks_has_holes_and_no_words(build: Callable[..., RunRecord]):
    for forks in (0, 1, 2):
        kinds = as_pandas_would(render(analyse_run(build(forks=forks)), "csv"))
        assert {kinds[name] for name in ("p", "low_percent", "effect_percent")} <= {"number", "empty"}


def test_csv_of_one_variant_has_its_values(build: Callable[..., RunRecord]):
    def second_fork_failed(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None) if block == 1 else summary

    analysis = analyse_run(build(variants=("es",), edit=second_fork_failed))
    lines = list(csv.DictReader(io.StringIO(render(analysis, "csv"))))
    assert len(lines) == len(analysis.rows)
    assert {(line["baseline"], line["contender"], line["verdict"]) for line in lines} == {("es", "", "")}
    assert float(lines[0]["baseline_value"]) == analysis.rows[0].figures[0].value
    assert (lines[0]["n_baseline"], lines[0]["values_contender"]) == ("4", "")
    assert lines[0]["values_baseline"].split()[1] == "nan"
    assert len(lines[0]["values_baseline"].split()) == 5


def test_a_document_is_the_analysis_with_its_sources(record: RunRecord):
    analysis = analyse_run(record)
    found = document(analysis, [record, record])
    assert msgspec.json.decode(msgspec.json.encode(found), type=Document) == found
    assert [one.run for one in found.sources] == [record.id]
    printed = msgspec.to_builtins(found)
    assert {**msgspec.to_builtins(analysis), "sources": printed["sources"], "gate": None} == printed
    assert next(iter(printed)) == "schema_version"


def test_a_source_says_where_and_on_what(record: RunRecord):
    (source,) = document(analyse_run(record), [record]).sources
    assert (source.run, source.environment, source.engines) == (record.id, record.environment, record.engines)
    assert source.variants == record.plan.variants
    assert source.indices == {name: (facts,) for name, facts in record.indices.items()}


def test_every_build_of_an_index_is_there(build: Callable[..., RunRecord]):
    first = build()
    facts = first.indices["es"]
    record = build(builds={"es": (facts, facts)})
    (source,) = document(analyse_run(record), [record]).sources
    assert {name: len(builds) for name, builds in source.indices.items()} == {"es": 2, "os": 1}


RECORDS = {
    "plain": complete_record(),
    "difficult": complete_record(edit=difficult),
    "few": complete_record(forks=1),
    "three": complete_record(variants=("es", "os", "noinline")),
    "alone": complete_record(variants=("es",)),
    "sweep": swept_record(),
}
COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


@pytest.fixture(params=RECORDS, ids=str)
def record(request: pytest.FixtureRequest) -> RunRecord:
    return RECORDS[request.param]


def gated(record: RunRecord) -> Analysis:
    forks = {spec.name: record.compared(spec.name) for spec in record.plan.variants}
    return analyse(forks, record.plan, runs=(record.id,), method="holm")


def cases(analysis: Analysis, asked: GateResult | None = None) -> ET.Element:
    return ET.fromstring(render(analysis, "junit", gate=asked))  # noqa: S314 - our own


def test_every_comparison_is_a_test_case_and_the_counts_add_up(record: RunRecord):
    suite = cases(analyse_run(record))
    for name, count in COUNTS.items():
        assert suite.get(count) == str(len(suite.findall(f"testcase/{name}")))
    assert suite.get("tests") == str(len(suite.findall("testcase")))
    names = [(one.get("classname"), one.get("name")) for one in suite.findall("testcase")]
    assert len(set(names)) == len(names)


def test_forks_that_failed_are_errors_and_so_is_a_run_that_measured_nothing():
    record = complete_record()
    (first, *others) = record.forks
    failed = msgspec.structs.replace(record, forks=(msgspec.structs.replace(first, status="failed"), *others))
    analysis = analyse_run(failed)
    suite = cases(analysis)
    (error,) = suite.findall("testcase/error")
    assert error.get("message") == f"1 fork of {first.variant} failed and is not in the figures"
    nothing = analyse_run(msgspec.structs.replace(record, forks=()))
    suite = cases(nothing)
    assert [one.get("message") for one in suite.findall("testcase/error")] == ["nothing was measured"]
    assert "VERDICT  Nothing was measured: no fork was finished." in render(nothing)


def test_a_run_that_only_builds_indices_says_so():
    record = complete_record()
    plan = msgspec.structs.replace(record.plan, schedules=(), forks=0)
    text = render(analyse_run(msgspec.structs.replace(record, plan=plan, forks=())), plan=plan)
    assert text.startswith("index builds: os 2.11.0 vs es 8.11.0 (baseline)")
    assert "VERDICT  Index builds of os against es: too few builds in docs/s" in text
    assert "To see more" not in text
    assert "one index build" not in text


def test_what_a_gate_calls_a_regression_fails_and_what_it_leaves_open_is_an_error(record: RunRecord):
    analysis = gated(record)
    result = gate(analysis)
    suite = cases(analysis, result)
    assert (result.outcome == "regression") == bool(suite.findall("testcase/failure"))
    if result.outcome == "pass":
        assert suite.get("errors") == "0"
    assert suite.get("skipped") == "0"
    assert cases(analysis).get("errors") == "0"


def test_the_summary_has_the_gate_first_and_folds_the_rest_away():
    analysis = gated(RECORDS["plain"])
    text = render(analysis, "github", gate=gate(analysis))
    marks = [text.index(mark) for mark in ("### Gate: ", "**Verdict:**", "<details>", "</details>")]
    assert marks == sorted(marks)
    assert "Gate" not in render(analysis, "github")


@pytest.mark.parametrize("output_format", get_args(Format))
@pytest.mark.parametrize(
    ("change", "word"), [({"plan": True}, "test-mode"), ({"status": "running"}, "running")]
)
def test_a_trial_and_a_run_that_has_not_ended_are_named_in_every_format(
    record: RunRecord, output_format: Format, change: dict[str, Any], word: str
):
    if "plan" in change:
        change = {"plan": msgspec.structs.replace(record.plan, test_mode=True)}
    changed = msgspec.structs.replace(record, **change)
    analysis = analyse_run(changed)
    if output_format == "html":
        text = render_page(run_subject(changed, analysis), inline=True)
    else:
        text = render(analysis, output_format)
    word = "unfinished" if (output_format, word) == ("csv", "running") else word
    assert word in text
    assert word not in render(analyse_run(record), "text")
    assert word in str(render_screen(analysis)) or output_format == "csv"


def test_no_case_of_a_trial_passes_or_fails():
    record = complete_record()
    plan = msgspec.structs.replace(record.plan, test_mode=True)
    suite = cases(analyse_run(msgspec.structs.replace(record, plan=plan)))
    assert suite.get("skipped") == suite.get("tests") != "0"
    unfinished = cases(analyse_run(msgspec.structs.replace(record, status="interrupted")))
    assert [one.get("type") for one in unfinished.findall("testcase/error")] == ["unfinished"]

import csv
import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.report.formats import render
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis

GOLDEN = Path(__file__).parent / "golden"


def test_markdown(record: RunRecord):
    text = render(analyse_run(record), "markdown", plan=record.plan)
    assert text == (GOLDEN / "plain.md").read_text(encoding="utf-8")


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
    assert line["caveats"] == "answers-differ"


def test_csv_leaves_unknown_values_empty(build: Callable[..., RunRecord]):
    line = next(csv.DictReader(io.StringIO(render(analyse_run(build(forks=1)), "csv"))))
    assert (line["p"], line["low_percent"], line["mde_percent"]) == ("", "", "")


def test_json_reads_back_as_the_same_analysis(record: RunRecord):
    analysis = analyse_run(record)
    text = render(analysis, "json")
    assert msgspec.json.decode(text, type=Analysis) == analysis
    assert msgspec.json.decode(text)["schema_version"] == 1


def test_text_is_the_default(record: RunRecord):
    assert render(analyse_run(record)) == render(analyse_run(record), "text")


def test_an_unknown_format_is_a_usage_error(record: RunRecord):
    with pytest.raises(UsageError, match="no output format 'xml'"):
        render(analyse_run(record), "xml")

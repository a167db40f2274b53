import csv
import io
from collections.abc import Callable

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.report.formats import Document, document, render
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SCHEMA_VERSION


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
    text = render(analysis, "json", records=[record])
    assert msgspec.json.decode(text, type=Document) == document(analysis, [record])
    assert msgspec.json.decode(text)["schema_version"] == SCHEMA_VERSION == 2


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
FLAGS = {"higher_is_better", "paired", "judged", "p_permutation_exact", "provisional"}


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

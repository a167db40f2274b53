"""What the JVM did, in every form of an experiment's report."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.experiment.judge import ExperimentAnalysis, analyse_experiment
from benchctl.experiment.record import Expectation, ExperimentRecord, FateSpec, Found, SeenCall
from benchctl.experiment.report import render
from benchctl.results.model import RunRecord
from golden import agree
from made_experiment import call_site, comparison, expect, made_record, made_runs

GOLDEN = Path(__file__).parent / "golden"
TIMES = {
    "fresh": {"es": (4.0, 4.1, 3.9), "os": (4.0, 4.05, 3.95)},
    "jit": {"es": (5.0, 5.1, 4.9, 5.0), "os": (6.4, 6.5, 4.6, 6.6)},
}
PACKAGE = "org.apache.lucene.search"
TWO = {
    f"{PACKAGE}.PointRangeQuery$1$1": 600,
    f"{PACKAGE}.comparators.NumericComparator$NumericLeafComparator$1": 400,
}
ONE = {f"{PACKAGE}.PointRangeQuery$1$1": 600}


def fate(statement: str, variant: str, is_: Any, **changes: Any) -> Expectation:
    return Expectation(statement=statement, fate=FateSpec("visit", variant, is_), **changes)


def experiment(word: str = "visit of points") -> ExperimentRecord:
    sites = (
        call_site("visit", "jit", label=word, about="Once for every\ndocument."),
        call_site("grow", "jit", label="grow", variants=("es",), callee="grow"),
    )
    record = made_record(
        [comparison("engines", "fresh/es/range", "fresh/os/range")],
        [
            expect("as fast when fresh", "alike", "engines"),
            fate("ES inlines it", "es", "inlined"),
            fate("OS does not", "os", "virtual", needs="three kinds."),
        ],
        measurements=("fresh", "jit"),
    )
    return msgspec.structs.replace(record, spec=msgspec.structs.replace(record.spec, call_sites=sites))


def seen(variant: str, block: int, found: Found | None, words: str = "", **changes: Any) -> SeenCall:
    return SeenCall(site="visit", variant=variant, block=block, found=found, words=words, **changes)


CALLS = [
    *(seen("es", block, "inlined", receivers=TWO, calls=1000) for block in range(3)),
    seen("es", 3, None, "it does not exist"),
    seen("os", 0, "virtual", given_up=True),
    seen("os", 1, "virtual"),
    seen("os", 2, "partly", receivers=ONE, calls=650),
    seen("os", 3, "virtual"),
]


def made(
    word: str = "visit of points",
) -> tuple[ExperimentRecord, dict[str, RunRecord], ExperimentAnalysis]:
    record, runs = experiment(word), made_runs(TIMES)
    return record, runs, analyse_experiment(record, runs, CALLS)


@pytest.mark.parametrize(("form", "name"), [("text", "call-sites.txt"), ("markdown", "call-sites.md")])
def test_the_whole_report(pytestconfig: pytest.Config, form: Any, name: str):
    agree(pytestconfig, GOLDEN / name, render(*made(), form))


def test_expectations_of_both_kinds_are_numbered_in_the_order_of_the_file():
    record, runs = experiment(), made_runs(TIMES)
    engines, first, last = record.spec.expectations
    spec = msgspec.structs.replace(record.spec, expectations=(first, engines, last))
    record = msgspec.structs.replace(record, spec=spec)
    analysis = analyse_experiment(record, runs, CALLS)
    assert [one.asked.statement for one in analysis.expectations] == [
        "ES inlines it", "as fast when fresh", "OS does not",
    ]  # fmt: skip
    text = render(record, runs, analysis, "markdown")
    assert "| 1 | ES inlines it |" in text
    assert "| 2 | as fast when fresh |" in text
    assert "needs three kinds." in text


def test_the_page_shows_it_and_takes_no_markup_from_the_file():
    text = render(*made(), "html")
    assert "NumericLeafComparator$1 1,200" in text.replace("<wbr>", "")
    hostile = render(*made("<script>x</script>"), "html")
    assert "<script>x" not in hostile
    assert "&lt;script&gt;x" in hostile

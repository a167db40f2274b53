"""Results for build servers: test cases and a summary."""

from xml.etree import ElementTree as ET

import msgspec
import pytest

from benchctl.report.formats import render
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.decisions import GateResult, gate
from report.conftest import complete_record
from report.test_tables import difficult
from sweeps import swept_record

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
    marks = [text.index(mark) for mark in ("**Gate: ", "**Verdict:**", "<details>", "</details>")]
    assert marks == sorted(marks)
    assert "Gate" not in render(analysis, "github")

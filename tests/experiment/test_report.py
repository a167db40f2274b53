"""Reports of a made experiment: what must hold whatever it is made of; whole texts are among the goldens."""

import re
from typing import Any

import msgspec
import pytest

from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.record import ExperimentRecord, Measurement, Relation, TableSpec
from benchctl.experiment.report import ExperimentDocument, render, run_lines
from benchctl.results.model import RunRecord
from builders import ES
from made_experiment import comparison, expect, made_record, made_runs

WOBBLE = (1.0, 1.01, 0.99, 1.02, 0.98)
MEANS = {
    "fresh": {"es": 4.0, "os": 4.02},
    "after": {"es": 5.0, "os": 6.5},
    "noinline": {"es": 20.0, "os": 20.1},
}


def wobbling(mean_ms: float, shift: int) -> list[float]:
    """Five forks around a mean, by a plain rule."""
    return [mean_ms * WOBBLE[(block + shift) % 5] for block in range(5)]


def runs_of(*measurements: str) -> dict[str, RunRecord]:
    return made_runs(
        {
            name: {engine: wobbling(mean, number + 2 * place) for place, (engine, mean) in
                   enumerate(MEANS[name].items())}
            for number, name in enumerate(measurements)
        }
    )  # fmt: skip


def blog(**changes: Any) -> ExperimentRecord:
    engines = TableSpec(
        title="range",
        source="Throughput for the range query",
        about="Higher on a fresh node.",
        baseline="ES",
        contender="OS",
        rows=(
            comparison(
                "after-engines",
                "after/es/range",
                "after/os/range",
                label="after",
                published=(0.45, 0.33),
            ),
            comparison(
                "fresh-engines", "fresh/es/range", "fresh/os/range", label="fresh", published=(0.65, 0.68)
            ),
        ),
    )
    slowed = TableSpec(
        title="what ran before",
        baseline="fresh",
        contender="after",
        rows=(
            comparison("after-es", "fresh/es/range", "after/es/range", label="ES"),
            comparison("after-os", "fresh/os/range", "after/os/range", label="OS"),
            comparison("p90", "fresh/os/range", "after/os/range", label="OS", metric="service_time_p90"),
        ),
    )
    without = TableSpec(
        title="no inlining",
        rows=(comparison("noinline", "noinline/es/range", "noinline/os/range", label="range"),),
    )
    expectations = (
        expect("range is as fast on OS as on ES on a fresh node", "alike", "fresh-engines"),
        expect("what ran before slows both down", "slower", "after-es", "after-os"),
        expect("OS slows down more", "slower", "after-os", than="after-es", needs="many documents."),
        expect("OS is faster afterwards", "faster", "after-engines"),
        expect("engines are alike without inlining", "alike", "noinline"),
    )
    tables = (engines, slowed, without)
    record = made_record(tables, expectations, measurements=("fresh", "after", "noinline"), **changes)
    spec = msgspec.structs.replace(record.spec, about="Why range is slow.\n\nIn two parts.", source="a blog")
    return msgspec.structs.replace(record, spec=spec)


def rendered(record: ExperimentRecord, runs: dict[str, RunRecord], form: Any) -> str:
    return render(record, runs, analyse_experiment(record, runs), form)


def test_what_is_open_proposes_the_forks_that_it_lacks():
    """The wobble of five forks, twice as wide."""
    wide = [4.0 * factor**2 for factor in WOBBLE]
    alike = comparison("alike", "fresh/es/range", "fresh/os/range")
    record = made_record([alike], [expect("so it is", "alike", "alike")], measurements=("fresh",))
    runs = made_runs({"fresh": {"es": wide, "os": wide[1:] + wide[:1]}})
    text = " ".join(rendered(record, runs, "text").split())
    (one,) = analyse_experiment(record, runs).expectations
    assert one.further is not None
    assert f"Next: benchctl extend {record.id} --forks {one.further}" in text
    assert f"1: inconclusive: about {one.further} more forks per variant." in text


def test_the_command_that_explains_it_stands_beside_its_run():
    record = blog(runs={"fresh": "20260101-000000-fresh"})
    kept = {"fresh": Measurement(variants=("es", "os"), explained=True)}
    spec = msgspec.structs.replace(record.spec, measurements=record.spec.measurements | kept)
    lines = [*run_lines(msgspec.structs.replace(record, spec=spec))]
    name = "20260101-000000-fresh"
    assert lines[0] == f"fresh     benchctl show {name}; benchctl explain {name}"


def test_json_holds_all_of_it_in_full_precision():
    record, runs = blog(), runs_of("fresh", "after", "noinline")
    found = msgspec.json.decode(rendered(record, runs, "json"), type=ExperimentDocument)
    assert found.experiment == record
    assert found.analysis == analyse_experiment(record, runs)


def test_an_experiment_without_expectations_or_tables_has_a_report():
    record = made_record([])
    text = rendered(record, runs_of("fresh"), "text")
    assert "Expectations" not in text
    assert "fresh  benchctl show 20260101-000000-fresh" in text


def summarised(run: RunRecord, **changes: Any) -> RunRecord:
    """Every summary of a run changed alike."""
    forks = tuple(
        msgspec.structs.replace(
            fork, summaries=tuple(msgspec.structs.replace(one, **changes) for one in fork.summaries)
        )
        for fork in run.forks
    )
    return msgspec.structs.replace(run, forks=forks)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lacking_warmup": 90}, "slower?, little warm-up"),
        ({"failures": {"timeout": 3}}, "slower, requests failed"),
        ({"unsupported": "no such query", "throughput_per_s": None}, "n/a"),
    ],
)
def test_a_verdict_does_not_hide_what_weakens_it(changes: dict[str, Any], words: str):
    runs = runs_of("fresh", "after")
    runs["after"] = summarised(runs["after"], **changes)
    record = made_record([comparison("a", "fresh/os/range", "after/os/range")])
    table = rendered(record, runs, "markdown")
    assert f"| {words} |" in table


def test_how_variants_differ_is_said_once():
    noinline = msgspec.structs.replace(ES, name="noinline", jvm_flags=("-XX:-Inline",))
    runs = runs_of("fresh", "after")
    for name, run in runs.items():
        plan = msgspec.structs.replace(run.plan, variants=(ES, noinline))
        runs[name] = msgspec.structs.replace(run, plan=plan)
    text = rendered(made_record([]), runs, "text")
    assert text.count("-XX:-Inline") == 1


def test_control_characters_do_not_reach_a_terminal():
    record = made_record([comparison("a", "fresh/es/range", "fresh/os/range", label="bad\x1b[31m")])
    assert "\x1b" not in rendered(record, runs_of("fresh"), "text")


@pytest.mark.parametrize(("forks", "doubt"), [(3, "?"), (5, "")])
def test_what_few_forks_decide_is_not_to_be_quoted(forks: int, doubt: str):
    row = comparison("engines", "fresh/es/range", "fresh/os/range")
    record = made_record([row], [expect("OS is slower", "slower", "engines")], measurements=("fresh",))
    runs = made_runs({"fresh": {"es": wobbling(4.0, 0)[:forks], "os": wobbling(6.0, 2)[:forks]}})
    text = rendered(record, runs, "text")
    (line,) = [one for one in text.splitlines() if "OS is slower" in one]
    assert f"confirmed{doubt} " in line
    assert f"slower{doubt}" in next(one for one in text.splitlines() if one.startswith("engines"))
    assert ("Provisional, do not report: 1 (fewer than 5 forks" in " ".join(text.split())) is bool(doubt)
    assert (f"Next: benchctl extend {record.id} --forks 2" in " ".join(text.split())) is bool(doubt)


@pytest.mark.parametrize(
    ("metric", "relation", "outcome", "change"),
    [
        ("mean", "more", "confirmed", "+50.0% (+"),
        ("mean", "less", "refuted", "+50.0% (+"),
        ("mean", "slower", "confirmed", "+50.0% (+"),
        ("throughput", "less", "confirmed", "-33.3% (-"),
        ("throughput", "more", "refuted", "-33.3% (-"),
    ],
)
def test_more_and_less_are_of_the_value_whichever_way_is_faster(
    metric: str, relation: Relation, outcome: str, change: str
):
    row = comparison("engines", "fresh/es/range", "fresh/os/range", metric=metric)
    record = made_record([row], [expect("OS", relation, "engines")], measurements=("fresh",))
    runs = made_runs({"fresh": {"es": [4.0, 4.01, 3.99, 4.0, 4.0], "os": [6.0, 6.01, 6.0, 5.99, 6.0]}})
    text = rendered(record, runs, "text")
    (line,) = [one for one in text.splitlines() if one.startswith(" 1  OS ")]
    assert outcome in line
    assert change in line


def test_a_published_change_has_its_unit_where_every_cell_has():
    rows = (
        comparison("share", "fresh/es/range", "fresh/os/range", published=(4, 5)),
        comparison("more", "fresh/es/range", "after/es/range", compared_as="difference"),
    )
    record = made_record(rows)
    runs = runs_of("fresh", "after")
    text = render(record, runs, analyse_experiment(record, runs), "text", width=200)
    assert re.search(r"published +4 +5 +\+25\.00%", text)

"""Experiment files: what they say, and every mistake with its line."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.experiment.file import experiment_names, find_experiment
from benchctl.experiment.record import (
    ComparisonSpec,
    Expectation,
    TaskRef,
    Term,
    parse_side,
    side_text,
)
from benchctl.spec import DEFAULT_FORKS
from benchctl.stats.metrics import THROUGHPUT
from experiment_files import EXPERIMENT, load, write
from golden import Cases


def test_a_file_says_all_there_is_to_know(tmp_path: Path):
    experiment = load(tmp_path)
    spec = experiment.spec
    assert (spec.name, spec.title, spec.seed) == ("used", "Fresh against used", 1)
    assert {name: one.variants for name, one in spec.measurements.items()} == {
        "fresh": ("es", "os"),
        "used": ("es", "es-noinline"),
    }
    plans = [planned.plan for planned in experiment.plans.values()]
    assert {(plan.forks, plan.corpus.documents, plan.heap_mb) for plan in plans} == {(3, 20_000, 512)}
    assert plans[1].variants[1].jvm_flags == ("-XX:-Inline",)
    engines, after, p90 = spec.comparisons
    assert engines.label == "engines"
    assert engines.published == (0.65, 0.68)
    assert after.label == "after big5rangedebug"
    assert after.sides[1] == (Term(TaskRef("used", "es", "range", "range-only-short")),)
    assert (after.metric, p90.metric) == (THROUGHPUT.key, "service_time_p90")
    assert [(one.is_, one.tolerance, one.than) for one in spec.expectations] == [
        ("alike", (10, "%"), None),
        ("slower", (5, "%"), None),
    ]


def test_forks_are_as_many_as_those_of_a_run_unless_the_file_says_otherwise(tmp_path: Path):
    assert load(tmp_path, EXPERIMENT.replace("forks: 3\n", "")).plans["fresh"].plan.forks == DEFAULT_FORKS


def test_challenges_are_found_beside_the_file_whatever_the_current_folder_is(tmp_path: Path):
    (tmp_path / "own").mkdir()
    schedule = [{"operation": "range", "iterations": 2}]
    (tmp_path / "own" / "mine.json").write_text(json.dumps({"name": "mine", "schedule": schedule}))
    text = EXPERIMENT.replace("challenges: [range-only-short]}", "challenges: [own/mine.json]}")
    (challenge,) = load(tmp_path, text).plans["fresh"].plan.schedules
    assert (challenge.name, challenge.schedule[0].iterations) == ("mine", 2)


def test_a_mistake_is_told_with_its_line(cases: Cases, tmp_path: Path):
    def told(old: str, new: str) -> object:
        assert EXPERIMENT.count(old) == 1, old
        return load(tmp_path, EXPERIMENT.replace(old, new))

    cases("file", told, tmp_path)


def test_experiments_are_found_by_name_and_by_path(tmp_path: Path):
    for name in experiment_names():
        assert find_experiment(name).is_file()
    path = write(tmp_path)
    assert find_experiment(str(path)) == path
    with pytest.raises(UsageError, match="no such experiment 'nothing'"):
        find_experiment("nothing")


def compared_as(folder: Path, row: str, expectation: str = "") -> tuple[ComparisonSpec, Expectation | None]:
    text = EXPERIMENT.replace("  - {statement: alike", f"{expectation}  - {{statement: alike")
    text = text.replace("expectations:", f"      - {{name: own, {row}}}\nexpectations:")
    spec = load(folder, text).spec
    found = next((one for one in spec.expectations if one.comparisons == ("own",)), None)
    return spec.comparisons[-1], found


def test_a_side_is_a_value_that_tasks_add_up_to(tmp_path: Path):
    row, _ = compared_as(
        tmp_path,
        "baseline: [fresh/es/range, -used/es/range-only-short/range], "
        "contender: [fresh/os/range, + used/es/range-only-short/range]",
    )
    baseline, contender = row.sides
    used = TaskRef("used", "es", "range", "range-only-short")
    assert baseline == (Term(TaskRef("fresh", "es", "range")), Term(used, minus=True))
    assert (side_text(baseline), side_text(contender)) == (
        f"fresh/es/range - {used}",
        f"fresh/os/range + {used}",
    )
    # Of what may be below 0 there are no logarithms.
    assert row.compared_as == "ratio-of-sums"


@pytest.mark.parametrize(
    ("metric", "margin", "expected", "unit"),
    [
        ("service_time_p90", "2 ms", 2.0, "ms"),
        ("gc", "0.1 ms", 0.1, "ms"),
        ("throughput", "5 docs/s", 5.0, "docs/s"),
        ("throughput", "5queries/s", 5.0, "queries/s"),
    ],
)
def test_the_margin_of_a_difference_is_in_its_unit(
    tmp_path: Path, metric: str, margin: str, expected: float, unit: str
):
    _, found = compared_as(
        tmp_path,
        f"baseline: fresh/es/range, contender: fresh/os/range, as: difference, metric: {metric}",
        f"  - {{statement: so, comparisons: [own], is: slower, margin: {margin}}}\n",
    )
    assert found is not None
    assert found.tolerance == (pytest.approx(expected), unit)


def test_differences_and_ratios_are_kept_apart(cases: Cases, tmp_path: Path):
    rows = "baseline: fresh/es/range, contender: fresh/os/range, as: difference, metric: service_time_p90"
    cases(
        "differences", lambda text: compared_as(tmp_path, rows, f"  - {{statement: so, {text}}}\n"), tmp_path
    )


WORDS = st.text("abc-._9", min_size=1)
REFS = st.tuples(WORDS, WORDS).map(lambda two: TaskRef(*two)) | st.builds(
    TaskRef, WORDS, WORDS, WORDS, st.just("") | WORDS
)
SIDES = st.lists(st.builds(Term, REFS, minus=st.booleans()), min_size=1, max_size=5).map(tuple)


@given(SIDES)
def test_what_a_side_says_is_what_is_read(side: tuple[Term, ...]):
    assume(not any(one.ref.measurement.startswith("-") for one in side))
    written = tuple(f"{'-' if one.minus else '+'} {one.ref}" for one in side)
    assert parse_side(written) == side

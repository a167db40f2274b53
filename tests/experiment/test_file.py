"""Experiment files: what they say, and every mistake with its line."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.experiment.file import experiment_names, find_experiment, read_experiment
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
from experiment_files import EXPERIMENT, write
from golden import Cases


def changed(folder: Path, old: str, new: str) -> Path:
    assert EXPERIMENT.count(old) == 1, old
    return write(folder, EXPERIMENT.replace(old, new))


def line_of(text: str) -> int:
    return 1 + EXPERIMENT[: EXPERIMENT.index(text)].count("\n")


def test_a_file_says_all_there_is_to_know(tmp_path: Path):
    spec = read_experiment(write(tmp_path)).spec
    assert (spec.name, spec.title, spec.forks, spec.docs, spec.heap_mb) == (
        "used",
        "Fresh against used",
        3,
        20_000,
        512,
    )
    assert [(one.name, one.jvm_flags) for one in spec.variants] == [
        ("es-noinline", ("-XX:-Inline",)),
        ("es", ()),
        ("os", ()),
    ]
    assert [one.name for one in spec.measurements] == ["fresh", "used"]
    engines, after, p90 = spec.comparisons
    assert engines.label == "engines"
    assert engines.published == (0.65, 0.68, 4.62)
    assert after.label == "after big5rangedebug"
    assert after.sides[1] == (Term(TaskRef("used", "es", "range", "range-only-short")),)
    assert (after.metric, p90.metric) == (THROUGHPUT.key, "service_time_p90")
    assert [(one.is_, one.tolerance, one.than) for one in spec.expectations] == [
        ("alike", (10, "%"), None),
        ("slower", (5, "%"), None),
    ]


def test_forks_are_as_many_as_those_of_a_run_unless_the_file_says_otherwise(tmp_path: Path):
    assert read_experiment(changed(tmp_path, "forks: 3\n", "")).spec.forks == DEFAULT_FORKS


def test_two_published_figures_leave_the_change_to_be_worked_out(tmp_path: Path):
    spec = read_experiment(changed(tmp_path, "[0.65, 0.68, 4.62]", "[0.65, 0.68]")).spec
    assert spec.comparisons[0].published == (0.65, 0.68)


def test_challenges_are_found_beside_the_file_whatever_the_current_folder_is(tmp_path: Path):
    (tmp_path / "own").mkdir()
    schedule = [{"operation": "range", "iterations": 2}]
    (tmp_path / "own" / "mine.json").write_text(json.dumps({"name": "mine", "schedule": schedule}))
    path = changed(tmp_path, "challenges: [range-only-short]}", "challenges: [own/mine.json]}")
    spec = read_experiment(path).spec
    assert spec.measurements[0].challenges == (str(tmp_path / "own" / "mine.json"),)


@pytest.mark.parametrize("what", ["challenges: [mine.json]", "redline: {challenge: mine.json, slo: p90=1s}"])
def test_the_digest_is_that_of_the_file_and_its_challenges(what: str, tmp_path: Path):
    challenge = tmp_path / "mine.json"
    challenge.write_text('{"name": "mine", "schedule": [{"operation": "range"}]}')
    path = changed(tmp_path, "challenges: [range-only-short]}", f"{what}}}")
    first = read_experiment(path).spec.digest
    assert read_experiment(path).spec.digest == first
    challenge.write_text('{"name": "mine", "schedule": [{"operation": "term"}]}')
    second = read_experiment(path).spec.digest
    path.write_text(path.read_text() + "# more\n")
    assert len({first, second, read_experiment(path).spec.digest}) == 3


def test_a_mistake_is_told_with_its_line(cases: Cases, tmp_path: Path):
    cases("file", lambda old, new: read_experiment(changed(tmp_path, old, new)), tmp_path)


MICRO = """
title: Sums
forks: 3
measurements:
  sum:
    variants: [plain, "flat=jar:lib/own.jar,jvm:-XX:-Inline"]
    micro: {source: Sum.java, params: {size: [1, 0.5, x]}, threads: [1, 2], jmh: -wi 1}
    evidence: {kinds: [inlining]}
call-sites:
  - {name: add, measurement: sum, variants: [flat], method: "Sum::all", callee: add, task: "sum:size=1"}
"""


def test_microbenchmarks_are_measured_as_their_command_would(tmp_path: Path):
    (tmp_path / "Sum.java").write_text("class Sum {}\n")
    spec = read_experiment(write(tmp_path, MICRO)).spec
    (measurement,) = spec.measurements
    micro = measurement.micro
    assert micro is not None
    assert (micro.source, micro.params, micro.threads, micro.arguments) == (
        str(tmp_path / "Sum.java"),
        {"size": ("1", "0.5", "x")},
        (1, 2),
        ("-wi", "1"),
    )
    assert measurement.variants == ("plain", "flat")
    flat = spec.variants[1]
    assert (flat.engine, flat.jars, flat.jvm_flags) == (
        "jvm",
        (str(tmp_path / "lib" / "own.jar"),),
        ("-XX:-Inline",),
    )
    (tmp_path / "Sum.java").write_text("class Sum { }\n")
    assert read_experiment(write(tmp_path, MICRO)).spec.digest != spec.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Sum.java", "Sub.java", "measurements, sum, micro: no such file"),
        ("jmh: -wi 1", "jmh: -f 2", "benchctl sets that itself"),
        ("jar:lib/own.jar", "heap:1g", "is neither jar:, jvm: nor jdk:"),
        ("flat=jar", "plain=jar", "there is another variant 'plain'"),
        ("    micro:", "    ingest: true\n    micro:", "give it one of"),
        ("variants: [flat]", "variants: [flit]", "did you mean 'flat'"),
    ],
)
def test_a_mistake_about_microbenchmarks_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
):
    (tmp_path / "Sum.java").write_text("class Sum {}\n")
    assert MICRO.count(old) == 1
    path = write(tmp_path, MICRO.replace(old, new))
    with pytest.raises(UsageError) as caught:
        read_experiment(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")


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
    spec = read_experiment(write(folder, text)).spec
    found = next((one for one in spec.expectations if one.comparisons == ("own",)), None)
    return spec.comparisons[-1], found


def test_a_side_is_a_value_that_tasks_add_up_to(tmp_path: Path):
    row, _ = compared_as(
        tmp_path, "baseline: [fresh/es/a, -fresh/es/b], contender: [fresh/os/a, + fresh/os/c/b]"
    )
    baseline, contender = row.sides
    assert baseline == (Term(TaskRef("fresh", "es", "a")), Term(TaskRef("fresh", "es", "b"), minus=True))
    assert (side_text(baseline), side_text(contender)) == (
        "fresh/es/a - fresh/es/b",
        "fresh/os/a + fresh/os/c/b",
    )
    # Of what may be below 0 there are no logarithms.
    assert row.compared_as == "ratio-of-sums"


@pytest.mark.parametrize(
    ("metric", "margin", "expected", "unit"),
    [
        ("service_time_p90", "2 ms", 2.0, "ms"),
        ("service_time_p90", "1.5s", 1500.0, "ms"),
        ("service_time_p90", "250us", 0.25, "ms"),
        ("gc", "0.1 ms", 0.1, "ms"),
        ("throughput", "5 docs/s", 5.0, "docs/s"),
        ("index_size", "12 MB", 12.0, "MB"),
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


REFS = st.builds(TaskRef, *[st.text("abc-._9", min_size=least) for least in (1, 1, 1, 0)])
SIDES = st.lists(st.builds(Term, REFS, minus=st.booleans()), min_size=1, max_size=5).map(tuple)


@given(SIDES)
def test_what_a_side_says_is_what_is_read(side: tuple[Term, ...]):
    assume(not any(one.ref.measurement.startswith("-") for one in side))
    written = tuple(f"{'-' if one.minus else '+'} {one.ref}" for one in side)
    assert parse_side(written) == side

"""What the command line makes of an experiment."""

from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.experiment.plan import Changes, change, left_out
from benchctl.experiment.record import Expectation
from benchctl.results.plan import FIRST_LOOK
from benchctl.spec import MOST_FORKS
from experiment_files import load


def test_nothing_asked_for_changes_nothing(tmp_path: Path):
    spec = load(tmp_path).spec
    assert change(spec, Changes()) == spec
    assert left_out(spec, spec) == ""


@pytest.mark.parametrize(("forks", "most"), [(None, MOST_FORKS), (8, 8), (60, 60)])
def test_until_it_is_decided_forks_are_the_most_as_for_a_run(tmp_path: Path, forks: int | None, most: int):
    spec = change(load(tmp_path).spec, Changes(forks=forks, until_decided=True))
    assert (spec.forks, spec.most_forks) == (FIRST_LOOK, most)


def test_some_measurements_keep_the_comparisons_that_they_are_enough_for(tmp_path: Path):
    spec = load(tmp_path).spec
    some = change(spec, Changes(only=("fresh",)))
    assert [one.name for one in some.measurements] == ["fresh"]
    assert [one.name for one in some.variants] == ["es", "os"]
    assert [one.name for one in some.comparisons] == ["engines", "p90"]
    assert [one.statement for one in some.expectations] == ["alike when fresh"]
    assert left_out(spec, some) == "1 measurement, 1 comparison, 1 expectation"


def test_an_expectation_goes_with_the_comparison_that_it_is_held_against(tmp_path: Path):
    spec = load(tmp_path).spec
    than = Expectation(statement="", comparisons=("engines",), is_="slower", than="after")
    whole = msgspec.structs.replace(spec, expectations=(than,))
    assert change(whole, Changes(only=("fresh", "used"))).expectations == (than,)
    assert change(whole, Changes(only=("fresh",))).expectations == ()


def test_a_measurement_without_any_comparison_can_be_made_alone(tmp_path: Path):
    some = change(load(tmp_path).spec, Changes(only=("used",)))
    assert (some.tables, some.expectations) == ((), ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (Changes(only=("fesh",)), "did you mean 'fresh'?"),
        (Changes(forks=0), "--forks must be at least 1"),
        (Changes(forks=10**26), "--forks must be at most 10,000"),
        (Changes(forks=4, until_decided=True), "--forks must be at least 5 with --until-decided"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: Changes, message: str):
    with pytest.raises(UsageError) as caught:
        load(tmp_path, changes=changes)
    assert message in str(caught.value)

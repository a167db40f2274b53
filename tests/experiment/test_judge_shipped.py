"""The shipped experiments, measured without nodes and judged from what was recorded."""

from pathlib import Path
from random import Random

import pytest

from benchctl.experiment.file import Changes, find_experiment, load_experiment
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.report import render
from benchctl.home import Home
from experiment.laboratory import Fork, World
from experiment.test_file_shipped import SHIPPED


def wavering(fork: Fork) -> float:
    """All sides alike, but for one per cent from fork to fork."""
    return 10.0 * (1 + Random(f"{fork}").gauss(0, 0.01))  # noqa: S311 - reproducible


@pytest.mark.parametrize("name", SHIPPED)
def test_expectations_of_sides_that_are_alike_come_out_as_they_say(name: str, tmp_path: Path):
    experiment = load_experiment(find_experiment(name), Changes(forks=5), Home(tmp_path / "plans"))
    world = World(tmp_path / "home", time_ms=wavering)
    record = world.begin(experiment)
    runs = {one: world.run(one) for one in record.runs}
    analysis = analyse_experiment(record, runs)
    told = {(one.asked.is_, one.outcome) for one in analysis.expectations}
    assert not told & {("slower", "confirmed"), ("faster", "confirmed"), ("alike", "refuted")}
    assert told & {("alike", "confirmed"), ("slower", "refuted"), ("faster", "refuted")}
    assert record.spec.title in render(record, runs, analysis)

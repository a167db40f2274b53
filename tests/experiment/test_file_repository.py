"""An experiment whose track is in a git repository."""

from pathlib import Path

from benchctl.experiment.plan import plan_measurement
from benchctl.home import Home
from experiment_files import load
from scripted_history import git
from track_repository import commit_files, track_files

TEXT = """
title: Two tracks of a repository
forks: 3
track: books/old
track-repository: tracks
measurements:
  old: {variants: [es], challenges: [first]}
  new: {variants: [es], challenges: [first], track: books/new, track-revision: HEAD~1}
"""


def test_measurements_have_tracks_of_the_experiments_repository_and_keep_their_commits(tmp_path: Path):
    repository = tmp_path / "tracks"
    first = commit_files(repository, track_files("books/old") | track_files("books/new"))
    second = commit_files(repository, track_files("books/old", iterations=5))
    experiment = load(tmp_path, TEXT)
    sources = [planned.plan.track_source for planned in experiment.plans.values()]
    assert [(one.track, one.commit) for one in sources if one] == [
        ("books/old", second), ("books/new", first)
    ]  # fmt: skip
    # What was to be measured when it began is measured when it is resumed.
    commit_files(repository, track_files("books/old", iterations=7))
    git(repository, "branch", "9")
    for measurement in experiment.spec.measurements:
        again = plan_measurement(experiment.spec, measurement, Home(tmp_path))
        assert again.plan.digest == measurement.digest

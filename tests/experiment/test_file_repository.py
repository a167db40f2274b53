"""An experiment whose track is in a git repository."""

from pathlib import Path

from experiment_files import load
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


def test_measurements_have_tracks_of_the_experiments_repository(tmp_path: Path):
    repository = tmp_path / "tracks"
    first = commit_files(repository, track_files("books/old") | track_files("books/new"))
    second = commit_files(repository, track_files("books/old", iterations=5))
    experiment = load(tmp_path, TEXT)
    sources = [planned.plan.track_source for planned in experiment.plans.values()]
    assert [(one.track, one.commit) for one in sources if one] == [
        ("books/old", second), ("books/new", first)
    ]  # fmt: skip

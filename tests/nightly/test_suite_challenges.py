"""Challenges that a suite names: those that nobody has are found before any lock is taken."""

import json
import re
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.nightly.suite import check_challenges, load_suite

TRACK = {
    "indices": [],
    "operations": [],
    "challenges": [
        {"name": "of-track", "schedule": [{"operation": {"operation-type": "sleep", "duration": 1}}]}
    ],
}


def check(folder: Path, text: str) -> None:
    path = folder / "search.yml"
    path.write_text(text, encoding="utf-8")
    check_challenges(path, load_suite(path))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("variants: [es]\nchallenges: [range-only, range-onyl]\n", "2:26: challenges, entry 2"),
        (
            "variants: [es]\nchallenges: [range-only]\nwarmup-challenges: [range-onyl]\n",
            "3:21: warmup-challenges, entry 1",
        ),
        ("variants:\n  - a=es,warmup:range-onyl\nchallenges: [range-only]\n", "2:5: variants, entry 1"),
    ],
)
def test_a_name_that_nobody_has_is_refused_with_its_line(tmp_path: Path, text: str, place: str):
    message = re.escape(f"search.yml:{place}: unknown challenge 'range-onyl'")
    with pytest.raises(UsageError, match=message) as caught:
        check(tmp_path, text)
    assert "did you mean 'range-only'?" in caught.value.hint


def test_challenges_of_the_suite_s_own_track_are_known(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "track.json").write_text(json.dumps(TRACK))
    check(tmp_path, "variants: [es]\nchallenges: [of-track]\ntrack: mine\n")
    with pytest.raises(UsageError, match="unknown challenge 'of-trak'") as caught:
        check(tmp_path, "variants: [es]\nchallenges: [of-trak]\ntrack: mine\n")
    assert "did you mean 'of-track'?" in caught.value.hint


def test_paths_and_tracks_that_are_not_there_are_left_to_the_night(tmp_path: Path):
    check(tmp_path, "variants: [es]\nchallenges: [gone.json]\n")
    check(tmp_path, "variants: [es]\nchallenges: [of-track]\ntrack: gone/track\n")
    check(tmp_path, "variants: [es]\nchallenges: [first]\ntrack: books\ntrack-repository: gone\n")


def test_a_repository_in_a_suite_is_where_the_suite_says(tmp_path: Path):
    path = tmp_path / "search.yml"
    path.write_text("variants: [es]\nchallenges: [first]\ntrack: a/b\ntrack-repository: ../tracks\n")
    suite = load_suite(path)
    assert (suite.track, suite.track_repository) == ("a/b", str(tmp_path / "../tracks"))
    path.write_text("variants: [es]\nchallenges: [first]\ntrack-repository: https://joe:pw@example.org/a\n")
    with pytest.raises(UsageError, match=r"search.yml:3:19: track-repository: the URL holds") as caught:
        load_suite(path)
    assert "pw" not in str(caught.value).replace("~/.netrc", "")

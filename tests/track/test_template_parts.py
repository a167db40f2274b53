"""Parts go in where they are collected."""

import contextlib
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.track.template import Reach, Renderer
from foreign_tracks import write_files


def rendered(folder: Path, name: str = "a.json") -> str:
    return Renderer(folder, {}).render(folder / name).text


def test_the_text_of_parts_stands_where_they_are_collected(tmp_path: Path):
    write_files(
        tmp_path,
        {
            "a.json": '[\n  {{ rally.collect(parts="parts/*.json") }},\n  1\n]',
            "parts/1.json": "11,\n12",
            "parts/2.json": '{{benchmark.collect(parts="deep/x.json")}}',
            "parts/deep/x.json": "\n21\n",
        },
    )
    assert rendered(tmp_path) == "[\n  11,\n12,\n\n21\n,\n  1\n]"


def test_what_a_comment_collects_stays_out(tmp_path: Path):
    write_files(tmp_path, {"a.json": '{# {{ rally.collect(parts="nowhere.json") }} #}1'})
    assert rendered(tmp_path) == "1"


def test_a_cycle_names_the_way_round(tmp_path: Path):
    write_files(
        tmp_path,
        {
            "a.json": '{{ rally.collect(parts="b.json") }}',
            "b.json": '\n{{ rally.collect(parts="c.json") }}',
            "c.json": '{{ rally.collect(parts="b.json") }}',
        },
    )
    with pytest.raises(UsageError, match=r"c.json collects itself: a.json > b.json > c.json > b.json"):
        rendered(tmp_path)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("track/a.json", True),
        ("track/deep/a.json", True),
        ("common/a.json", True),
        ("a.json", False),
        (".hidden/a.json", False),
        ("../other/a.json", False),
    ],
)
def test_a_track_reaches_the_folders_beside_it_and_no_further(tmp_path: Path, path: str, *, allowed: bool):
    root = tmp_path / "repository"
    assert Reach(root / "track").allows((root / path).resolve()) is allowed


def test_a_link_does_not_lead_out_of_reach(tmp_path: Path):
    write_files(tmp_path, {"secret.json": "1", "tracks/mine/a.json": '{{ r.collect(parts="b.json") }}'})
    folder = tmp_path / "tracks" / "mine"
    (folder / "b.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(UsageError, match="leads outside the track"):
        rendered(folder)


def test_a_track_is_reached_by_a_relative_path_and_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = write_files(tmp_path / "t", {"a.json": '{{ r.collect(parts="b/*.json") }}', "b/c.json": "1"})
    (tmp_path / "link").symlink_to(folder)
    assert rendered(tmp_path / "link") == "1"
    monkeypatch.chdir(folder)
    assert rendered(Path()) == "1"


@pytest.mark.parametrize("pattern", ["[", "a\0b", "**", "b/../c"])
def test_patterns_of_any_kind_only_find_files_or_nothing(tmp_path: Path, pattern: str):
    write_files(tmp_path, {"a.json": f'{{{{ r.collect(parts="{pattern}") }}}}', "other/x": "1"})
    with contextlib.suppress(UsageError):
        rendered(tmp_path)

"""Tracks in git repositories: which revision is taken, what is checked out, and what is refused."""

from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.track.library import TrackSource, checked_out
from golden import Cases
from scripted_history import git
from track_repository import commit_files, track_files


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "some-tracks"
    files = track_files("geonames") | track_files("elastic/logs") | track_files("elastic/security")
    commit_files(folder, files | {"README.md": "tracks", "elastic/shared/part.json": "{}", "common/a.py": ""})
    return folder


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def branches(source: Path, *names: str) -> None:
    for name in names:
        git(source, "branch", name)


@pytest.mark.parametrize("remote", [False, True])
def test_a_track_is_checked_out_with_what_tracks_share(home: Home, source: Path, *, remote: bool):
    repository = f"file://{source}" if remote else str(source)
    path, place = checked_out(home, repository, "elastic/logs")
    head = git(source, "rev-parse", "HEAD")
    assert place == TrackSource(repository, "elastic/logs", "HEAD", head, head)
    tree = path.parents[1]
    assert tree.name == "some-tracks"
    shared = {"README.md", "elastic/shared/part.json", "common/a.py"}
    assert files_below(tree) >= {*track_files("elastic/logs"), *shared}
    assert checked_out(home, repository, "elastic/logs", head)[0] == path
    assert git(source, "status", "--short") == ""
    assert [one.name for one in home.tracks.iterdir()] == [tree.parent.name]


def test_a_checkout_is_another_one_where_the_track_or_what_is_shared_changed(home: Home, source: Path):
    first, place = checked_out(home, str(source), "geonames")
    commit_files(source, track_files("elastic/logs", iterations=5))
    again, later = checked_out(home, str(source), "geonames")
    assert again == first
    assert later.commit != place.commit
    assert later.changed == place.changed == place.commit
    changed = commit_files(source, track_files("geonames", iterations=5))
    own, now = checked_out(home, str(source), "geonames")
    assert own != first
    assert now.changed == changed
    assert "5" in (own / "track.json").read_text()
    shared = commit_files(source, {"common/a.py": "b = 1"})
    assert checked_out(home, str(source), "geonames")[1].changed == shared
    assert checked_out(home, str(source), "geonames", place.commit)[0] == first


def test_a_shared_directory_that_becomes_a_track_is_another_checkout(home: Home, source: Path):
    before = git(source, "rev-parse", "HEAD")
    commit_files(source, track_files("elastic/shared"))
    without, _ = checked_out(home, str(source), "elastic/logs")
    shared, _ = checked_out(home, str(source), "elastic/logs", before)
    assert (without.parent / "shared/track.json").is_file()
    assert not (shared.parent / "shared/track.json").exists()


def test_without_a_network_the_copy_is_used_and_that_is_recorded(home: Home, source: Path):
    url = f"file://{source}"
    path, place = checked_out(home, url, "geonames")
    commit_files(source, track_files("geonames", iterations=5))
    source.rename(source.with_name("away"))
    again, outdated = checked_out(home, url, "geonames")
    assert (again, outdated.commit) == (path, place.commit)
    assert f"cannot fetch {url}" in outdated.outdated
    assert checked_out(home, url, "geonames", place.commit)[1].outdated == ""


@pytest.mark.parametrize(
    ("names", "version", "revision"),
    [
        ("", "8.11.0", "HEAD"),
        ("other", "8.11.0", "HEAD"),
        ("7 8 8.10 8.11 8.12", "8.11.0", "8.11"),
        ("7 8 8.2 8.10 8.12", "8.11.0", "8.10"),
        ("7 8 8.12", "8.11.0", "8"),
        ("8.0 9", "8.11.0", "8.0"),
        ("8.11 8.11.0", "8.11.0", "8.11.0"),
        ("8.11 8.11.0", "8.11.0-SNAPSHOT", "8.11.0"),
        ("7.14 8.11.3 8", "8.12.0", "8"),
        ("7 8", "9.1.0", "main"),
        ("7 8", "", "main"),
    ],
)
def test_a_branch_is_chosen_by_the_engines_version(
    home: Home, source: Path, names: str, version: str, revision: str
):
    branches(source, *names.split())
    versions = {version: "es"} if version else {}
    assert checked_out(home, f"file://{source}", "geonames", versions=versions)[1].revision == revision


def test_a_tag_is_chosen_where_no_branch_fits(home: Home, source: Path):
    branches(source, "8")
    git(source, "tag", "v7.17")
    head = git(source, "rev-parse", "HEAD")
    commit_files(source, track_files("geonames", iterations=5))
    _, place = checked_out(home, str(source), "geonames", versions={"7.17.2": "es"})
    assert (place.revision, place.commit) == ("v7.17", head)


def test_a_branch_of_the_origin_of_a_clone_counts(home: Home, source: Path, tmp_path: Path):
    branches(source, "8.11")
    git(tmp_path, "clone", "--quiet", str(source), "clone")
    clone = str(tmp_path / "clone")
    assert checked_out(home, clone, "geonames", versions={"8.11.0": "es"})[1].revision == "8.11"
    assert checked_out(home, clone, "geonames", "8.11")[1].revision == "8.11"


def test_a_repository_that_is_a_track_gives_it_its_name(home: Home, tmp_path: Path):
    files = {name.removeprefix("x/"): text for name, text in track_files("x").items()}
    commit_files(tmp_path / "my tracks.git", files)
    path, _ = checked_out(home, str(tmp_path / "my tracks.git"), ".")
    assert path.name == "my_tracks"
    assert (path / "track.json").is_file()


@pytest.fixture
def difficult(source: Path) -> Path:
    """Repositories that are wrong, below one folder."""
    folder = source.parent
    branches(source, "7", "8")
    commit_files(folder / "none", {"README.md": "no tracks"})
    commit_files(folder / "many", {f"t{number}/track.json": "{}" for number in range(12)})
    linked = folder / "linked"
    commit_files(linked, track_files("geonames"))
    (linked / "geonames" / "secret").symlink_to("/etc/passwd")
    git(linked, "add", ".")
    git(linked, "commit", "--quiet", "-m", "Link")
    (folder / "plain").mkdir()
    return folder


def test_mistakes(home: Home, difficult: Path, cases: Cases):
    def refused(arguments: str) -> str:
        repository, track, revision, *versions = arguments.replace("FOLDER", str(difficult)).split()
        engines = {version: name for name, _, version in (one.partition("@") for one in versions)}
        try:
            checked_out(home, repository, track, "" if revision == "-" else revision, engines)
        except BenchctlError as err:
            for folder in ("none", "many", "linked", "some-tracks"):
                if (difficult / folder).exists():
                    short = git(difficult / folder, "rev-parse", "HEAD")[:10]
                    err.message = err.message.replace(short, "COMMIT")
            raise
        return "checked out"

    cases("repository", refused, difficult)
    assert list(home.tracks.iterdir()) == []

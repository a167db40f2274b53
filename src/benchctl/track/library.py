"""Locations of tracks and challenges: shipped with benchctl, by path, or in a git repository."""

import hashlib
import re
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

import msgspec

from benchctl.disk import settle, staging
from benchctl.errors import UsageError, guess
from benchctl.git import Commit, Repository
from benchctl.home import Home

MAIN_FILES = ("track.json", "workload.json")
"""Names of a track's main file: Rally's and OpenSearch Benchmark's."""

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(kind: str, *, package: Path = _PACKAGE) -> Path:
    """Return the directory of shipped `tracks`, `challenges`, `experiments` or `docs`.

    An installed wheel has them inside the package, a checkout at its top.
    """
    inside = package / "shipped" / kind
    return inside if inside.is_dir() else package.parents[1] / kind


def challenge_names() -> tuple[str, ...]:
    """Return the names of the shipped challenges, sorted."""
    return tuple(sorted(path.stem for path in shipped("challenges").glob("*.json")))


def track_names() -> tuple[str, ...]:
    """Return the names of the shipped tracks, sorted."""
    return tuple(sorted(path.parent.name for path in shipped("tracks").glob("*/track.json")))


def find_challenge(name: str, known: tuple[str, ...] = ()) -> Path:
    """Find the file of a challenge: a shipped name, or the path of a JSON file.

    `known` are all names that the caller finds, for the hint; empty for the shipped ones.

    Raises:
        UsageError: If there is no such challenge.
    """
    names = challenge_names()
    return _find(name, "challenge", shipped("challenges") / f"{name}.json", names, known or names)


def find_track(name: str) -> Path:
    """Find the main file of a track: a shipped name, or the path of a directory or file.

    Raises:
        UsageError: If there is no such track.
    """
    path = _find(name, "track", shipped("tracks") / name / "track.json", track_names(), track_names())
    main_file = next((path / main for main in MAIN_FILES if (path / main).is_file()), path)
    if main_file.is_dir():
        raise UsageError(
            f"{path} holds no {' and no '.join(MAIN_FILES)}", hint="give the directory of one track"
        )
    return main_file


def _find(
    name: str, kind: str, shipped_path: Path, shipped_names: tuple[str, ...], known: tuple[str, ...]
) -> Path:
    if name in shipped_names:
        return shipped_path
    with suppress(OSError):  # a name that no file can have
        if Path(name).exists():
            return Path(name)
    if "/" in name or name.endswith(".json"):
        raise UsageError(f"no such {kind}: {name}", hint=f"list shipped {kind}s with: benchctl list {kind}s")
    raise UsageError(
        f"unknown {kind} '{name}'",
        hint=f"{guess(name, known)} known: {', '.join(known)}; or use a path".lstrip(),
    )


# Tracks in git repositories.

_VERSION: Final = re.compile(
    r"(?P<major>\d+)(?:\.(?P<minor>\d+)(?:\.(?P<patch>\d+)(?P<suffix>-.+)?)?)?", re.ASCII
)
_NEWEST: Final = ("main", "master")
_MOST_NAMES: Final = 10
_DIGITS: Final = 12


class TrackSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The place of a track in a git repository."""

    repository: str  # URL, or absolute path
    track: str  # its name there
    revision: str  # branch, tag or commit, as given or chosen by the engines' version
    commit: str  # hash of what that was
    changed: str  # hash of the last commit that changed the track, or files outside of all tracks
    outdated: str = ""  # the reason why an earlier copy of the repository was used; empty if it was not

    @property
    def text(self) -> str:
        """The place, for readers."""
        short = self.commit[:_DIGITS]
        revision = "" if self.revision == self.commit else f" ({self.revision})"
        return f"track {self.track} of {self.repository}, commit {short}{revision}"


def checked_out(
    home: Home,
    repository: str,
    track: str,
    revision: str = "",
    versions: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Path, TrackSource]:
    """Check a track out of a git repository; what was checked out before is used again.

    Args:
        home: that keeps copies of repositories, and checkouts.
        repository: its URL or path.
        track: the name of the track's directory in it, `.` for the repository itself.
        revision: branch, tag or commit; empty to choose a branch as Rally does.
        versions: version of an engine -> variant that has it; for that choice.

    Returns:
        The track's directory, and its place in the repository.

    Raises:
        UsageError: If there is no such repository, revision or track, or a link leads out of it.
        BenchctlError: If the repository cannot be copied, or there is no git.
    """
    source = Repository(home, repository, "--track-repository", revision=revision, stale=True)
    branches = source.refs("refs/heads", "refs/remotes/origin")
    if not revision:
        revision = _branch(source, branches, versions)
    commit = source.commit("--track-revision", branches.get(revision, revision))
    files = source.files(commit)
    others = _others(source, commit, track, revision, files)
    changed = source.last_change(commit, others)
    place = TrackSource(source.place, track, revision, commit.sha, changed.sha, source.outdated)
    # A directory that becomes a track is no longer shared, which changes none of its files.
    own = sorted(path for path in files if not any(_is_below(path, other) for other in others))
    key = hashlib.sha256("\0".join((source.place, track, *own)).encode(errors="surrogateescape"))
    final = home.tracks / f"{changed.sha[:_DIGITS]}-{key.hexdigest()[:_DIGITS]}"
    # A track in the top directory has the repository's name.
    name = re.sub(r"[^\w.-]|^\.+", "_", PurePosixPath(source.place).name.removesuffix(".git"), flags=re.ASCII)
    if not final.is_dir():
        with staging(home.tracks, f"check out track {track}") as folder:
            tree = source.checkout(commit, folder)
            shutil.rmtree(tree / ".git")
            for path in tree.rglob("*"):
                if path.is_symlink() and not path.resolve().is_relative_to(tree.resolve()):
                    raise UsageError(
                        f"{source.text}: {path.relative_to(tree)} is a link out of the repository",
                        hint="replace it with a file",
                    )
            (folder / "ready").mkdir()
            tree.rename(folder / "ready" / name)
            settle(folder / "ready", final)
    return final / name / track, place


def _branch(source: Repository, branches: Collection[str], versions: Mapping[str, str]) -> str:
    """Return the branch for the engines; of a repository without branches for versions, its own default."""
    numbers = [name for name in branches if _VERSION.fullmatch(name)]
    newest = next((name for name in _NEWEST if name in branches), "HEAD")
    if not numbers:
        return "HEAD"
    tags = source.refs("refs/tags")
    chosen = {version: _matching(version, numbers, tags, newest) for version in versions}
    for version, name in chosen.items():
        if not name:
            raise UsageError(
                f"--track-repository: {source.text} has no branch for {versions[version]} ({version})",
                hint=f"name one with --track-revision: {', '.join([*numbers, newest][-_MOST_NAMES:])}",
            )
    names = dict.fromkeys(chosen.values())
    if len(names) > 1:
        pairs = ", ".join(f"{name} for {versions[version]}" for version, name in chosen.items())
        raise UsageError(
            f"--track-repository: the variants' versions have different branches: {pairs}",
            hint=f"choose one for all variants, such as --track-revision {next(iter(names))}",
        )
    return next(iter(names), newest)


def _matching(version: str, branches: Collection[str], tags: Collection[str], newest: str) -> str:
    """Return the branch or tag for a version, as Rally chooses it; empty for none.

    That is the branch of the version itself, of its minor or the nearest lower one, or of its major; else
    such a tag, with a `v`; else, for a major above that of all branches, the newest branch.
    """
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return newest
    major, minor = int(parts["major"]), int(parts["minor"] or 0)
    exact = [version, version.removesuffix(parts["suffix"] or ""), f"{major}.{minor}"]
    minors = {int(name.partition(".")[2]) for name in branches if re.fullmatch(rf"{major}\.\d+", name)}
    lower = f"{major}.{max((number for number in minors if number <= minor), default=minor)}"
    branch = next((name for name in (*exact, lower, str(major)) if name in branches), "")
    branch = branch or next((f"v{name}" for name in (*exact, str(major)) if f"v{name}" in tags), "")
    is_newer = all(major > int(name.partition(".")[0]) for name in branches)
    return branch or (newest if is_newer else "")


def _others(
    source: Repository, commit: Commit, track: str, revision: str, files: Collection[str]
) -> list[str]:
    """Return the directories of the other tracks of a commit; the track is one of its own."""
    mains = (path for path in map(PurePosixPath, files) if path.name in MAIN_FILES)
    tracks = sorted({str(path.parent) for path in mains})
    if track not in tracks:
        shown = ", ".join(tracks[:_MOST_NAMES]) + (", ..." if len(tracks) > _MOST_NAMES else "")
        raise UsageError(
            f"{source.text} has no track '{track}' in {revision} (commit {commit.short})",
            hint=f"{guess(track, tracks)} tracks: {shown or 'none'}".lstrip(),
        )
    return [name for name in tracks if not _is_below(name, track) and not _is_below(track, name)]


def _is_below(path: str, folder: str) -> bool:
    return folder in (".", path) or path.startswith(f"{folder}/")

"""Locations of tracks and challenges: shipped with benchctl, or the user's own by path."""

from contextlib import suppress
from pathlib import Path

from benchctl.errors import UsageError, guess

MAIN_FILES = ("track.json", "workload.json")
"""Names of a track's main file: Rally's and OpenSearch Benchmark's."""

_DEPTHS = ("*", "*/*")  # of tracks in repositories

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(kind: str, *, package: Path = _PACKAGE) -> Path:
    """Return the directory of shipped `tracks`, `challenges` or `experiments`.

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


def find_challenge(name: str, also: tuple[str, ...] = ()) -> Path:
    """Find the file of a challenge: a shipped name, or the path of a JSON file.

    `also` are names that would have been found elsewhere, for the hint.

    Raises:
        UsageError: If there is no such challenge.
    """
    path = Path(name)
    is_track = path.name in MAIN_FILES
    with suppress(OSError, ValueError):  # a name that no file can have
        is_track |= any((path / main).is_file() for main in MAIN_FILES)
    if name not in challenge_names() and (is_track or name in track_names()):
        raise UsageError(f"{name} is a track, not a challenge", hint=f"use --track {name}")
    return _find(
        name,
        "challenge",
        shipped("challenges") / f"{name}.json",
        challenge_names(),
        (*also, *challenge_names()),
    )


def find_track(name: str) -> Path:
    """Find the main file of a track: a shipped name, or the path of a directory or file.

    Raises:
        UsageError: If there is no such track, or the folder has several.
    """
    path = _find(name, "track", shipped("tracks") / name / "track.json", track_names(), track_names())
    if not path.is_dir():
        return path
    found = next((path / main for main in MAIN_FILES if (path / main).is_file()), None)
    if found is not None:
        return found
    inner = sorted(
        {file.parent for main in MAIN_FILES for depth in _DEPTHS for file in path.glob(f"{depth}/{main}")}
    )
    if inner:
        names = ", ".join(str(folder.relative_to(path)) for folder in inner)
        raise UsageError(
            f"{path} holds {len(inner)} track{'s' if len(inner) > 1 else ''}: {names}",
            hint=f"name one, such as {inner[0]}",
        )
    raise UsageError(f"{path} holds no {' and no '.join(MAIN_FILES)}", hint="give the directory of a track")


def _find(
    name: str, kind: str, shipped_path: Path, shipped_names: tuple[str, ...], known: tuple[str, ...]
) -> Path:
    if name in shipped_names:
        return shipped_path
    path = Path(name)
    try:
        if path.exists():
            return path
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) else err
        raise UsageError(f"cannot look for {kind} '{name}': {reason}") from err
    if "/" in name or name.endswith(".json"):
        what = "directory" if kind == "track" and not name.endswith(".json") else "file"
        raise UsageError(f"no such {what}: {name}", hint=f"list shipped {kind}s with: benchctl list {kind}s")
    raise UsageError(
        f"unknown {kind} '{name}'",
        hint=f"{guess(name, known)} known: {', '.join(known)}; or use a path".lstrip(),
    )

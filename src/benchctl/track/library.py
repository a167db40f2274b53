"""Where tracks and challenges are found: the ones shipped with benchctl, and the user's own by path."""

import difflib
from pathlib import Path

from benchctl.errors import UsageError

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(kind: str) -> Path:
    """The folder of shipped `tracks` or `challenges`.

    An installed wheel carries them inside the package; in a checkout they stand at its top.
    """
    inside = _PACKAGE / "shipped" / kind
    return inside if inside.is_dir() else _PACKAGE.parents[1] / kind


def challenge_names() -> tuple[str, ...]:
    """Names of the shipped challenges, sorted."""
    return tuple(sorted(path.stem for path in shipped("challenges").glob("*.json")))


def track_names() -> tuple[str, ...]:
    """Names of the shipped tracks, sorted."""
    return tuple(sorted(path.parent.name for path in shipped("tracks").glob("*/track.json")))


def find_challenge(name: str) -> Path:
    """The file of a challenge: a shipped name, or the path of a JSON file.

    Raises:
        UsageError: there is no such challenge.
    """
    return _find(name, "challenge", shipped("challenges") / f"{name}.json", challenge_names())


def find_track(name: str) -> Path:
    """The `track.json` of a track: a shipped name, or the path of a folder or file.

    Raises:
        UsageError: there is no such track.
    """
    path = _find(name, "track", shipped("tracks") / name / "track.json", track_names())
    return path / "track.json" if path.is_dir() else path


def _find(name: str, kind: str, shipped_path: Path, known: tuple[str, ...]) -> Path:
    if name in known:
        return shipped_path
    path = Path(name)
    try:
        if path.exists():
            return path
    except OSError as err:
        raise UsageError(f"cannot look for {kind} '{name}': {err.strerror}") from err
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    raise UsageError(
        f"there is no {kind} '{name}'",
        hint=f"{guess}known: {', '.join(known)}; or give the path of a {kind} file",
    )

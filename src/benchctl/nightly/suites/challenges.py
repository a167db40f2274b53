"""Names of challenges in a suite, looked up before anybody waits for a lock."""

from collections.abc import Iterator
from pathlib import Path

from benchctl.errors import BenchctlError, UsageError
from benchctl.nightly.suites.suite import Suite
from benchctl.track.library import challenge_names, find_challenge
from benchctl.track.load import load_track
from benchctl.yaml_file import Step, read_typed

Named = tuple[str, tuple[Step, ...]]
"""(challenge, place in the file)."""


def check_challenges(path: Path, suite: Suite) -> None:
    """Refuse a challenge that neither benchctl nor the suite's track has.

    Paths are left to the night, as is a track that cannot be loaded: files come and go, and a night that
    cannot be measured tells somebody.

    Args:
        path: of the suite's file.
        suite: that was loaded from it.

    Raises:
        UsageError: there is no such challenge: with file, line and column.
    """
    unknown = [(name, steps) for name, steps in _named(suite) if name not in challenge_names()]
    if not unknown:
        return
    common = {name: value for name, value in suite.params.items() if "." not in name}
    try:
        track, _ = load_track(suite.track, common)
    except BenchctlError:
        return
    own = tuple(track.challenges)
    for name, steps in unknown:
        if name in own:
            continue
        try:
            find_challenge(name, also=own)
        except UsageError as err:
            raise read_typed(path, Suite).document.refuse(steps, err.message, hint=err.hint) from err


def _named(suite: Suite) -> Iterator[Named]:
    """All challenges that are no paths: those were made absolute."""
    for key, names in (("challenges", suite.challenges), ("warmup-challenges", suite.warmup_challenges)):
        for place, name in enumerate(names):
            if not Path(name).is_absolute():
                yield name, (key, place)
    for _, variant, steps in suite.members():
        for name in variant.spec().warmups:
            if not Path(name).is_absolute():
                yield name, steps

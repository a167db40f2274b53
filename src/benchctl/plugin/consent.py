"""Consent to execute a track's Python plug-in: given for one command, or remembered for its very content."""

import json
import time
from dataclasses import dataclass

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.plugin.code import Code


@dataclass(frozen=True)
class Consent:
    """Which plug-ins may be executed.

    A remembered consent is to the digest of all files: when one of them changes, it is gone.

    Args:
        home: where consents are remembered.
        given: whether this command was told to trust the plug-in, whatever is remembered.
    """

    home: Home
    given: bool = False

    def covers(self, code: Code) -> bool:
        """Whether a plug-in may be executed."""
        return self.given or self.is_remembered(code)

    def is_remembered(self, code: Code) -> bool:
        """Whether a consent to it is remembered."""
        return (self.home.trusted / f"{code.digest}.json").is_file()

    def remember(self, code: Code) -> None:
        """Remember a consent.

        Raises:
            BenchctlError: the home cannot be written to.
        """
        path = self.home.trusted / f"{code.digest}.json"
        said = {
            "plug-in": str(code.path),
            "files": sorted(code.files),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        try:
            path.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        except OSError as err:
            raise BenchctlError(f"cannot write {path}: {err.strerror}") from err

    def forget(self, code: Code) -> int:
        """Take back the consents to a plug-in, those to earlier contents of the same file included.

        Returns:
            How many there were.
        """
        found = 0
        for path in sorted(self.home.trusted.glob("*.json")):
            if path.stem == code.digest or _main_file(path.read_text(encoding="utf-8")) == str(code.path):
                path.unlink()
                found += 1
        return found


def _main_file(text: str) -> str | None:
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said.get("plug-in") if isinstance(said, dict) else None


def refusal(problem: str, code: Code | None) -> UsageError:
    """What to say when something needs a plug-in that may not be executed.

    Args:
        problem: what needs it, and what would be missing.
        code: the plug-in; None where there is none.
    """
    if code is None:
        return UsageError(problem)
    return UsageError(
        problem,
        hint=f"it would execute {code.describe()}; read them, then give --trust, or say "
        f"`benchctl track trust {code.path.parent}` once",
    )

"""Programs of the system that are asked and told: crontab, systemctl."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from benchctl.errors import BenchctlError

_TIMEOUT_S = 60


def find(name: str, environ: Mapping[str, str]) -> str | None:
    """Where a program is; None when it is not installed."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def run(
    command: Sequence[str], environ: Mapping[str, str], *, told: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, whatever its exit status; it speaks English.

    Raises:
        BenchctlError: it cannot be started or does not end.
    """
    try:
        return subprocess.run(
            command,
            input=told,
            capture_output=True,
            env={**environ, "LC_ALL": "C"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except OSError as err:
        raise BenchctlError(f"cannot start {command[0]}: {err.strerror}") from err
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(f"{command[0]} did not end within {_TIMEOUT_S} s") from err


def said(ended: subprocess.CompletedProcess[bytes]) -> str:
    """What it complained of, on one line."""
    text = " ".join((ended.stderr or ended.stdout).decode("utf-8", "replace").split())
    return text or f"it exited with {ended.returncode} and said nothing"

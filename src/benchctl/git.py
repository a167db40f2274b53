"""Calls of the git that is installed."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchctl.errors import BenchctlError

_TIMEOUT_S: Final = 600
# A repository that a hook or a shell is in must not stand in for the one that is meant.
_OF_A_REPOSITORY: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")


def environment() -> dict[str, str]:
    """Return this process's environment, without what names a repository other than the folder's."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}


def git(arguments: Sequence[str], folder: Path, *, alone: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, to its end, whatever its status; it asks nothing.

    `alone`: without the user's settings, and outside of any repository that the folder may lie in.

    Raises:
        BenchctlError: If there is no git, or it takes too long.
    """
    program = shutil.which("git")
    if program is None:
        raise BenchctlError("git is not installed", hint="install it")
    around = environment() | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    if alone:
        around |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
        }
    try:
        return subprocess.run(
            [program, *arguments],
            cwd=folder,
            env=around,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(f"git {arguments[0]} did not end within {_TIMEOUT_S} s in {folder}") from err


def said(done: subprocess.CompletedProcess[bytes], most: int = 5) -> str:
    """Return the first lines of what git complains of."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return "; ".join(line.removeprefix("error: ").removeprefix("fatal: ") for line in lines[:most])

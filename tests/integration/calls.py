"""What it means to call benchctl as a user does."""

import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import benchctl
from benchctl.cli import root
from benchctl.cli.boundary import guarded

Benchctl = Callable[..., subprocess.CompletedProcess[str]]
"""Runs the command line: arguments, and changes of the environment by keyword."""

# Starting Python and importing benchctl takes longer than most commands do: processes are forked from one
# that has done both. What is interrupted, killed, or at work beside others is `python -m benchctl`.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [module.name for module in pkgutil.walk_packages(benchctl.__path__, "benchctl.")]
)


def call(
    arguments: tuple[str, ...], environ: Mapping[str, str], timeout_s: float = 500.0
) -> subprocess.CompletedProcess[str]:
    """Call benchctl in a process of its own, and wait for its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = _processes.Process(
            target=_called, name="MainProcess", args=(arguments, dict(environ), folder)
        )
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["benchctl", *arguments], timeout_s)
        said = ((folder / stream).read_text(encoding="utf-8") for stream in ("stdout", "stderr"))
        return subprocess.CompletedProcess(["benchctl", *arguments], process.exitcode or 0, *said)


def _called(arguments: tuple[str, ...], environ: Mapping[str, str], folder: Path) -> None:
    os.environ.clear()
    os.environ.update(environ)
    for number, stream in ((1, "stdout"), (2, "stderr")):
        with (folder / stream).open("wb") as file:
            os.dup2(file.fileno(), number)
    sys.exit(int(guarded(root, list(arguments))))

"""What it means to call benchctl as a user does."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from benchctl.cli import root
from benchctl.cli.boundary import guarded

Benchctl = Callable[..., subprocess.CompletedProcess[str]]
"""Runs the command line: arguments, and changes of the environment by keyword."""

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def call(arguments: tuple[str, ...], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Call benchctl in this process, which is afterwards as it was before.

    Starting Python and importing benchctl takes longer than most commands do. What is interrupted, killed, or
    at work beside others is `python -m benchctl` instead.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        texts = [Path(name) / stream for stream in ("stdout", "stderr")]
        stack.enter_context(_as_it_was(environ))
        for descriptor, text, redirect in zip((1, 2), texts, (redirect_stdout, redirect_stderr), strict=True):
            file = stack.enter_context(text.open("w", encoding="utf-8"))
            stack.enter_context(_descriptor_to(descriptor, file.fileno()))
            stack.enter_context(redirect(file))
        status = guarded(root, list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
        printed = (text.read_text(encoding="utf-8") for text in texts)
        return subprocess.CompletedProcess(["benchctl", *arguments], int(status), *printed)


@contextmanager
def _as_it_was(environ: Mapping[str, str]) -> Iterator[None]:
    """Set the environment for the block; it, the working directory and handlers of signals are put back."""
    before, folder = dict(os.environ), Path.cwd()
    handlers = {number: signal.getsignal(number) for number in _HANDLED}
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _descriptor_to(descriptor: int, file: int) -> Iterator[None]:
    """Let a standard stream of this process, and of children, be a file for the block."""
    kept = os.dup(descriptor)
    os.dup2(file, descriptor)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)

"""Telling a program: the message as JSON on its standard input."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from benchctl.nightly.notify.failure import SendError
from benchctl.nightly.notify.letter import Letter
from benchctl.nightly.notify.redaction import Redactor
from benchctl.nightly.notify.specs import CommandSpec

_TAIL_BYTES = 2000
_GRACE_S = 2.0


def run_command(
    spec: CommandSpec, letter: Letter, *, environ: Mapping[str, str], folder: Path, redactor: Redactor
) -> None:
    """Start the program and wait for its end.

    Args:
        spec: which.
        letter: what it is told.
        environ: its environment.
        folder: its working directory; a program with a slash in its path is looked for from there.
        redactor: cleans what it says.

    Raises:
        SendError: it could not be started, took too long, or failed; its last words are in the reason.
    """
    # Files in memory: a program that never reads, a grandchild that keeps its output open, a full disk, none
    # of them can stop us.
    with _in_memory("message") as message, _in_memory("output") as output:
        message.write(bytes(letter.body))
        message.seek(0)
        try:
            process = subprocess.Popen(
                spec.run,
                stdin=message,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=dict(environ),
                start_new_session=True,
            )
        except OSError as err:
            raise SendError(f"it cannot be started: {err.strerror}", silent=True) from err
        try:
            status = process.wait(spec.timeout_s)
        except subprocess.TimeoutExpired:
            raise SendError(
                f"it took longer than {spec.timeout_s} s{_last_words(output, redactor)}"
            ) from None
        finally:
            if process.returncode is None:
                _end(process)
        if status:
            how = f"it exited with {status}" if status > 0 else f"signal {-status} ended it"
            raise SendError(how + _last_words(output, redactor))


@contextlib.contextmanager
def _in_memory(name: str) -> Iterator[BinaryIO]:
    with open(os.memfd_create(name), "w+b", buffering=0) as file:  # noqa: PTH123 - a descriptor, no path
        yield file


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started; what ignores that is killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    process.wait()


def _last_words(output: BinaryIO, redactor: Redactor) -> str:
    """The end of what it printed; cleaned as a whole first, or the cut might leave half a secret."""
    size = output.seek(0, os.SEEK_END)
    # A secret that began before the part that is looked at is cut off with the line that it is in.
    start = max(size - 16 * _TAIL_BYTES, 0)
    output.seek(start)
    said = redactor.clean(output.read(16 * _TAIL_BYTES).decode("utf-8", "replace"))
    if start:
        said = said.partition("\n")[2]
    said = " / ".join(line.strip() for line in said[-_TAIL_BYTES:].splitlines() if line.strip())
    return f": {said}" if said else ""

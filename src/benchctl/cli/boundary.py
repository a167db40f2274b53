"""The one error boundary: errors into a message and an exit code, signals into an orderly end."""

import errno
import os
import signal
import stat
import sys
import tempfile
from types import FrameType

import click

from benchctl.cli.streams import accept_all_characters, complain
from benchctl.errors import BenchctlError, ExitCode

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def guarded(command: click.Command, args: list[str] | None = None) -> int:
    """Run a command and say how it ended.

    A user's mistake and a failing node end in one message on standard error. Everything else is a bug and
    keeps its traceback.

    Returns:
        The process's exit code.
    """
    accept_all_characters()
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` asked for that
        signal.signal(signal.SIGHUP, _hang_up)
    status = ExitCode.OK
    try:
        command.main(args=args, prog_name="benchctl", standalone_mode=False)
    except BenchctlError as err:
        if err.exit_code == ExitCode.INTERRUPTED:
            _end_at_once_next_time()
        complain(f"benchctl: {err}")
        status = err.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        _end_at_once_next_time()
        complain("benchctl: interrupted")
        status = ExitCode.INTERRUPTED
    except click.exceptions.Exit as err:
        return err.exit_code
    except click.ClickException as err:
        err.show()
        return err.exit_code
    except BrokenPipeError:
        # The reader of our output went away (`| head`); there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = ExitCode.FAILED
    except OSError as err:
        words = _refused(err)
        if not words:
            raise
        complain(f"benchctl: {words}")
        status = ExitCode.FAILED
    return status


def _refused(err: OSError) -> str:
    """What a file system refuses that the reader can mend without a traceback; empty for everything else."""
    if err.errno in _FULL:
        return f"no space is left to write {err.filename or 'the output'}\n  hint: free some space"
    if err.errno in _FORBIDDEN and err.filename:
        return (
            f"cannot use {err.filename}: {err.strerror}\n"
            "  hint: check who owns it, or set BENCHCTL_HOME to a folder that you can write to"
        )
    if err.errno == errno.ENOENT and not err.filename and tempfile.tempdir is None:
        return f"{err.strerror}\n  hint: set TMPDIR to a folder that you can write to"
    return ""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a run like Ctrl-C does: nodes stopped, finished forks kept."""
    raise KeyboardInterrupt


def _hang_up(_signal: int, _frame: FrameType | None) -> None:
    """End, and say no more to a terminal that was closed: each word would be an error on the way."""
    for descriptor in (1, 2):
        if _hung_up(descriptor):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    raise KeyboardInterrupt


def _hung_up(descriptor: int) -> bool:
    """Whether it is a terminal that is gone: still a device, but no longer one that can be asked anything."""
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor)
    except OSError:  # closed before benchctl was started
        return False


def _end_at_once_next_time() -> None:
    """All is closed, and whoever asks again means it: no traceback from the interpreter's last steps."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

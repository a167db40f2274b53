"""The error boundary and the end of the process: messages, exit codes, signals, threads left behind."""

import contextlib
import errno
import math
import os
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from benchctl.cli.streams import accept_all_characters, complain
from benchctl.errors import BenchctlError, ExitCode, UsageError, guess, nearest

_SAME_PRESS_S = 0.25
# The dashes alone make any two options a little alike.
_ALIKE = 0.75
_EXTRA = re.compile(r"Got unexpected extra arguments? \((\S+)[ )]")
# Commands of other tools, and others that are easily guessed.
_COMMANDS = {
    "benchctl create-track": "use: benchctl track new --from-index URL INDEX",
    "benchctl list races": "use: benchctl runs list",
    "benchctl list runs": "use: benchctl runs list",
    "benchctl race": "use: benchctl run",
    "benchctl report": "use: benchctl show latest --html DIR",
    "benchctl runs delete": "use: benchctl runs rm RUN",
    "benchctl version": "use: benchctl --version",
}


def end(status: int) -> NoReturn:
    """End the process; the interpreter would wait for every thread that a plug-in left behind.

    To be called last, when all that is benchctl's own has been closed.
    """
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(status)
    sys.exit(status)


def guarded(command: click.Command, args: list[str] | None = None) -> int:
    """Run a command and return the process's exit code.

    A user's mistake and a failing node end in one message on standard error. Everything else is a bug and
    keeps its traceback.
    """
    accept_all_characters()
    _handle_signals(_interrupter())
    try:
        status = _flushed(_run(command, sys.argv[1:] if args is None else args))
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nobody is left to tell, not even as Python ends.
        for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
            _discard(stream.fileno())
        status = ExitCode.CLOSED
    return status


def _discard(descriptor: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _flushed(status: int) -> int:
    """Write what is still buffered; a result that cannot be written is no success."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as err:
            _discard(stream.fileno())  # the interpreter would try again as it ends, and print a traceback
            if status == ExitCode.OK:
                status = ExitCode.FAILED
                complain(f"benchctl: cannot write the output: {err.strerror}")
    return status


def _run(command: click.Command, args: Sequence[str]) -> int:
    """Run a command, report errors, and return the exit code."""
    try:
        command.main(args=list(args), prog_name="benchctl", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as err:
        err.show()
        return err.exit_code
    except click.ClickException as err:
        return _told(_explained(err))
    except BenchctlError as err:
        return _told(err)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _told(BenchctlError("interrupted", exit_code=ExitCode.INTERRUPTED))
    except SystemExit as err:
        # So click ends where nobody reads its output, whatever it is told; and with 0 after a completion.
        if err.code:
            raise BrokenPipeError from err
    except OSError as err:
        refused = _refused(err)
        if refused is None:
            raise
        return _told(refused)
    return ExitCode.OK


def _told(err: BenchctlError) -> int:
    if err.exit_code == ExitCode.INTERRUPTED:
        # All is closed: the next signal ends the process, and a traceback would help nobody.
        _handle_signals(signal.SIG_DFL)
    complain(f"benchctl: {err}")
    return err.exit_code


def _explained(err: click.ClickException) -> BenchctlError:
    """Return click's usage error in the form of all other messages."""
    context = err.ctx if isinstance(err, click.UsageError) else None
    message, hint = err.format_message(), ""
    if context is not None:
        if isinstance(err, click.NoSuchCommand) and isinstance(context.command, click.Group):
            message, name = err.message, err.command_name
            other = _COMMANDS.get(f"{context.command_path} {name}")
            hint = other or guess(name, context.command.list_commands(context))
        elif isinstance(err, click.NoSuchOption):
            message, hint = err.message, _meant(err.option_name, context.command)
        elif (extra := _EXTRA.match(message)) and "--challenge" in _options(context.command):
            hint = _meant_challenge(extra[1])
        hint = hint or f"see: {context.command_path} --help"
    return UsageError(message[:1].lower() + message[1:].rstrip("."), hint=hint)


def _options(command: click.Command) -> list[str]:
    return [name for param in command.params for name in param.opts if name.startswith("--")]


def _meant_challenge(word: str) -> str:
    """Return the option of a challenge that an argument names; empty if it names none."""
    from benchctl.track.library import challenge_names  # noqa: PLC0415 - no other message needs it

    name = word if word.endswith(".json") else nearest(word, challenge_names())
    return "" if name is None else f"did you mean --challenge {name}?"


def _meant(option: str, command: click.Command) -> str:
    """Return the option probably meant; other tools' options may be parameters here."""
    from benchctl.track.load import TASK_PARAMETERS  # noqa: PLC0415 - no other message needs to know of tracks

    if option in (instead := getattr(command, "instead", {})):
        return str(instead[option])
    names = _options(command)
    parameters = {f"--{name.replace('_', '-')}": name for name in TASK_PARAMETERS if "--param" in names}
    near = nearest(option, [*names, *parameters], alike=_ALIKE)
    if near in parameters and near not in names:
        return f"{parameters[near]} is a parameter: --param {parameters[near]}=VALUE"
    return "" if near is None else f"did you mean '{near}'?"


def _refused(err: OSError) -> BenchctlError | None:
    """Return what a file system refuses that the reader can fix; None for everything else."""
    if err.errno in {errno.ENOSPC, errno.EDQUOT}:
        return BenchctlError(
            f"no space is left to write {err.filename or 'the output'}", hint="free some space"
        )
    if err.errno in {errno.EACCES, errno.EPERM, errno.EROFS} and err.filename:
        from benchctl.home import home_root  # noqa: PLC0415 - no help and no other message needs it

        is_ours = Path(os.fsdecode(err.filename)).is_relative_to(home_root())
        another = ", or set BENCHCTL_HOME to a directory that you can write to" if is_ours else ""
        return BenchctlError(f"cannot use {err.filename}: {err.strerror}", hint=f"check who owns it{another}")
    if err.errno == errno.ENOENT and not err.filename:
        return BenchctlError(
            f"{err.strerror}",
            hint="go to a directory that exists, and set TMPDIR to one that you can write to",
        )
    return None


def _handle_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    signal.signal(signal.SIGTERM, handler)
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # a shell's `&`, or `nohup`, asked for that
            signal.signal(number, handler)


def _interrupter() -> Callable[[int, FrameType | None], None]:
    """Return a handler that ends a run like Ctrl-C; further signals at once would cut off the cleanup."""
    deaf_until = -math.inf

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal deaf_until
        if number == signal.SIGHUP:
            # Each write to a terminal that was closed would be an error on the way.
            for descriptor in (1, 2):
                with contextlib.suppress(OSError):  # closed before benchctl was started
                    if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                        _discard(descriptor)
        now = time.monotonic()
        if now >= deaf_until:
            deaf_until = now + _SAME_PRESS_S
            raise KeyboardInterrupt

    return interrupt

"""The error boundary and the end of the process: messages, exit codes, signals, threads left behind."""

import errno
import math
import os
import re
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import click

from benchctl.cli.streams import accept_all_characters, complain
from benchctl.errors import BenchctlError, ExitCode, UsageError, guess, nearest

GRACE_S = 2.0
"""For threads that are about to end, or that the interpreter ends on its way out."""


def end_soon(status: int, *, grace_s: float = GRACE_S, leave: Callable[[int], object] = os._exit) -> None:
    """End the process; the interpreter would wait for every thread that is not a daemon.

    To be called last, when all that is benchctl's own has been closed. Costs nothing when no such thread
    is left. Threads may go on for `grace_s` seconds; then `leave` ends the process with the status.
    """
    if _left():
        threading.Thread(target=_watch, args=(status, grace_s, leave), name="end", daemon=True).start()


def _left() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread() and thread.is_alive()
    ]


def _watch(status: int, grace_s: float, leave: Callable[[int], object]) -> None:
    time.sleep(grace_s)
    left = _left()
    if not left:
        return  # the interpreter is on its way
    names = ", ".join(sorted(thread.name for thread in left))
    complain(f"benchctl: exiting while threads of a plug-in still run: {names}")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    leave(status)


# The one error boundary: errors into a message and an exit code, signals into an orderly end.


_SAME_PRESS_S = 0.25

# The dashes alone make any two options a little alike.
_ALIKE = 0.75

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def guarded(command: click.Command, args: list[str] | None = None) -> int:
    """Run a command and return the process's exit code.

    A user's mistake and a failing node end in one message on standard error. Everything else is a bug and
    keeps its traceback.
    """
    accept_all_characters()
    interrupt = _Interrupt()
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # a shell's `&` asked for that
        signal.signal(signal.SIGINT, interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` asked for that
        signal.signal(signal.SIGHUP, interrupt.hang_up)
    try:
        status = _flushed(_run(command, sys.argv[1:] if args is None else args))
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nobody is left to tell, not even as Python ends.
        for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        status = ExitCode.CLOSED
    return status


def _flushed(status: int) -> int:
    """Write what is still buffered; a result that cannot be written is no success."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as err:
            # The interpreter would try again as it ends, and print a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if status == ExitCode.OK:
                status = ExitCode.FAILED
                complain(f"benchctl: cannot write the output: {err.strerror}")
    return status


def _run(command: click.Command, args: Sequence[str]) -> int:
    """Run a command, report errors, and return the exit code."""
    status: int = ExitCode.OK
    try:
        command.main(args=list(args), prog_name="benchctl", standalone_mode=False)
    except BenchctlError as err:
        if err.exit_code == ExitCode.INTERRUPTED:
            _end_at_once_next_time()
        complain(f"benchctl: {err}")
        status = err.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        _end_at_once_next_time()
        complain("benchctl: interrupted")
        status = ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as err:
        err.show()
        status = err.exit_code
    except click.ClickException as err:
        complain(f"benchctl: {_explained(err, args)}")
        status = err.exit_code
    except SystemExit as err:
        # So click ends where nobody reads its output, whatever it is told; and with 0 after a completion.
        if err.code:
            raise BrokenPipeError from err
    except OSError as err:
        words = _refused(err)
        if not words:
            raise
        complain(f"benchctl: {words}")
        status = ExitCode.FAILED
    return status


def _explained(err: click.ClickException, args: Sequence[str]) -> BenchctlError:
    """Return click's usage error in the form of all other messages."""
    context = err.ctx if isinstance(err, click.UsageError) else None
    message, hint = err.format_message(), ""
    if context is not None:
        if isinstance(err, click.NoSuchCommand) and isinstance(context.command, click.Group):
            message, hint = err.message, _meant_command(err.command_name, context, context.command)
        elif isinstance(err, click.NoSuchOption):
            message, hint = err.message, _meant(err.option_name, context.command, args)
        elif (extra := _EXTRA.match(message)) and any(
            "--challenge" in param.opts for param in context.command.params
        ):
            hint = _meant_challenge(extra[1])
        hint = hint or f"see: {context.command_path} --help"
    return UsageError(message[:1].lower() + message[1:].rstrip("."), hint=hint)


# Commands of other tools, others that are easily guessed, and former ones with the page that has a recipe.
_COMMANDS = {
    "benchctl ab": "see: benchctl help pull-requests",
    "benchctl bisect": "see: benchctl help bisect",
    "benchctl create-track": "use: benchctl track new",
    "benchctl explain gc": "see: benchctl help explain",
    "benchctl explain jit": "see: benchctl help explain",
    "benchctl explain os": "see: benchctl help explain",
    "benchctl help": "use: benchctl --help",
    "benchctl list races": "use: benchctl runs list",
    "benchctl list runs": "use: benchctl runs list",
    "benchctl list searches": "see: benchctl help bisect",
    "benchctl lucene": "see: benchctl help settings",
    "benchctl minimize": "see: benchctl help bisect",
    "benchctl nightly annotate": "see: benchctl help nightly",
    "benchctl nightly bisect": "see: benchctl help bisect",
    "benchctl nightly report": "use: benchctl nightly status SUITE --html DIR",
    "benchctl node": "see: benchctl help targets",
    "benchctl plan": "see: benchctl help forks",
    "benchctl race": "use: benchctl run",
    "benchctl report": "use: benchctl show latest --html DIR",
    "benchctl runs delete": "use: benchctl runs rm",
    "benchctl runs export": "see: benchctl help storage",
    "benchctl runs import": "see: benchctl help storage",
    "benchctl schema": "see: benchctl help stored-runs",
    "benchctl sql": "see: benchctl help storage",
    "benchctl version": "use: benchctl --version",
}
_EXTRA = re.compile(r"Got unexpected extra arguments? \((\S+)[ )]")


def _meant_command(name: str, context: click.Context, group: click.Group) -> str:
    """Return the command probably meant; of `explain`, also its arguments in the right order."""
    other = _COMMANDS.get(f"{context.command_path} {name}")
    names = group.list_commands(context)
    run = context.params.get("run")
    if other is None and run in names:
        other = f"use: {context.command_path} {name} {run}"
    return other or guess(name, names)


def _meant_challenge(word: str) -> str:
    """Return the option of a challenge that an argument names; empty if it names none."""
    from benchctl.track.library import challenge_names  # noqa: PLC0415 - no other message needs it

    name = word if word.endswith(".json") else nearest(word, challenge_names())
    return "" if name is None else f"did you mean --challenge {name}?"


# Words for which another option chooses tasks.
_CHOOSE_TASKS = dict.fromkeys(
    ("--operation", "--operations", "--task", "--tasks"), ("--include-tasks", "--task")
)


def _meant(option: str, command: click.Command, args: Sequence[str]) -> str:
    """Return the option probably meant; other tools' options may be parameters here."""
    from benchctl.track.load import TASK_PARAMETERS  # noqa: PLC0415 - no other message needs to know of tracks

    if option in (instead := getattr(command, "instead", {})):
        return str(instead[option])
    option_names = [name for param in command.params for name in param.opts if name.startswith("--")]
    chooser = next((name for name in _CHOOSE_TASKS.get(option, ()) if name in option_names), None)
    if chooser is not None:
        return f"{chooser} NAME chooses tasks"
    options = {f"--{name.replace('_', '-')}": name for name in TASK_PARAMETERS if "--param" in option_names}
    near = nearest(option, [*option_names, *options], alike=_ALIKE)
    if near in options and near not in option_names:
        return f"{options[near]} is a parameter: --param {options[near]}={_value(option, args)}"
    return "" if near is None else f"did you mean '{near}'?"


def _value(option: str, args: Sequence[str]) -> str:
    """Return the value of an option; N if it is not visible."""
    for place, text in enumerate(args):
        name, equals, value = text.partition("=")
        if name == option:
            value = value if equals else "".join(args[place + 1 : place + 2])
            return value if value.isalnum() else "N"
    return "N"


def _refused(err: OSError) -> str:
    """Return what a file system refuses that the reader can fix; empty for everything else."""
    if err.errno in _FULL:
        return f"no space is left to write {err.filename or 'the output'}\n  hint: free some space"
    if err.errno in _FORBIDDEN and err.filename:
        from benchctl.home import home_root  # noqa: PLC0415 - no help and no other message needs it

        is_ours = Path(os.fsdecode(err.filename)).is_relative_to(home_root())
        another = ", or set BENCHCTL_HOME to a directory that you can write to" if is_ours else ""
        return f"cannot use {err.filename}: {err.strerror}\n  hint: check who owns it{another}"
    if err.errno == errno.ENOENT and not err.filename:
        try:
            os.getcwd()  # noqa: PTH109 - Path.cwd() is the same call
        except FileNotFoundError:
            return "the current directory has been deleted\n  hint: change to another one"
        if tempfile.tempdir is None:
            return f"{err.strerror}\n  hint: set TMPDIR to a directory that you can write to"
    return ""


class _Interrupt:
    """SIGTERM and SIGHUP end a run like Ctrl-C; further ones at once would cut off the cleanup: ignored."""

    def __init__(self) -> None:
        self._deaf_until = -math.inf

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if now >= self._deaf_until:
            self._deaf_until = now + _SAME_PRESS_S
            raise KeyboardInterrupt

    def hang_up(self, number: int, frame: FrameType | None) -> None:
        """End without writing to a terminal that was closed: each write would be an error on the way."""
        for descriptor in (1, 2):
            if _hung_up(descriptor):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        self(number, frame)


def _hung_up(descriptor: int) -> bool:
    """Return whether the terminal is gone: still a device, but one that no longer responds."""
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor)
    except OSError:  # closed before benchctl was started
        return False


def _end_at_once_next_time() -> None:
    """Let the next signal end the process: all is closed, and a traceback would help nobody."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)

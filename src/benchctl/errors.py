"""The one error that users see: what happened, what to do about it, and how the process ends."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of a benchctl process."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REGRESSION = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130
    CLOSED = 141
    """Whoever read the output went away; as of a program that SIGPIPE ends."""


class BenchctlError(Exception):
    """A failure that the user can understand and act on; anything else is a bug and keeps its traceback.

    Args:
        message: what happened and where, in one sentence without a final full stop.
        hint: what to do about it; empty when there is nothing sensible to say.
        exit_code: what the process exits with.
    """

    def __init__(self, message: str, *, hint: str = "", exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(BenchctlError):
    """The command line or an input file is wrong; nothing was started."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, exit_code=ExitCode.USAGE)

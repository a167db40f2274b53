"""Cron: a marked block in the user's crontab, put in, replaced and taken out; no other line is touched."""

import re
import shlex
from collections.abc import Mapping

from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.nightly.install import programs
from benchctl.nightly.install.job import Job

# What cron on Debian and its relatives takes for a command; others take more.
_MOST_CHARACTERS = 998
_TOLD_LINES = 20
# Of cron and of busybox.
_NONE_YET = re.compile(r"no crontab for|can't open '[^']*': No such file or directory")


def block_of(job: Job) -> str:
    """The lines of a suite, between its marks.

    The environment is set within the line: lines of their own would be for all that follows, too. Cron takes
    a per cent sign for the end of the line. What it prints is mailed by cron: the end of the log of a night
    that failed, which may be one in which benchctl did not even start and could tell nobody.

    Raises:
        UsageError: it is longer than cron takes.
    """
    secrets, log = shlex.quote(str(job.secrets)), shlex.quote(str(job.log))
    steps = [
        "set -a",
        *(f"{name}={shlex.quote(value)}" for name, value in job.environment),
        f"[ ! -f {secrets} ] || . {secrets}",
        f"exec {shlex.join(job.command)}",
    ]
    alarm = ExitCode.REGRESSION.value
    line = f"({'; '.join(steps)}) >>{log} 2>&1 || [ $? -eq {alarm} ] || tail -n {_TOLD_LINES} {log}"
    command = line.replace("%", r"\%")
    if len(command.encode()) > _MOST_CHARACTERS:
        raise UsageError(
            f"the crontab line is {len(command.encode())} bytes long, and cron takes {_MOST_CHARACTERS}",
            hint="install with a shorter search path, such as PATH=/usr/bin:/bin, or with --kind systemd",
        )
    begin, end = _marks(job.suite)
    return f"{begin}\n{job.when.cron} {command}\n{end}\n"


class Crontab:
    """The crontab of the user who runs benchctl.

    Args:
        environ: the environment; `crontab` is looked for in its PATH.

    Raises:
        BenchctlError: cron is not installed.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        program = programs.find("crontab", environ)
        if program is None:
            raise BenchctlError(
                "cron is not installed here: there is no crontab program",
                hint="install it (the package is called cron or cronie), or use --kind systemd; or have "
                "whatever starts jobs here run what `benchctl nightly install --kind cron` prints",
            )
        self._program = program
        self._environ = environ

    def read(self) -> str:
        """All of it; empty when there is none.

        Raises:
            BenchctlError: it cannot be read. Nothing may be written then, or other lines might be lost.
        """
        ended = programs.run([self._program, "-l"], self._environ)
        if ended.returncode:
            why = programs.said(ended)
            if not _NONE_YET.search(why) or ended.stdout:
                raise BenchctlError(f"cannot read the crontab: {why}", hint="`crontab -l` has to work first")
            return ""
        return _text(ended.stdout)

    def install(self, job: Job) -> bool:
        """Put a suite in, or replace what is there of it.

        Returns:
            Whether anything changed.

        Raises:
            BenchctlError: the crontab cannot be read or written, or its marks are damaged.
        """
        return self._replace(job.suite, block_of(job))

    def remove(self, suite: str) -> bool:
        """Take a suite out.

        Returns:
            Whether it was there.

        Raises:
            BenchctlError: as `install`.
        """
        return self._replace(suite, "")

    def _replace(self, suite: str, block: str) -> bool:
        before = self.read()
        after = with_block(before, suite, block)
        if after == before:
            return False
        ended = programs.run(
            [self._program, "-"], self._environ, told=after.encode("utf-8", "surrogateescape")
        )
        if ended.returncode:
            raise BenchctlError(f"cannot write the crontab: {programs.said(ended)}")
        # Some take a crontab and say nothing of what they did not like.
        if self.read().rstrip("\n") != after.rstrip("\n"):
            raise BenchctlError(
                "the crontab is not what was written",
                hint="look at it: crontab -l; somebody else may be editing",
            )
        return True


def with_block(text: str, suite: str, block: str) -> str:
    """A crontab with the block of a suite in place of the one that it has; an empty one takes it out.

    Raises:
        BenchctlError: its marks are damaged.
    """
    before, old, after = _split(text, suite)
    if not old and not block:
        return text
    # Cron passes over a last line that does not end.
    if block and before and not before.endswith("\n"):
        before += "\n"
    return before + block + after


def block_in(text: str, suite: str) -> str:
    """The lines of a suite in a crontab, with their marks; empty when it is not there.

    Raises:
        BenchctlError: its marks are damaged.
    """
    return _split(text, suite)[1]


def _split(text: str, suite: str) -> tuple[str, str, str]:
    """What is before the block of a suite, the block with its marks, and what is after it."""
    begin, end = _marks(suite)
    lines = text.split("\n")
    begins = [number for number, line in enumerate(lines) if line.strip() == begin]
    ends = [number for number, line in enumerate(lines) if line.strip() == end]
    if not begins and not ends:
        return text, "", ""
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise BenchctlError(
            f"the crontab has '{begin}' and '{end}' not once each, in this order",
            hint="remove these lines and what belongs to them: crontab -e",
        )
    before = "".join(f"{line}\n" for line in lines[: begins[0]])
    block = "".join(f"{line}\n" for line in lines[begins[0] : ends[0] + 1])
    return before, block, "\n".join(lines[ends[0] + 1 :])


def _marks(suite: str) -> tuple[str, str]:
    return f"# benchctl nightly {suite} begin", f"# benchctl nightly {suite} end"


def _text(raw: bytes) -> str:
    # Whatever bytes other lines hold, they are written back as they were.
    return raw.decode("utf-8", "surrogateescape")

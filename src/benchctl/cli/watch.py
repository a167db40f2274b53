"""What a person sees while a run goes on: a live line on a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from benchctl.cli.streams import is_terminal, shown
from benchctl.report.numbers import duration
from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.run.observer import Observer, SilentObserver

# Plain output may end in a log file or a mail: often enough to see life, seldom enough to be read.
PLAIN_PROGRESS_EVERY_S = 10.0


@contextmanager
def watching(*, quiet: bool) -> Iterator[Observer]:
    """The observer that fits standard error, for the time of one run."""
    if quiet:
        yield SilentObserver()
    elif is_terminal(sys.stderr):
        with _live() as progress:
            yield RichObserver(progress)
    else:
        yield PlainObserver()


def step_progress(what: str, done: int, total: int, lately: int, seconds: float) -> str:
    """How far a step is, how fast it goes, and how long it will take at that speed.

    Args:
        what: unit, in the plural.
        done: of the whole step.
        total: of the whole step; 0 is unknown.
        lately: how many of the done ones were done while being watched.
        seconds: for how long that was.
    """
    parts = [f"{done:,} {what.removesuffix('s') if done == 1 else what}"]
    if total:
        parts.append(f"{100 * done / total:.0f} %")
    if lately > 0 and seconds > 0:
        speed = lately / seconds
        parts.append(f"{speed:,.0f}/s")
        if total > done:
            parts.append(f"about {duration((total - done) / speed)} left")
    return ", ".join(parts)


def fork_title(variant: str, number: int, total: int, remaining_s: float | None) -> str:
    """The line that announces a fork."""
    left = "" if remaining_s is None else f", about {duration(remaining_s)} left"
    return f"fork {number}/{total}: {variant}{left}"


def fork_result(record: ForkRecord) -> str:
    """The line that says what a fork measured."""
    if record.status == "failed":
        return f"{record.variant}, block {record.block}: FAILED: {record.reason}"
    parts = []
    for summary in record.summaries:
        if summary.redline_end is not None:
            return f"{record.variant}, block {record.block}: {_redline(summary)} ({record.wall_s:.1f} s)"
        if summary.unsupported is not None:
            parts.append(f"{summary.label} unsupported")
        elif summary.service_time is None:
            parts.append(f"{summary.label} no answer")
        else:
            parts.append(f"{summary.label} {summary.service_time.p90 / 1e6:.2f} ms")
    starts = sum(boot.start_s for boot in record.boots)
    return (
        f"{record.variant}, block {record.block}: p90 {', '.join(parts)} "
        f"({record.wall_s:.1f} s, of it {starts:.1f} s node start)"
    )


def _redline(summary: TaskSummary) -> str:
    if summary.redline_per_s is None:
        return f"no red-line of {summary.label}: {summary.redline_text}"
    rate = f"{summary.redline_per_s:.4g}/s"
    if summary.redline_end == "found":
        return f"red-line of {summary.label} {rate}"
    return f"red-line of {summary.label} at least {rate}, {summary.redline_text}"


class PlainObserver:
    """Lines on standard error, without colours or movement."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._spoken = self._begun
        self._fork = ""
        self._stage = ""
        self._step: tuple[str, float, int] | None = None

    def _say(self, text: str) -> None:
        self._spoken = time.monotonic()
        print(f"[{self._spoken - self._begun:6.1f} s] {shown(text)}", file=sys.stderr, flush=True)  # noqa: T201 - progress without a terminal

    def note(self, text: str) -> None:
        """Print it."""
        self._say(text)

    def stage(self, text: str) -> None:
        """Print it; the tasks of a fork are too short to be lines of their own, and name their progress."""
        self._stage = text
        self._step = None
        if not self._fork:
            self._say(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Print it now and then, with speed and time left since the step began."""
        now = time.monotonic()
        if self._step is None or self._step[0] != what:
            self._step = (what, now, done)
        if now - self._spoken > PLAIN_PROGRESS_EVERY_S:
            _, since, first = self._step
            task = f"{self._stage}: " if self._fork else ""
            self._say(f"  {task}{step_progress(what, done, total, done - first, now - since)}")

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Print it."""
        self._fork = fork_title(variant, number, total, remaining_s)
        self._say(self._fork)

    def fork_done(self, record: ForkRecord) -> None:
        """Print what it measured."""
        self._fork = ""
        self._say(fork_result(record))


class RichObserver:
    """One live line with bar, speed and time left; notes and finished forks scroll above it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, what="")
        self._fork = ""

    def note(self, text: str) -> None:
        """Print it above the live line."""
        self._progress.console.print(shown(text), highlight=False, markup=False)

    def stage(self, text: str) -> None:
        """Begin the live line anew."""
        title = f"{self._fork} · {text}" if self._fork else text
        # A new task: a total cannot be taken back.
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(shown(title), total=None, what="")

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total or None, what=what)

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Name the fork on the live line."""
        self._fork = fork_title(variant, number, total, remaining_s)
        self.stage("starting the node")

    def fork_done(self, record: ForkRecord) -> None:
        """Print what it measured above the live line."""
        self._fork = ""
        self.note(fork_result(record))


class _Speed(ProgressColumn):
    """Units a second, in the units of the present step."""

    def render(self, task: Task) -> Text:
        if not task.speed or not task.fields["what"]:
            return Text("")
        if task.fields["what"] == "bytes":
            return Text(f"{task.speed / 1e6:,.1f} MB/s")
        return Text(f"{task.speed:,.0f} {task.fields['what']}/s")


def _live() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        _Speed(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
    )

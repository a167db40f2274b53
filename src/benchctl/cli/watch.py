"""Display of a run in progress: a live line on a terminal, plain lines elsewhere, or nothing."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.text import Text

from benchctl.cli.streams import is_terminal, shown
from benchctl.report.numbers import counted, duration
from benchctl.results.figures import OPERATIONS, TaskSummary, rate_text
from benchctl.results.model import ForkRecord
from benchctl.run.bench import Observer, SilentObserver

# Plain output may end in a log file or a mail: often enough to see life, seldom enough to be read.
PLAIN_PROGRESS_EVERY_S = 10.0
# Most forks are over before, and say what they measured then.
PLAIN_FORK_PROGRESS_EVERY_S = 60.0


@contextmanager
def watching(*, quiet: bool) -> Iterator[Observer]:
    """Return the observer that suits standard error, for one run."""
    if quiet:
        yield SilentObserver()
    elif is_terminal(sys.stderr):
        with _live() as progress:
            yield RichObserver(progress)
    else:
        yield PlainObserver()


def step_progress(what: str, done: int, total: int, lately: int, seconds: float) -> str:
    """Return the progress of a step, its speed, and the time left at that speed.

    `what` is the unit, in the plural; a `total` of 0 is unknown; `lately` of those done were done in
    `seconds`, while being watched.
    """
    parts = [f"{done:,} {what.removesuffix('s') if done == 1 else what}"]
    # An operation of several requests, such as a scroll, has more of them than there are operations.
    if total and done <= total:
        parts.append(f"{100 * done / total:.0f}%")
    if lately > 0 and seconds > 0:
        speed = lately / seconds
        parts.append(f"{speed:,.0f}/s")
        if total > done:
            parts.append(f"about {duration((total - done) / speed)} left")
    return ", ".join(parts)


@dataclass(frozen=True)
class _Fork:
    """The fork that is being measured."""

    title: str
    number: int
    done: int  # forks, when it began
    total: int | None
    ends: float | None  # when the last is expected to be over, on the monotonic clock
    begun: float  # on the same clock

    @classmethod
    def started(
        cls,
        variant: str,
        number: int,
        total: int | None,
        remaining_s: float | None,
        beside: Mapping[str, "_Fork"],
    ) -> "_Fork":
        now = time.monotonic()
        ends = None if remaining_s is None else now + remaining_s
        of = "" if total is None else f"/{total}"
        done = min((fork.done for fork in beside.values()), default=number - 1)
        return cls(f"fork {number}{of}, {variant}", number, done, total, ends, now)

    @property
    def left_s(self) -> float | None:
        """Return the seconds until the last fork is over; None while unknown."""
        return None if self.ends is None else max(0.0, self.ends - time.monotonic())

    @property
    def left(self) -> str:
        """Return the time left for readers, as a suffix; nothing once the last is over.

        Nor after the first of a run whose length its time decides: it may have taken longer than expected.
        """
        silent = not self.done if self.total is None else self.number >= self.total
        if self.left_s is None or silent:
            return ""
        return f", about {duration(self.left_s)} left"


def fork_result(record: ForkRecord) -> str:
    """Return what a fork measured, in a line."""
    if record.status == "failed":
        return f"FAILED: {record.reason}"
    # Of a node, there are samples.
    by_jmh = record.samples is None and any(summary.unit == OPERATIONS for summary in record.summaries)
    # The points of a sweep in its own order, whatever that of the fork was.
    parts: dict[str, list[str]] = {}
    for summary in sorted(record.summaries, key=lambda summary: (summary.schedule, summary.task)):
        if summary.redline_end is not None:
            return f"{_redline(summary)} ({record.wall_s:.1f} s)"
        if summary.unsupported is not None:
            outcome = "unsupported"
        elif by_jmh:
            outcome = _of_operations(summary)
        elif summary.service_time is None:
            outcome = "no answer"
        elif summary.service_time.p90 is None:
            outcome = f"{sum(summary.failures.values())} of its requests failed"
        else:
            outcome = f"{summary.service_time.p90 / 1e6:.2f} ms"
        parts.setdefault(summary.label, []).append(outcome)
    if by_jmh:
        each = ", ".join(f"{label} {' / '.join(outcome)}" for label, outcome in parts.items())
        return f"{each} ({record.wall_s:.1f} s)"
    starts = sum(boot.start_s for boot in record.boots)
    latencies = ", ".join(f"{label} {' / '.join(outcome)}" for label, outcome in parts.items())
    return f"p90 {latencies} ({record.wall_s:.1f} s, including {starts:.1f} s startup)"


def _of_operations(summary: TaskSummary) -> str:
    """Return the rate of a microbenchmark, whatever JMH's mode was."""
    if summary.failures:
        return f"failed ({'; '.join(summary.failure_reasons)})"
    if summary.mean_ns is not None:
        return f"{summary.mean_ns:,.4g} ns"
    return "no figure" if summary.throughput_per_s is None else f"{summary.throughput_per_s:,.4g}/s"


def _redline(summary: TaskSummary) -> str:
    if summary.redline_per_s is None:
        return f"no red-line of {summary.label}: {summary.redline_text}"
    rate = rate_text(summary.redline_per_s)
    if summary.redline_end == "found":
        return f"red-line of {summary.label} {rate}"
    return f"red-line of {summary.label} at least {rate}, {summary.redline_text}"


class PlainObserver:
    """Lines on standard error, without colours or movement."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._spoken = self._begun
        self._forks: dict[str, _Fork] = {}  # those that are measured, by variant
        self._has_begun = False
        self._stage = ""
        self._step: tuple[str, float, int] | None = None

    def _say(self, text: str) -> None:
        self._spoken = time.monotonic()
        print(f"[{self._spoken - self._begun:6.1f} s] {shown(text)}", file=sys.stderr, flush=True)  # noqa: T201 - progress without a terminal

    def note(self, text: str) -> None:
        """Print it."""
        self._say(text)

    def stage(self, text: str) -> None:
        """Print it; tasks of a fork are too short for lines of their own, and name their progress."""
        self._stage = text
        self._step = None
        if not self._forks:
            self._say(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Print it now and then, with speed and time left since the step began."""
        now = time.monotonic()
        if self._step is None or self._step[0] != what:
            self._step = (what, now, done)
        quiet_since, every_s, task = self._spoken, PLAIN_PROGRESS_EVERY_S, ""
        if self._forks:
            begun = min(fork.begun for fork in self._forks.values())
            quiet_since, every_s = max(self._spoken, begun), PLAIN_FORK_PROGRESS_EVERY_S
            task = f"{_titles(self._forks)}, {self._stage}: "
        if done and now - quiet_since > every_s:
            _, since, first = self._step
            self._say(f"  {task}{step_progress(what, done, total, done - first, now - since)}")

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        """Keep the fork; only the first one prints how long all forks will take."""
        if number == 1 or not self._has_begun:
            left = "" if remaining_s is None else f", about {duration(remaining_s)}"
            forks = "forks" if total is None else counted(total - number + 1, "fork")
            self._say(f"measuring {forks}{left}")
        self._forks[variant] = _Fork.started(variant, number, total, remaining_s, self._forks)
        self._has_begun = True

    def fork_done(self, record: ForkRecord) -> None:
        """Print what it measured."""
        fork = self._forks.pop(record.variant, None)
        title = fork.title if fork else record.variant
        left = fork.left if fork and not self._forks else ""
        # What went wrong may end with what to do, on lines of its own.
        first, *more = fork_result(record).split("\n")
        self._say("\n".join([f"{title}: {first}{left}", *more]))


def _titles(forks: Mapping[str, _Fork]) -> str:
    return " and ".join(fork.title for fork in forks.values())


class RichObserver:
    """A live line: current step, a bar, time left. While forks are measured, the bar counts all of them."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None, what="", fork=None)
        self._forks: dict[str, _Fork] = {}
        self._title = ""

    def note(self, text: str) -> None:
        """Print it above the live line."""
        self._progress.console.print(shown(text), highlight=False, markup=False)

    def stage(self, text: str) -> None:
        """Begin the live line again, or name the task of the fork."""
        self._title = f"{_titles(self._forks)}: {text}" if self._forks else text
        if self._forks:
            self._progress.update(self._task, description=shown(self._title))
            return
        self._begin(self._title, None)

    def progress(self, what: str, done: int, total: int) -> None:
        """Move the bar; within a fork, show how far its task is."""
        if not self._forks:
            self._progress.update(self._task, completed=done, total=total or None, what=what)
        elif total and done <= total:
            self._progress.update(self._task, description=shown(f"{self._title} {100 * done // total}%"))

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        """Name the fork on the live line, and set the bar to those that are done."""
        self._forks[variant] = _Fork.started(variant, number, total, remaining_s, self._forks)
        self._begin(_titles(self._forks), next(iter(self._forks.values())))
        self.stage("starting the node")

    def fork_done(self, record: ForkRecord) -> None:
        """Print a failed fork; the tables show the others."""
        fork = self._forks.pop(record.variant, None)
        if record.status == "failed":
            self.note(f"{fork.title if fork else record.variant}: {fork_result(record)}")

    def _begin(self, title: str, fork: _Fork | None) -> None:
        # A new task: a total cannot be taken back.
        self._progress.remove_task(self._task)
        done, total = (0, None) if fork is None else (fork.done, fork.total)
        self._task = self._progress.add_task(shown(title), total=total, completed=done, what="", fork=fork)


class _Speed(ProgressColumn):
    """Units a second, in the units of the present step."""

    def render(self, task: Task) -> Text:
        if not task.speed or not task.fields["what"]:
            return Text("")
        if task.fields["what"] == "bytes":
            return Text(f"{task.speed / 1e6:,.1f} MB/s")
        return Text(f"{task.speed:,.0f} {task.fields['what']}/s")


class _Left(ProgressColumn):
    """Of all forks, or of the present step."""

    def render(self, task: Task) -> Text:
        fork: _Fork | None = task.fields["fork"]
        left_s = task.time_remaining if fork is None else fork.left_s
        return Text("" if left_s is None else f"{duration(left_s)} left")


def _live() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        _Speed(),
        _Left(),
        console=Console(stderr=True),
        transient=True,
    )

"""Display of a run in progress: lines on standard error, and a live one on a terminal."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from rich.console import Console
from rich.status import Status
from rich.text import Text

from benchctl.cli.streams import is_terminal, shown
from benchctl.report.numbers import counted, duration
from benchctl.results.figures import OPERATIONS, TaskSummary, rate_text
from benchctl.results.model import ForkRecord
from benchctl.run.bench import Observer

LIVE_EVERY_S: Final = 0.1
# Plain output may end in a log file or a mail: often enough to see life, seldom enough to be read.
PLAIN_EVERY_S: Final = 10.0
# Most forks are over before, and say what they measured then.
PLAIN_FORK_EVERY_S: Final = 60.0
SHOWN_TASKS: Final = 6  # of a fork, in its line; the tables have all
_MB: Final = 1e6


@contextmanager
def watching(*, quiet: bool) -> Iterator[Observer]:
    """Return the observer that suits standard error, for one run."""
    if quiet:
        yield Observer()
    elif is_terminal(sys.stderr):
        with Console(stderr=True).status("") as status:
            yield Watcher(status)
    else:
        yield Watcher()


class _Fork(NamedTuple):
    """A fork that is being measured."""

    title: str
    ends: float | None  # when the last fork is expected to be over, on the monotonic clock
    is_last: bool

    @property
    def left(self) -> str:
        """Return the time left for readers, as a suffix; empty while unknown, or if it takes longer."""
        return "" if self.ends is None else _left(self.ends - time.monotonic())


def _left(seconds: float | None) -> str:
    return f", about {duration(seconds)} left" if seconds is not None and seconds > 0 else ""


class Watcher(Observer):
    """Shows what happens in lines, and progress in the live line, or in a line now and then."""

    def __init__(self, live: Status | None = None) -> None:
        self._live = live
        self._begun = self._shown = time.monotonic()
        self._forks: dict[str, _Fork] = {}  # those that are measured, by variant
        self._is_measuring = False  # whether the first fork has begun
        self._stage = ""
        self._step = ("", 0.0, 0)  # unit of the progress, when it began, and what was done then

    def note(self, text: str) -> None:
        """Print a line."""
        if self._live is not None:
            self._live.console.print(shown(text), highlight=False, markup=False)
            return
        self._shown = time.monotonic()
        print(f"[{self._shown - self._begun:6.1f} s] {shown(text)}", file=sys.stderr, flush=True)  # noqa: T201 - progress without a terminal

    def stage(self, text: str) -> None:
        """Show it; tasks of a fork are too short for lines of their own, and name their progress."""
        self._stage, self._step = text, ("", 0.0, 0)
        if self._live is not None:
            self._show(self._doing())
        elif not self._forks:
            self.note(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Show it now and then, with speed and time left since the step began."""
        now = time.monotonic()
        if self._step[0] != what:
            self._step = (what, now, done)
        every_s = PLAIN_FORK_EVERY_S if self._forks else PLAIN_EVERY_S
        if not done or now - self._shown <= (every_s if self._live is None else LIVE_EVERY_S):
            return
        _, since, first = self._step
        # The time that is left is that of all forks.
        step = step_progress(what, done, total, 0 if self._forks else done - first, now - since)
        if self._live is not None:
            self._shown = now
            self._show(f"{self._doing()}: {step}")
        else:
            self.note(f"  {self._doing()}: {step}" if self._forks else f"  {step}")

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        """Keep the fork; only the first one prints how long all forks will take."""
        if not self._is_measuring:
            self._is_measuring = True
            left = "" if remaining_s is None else f", about {duration(remaining_s)}"
            forks = "forks" if total is None else counted(total - number + 1, "fork")
            self.note(f"measuring {forks}{left}")
        self._shown = time.monotonic()
        is_last = total is not None and number >= total
        title = f"fork {number}" + ("" if total is None else f"/{total}") + f", {variant}"
        ends = None if remaining_s is None else self._shown + remaining_s
        self._forks[variant] = _Fork(title, ends, is_last)

    def fork_done(self, record: ForkRecord, remaining_s: float | None) -> None:
        """Print what it measured; on a terminal only why it failed, since the tables show the others."""
        fork = self._forks.pop(record.variant, _Fork(record.variant, None, is_last=True))
        if self._live is None or record.status == "failed":
            # What went wrong may end with what to do, on lines of its own.
            first, *more = fork_result(record).split("\n")
            left = "" if self._forks or fork.is_last else _left(remaining_s)
            self.note("\n".join([f"{fork.title}: {first}{left}", *more]))

    def _doing(self) -> str:
        titles = " and ".join(fork.title for fork in self._forks.values())
        return ", ".join(filter(None, (titles, self._stage)))

    def _show(self, text: str) -> None:
        if self._live is not None:
            left = next((fork.left for fork in self._forks.values()), "")
            self._live.update(Text(shown(f"{text}{left}")))


def step_progress(what: str, done: int, total: int, lately: int, seconds: float) -> str:
    """Return the progress of a step, its speed, and the time left at that speed.

    `what` is the unit, in the plural, or begins with `bytes`, which are shown in MB; a `total` of 0 is
    unknown; `lately` of those done were done in `seconds`, while being watched.
    """
    is_size = what.startswith("bytes")
    if is_size:
        whole = f" of {total / _MB:,.1f}" if total else ""
        parts = [f"{done / _MB:,.1f}{whole} MB{what.removeprefix('bytes')}"]
    else:
        parts = [f"{done:,} {what.removesuffix('s') if done == 1 else what}"]
    # An operation of several requests, such as a scroll, has more of them than there are operations.
    if total and done <= total:
        parts.append(f"{100 * done / total:.0f}%")
    if lately > 0 and seconds > 0:
        speed = lately / seconds
        parts.append(f"{speed / _MB:,.1f} MB/s" if is_size else f"{speed:,.0f}/s")
        if total > done:
            parts.append(f"about {duration((total - done) / speed)} left")
    return ", ".join(parts)


def fork_result(record: ForkRecord) -> str:
    """Return what a fork measured, in a line."""
    if record.status == "failed":
        return f"FAILED: {record.reason}"
    for summary in record.summaries:
        if summary.redline_end is not None:
            return f"{_redline(summary)} ({record.wall_s:.1f} s)"
    # Of a node, there are samples.
    by_jmh = record.samples is None and any(summary.unit == OPERATIONS for summary in record.summaries)
    # The points of a sweep in its own order, whatever that of the fork was.
    outcomes: dict[str, list[str]] = {}
    for summary in sorted(record.summaries, key=lambda summary: (summary.schedule, summary.task)):
        outcome = _of_operations(summary) if by_jmh else _of_requests(summary)
        outcomes.setdefault(summary.label, []).append(outcome)
    lines = [f"{label} {' / '.join(values)}" for label, values in outcomes.items()]
    if len(lines) > SHOWN_TASKS:
        lines[SHOWN_TASKS - 1 :] = [f"{len(lines) - SHOWN_TASKS + 1} more tasks"]
    text = ", ".join(lines)
    if by_jmh:
        return f"{text} ({record.wall_s:.1f} s)"
    starts_s = sum(boot.start_s for boot in record.boots)
    return f"p90 {text} ({record.wall_s:.1f} s, including {starts_s:.1f} s startup)"


def _of_requests(summary: TaskSummary) -> str:
    if summary.unsupported is not None:
        return "unsupported"
    if summary.service_time is None:
        return "no response"
    if summary.service_time.p90 is None:
        return f"{sum(summary.failures.values())} of its requests failed"
    return f"{summary.service_time.p90 / 1e6:.2f} ms"


def _of_operations(summary: TaskSummary) -> str:
    """Return the rate of a microbenchmark, whatever JMH's mode was."""
    if summary.failures:
        return f"failed ({'; '.join(summary.failure_reasons)})"
    if summary.mean_ns is not None:
        return f"{summary.mean_ns:,.4g} ns"
    return "no value" if summary.throughput_per_s is None else f"{summary.throughput_per_s:,.4g}/s"


def _redline(summary: TaskSummary) -> str:
    if summary.redline_per_s is None:
        return f"no red-line of {summary.label}: {summary.redline_text}"
    rate = rate_text(summary.redline_per_s)
    if summary.redline_end == "found":
        return f"red-line of {summary.label} {rate}"
    return f"red-line of {summary.label} at least {rate}, {summary.redline_text}"

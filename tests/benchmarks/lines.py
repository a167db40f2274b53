"""The load generator's table: what was measured, beside what, against which goal; and its formats."""

import os
import platform
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Literal

import msgspec
import psutil
import pycurl
from rich import box
from rich.console import Console
from rich.table import Table

Verdict = Literal["pass", "FAIL", "n/a"]
Format = Literal["text", "markdown", "json"]

_HEADINGS = (
    "On the stub",
    "Rally 2.13*",
    "OSB 2.4*",
    "bare pycurl",
    "raw socket",
    "benchctl",
    "against the goal",
    "goal",
    "",
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        what: figure and unit.
        rally: measured elsewhere.
        osb: the same.
        pycurl: reference of this run.
        socket: the same.
        benchctl: of this run.
        against: the figure that the goal is about, with its range over the rounds where there are several.
        goal: in words.
        verdict: whether the goal is reached.
        figures: every number behind the line, for JSON.
    """

    what: str
    rally: str = "-"
    osb: str = "-"
    pycurl: str = "-"
    socket: str = "-"
    benchctl: str = "-"
    against: str = "-"
    goal: str
    verdict: Verdict
    figures: Mapping[str, float | list[float]] = {}

    @property
    def cells(self) -> tuple[str, ...]:
        """As in the table."""
        return (
            self.what,
            self.rally,
            self.osb,
            self.pycurl,
            self.socket,
            self.benchctl,
            self.against,
            self.goal,
            self.verdict,
        )


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """All lines of a run and where it was.

    Attributes:
        lines: in the table's order.
        rounds: how often each was measured.
        seconds: the whole run.
        cpus: that this process may use.
        others_share: what other processes took of the host's CPU meanwhile, from 0 to 1.
        answer_bytes: length of an answer.
        versions: of what was measured.
    """

    lines: Sequence[Line]
    rounds: int
    seconds: float
    cpus: int
    others_share: float
    answer_bytes: int
    versions: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the figures."""
        where = f"{self.cpus} CPUs, {self.others_share:.0%} of them used by others meanwhile"
        return (
            "* Measured elsewhere, on 2 cores; the other columns were measured in this run, in turn.",
            f"Medians of {self.rounds} rounds, also of benchctl / bare pycurl in each round, with the range.",
            "Times of single requests are pooled over the rounds; errors are against the stub's own record.",
            f"CPU is that of the client's process alone. Answers have {self.answer_bytes:,} bytes.",
            f"{self.versions}; {where}; {self.seconds:.0f} s",
        )


class HostWatch:
    """How much of the host others use from now on: nothing slows and distorts the table as much."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._busy_s, self._own_s = _busy_s(), _own_s()

    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began_s

    def others_share(self) -> float:
        """Of the host's CPU, what processes took that are neither this one nor its ended children."""
        others_s = _busy_s() - self._busy_s - (_own_s() - self._own_s)
        return max(others_s, 0.0) / (self.seconds() * (os.cpu_count() or 1))


def _busy_s() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def _own_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def sheet(lines: Sequence[Line], watch: HostWatch, *, rounds: int, body_bytes: int) -> Sheet:
    """Add what there is to know about the host."""
    return Sheet(
        lines=lines,
        rounds=rounds,
        seconds=watch.seconds(),
        cpus=len(os.sched_getaffinity(0)),
        others_share=watch.others_share(),
        answer_bytes=body_bytes,
        versions=f"benchctl {version('benchctl')}, Python {platform.python_version()}, {_curl_version()}",
    )


def _curl_version() -> str:
    """`pycurl.version` goes on with every library that libcurl itself was built with."""
    return " ".join(pycurl.version.split()[:2])


def show(result: Sheet, style: Format) -> None:
    """Print to standard output."""
    if style == "json":
        Console().print(
            msgspec.json.format(msgspec.json.encode(result)).decode(), soft_wrap=True, highlight=False
        )
    elif style == "markdown":
        rows = [_HEADINGS, ("---",) * len(_HEADINGS), *(line.cells for line in result.lines)]
        text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        Console().print(text, *("", *result.notes), sep="\n", soft_wrap=True, highlight=False, markup=False)
    else:
        _show_table(result)


def _show_table(result: Sheet) -> None:
    console = Console()
    wide = console if console.is_terminal else Console(width=200)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in {"On the stub", "goal", ""} else "right")
    for line in result.lines:
        style = {"pass": "green", "FAIL": "red", "n/a": "dim"}[line.verdict]
        table.add_row(*line.cells[:-1], f"[{style}]{line.verdict}[/]")
    wide.print(table)
    wide.print("\n".join(result.notes), highlight=False, markup=False)

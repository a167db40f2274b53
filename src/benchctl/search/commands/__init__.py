"""Shared parts of `benchctl minimize` and `bisect`: start, resume and display of a search."""

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from benchctl.cli.measuring import measuring
from benchctl.cli.options import FORMATS, AmountType, grouped, printed_as
from benchctl.cli.streams import emit, text_width
from benchctl.cli.targets import endpoints_of
from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.quantities import DURATION
from benchctl.report.command_line import command
from benchctl.results.metrics import METRIC_KINDS, MetricKind
from benchctl.results.plan import Plan
from benchctl.results.store import new_run_id
from benchctl.run.bench import Bench
from benchctl.run.documents import FileOptions
from benchctl.run.fitness import check_quiet
from benchctl.run.prepare import check_host
from benchctl.search.conduct import Nodes, SearchContext, conduct
from benchctl.search.record import Files, SearchFolder, SearchRecord, Strategy, shelf
from benchctl.search.report import Ended, inconclusive, render_search
from benchctl.spec import BusyAction
from benchctl.stats.metrics import kept_keys
from benchctl.track.model import Challenge, Track
from benchctl.track.schedule import challenge_text

LEAST_FORKS = 5


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search's end, and of how it is shown."""

    most: int
    budget_s: float | None
    output_format: str


def search_options(most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add these, with a default of the most pairs; the command gets them as one, `search_options`."""
    return grouped(
        "search_options",
        SearchOptions,
        "How long",
        click.option(
            "--forks",
            "most",
            type=click.IntRange(min=LEAST_FORKS),
            default=most,
            show_default=True,
            metavar="N",
            help="Maximum number of fork pairs per comparison.",
        ),
        click.option(
            "--budget",
            "budget_s",
            type=AmountType(DURATION),
            default=None,
            help="Time limit for the search; `benchctl resume` continues it.",
        ),
        "Execution and output",
        printed_as(*FORMATS),
    )


def metric_option(known: Callable[[MetricKind], bool]) -> Callable[[Any], Any]:
    """Return --metric of the metrics that a search knows."""
    figures = (figure for figure in METRIC_KINDS if known(figure))
    keys = [key for figure in figures for key in dict.fromkeys([*kept_keys(figure), figure.name])]
    return click.option(
        "--metric",
        type=click.Choice(keys),
        metavar="NAME",
        help="Metric that shows it, e.g. service_time_p90.  [default: throughput, or service_time_p50 of a "
        "task with a rate]",
    )


@dataclass(frozen=True)
class Opened:
    """A search that is new, or goes on."""

    home: Home
    folder: SearchFolder
    record: SearchRecord
    track: Track
    policy: Callable[[Callable[[str], None]], Strategy]  # with what is told of builds
    remarks: Callable[[], Iterator[str]] = field(default=lambda: iter(()))  # before the first fork

    def again(self, options: SearchOptions) -> "Opened":
        """Return it with the limits that are given now: a budget is for what is left to be asked."""
        budget_s = options.budget_s and self.record.spent_s + options.budget_s
        record = msgspec.structs.replace(self.record, most=options.most, budget_s=budget_s)
        return dataclasses.replace(self, record=record)

    def conclude(self, output_format: str, *, on_busy: BusyAction | None, quiet: bool) -> None:
        """Ask what is left to be asked, and print what came of it.

        Raises:
            BenchctlError: If the search stays open, or something cannot be measured.
        """
        record = self.record
        if record.status != "complete":
            check_host(record.plan, self.home)
            self.folder.runs.open()
            with measuring(on_busy, quiet=quiet) as observer:
                check_quiet(self.home, [record.plan], observer.note, on_busy)
                for line in () if record.questions else self.remarks():
                    observer.note(line)
                endpoints = endpoints_of(record.plan.variants, os.environ)
                whole = self.folder.path.name
                bench = Bench(self.home, self.folder.runs, observer, threading.Event(), endpoints, whole)
                nodes = Nodes(bench, self.folder.runs, self.track, _file_options(record.files))
                policy = self.policy(observer.stage)
                record = conduct(SearchContext(self.folder, policy, nodes.measure, observer), record)
        challenges = self.policy(lambda _stage: None).schedules(record)
        files = self._write(record, challenges)
        ended = Ended(
            record, challenges[0] if challenges else None, (*map(str, files),), self._next(record, files)
        )
        emit(render_search(ended, output_format, width=text_width()))
        if reason := inconclusive(record):
            hint = (
                "more forks, more documents or longer tasks may show it"
                if record.status == "complete"
                else f"resume with: benchctl resume {record.id} --budget 60m"
            )
            raise BenchctlError(reason, hint=hint, exit_code=ExitCode.INCONCLUSIVE)

    def _write(self, record: SearchRecord, found: tuple[Challenge, ...]) -> list[Path]:
        """Write the challenge that was found, and beside it the target alone if that is the reference."""
        output = getattr(record.spec, "output", "")
        files = []
        for number, challenge in enumerate(found):
            path = Path(output or self.folder.path / f"{found[0].name}.json")
            files.append(alone(path) if number else path)
            with disk_errors(f"write {files[-1]}"):
                files[-1].write_text(challenge_text(challenge), encoding="utf-8")
        return files

    def _next(self, record: SearchRecord, files: list[Path]) -> dict[str, str]:
        """Return the commands to run next, by purpose."""
        commands = {}
        if record.status != "complete":
            commands["To continue"] = f"benchctl resume {record.id} --budget 60m"
        if files:
            plan = msgspec.structs.replace(
                record.plan,
                schedules=tuple(
                    msgspec.structs.replace(record.plan.schedules[0], name=str(path)) for path in files
                ),
                sources={},
                restart="challenge",
                # Counts and rates are in the file.
                params={
                    name: value for name, value in record.plan.params.items() if name in self.track.known
                },
            )
            commands["To see it again"] = command(plan, forks=10)
        return commands


def alone(output: Path) -> Path:
    """Return the file of the target alone, beside that of the schedule."""
    return output.with_name(f"{output.stem}-alone.json")


def new_folder(home: Home, plan: Plan) -> SearchFolder:
    """Return the directory of a new search, which is made when its record is written."""
    now_text = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return SearchFolder(shelf(home).root / new_run_id(plan.schedules[0].name, now_text))


def files_of(options: FileOptions) -> Files:
    """Return options about documents, as records have them."""
    local = "" if options.local is None else str(options.local.absolute())
    folders = tuple(str(folder.absolute()) for folder in options.folders)
    return Files(local, folders, options.docs, options.local_index)


def _file_options(files: Files) -> FileOptions:
    return FileOptions(
        local=Path(files.local) if files.local else None,
        folders=tuple(map(Path, files.folders)),
        docs=files.docs,
        local_index=files.local_index,
    )

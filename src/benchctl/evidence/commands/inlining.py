"""`benchctl explain RUN inlining`: inlining decisions, and how variants and forks differ in them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from click.core import ParameterSource

from benchctl.cli.options import open_run, printed_as, runs_option
from benchctl.cli.streams import emit, text_width
from benchctl.errors import BenchctlError, UsageError
from benchctl.evidence.call_sites import (
    RunLog,
    choose,
    compare_sites,
    find_newest,
    logs_of,
    newest_sites,
    read_called,
)
from benchctl.evidence.histories import histories, history_table, read_history_sites
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import (
    FOUND_WORDS,
    GroupedFork,
    differences_document,
    differences_text,
    groups_document,
    groups_text,
    tree_document,
    tree_text,
)
from benchctl.evidence.inlining_tree import cut_tree, simple
from benchctl.report.table import plain
from benchctl.results.model import C2_LEVEL, RunRecord
from benchctl.results.plan import boot_of, task_named

Format = Literal["text", "json"]


@click.command("inlining")
@click.option(
    "--method", metavar="METHOD", help="Class::method, or more of its name; of --diff: only what is in it."
)
@click.option("--variant", metavar="NAME", help="Variant whose log to read, where several have one.")
@click.option("--block", type=int, help="Block of the fork.  [default: the first that has a log]")
@click.option("--boot", type=int, help="Node start of the fork.  [default: the last]")
@click.option(
    "--level", type=click.IntRange(1, 4), default=C2_LEVEL, show_default=True, help="Compilation level."
)
@click.option(
    "--depth", type=click.IntRange(0), help="Show calls no deeper than this; 0 for the method's own."
)
@click.option(
    "--all", "everything", is_flag=True, help="Cut nothing; of --diff: all callers, not only Lucene's."
)
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="Two variants, or log files: calls inlined in one, virtual in the other.",
)
@click.option("--group", metavar="METHOD", help="Group forks by the fate of --callee's calls in this method.")
@click.option("--callee", metavar="NAME", help="Called method, for --group.")
@click.option("--task", metavar="[CHALLENGE/]TASK", help="Task whose figures --group shows.")
@runs_option
@printed_as("text", "json", about="How it is printed.")
@click.pass_obj
def inlining_command(
    run: str, method: str | None, variant: str | None, block: int | None, boot: int | None,
    level: int, depth: int | None, diff: tuple[str, str] | None, group: str | None,
    callee: str | None, task: str | None, runs_folder: Path | None, output_format: Format, *,
    everything: bool,
) -> None:  # fmt: skip
    """Show JVM inlining decisions and how variants differ.

    Without options, show how they differ within a variant by what ran before the same operation. Collect the
    logs with `benchctl run --evidence inlining`. RUN may be a log file, too.
    """
    ways = {"--group": group, "--diff": diff, "--method": method}
    asked = next((name for name, value in ways.items() if value is not None), "")
    context = click.get_current_context()
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if option.name in _WITHOUT_EFFECT[asked] and is_given:
            where = f"with {asked}" if asked else f"without one of {', '.join(ways)}"
            raise UsageError(f"{option.opts[0]} cannot be used {where}", hint=f"remove {option.opts[0]}")
    source = _Source(run, runs_folder)
    if group is not None:
        answer = _group(source, group, callee, task, variant)
    elif diff is not None:
        if diff[0] == diff[1]:
            raise UsageError("--diff needs two different variants, or log files")
        logs = [source.side(side, block, boot) for side in diff]
        answer = _diff(diff, logs, method or "", everything=everything)
    elif method is not None:
        answer = _tree(source.log(variant, block, boot), method, level, depth, everything=everything)
    else:
        answer = source.histories(variant, block)
    text, document = answer
    emit(text() if output_format == "text" else json.dumps(document(), indent=1, ensure_ascii=False) + "\n")


# What each way of asking has no use for.
_WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "--group": ("diff", "method", "block", "boot", "level", "depth", "everything"),
    "--diff": ("variant", "level", "depth", "callee", "task"),
    "--method": ("callee", "task"),
    "": ("boot", "level", "depth", "everything", "callee", "task"),
}


Answer = tuple[Callable[[], str], Callable[[], dict[str, Any]]]
"""Renderers for text and for programs; only one is called."""


class _Source:
    """RUN: a run, or a log file that belongs to none."""

    def __init__(self, name: str, runs_folder: Path | None) -> None:
        self._file = RunLog(Path(name)) if Path(name).is_file() else None
        self._run = None if self._file else open_run(name, runs_folder)

    def record(self) -> RunRecord:
        """Return the record of the run."""
        if self._run is None:
            raise UsageError("a log file alone has no forks", hint="name a run instead")
        return self._run[1]

    def histories(self, variant: str | None, block: int | None) -> Answer:
        """Compare what ran before the same task, in a run with such tasks."""
        found = [*read_history_sites(*self._run, variant, block)] if self._run else []
        if self._run and histories(self._run[1].plan) and not self.logs():
            # Raises the error of a run without logs.
            choose([], variant, block, None)
        if not found:
            raise UsageError(
                "missing option: one of --method, --diff or --group",
                hint="e.g. --method METHOD, --diff A B, or --group METHOD --callee NAME --task TASK",
            )
        document = {"histories": msgspec.to_builtins(found)}
        return lambda: plain([[history_table(found)]], text_width()), lambda: document

    def logs(self) -> list[RunLog]:
        """Return all logs."""
        return logs_of(*self._run) if self._run else []

    def log(self, variant: str | None, block: int | None, boot: int | None) -> RunLog:
        """Return the requested log."""
        if self._file and any(one is not None for one in (variant, block, boot)):
            raise UsageError("a log file alone has no variants, blocks or boots", hint="name a run instead")
        return self._file or choose(self.logs(), variant, block, boot)

    def side(self, name: str, block: int | None, boot: int | None) -> RunLog:
        """Return a side of a comparison: a variant of the run, or a log file."""
        path = Path(name)
        return RunLog(path) if path.is_file() else choose(self.logs(), name, block, boot)


def _tree(log: RunLog, method: str, level: int, depth: int | None, *, everything: bool) -> Answer:
    opened = InliningLog(log.path)
    compilation = find_newest(opened, method, level)
    cut = cut_tree(compilation.tree.calls, asked=method, depth=depth, everything=everything)
    return (
        lambda: tree_text(log.label, compilation, cut, opened.account),
        lambda: tree_document(log.label, compilation, cut, opened.account),
    )


def _diff(sides: tuple[str, str], logs: Sequence[RunLog], method: str, *, everything: bool) -> Answer:
    baseline, contender = (newest_sites(InliningLog(log.path), under=method) for log in logs)
    compared = compare_sites(baseline, contender, everywhere=everything)
    where = "in all callers" if everything else "in Lucene's and the engines' callers"
    scope = f"{where}, where {method} is compiled or called" if method else where
    names_ = (_short(sides[0]), _short(sides[1]))
    if names_[0] == names_[1]:  # two files of one name: documents have the sides as keys
        names_ = sides
    labels = (logs[0].label, logs[1].label)
    return (
        lambda: differences_text(names_, labels, compared, scope),
        lambda: differences_document(names_, labels, compared, scope),
    )


def _short(side: str) -> str:
    return Path(side).name if Path(side).is_file() else side


def _group(
    source: _Source,
    caller: str,
    callee: str | None,
    task: str | None,
    variant: str | None,
) -> Answer:
    if callee is None or task is None:
        raise UsageError("--group needs --callee and --task", hint="such as --callee visit --task range")
    record, logs = source.record(), source.logs()
    name = choose(logs, variant, None, None).variant
    place = task_named(record.plan, task)
    forks = []
    for fork in record.done(name):
        summary = next(
            (summary for summary in fork.summaries if (summary.schedule, summary.task) == place), None
        )
        if summary is None:
            raise BenchctlError(f"block {fork.block} of {fork.variant} has no figures of that task")
        which = (name, fork.block, boot_of(record.plan, fork.block, place))
        own = [log for log in logs if (log.variant, log.block, log.boot) == which]
        if own:
            p90 = None if summary.service_time is None else summary.service_time.p90
            called = read_called(InliningLog(own[-1].path), caller, callee)
            fate = ": ".join(filter(None, (FOUND_WORDS[called.found], called.words)))
            forks.append(GroupedFork(fork.block, fate, summary.served_per_s, p90, called.given_up_ms))
    title = f"{task} of {name}, by what became of {callee} in {simple(caller)}"
    return lambda: groups_text(title, forks), lambda: groups_document(title, forks)

"""`benchctl explain RUN`: the evidence of a run; its inlining decisions; its profiles."""

from pathlib import Path
from typing import Literal, get_args

import click
import msgspec

from benchctl.cli.options import (
    TableFormat,
    complete_runs,
    grouped,
    open_run,
    print_table,
    printed_as,
    runs_option,
    table_format_option,
)
from benchctl.cli.streams import emit, note, say, text_width
from benchctl.errors import UsageError
from benchctl.evidence.call_sites import (
    RunLog,
    choose,
    compare_sites,
    find_newest,
    logs_of,
    newest_sites,
    virtual_calls,
)
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import (
    differences_text,
    histories,
    history_table,
    read_history_sites,
    tree_text,
    virtual_text,
)
from benchctl.evidence.profile_report import (
    Form,
    difference_text,
    document_text,
    flame_page,
    profile_sides,
    profile_text,
)
from benchctl.report.numbers import json_text
from benchctl.report.planning import again
from benchctl.report.table import Table, plain
from benchctl.results.store import reference
from benchctl.spec import EvidenceKind


class _Explanations(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find an explanation; options without one are those of the list."""
        if args[0] in ctx.help_option_names:
            say(ctx.get_help())
            ctx.exit()
        return ("list", _list, args) if args[0].startswith("-") else super().resolve_command(ctx, args)


@click.command("list")
@runs_option
@table_format_option
@click.pass_obj
def _list(run: str, runs_folder: Path | None, output_format: TableFormat) -> None:
    """List the evidence of a run, and how to collect more."""
    folder, record = open_run(run, runs_folder)
    done = [fork for fork in record.forks if fork.status == "done"]
    rows = []
    for kind in get_args(EvidenceKind):
        forks = sorted((fork.variant, fork.block) for fork in done if kind in fork.evidence)
        shown = f"benchctl explain {reference(folder)} {kind}" if forks else None
        rows.append((kind, [f"{variant} {block}" for variant, block in forks], shown))
    columns = ("evidence", "variants and blocks", "command")
    print_table(Table.listed(f"Evidence of {record.id}", columns, rows), output_format)
    # Microbenchmarks have no nodes to profile.
    possible = get_args(EvidenceKind) if record.plan.micro is None else ("inlining",)
    missing = tuple(kind for kind, _, shown in rows if shown is None and kind in possible)
    if missing and record.plan.words:
        line = again(record.plan.words, {"--evidence": ",".join(missing)})
        note(f"collect what is missing with: {line}")


@click.group(
    "explain",
    cls=_Explanations,
    invoke_without_command=True,
    subcommand_metavar="[EXPLANATION [OPTIONS]]",
)
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.pass_context
def explain_group(context: click.Context, run: str) -> None:
    """Explain results: inlining and profiles.

    Collect the evidence with `benchctl run --evidence`. Without an explanation, list the evidence of RUN and
    how to collect more. RUN is a run id, a unique prefix or suffix of one, a path, `latest`, or, for
    inlining, a log file.
    """
    context.obj = run
    if context.invoked_subcommand is None:
        context.invoke(_list)


@explain_group.command("inlining")
@click.option("--method", metavar="METHOD", help="Class::method; with --diff: all calls around it.")
@click.option("--variant", metavar="NAME", help="Variant whose log to read, where several have one.")
@click.option("--block", type=int, help="Block of the fork.  [default: the first that has a log]")
@click.option("--boot", type=int, help="Node start of the fork.  [default: the last]")
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="Two variants, or log files: calls inlined in one, virtual in the other.",
)
@runs_option
@printed_as("text", "json", about="Output format.")
@click.pass_obj
def inlining_command(
    run: str,
    method: str | None,
    variant: str | None,
    block: int | None,
    boot: int | None,
    diff: tuple[str, str] | None,
    runs_folder: Path | None,
    output_format: Literal["text", "json"],
) -> None:
    """Show JVM inlining decisions and how variants differ.

    Without --method and --diff, show how they differ within a variant by what ran before the same operation;
    else between the first two variants; of a single one, its virtual calls. Collect the logs with `benchctl
    run --evidence inlining`. RUN may be a log file, too.
    """
    if diff is not None and (variant is not None or diff[0] == diff[1]):
        raise UsageError("--diff needs two different variants, or log files, and no --variant")
    as_json = output_format == "json"
    opened = None if Path(run).is_file() else open_run(run, runs_folder)
    logs = [RunLog(Path(run))] if opened is None else logs_of(*opened)
    if method is None and diff is None:
        if opened is not None and boot is None and histories(opened[1].plan):
            found = [*read_history_sites(*opened, variant, block)]
            table = plain([[history_table(found)]], text_width())
            emit(json_text({"histories": found}) if as_json else table)
            return
        variants = [*dict.fromkeys(log.variant for log in logs)] if variant is None else []
        diff = (variants[0], variants[1]) if len(variants) > 1 else None
    if diff is not None:
        sides = [
            RunLog(Path(side)) if Path(side).is_file() else choose(logs, side, block, boot) for side in diff
        ]
        emit(_difference(diff, sides, method or "", as_json=as_json))
    elif method is not None:
        emit(_tree(choose(logs, variant, block, boot), method, as_json=as_json))
    else:
        log = choose(logs, variant, block, boot)
        emit(_virtual(log, as_json=as_json))


def _virtual(log: RunLog, *, as_json: bool) -> str:
    sites = virtual_calls(newest_sites(InliningLog(log.path)))
    if as_json:
        return json_text({"log": log.label, "sites": sites})
    return virtual_text(log.label, sites, text_width())


def _tree(log: RunLog, method: str, *, as_json: bool) -> str:
    opened = InliningLog(log.path)
    found = find_newest(opened, method)
    if not as_json:
        return tree_text(log.label, found, method, opened.account)
    return json_text({"log": log.label, **msgspec.structs.asdict(found), "lines": opened.account.lines})


def _difference(sides: tuple[str, str], logs: list[RunLog], method: str, *, as_json: bool) -> str:
    baseline, contender = (newest_sites(InliningLog(log.path), under=method) for log in logs)
    compared = compare_sites(baseline, contender, everywhere=bool(method))
    labels = [log.label for log in logs]
    scope = f"where {method} is compiled or called" if method else "in callers of Lucene and the engines"
    if not as_json:
        return differences_text(sides, labels, compared, scope, text_width())
    return json_text({"sides": sides, "logs": labels, "scope": scope, **msgspec.structs.asdict(compared)})


_form_options = grouped(
    "form",
    Form,
    click.option(
        "--by", "lines", type=click.Choice(["method", "line"]), default="method", show_default=True,
        callback=lambda _context, _param, by: by == "line", help="Unit of the rows.",
    ),
    click.option(
        "--stack", "size", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N",
        help="Frames per stack: the running one and its callers.",
    ),
    click.option("--inclusive", is_flag=True, help="Count a frame wherever it is in a stack."),
    click.option("--top", type=click.IntRange(1), default=30, show_default=True, help="Frames to show."),
    click.option(
        "--task", default="", metavar="[CHALLENGE/]TASK",
        help="Only samples taken while this task was measured.  [default: any task]",
    ),
)  # fmt: skip


@explain_group.command("profile")
@click.option("--variant", metavar="VARIANT", help="Only this variant.")
@click.option(
    "--diff", nargs=2, default=None, metavar="BASELINE CONTENDER", help="Compare the shares of two variants."
)
@_form_options
@printed_as("text", "json", "html", about="Output format; html is a flame graph that needs no network.")
@runs_option
@click.pass_obj
def profile_command(
    run: str,
    variant: str | None,
    diff: tuple[str, str] | None,
    form: Form,
    output_format: Literal["text", "json", "html"],
    runs_folder: Path | None,
) -> None:
    """Show where nodes spent CPU time, as table or flame graph.

    Collect profiles with `benchctl run --evidence profile`.
    """
    if diff is not None and (variant is not None or diff[0] == diff[1]):
        raise UsageError("--diff needs two different variants, and no --variant")
    folder, record = open_run(run, runs_folder)
    sides = profile_sides(folder, record, diff or ((variant,) if variant else ()), form)
    if output_format == "html":
        if len(sides) > 1 and diff is None:
            several = ", ".join(side.name for side in sides)
            raise UsageError(
                f"there are profiles of {several}", hint="select one with --variant, or --diff two"
            )
        emit(flame_page(record.id, sides, form))
    elif output_format == "json":
        emit(document_text(record.id, sides, form, differ=diff is not None))
    elif diff is not None:
        emit(difference_text(sides, form, text_width()))
    else:
        emit(profile_text(sides, form, text_width()))

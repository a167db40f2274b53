"""`benchctl explain RUN`: an explanation a module, imported when asked for; without one, a list."""

from pathlib import Path
from typing import ClassVar, get_args

import click
import msgspec

from benchctl.cli import LazyGroup
from benchctl.cli.options import (
    TableFormat,
    complete_runs,
    open_run,
    print_table,
    runs_option,
    table_format_option,
)
from benchctl.cli.streams import note, say
from benchctl.report.command_line import command
from benchctl.report.table import Table
from benchctl.results.plan import EvidenceSpec
from benchctl.spec import EvidenceKind

_HERE = "benchctl.evidence.commands"


class _Explanations(LazyGroup):
    sections: ClassVar = {
        "Explanations": {
            "inlining": (
                f"{_HERE}.inlining:inlining_command",
                "Show JVM inlining decisions and how variants differ.",
            ),
            "profile": (
                f"{_HERE}.profile:profile_command",
                "Show where nodes spent CPU time, as table or flame graph.",
            ),
        },
    }

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
    _, record = open_run(run, runs_folder)
    done = [fork for fork in record.forks if fork.status == "done"]
    rows = []
    for kind in get_args(EvidenceKind):
        forks = sorted((fork.variant, fork.block) for fork in done if kind in fork.evidence)
        shown = f"benchctl explain {record.id} {kind}" if forks else None
        rows.append((kind, [f"{variant} {block}" for variant, block in forks], shown))
    columns = ("evidence", "variants and blocks", "show with")
    print_table(Table.listed(f"Evidence of {record.id}", columns, rows), output_format)
    # Microbenchmarks have no nodes to profile.
    possible = get_args(EvidenceKind) if record.plan.micro is None else ("inlining",)
    missing = tuple(kind for kind, _, shown in rows if shown is None and kind in possible)
    if missing:
        plan = msgspec.structs.replace(record.plan, evidence=EvidenceSpec(missing, 1))
        note(f"collect what is missing with: {command(plan)}")


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

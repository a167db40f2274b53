"""`benchctl explain RUN`: an explanation a module, each imported when it is asked for."""

from typing import ClassVar

import click

from benchctl.cli import LazyGroup
from benchctl.cli.options import complete_runs
from benchctl.cli.streams import say

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
            "jit": (f"{_HERE}.activity:jit_command", "Show JIT compilations during each task."),
            "gc": (f"{_HERE}.activity:gc_command", "Show GC pauses and allocation during each task."),
            "os": (f"{_HERE}.activity:os_command", "Show kernel counters of nodes during each task."),
        },
    }

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find an explanation; options without one are those of the list."""
        if args[0] in ctx.help_option_names:
            say(ctx.get_help())
            ctx.exit()
        return ("list", _listing(), args) if args[0].startswith("-") else super().resolve_command(ctx, args)


def _listing() -> click.Command:
    # What reads evidence takes a while to load, and the other explanations do not need it.
    from benchctl.evidence.commands.activity import list_command  # noqa: PLC0415 - see above

    return list_command


@click.group(
    "explain",
    cls=_Explanations,
    invoke_without_command=True,
    subcommand_metavar="[EXPLANATION [OPTIONS]]",
)
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.pass_context
def explain_group(context: click.Context, run: str) -> None:
    """Explain results: inlining, profiles, JIT, GC and kernel.

    Collect the evidence with `benchctl run --evidence`. Without an explanation, list the evidence of RUN and
    how to collect more. RUN is a run id, a unique prefix or suffix of one, a path, `latest`, or, for
    inlining, a log file.
    """
    context.obj = run
    if context.invoked_subcommand is None:
        context.invoke(_listing())

"""What may stand beside `--resume` and `--more`: what is measured was said when it was begun."""

from collections.abc import Collection

import click
from click.core import ParameterSource

from benchctl.errors import UsageError


def refuse_beside(option: str, context: click.Context, allowed: Collection[str], what: str) -> None:
    """Refuse options that would silently have no effect.

    Args:
        option: that goes on with what there is, such as `--resume`.
        context: of the command.
        allowed: names of parameters that say where things are and what to show, not what to measure.
        what: is gone on with, such as `a run`.

    Raises:
        UsageError: other options were given.
    """
    given = [
        other.opts[0]
        for other in context.command.params
        if other.name not in allowed
        and context.get_parameter_source(other.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        names = ", ".join(given)
        raise UsageError(
            f"{option} goes on with {what} as it was begun: {names} cannot change it",
            hint=f"leave out {names}, or start anew",
        )

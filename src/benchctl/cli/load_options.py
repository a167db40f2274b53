"""Options of `run` about how the load is made, as one value."""

from dataclasses import dataclass
from typing import Any

import click

from benchctl.cli.options import grouped
from benchctl.results.plan import ErrorPolicy, TransportName

AUTO = 0


class WorkersType(click.ParamType[int]):
    """A number of processes, or `auto`."""

    name = "auto|N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's type
        """Read it; AUTO for `auto`."""
        if value == "auto":
            return AUTO
        if isinstance(value, str) and value.isdecimal() and int(value) > 0:
            return int(value)
        return self.fail(f"'{value}' is neither auto nor a number of processes", param, ctx)


@dataclass(frozen=True)
class LoadOptions:
    """How the load is made.

    Attributes:
        on_error: whether a failed request is counted, or ends its fork.
        assertions: whether an answer that is not what its operation asserts has failed.
        transport: how measured requests travel.
        workers: processes that clients work in; AUTO to find out.
    """

    on_error: ErrorPolicy
    assertions: bool
    transport: TransportName
    workers: int


load_options = grouped(
    "load_options",
    LoadOptions,
    "Load",
    click.option(
        "--on-error",
        type=click.Choice(["continue", "abort"]),
        default="continue",
        show_default=True,
        help="Whether a failed request is counted, or ends its fork.",
    ),
    click.option(
        "--enable-assertions",
        "assertions",
        is_flag=True,
        help="Count answers that are not what the track's operations assert as failed.",
    ),
    click.option(
        "--transport",
        type=click.Choice(["wire", "client"]),
        default="wire",
        show_default=True,
        help="benchctl's own wire client, the same for both, or elasticsearch-py and opensearch-py, as "
        "applications use them.",
    ),
    click.option(
        "--workers",
        type=WorkersType(),
        default="auto",
        show_default=True,
        help="Processes that clients work in; auto is one, unless targets ask for more than one offers.",
    ),
)
"""The options; the command gets them as one, `load_options`."""

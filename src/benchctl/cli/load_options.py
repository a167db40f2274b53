"""Options of `run` about how the load is made, as one value."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from benchctl.results.model import ErrorPolicy, TransportName

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class LoadOptions:
    """How the load is made.

    Attributes:
        on_error: whether a failed request is counted, or ends its fork.
        transport: how measured requests travel.
        workers: processes that clients work in.
    """

    on_error: ErrorPolicy
    transport: TransportName
    workers: int


def load_options(command: F) -> Callable[..., Any]:
    """The options; the command gets them as one, `load_options`."""

    @click.option(
        "--on-error", type=click.Choice(["continue", "abort"]), default="continue", show_default=True,
        help="Whether a failed request is counted, or ends its fork.",
    )  # fmt: skip
    @click.option(
        "--transport", type=click.Choice(["wire", "client"]), default="wire", show_default=True,
        help="benchctl's own wire client, the same for both, or elasticsearch-py and opensearch-py, as "
        "applications use them.",
    )  # fmt: skip
    @click.option(
        "--workers", type=int, default=1, show_default=True,
        help="Processes that clients work in; one is enough unless a task comes out driver-limited.",
    )  # fmt: skip
    @functools.wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the command takes and gives
        own = {name: kwargs.pop(name) for name in LoadOptions.__dataclass_fields__}
        return command(*args, load_options=LoadOptions(**own), **kwargs)

    return collected

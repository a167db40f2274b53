"""`--test-mode`: the option, and the defaults that it changes."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from benchctl.cli.sections import under
from benchctl.run.trial import TRIAL_DOCUMENTS, TRIAL_FORKS

F = TypeVar("F", bound=Callable[..., Any])


def trial_option(command: F) -> F:
    """`--test-mode`."""
    return under("How much", click.option(
        "--test-mode", is_flag=True, is_eager=True, callback=_other_defaults,
        help=f"See whether it works, not how fast: {TRIAL_DOCUMENTS:,} documents and {TRIAL_FORKS} fork "
        "unless given, every task at most 3 times after 1 warm-up, unthrottled.",
    ))(command)  # fmt: skip


def _other_defaults(context: click.Context, _option: click.Parameter, given: bool) -> bool:  # noqa: FBT001 - click's type
    """Eager, so the options that are read after it find these defaults; what the user gives still wins."""
    if given:
        context.default_map = {**(context.default_map or {}), "docs": TRIAL_DOCUMENTS, "forks": TRIAL_FORKS}
    return given

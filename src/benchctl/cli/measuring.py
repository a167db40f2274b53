"""Commands that have the host to themselves: their options, and the time for which they hold it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from benchctl.cli.sections import under
from benchctl.cli.watch import watching
from benchctl.run.bench import Observer
from benchctl.run.lock import host_lock

F = TypeVar("F", bound=Callable[..., Any])


def measuring_options(command: F) -> F:
    """`--wait` and `--quiet`."""
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
    wait = click.option("--wait", is_flag=True, help="Wait while another benchctl is measuring on this host.")
    return under("Output", wait)(under("Output", quiet)(command))


dry_run_option = under(
    "Output",
    click.option(
        "-n",
        "--dry-run",
        is_flag=True,
        help="Check everything that can be checked, say what would be measured, and end.",
    ),
)
"""Of commands that measure something new; the command gets it as `dry_run`."""


@contextmanager
def measuring(*, wait: bool, quiet: bool) -> Iterator[Observer]:
    """As `watching`, with the host held: nobody else measures meanwhile.

    Args:
        wait: wait for another benchctl to finish; False refuses at once.
        quiet: say nothing but results.

    Raises:
        BenchctlError: another benchctl is measuring and we do not wait.
    """
    with (
        watching(quiet=quiet) as observer,
        host_lock(wait=wait, on_wait=lambda holder: observer.note(f"waiting for another benchctl: {holder}")),
    ):
        yield observer

"""Commands that have the host to themselves: for how long they hold it, and the tables that they end with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchctl.cli.options import under
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.lock import host_lock
from benchctl.results.model import RunRecord, unanswered
from benchctl.results.store import RunFolder, reference
from benchctl.run.bench import Observer

if TYPE_CHECKING:
    from benchctl.report.formats import Format


# Commands that have the host to themselves: their options, and the time for which they hold it.


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

require_quiet_option = under(
    "Output",
    click.option(
        "--require-quiet",
        is_flag=True,
        help="Refuse to begin while others use the host's CPUs, or memory or disk are short.",
    ),
)
"""The same, as `require_quiet`."""


@contextmanager
def measuring(*, wait: bool, quiet: bool) -> Iterator[Observer]:
    """As `watching`, with the host locked: nobody else measures meanwhile.

    Without `wait` another benchctl is an error; `quiet` prints results only.

    Raises:
        BenchctlError: another benchctl is measuring and we do not wait.
    """
    with (
        watching(quiet=quiet) as observer,
        host_lock(wait=wait, on_wait=lambda holder: observer.note(f"waiting for another benchctl: {holder}")),
    ):
        yield observer


# The end of a command that measured: its tables, and an error where they do not show all that was asked.


def conclude(
    folder: RunFolder, record: RunRecord, home: Home, output_format: "Format", *, details: bool
) -> None:
    """Print a run; `details` adds host, engines, indices and times.

    Raises:
        BenchctlError: forks failed, or all requests of a task did.
    """
    # The statistics behind the tables take longer to load than a search; no first request waits for them.
    from benchctl.cli.output import print_run  # noqa: PLC0415 - see above

    print_run(folder, output_format, usual=home.runs, part="all" if details else None)
    if record.missing():
        name = reference(folder, home.runs)
        raise BenchctlError(
            f"{len(record.missing())} of {record.total} forks failed; the tables show the rest",
            hint=f"see the reasons with: benchctl show {name}; go on with: benchctl run --resume {name}",
            exit_code=ExitCode.FAILED,
        )
    failing = unanswered(record)
    if failing:
        raise BenchctlError(
            f"every request failed in {', '.join(failing)}; the tables show the rest",
            hint="the notes below the tables say why",
        )

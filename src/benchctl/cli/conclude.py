"""The end of a command that measured: its tables, and an error where they do not show all that was asked."""

from typing import TYPE_CHECKING

from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.results.model import RunRecord, unanswered
from benchctl.results.store import RunFolder, reference

if TYPE_CHECKING:
    from benchctl.report.formats import Format


def conclude(
    folder: RunFolder, record: RunRecord, home: Home, output_format: "Format", *, details: bool
) -> None:
    """Print a run.

    Args:
        folder: of the run.
        record: of it.
        home: where runs usually are.
        output_format: how to print it.
        details: host, engines, indices and times as well, for readers.

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

"""When each task of a fork ran, by its samples."""

from dataclasses import dataclass

from benchctl.errors import BenchctlError
from benchctl.results.duck import DuckError, database
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place
from benchctl.results.store import RunFolder

_QUERY = """
SELECT schedule, task, min(start_ns), min(start_ns) FILTER (NOT warmup), max(end_ns), any_value(boot)
FROM read_parquet(?) WHERE schedule >= 0 GROUP BY ALL ORDER BY ALL
"""


class UnknownTimesError(BenchctlError):
    """What says when the tasks of a fork ran is not there any more."""


@dataclass(frozen=True)
class TaskWindow:
    """When a task ran, in nanoseconds from the origin of the fork's samples.

    Attributes:
        begin_ns: its first request was sent, warm-up included.
        measured_ns: its first measured request was.
        end_ns: its last answer was there.
        boot: on which node start of the fork it ran, all of it.
    """

    begin_ns: int
    measured_ns: int
    end_ns: int
    boot: int = 0

    @property
    def seconds(self) -> float:
        """Of the measured part."""
        return (self.end_ns - self.measured_ns) / 1e9


def task_windows(folder: RunFolder, fork: ForkRecord) -> dict[Place, TaskWindow]:
    """The tasks of a fork that measured anything, in their order.

    Raises:
        UnknownTimesError: its samples are not there: nothing else says when tasks ran.
        BenchctlError: they cannot be read.
    """
    absent = "none were kept" if fork.samples is None else folder.damage(fork, fork.samples)
    if fork.samples is None or absent:
        raise UnknownTimesError(
            f"the samples of fork {fork.block} of {fork.variant} are not there ({absent}): "
            "only they say when tasks ran"
        )
    path = folder.inside(fork.samples)
    try:
        with database(threads=1) as connection:
            rows = connection.execute(_QUERY, [str(path)]).fetchall()
    except DuckError as err:
        raise BenchctlError(f"cannot read the samples in {path}: {err}") from err
    return {
        (schedule, task): TaskWindow(begin_ns, measured_ns, end_ns, boot)
        for schedule, task, begin_ns, measured_ns, end_ns, boot in rows
        if measured_ns is not None
    }

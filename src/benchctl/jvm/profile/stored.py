"""The profiles that a run keeps, fork by fork, and when in them a task was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.errors import BenchctlError, UsageError
from benchctl.jvm.profile.counting import Choice, Counted, Window, count_stacks, merged
from benchctl.jvm.profile.model import Profile, read_profile
from benchctl.nearest import suggestion
from benchctl.results.duck import DuckError, database
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.results.store import RunFolder

_WINDOWS = """
SELECT boot, min(start_ns), max(end_ns) FROM read_parquet(?)
WHERE NOT warmup AND schedule = ? AND task = ?
GROUP BY boot
"""


@dataclass(frozen=True)
class ForkProfile:
    """What was sampled in one fork.

    Attributes:
        fork: the fork's record.
        boots: position of a node start in the fork -> its profile.
    """

    fork: ForkRecord
    boots: dict[int, Profile]

    @property
    def unread(self) -> int:
        """Lines of the recordings that were not understood."""
        return sum(profile.unread for profile in self.boots.values())


def fork_profiles(folder: RunFolder, record: RunRecord, variant: str) -> list[ForkProfile]:
    """The profiles of a variant's finished forks, in block order; forks without any are passed over.

    Raises:
        BenchctlError: one cannot be read, is damaged, or of another version.
    """
    found = []
    for fork in record.done(variant):
        if "profile" not in fork.evidence:
            continue
        folders = {
            number: folder.evidence_folder(variant, fork.block, number) for number in range(len(fork.boots))
        }
        boots = {number: read_profile(path) for number, path in folders.items()}
        kept = {number: profile for number, profile in boots.items() if profile is not None}
        if kept:
            found.append(ForkProfile(fork, kept))
    return found


def count_fork(
    profile: ForkProfile,
    choice: Choice,
    *,
    folder: RunFolder,
    tasks: Sequence[Place] = (),
    pools: bool = False,
) -> Counted:
    """Count the stacks of one fork, of all its node starts.

    Args:
        profile: of the fork.
        choice: which samples count; its windows are not looked at.
        folder: of the run.
        tasks: only samples of the measured window of one of them; empty for all that was recorded.
        pools: as of `count_stacks`.

    Raises:
        BenchctlError: it is not known when these tasks ran.
    """
    windows = _windows(folder, profile.fork, tasks) if tasks else None
    counted = [
        count_stacks(
            samples.samples(),
            Choice(choice.native, choice.thread, None if windows is None else windows.get(boot, ())),
            pools=pools,
        )
        for boot, samples in profile.boots.items()
    ]
    return merged(counted)


def places_of(plan: Plan, wanted: str) -> list[Place]:
    """The tasks that a name means: `TASK`, in whatever challenges it is, or `CHALLENGE/TASK`.

    Raises:
        UsageError: there is none.
    """
    challenge, slash, task = wanted.rpartition("/")
    names = {
        (number, position): (schedule.name, one.label)
        for number, schedule in enumerate(plan.schedules)
        for position, one in enumerate(schedule.schedule)
    }
    found = [
        place
        for place, (name, label) in names.items()
        if wanted == label or (slash and (challenge, task) == (name, label))
    ]
    if not found:
        labels = (label for _, label in names.values())
        raise UsageError(f"the run has no task '{wanted}'", hint=suggestion(wanted, labels))
    return found


def _windows(folder: RunFolder, fork: ForkRecord, tasks: Sequence[Place]) -> dict[int, tuple[Window, ...]]:
    """Node start -> when the tasks were measured on it, on the clock of its profile."""
    if fork.samples is None or not (path := folder.inside(fork.samples)).is_file():
        raise BenchctlError(
            f"when a task ran is in the samples, and those of fork {fork.block} of {fork.variant} are gone",
            hint="leave --task out",
        )
    windows: dict[int, tuple[Window, ...]] = {}
    try:
        with database() as connection:
            for schedule, task in tasks:
                rows = connection.execute(_WINDOWS, [str(path), schedule, task]).fetchall()
                for boot, first_ns, last_ns in rows:
                    origin_ns = fork.boots[boot].origin_ns
                    if origin_ns is None:
                        raise BenchctlError(f"it is not known when the JVM of fork {fork.block} started")
                    windows[boot] = (*windows.get(boot, ()), (first_ns - origin_ns, last_ns - origin_ns))
    except DuckError as err:
        raise BenchctlError(f"cannot read the samples in {path}: {err}") from err
    return windows

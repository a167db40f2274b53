"""The profiles that a run keeps, fork by fork, and when in them a task was measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.jvm.profile.counting import Choice, Counted, Window, count_stacks, merged
from benchctl.jvm.profile.model import Profile, read_profile
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place
from benchctl.results.reading import UnknownTimesError, task_windows
from benchctl.results.store import RunFolder


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
    tasks: Sequence[Place] | None,
    pools: bool = False,
) -> Counted:
    """Count the stacks of one fork, of all its node starts.

    Args:
        profile: of the fork.
        choice: which samples count; its windows are not looked at.
        folder: of the run.
        tasks: only samples of the measured window of one of them; None for all that was recorded.
        pools: as of `count_stacks`.

    Raises:
        UnknownTimesError: it is not known when these tasks ran.
    """
    windows = None if tasks is None else _windows(folder, profile.fork, tasks)
    counted = [
        count_stacks(
            samples.samples(),
            Choice(choice.native, choice.thread, None if windows is None else windows.get(boot, ())),
            pools=pools,
        )
        for boot, samples in profile.boots.items()
    ]
    return merged(counted)


def _windows(folder: RunFolder, fork: ForkRecord, tasks: Sequence[Place]) -> dict[int, tuple[Window, ...]]:
    """Node start -> when the tasks were measured on it, on the clock of its profile."""
    found = task_windows(folder, fork)
    windows: dict[int, tuple[Window, ...]] = {}
    for window in (found[place] for place in tasks if place in found):
        origin_ns = fork.boots[window.boot].origin_ns
        if origin_ns is None:
            raise UnknownTimesError(f"it is not known when the JVM of fork {fork.block} started")
        own = (window.measured_ns - origin_ns, window.end_ns - origin_ns)
        windows[window.boot] = (*windows.get(window.boot, ()), own)
    return windows

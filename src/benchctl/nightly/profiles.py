"""Where a night's nodes spent their time: kept with the night, and compared where a change was confirmed."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from benchctl.errors import BenchctlError
from benchctl.jvm.profile import (
    Choice,
    Counted,
    ForkProfile,
    count_fork,
    differences,
    fork_profiles,
    shares,
    without_lines,
)
from benchctl.nightly.measure import task_names
from benchctl.nightly.model import Shift, TaskProfile
from benchctl.report.profile.text import LEAST_SAMPLES
from benchctl.results.model import RunRecord
from benchctl.results.plan import Place
from benchctl.results.reading import UnknownTimesError
from benchctl.results.store import RunFolder

_KEPT: Final = 10
_SHIFTS: Final = 5


def night_profiles(folder: RunFolder, run: RunRecord) -> tuple[TaskProfile, ...]:
    """The profiles of a run, variant by variant and task by task, those without a sample left out."""
    found = []
    for spec in run.plan.variants if "profile" in run.plan.evidence_kinds else ():
        profiles = _profiles(folder, run, spec.name)
        for place, (challenge, task) in task_names(run.plan).items():
            forks = list(_counted(folder, profiles, place))
            listed = shares(forks)[:_KEPT]
            if listed:
                samples = sum(one.samples for one in forks)
                methods = tuple((one.stack[0], one.share) for one in listed)
                found.append(TaskProfile(spec.name, challenge, task, samples, methods))
    return tuple(found)


def profile_shifts(
    folder: RunFolder, run: RunRecord, place: Place, baseline: str, contender: str
) -> tuple[Shift, ...]:
    """The methods whose share of a task differs most between two variants, beyond what sampling explains.

    None where either has too few samples to rank methods.
    """
    sides = [list(_counted(folder, _profiles(folder, run, name), place)) for name in (baseline, contender)]
    if any(sum(one.samples for one in side) < LEAST_SAMPLES for side in sides):
        return ()
    beyond = [one for one in differences(*sides) if abs(one.difference) > one.noise]
    return tuple(Shift(one.stack[0], one.baseline.share, one.contender.share) for one in beyond[:_SHIFTS])


def _profiles(folder: RunFolder, run: RunRecord, variant: str) -> list[ForkProfile]:
    """What is damaged is left out: a night is judged by its figures."""
    try:
        return fork_profiles(folder, run, variant)
    except BenchctlError:
        return []


def _counted(folder: RunFolder, profiles: Sequence[ForkProfile], place: Place) -> Iterator[Counted]:
    for one in profiles:
        # Nor do samples count of which nobody knows when they were taken.
        with suppress(UnknownTimesError):
            yield without_lines(count_fork(one, Choice(), folder=folder, tasks=[place]))

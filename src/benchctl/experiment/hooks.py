"""The hooks of experiments that the core calls."""

from collections.abc import Callable, Collection, Iterator

from benchctl.experiment.execution import experiment_of
from benchctl.experiment.record import ExperimentStore
from benchctl.home import Home


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that experiments refer to."""
    for _, experiment in ExperimentStore(home.root / "experiments").records(unread):
        for run in experiment.runs.values():
            yield run, f"experiment {experiment.id}"


def continuation(home: Home, tags: Collection[str]) -> tuple[str, str] | None:
    """Return the experiment that a run is a measurement of, if it still exists."""
    found = experiment_of(tags)
    if not found or not (home.experiments / found).is_dir():
        return None
    return f"experiment {found}", f"benchctl experiment run {{option}} {found}"

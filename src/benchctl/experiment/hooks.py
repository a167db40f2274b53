"""The hooks of experiments that the core calls."""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from benchctl.experiment.execution import experiment_of
from benchctl.experiment.record import ExperimentFolder, ExperimentStore
from benchctl.home import Home

if TYPE_CHECKING:
    from benchctl.cli.resume import Whole


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that experiments refer to."""
    for _, experiment in ExperimentStore(home.root / "experiments").records(unread):
        for run in experiment.runs.values():
            yield run, f"experiment {experiment.id}"


def whole(home: Home, name: str, tags: Collection[str]) -> "Whole | None":
    """Return the experiment of that name, or that a run with such tags is a measurement of."""
    found = experiment_of(tags) or name
    folder = ExperimentFolder(home.root / "experiments" / found)
    if not found or found in {".", ".."} or "/" in found or not folder.path.is_dir():
        return None
    # The commands load statistics, which whoever only deletes runs need not wait for.
    from benchctl.experiment.commands.run import BegunExperiment  # noqa: PLC0415 - see above

    return BegunExperiment(home, folder)

"""The hooks of experiments that the core calls."""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from benchctl.cli.streams import note
from benchctl.experiment.execution import experiment_of
from benchctl.experiment.record import ExperimentStore
from benchctl.home import Home

if TYPE_CHECKING:
    from benchctl.cli.resume import Whole


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that experiments refer to."""
    for _, experiment in ExperimentStore(home.root / "experiments").records(unread):
        for run in experiment.runs.values():
            yield run, f"experiment {experiment.id}"


def whole(home: Home, name: str, tags: Collection[str]) -> "Whole | None":
    """Return the experiment that a name means, or that a run with such tags is a measurement of."""
    store = ExperimentStore(home.root / "experiments")
    found = experiment_of(tags) or name
    if not store.names(found):
        return None
    # The commands load statistics, which whoever only deletes runs need not wait for.
    from benchctl.experiment.commands.run import BegunExperiment  # noqa: PLC0415 - see above

    return BegunExperiment(home, store.find(found, note))

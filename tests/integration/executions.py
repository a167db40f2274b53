"""What experiments on real nodes have left behind."""

from benchctl.experiment.record import ExperimentRecord, ExperimentStore
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore


def executed(home: Home) -> ExperimentRecord | None:
    """The newest execution; None before there is one."""
    folders = ExperimentStore(home.root / "experiments").folders()
    return folders[-1].load() if folders else None


def runs(home: Home) -> dict[str, RunRecord]:
    record = executed(home)
    return (
        {}
        if record is None
        else {name: RunStore(home.runs).find(one).load() for name, one in record.runs.items()}
    )

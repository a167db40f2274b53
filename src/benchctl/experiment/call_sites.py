"""What the JVMs of an experiment did at its call sites, read from the logs that its runs keep."""

from collections.abc import Iterator, Mapping, Sequence

from benchctl.errors import BenchctlError
from benchctl.jvm.call_sites import RunLog, logs_of, read_called
from benchctl.jvm.inlining_log import InliningLog
from benchctl.results.experiment import CallSite, ExperimentSpec, SeenCall, SeenReceiver
from benchctl.results.model import RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.results.store import RunStore
from benchctl.run.plan import boots

_MISSING = "it is not there"


def seen_calls(spec: ExperimentSpec, runs: Mapping[str, RunRecord], store: RunStore) -> tuple[SeenCall, ...]:
    """Look at every call site in every finished fork that was to keep a log.

    Args:
        spec: of the experiment.
        runs: measurement -> its run, as far as they are there.
        store: of the runs.

    Raises:
        BenchctlError: a run cannot be found, or its tasks are not those that the experiment names.
    """
    found: list[SeenCall] = []
    for name in dict.fromkeys(site.measurement for site in spec.call_sites):
        if name in runs:
            logs = logs_of(store.find(runs[name].id), runs[name])
            sites = [site for site in spec.call_sites if site.measurement == name]
            found += (one for site in sites for one in _of_site(site, runs[name], logs))
    return tuple(found)


def _of_site(site: CallSite, run: RunRecord, logs: Sequence[RunLog]) -> Iterator[SeenCall]:
    for variant in site.variants:
        boot = _boot_of(run.plan, site.task_of(variant).place_in(run.plan))
        for fork in run.done(variant):
            if "inlining" in run.plan.evidence_in(fork.block):
                which = (variant, fork.block, boot)
                log = next((one for one in logs if (one.variant, one.block, one.boot) == which), None)
                yield _of_fork(site, variant, fork.block, log)


def _boot_of(plan: Plan, place: Place) -> int:
    """Which node start of a fork a task runs on."""
    return next(number for number, steps in enumerate(boots(plan)) if any(place in step for step in steps))


def _of_fork(site: CallSite, variant: str, block: int, log: RunLog | None) -> SeenCall:
    why = _MISSING
    if log is not None:
        try:
            return _seen(site, variant, block, InliningLog(log.path))
        except BenchctlError as err:
            why = err.message
    return SeenCall(site=site.name, variant=variant, block=block, found=None, words=why)


def _seen(site: CallSite, variant: str, block: int, log: InliningLog) -> SeenCall:
    called = read_called(log, site.method, site.callee)
    return SeenCall(
        site=site.name,
        variant=variant,
        block=block,
        found=called.found,
        words=called.words,
        receivers=tuple(SeenReceiver(one.name, one.count) for one in called.receivers),
        calls=called.calls,
        given_up=called.given_up_ms is not None,
    )

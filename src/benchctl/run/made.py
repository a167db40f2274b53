"""Whether a challenge that makes its own data has made it: searches of something else are no measurement."""

from benchctl.engine.declared import WHAT_TO_DO
from benchctl.errors import BenchctlError
from benchctl.load.executor import Job, TaskResult
from benchctl.results.samples import Outcome
from benchctl.track.operations.declared import CreateDataStream, CreateIndex, CreateTemplate

_RESTORE = "restore-snapshot"


def check_made(job: Job, result: TaskResult) -> None:
    """End the fork where the node refuses an index, a template or a snapshot.

    Documents that are sent there all the same would make an index of another mapping, and every figure after
    that one of other work.

    Raises:
        BenchctlError: the node refuses, in its own words; but for tasks whose failures are not fatal.
    """
    operation = job.operation
    makes = isinstance(operation, CreateIndex | CreateDataStream | CreateTemplate)
    if not makes and operation.type_name != _RESTORE:
        return
    if not result.failures or job.task.ignore_response_error_level == "non-fatal":
        return
    # One that was tried again until it went well is no failure; part 0 is the operation as a whole.
    if any(((chunk["outcome"] == Outcome.OK) & (chunk["part"] == 0)).any() for chunk in result.samples):
        return
    said = next((detail for failure in result.failures for detail in failure.details), "no reason given")
    raise BenchctlError(
        f"the node refuses what task {job.task.label} makes: {said}",
        hint=WHAT_TO_DO,
    )

"""Which task of a measurement's plan a comparison means."""

from benchctl.results.experiment import TaskRef
from benchctl.results.places import task_of_challenge
from benchctl.results.plan import Place, Plan


def place_of(plan: Plan, reference: TaskRef) -> Place:
    """Find the one task that a reference means.

    Args:
        plan: of its measurement.
        reference: to a task of it.

    Raises:
        UsageError: there is none, or there are several.
    """
    return task_of_challenge(plan, reference.challenge, reference.task, str(reference))

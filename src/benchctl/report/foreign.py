"""What is known of results that another tool measured, for readers."""

from collections.abc import Iterator

from benchctl.results.foreign.race import TITLES, UNKNOWN
from benchctl.results.model import Imported, RunRecord


def imported_lines(record: RunRecord, found: Imported) -> Iterator[str]:
    """In place of what a run of our own has to say of itself.

    Args:
        record: the run.
        found: where it comes from.
    """
    plan = record.plan
    yield f"{record.id}, measured {record.created}"
    if record.tags:
        yield f"tags: {' '.join(record.tags)}"
    tool = f"{TITLES[found.tool]} {found.version or '(version unknown)'}"
    yield f"measured by {tool}, imported by benchctl {record.environment.benchctl}, without samples"
    _, environment, car = record.environment.fingerprint.split(":", 2)
    yield f"environment '{environment}', nodes '{car or UNKNOWN}': all that is known of host and heap"
    names = ", ".join(one.name for one in plan.schedules)
    yield f"track {plan.track}, challenge {names}; corpus, order and node restarts unknown"
    if plan.params:
        yield f"parameters: {' '.join(f'{key}={value}' for key, value in sorted(plan.params.items()))}"
    for block, path in enumerate(found.files):
        yield f"fork {block}: {path}"

"""Why results that another tool measured may not stand beside others, as far as anybody can know."""

from collections.abc import Iterator

from benchctl.results.foreign.race import TITLES, UNKNOWN
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan


def imported_reasons(one: RunRecord, other: RunRecord) -> Iterator[str]:
    """Why the results of two runs cannot be compared, when at least one of them was imported.

    Races of one tool are alike when all that their files say is: tool and version, environment, car, track
    with its parameters, challenge and tasks. That their hosts were the same, no file says.

    Yields:
        The reasons; none when they can.
    """
    measured = [_measured_by(record) for record in (one, other)]
    if measured[0] != measured[1]:
        yield f"measured by different tools ({measured[0]}, {measured[1]})"
    if one.imported is None or other.imported is None:
        foreign = measured[0] if one.imported else measured[1]
        yield f"host, heap and documents of {foreign} are unknown, and its throughput is another figure"
    elif _named(one) != _named(other):
        names = [_named(record) for record in (one, other)]
        yield f"the environments differ ({names[0]}, {names[1]})"
    if UNKNOWN not in (one.plan.track, other.plan.track) and one.plan.track != other.plan.track:
        yield f"track differs ({one.plan.track}, {other.plan.track})"
    if one.imported and other.imported and one.plan.params != other.plan.params:
        yield f"track parameters differ ({_assignments(one.plan)}, {_assignments(other.plan)})"
    tasks = [_tasks(record.plan) for record in (one, other)]
    if tasks[0] != tasks[1]:
        yield f"the tasks differ ({'; '.join(' '.join(names) for names in tasks)})"


def _named(record: RunRecord) -> str:
    """What the user called environment and nodes: all that a file says of a host."""
    return record.environment.fingerprint.split(":", 1)[1]


def _measured_by(record: RunRecord) -> str:
    found = record.imported
    if found is None:
        return "benchctl"
    return f"{TITLES[found.tool]} {found.version}".rstrip()


def _assignments(plan: Plan) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(plan.params.items())) or "none"


def _tasks(plan: Plan) -> tuple[str, ...]:
    """Their names in order, challenge by challenge."""
    return tuple(task.label for challenge in plan.schedules for task in challenge.schedule)

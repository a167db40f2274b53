"""Tasks as experiment files name them: `MEASUREMENT/VARIANT/TASK`, or with the challenge in between."""

from typing import Final

from benchctl.errors import UsageError
from benchctl.results.experiment import TaskRef

_FORM: Final = "MEASUREMENT/VARIANT/TASK, or MEASUREMENT/VARIANT/CHALLENGE/TASK"
_SHORT: Final = 3


def parse_ref(text: str) -> TaskRef:
    """Read a reference; whether there is such a task, `TaskRef.place_in` says.

    Raises:
        UsageError: it has too few parts, or an empty one.
    """
    parts = text.split("/")
    if len(parts) < _SHORT or not all(parts):
        raise UsageError(f"'{text}' is no task", hint=f"write {_FORM}")
    measurement, variant, *rest = parts
    if len(parts) == _SHORT:
        return TaskRef(measurement, variant, rest[0])
    # Only a task's own name may hold a slash.
    return TaskRef(measurement, variant, "/".join(rest[1:]), rest[0])

"""What an answer has to say before an operation counts as done."""

from typing import Any, Literal

import msgspec

from benchctl.track.operations.common import demand


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A value at one place of an answer.

    Attributes:
        path: keys into the answer with dots between them, such as `_all.total.merges.current`.
        expected_value: what has to stand there.
    """

    path: str
    expected_value: Any


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """How a value at one place of an answer compares with another.

    Attributes:
        operator: numbers are compared; `exists` and `not_exists` ask for any value.
        value: to compare with.
    """

    operator: Literal["exists", "not_exists", "gte", "lte", "eq", "neq"]
    value: int | float | str | None = None

    def __post_init__(self) -> None:
        existence = self.operator in {"exists", "not_exists"}
        demand(
            (existence or self.value is not None, f"operator {self.operator} needs a value"),
            (existence or is_number(self.value), f"operator {self.operator} compares numbers"),
        )


def is_number(value: object) -> bool:
    """Whether a value is a number, perhaps in a text."""
    try:
        float(str(value))
    except ValueError:
        return False
    return not isinstance(value, bool)

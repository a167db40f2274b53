"""References of comparisons to tasks find one task, or say why not."""

import pytest

from benchctl.errors import UsageError
from benchctl.track.model import Challenge, Task
from made_experiment import made_plan, ref

DEBUG = Challenge("debug", (Task("sort", iterations=1), Task("range", iterations=1)))
RANGE = Challenge("range-settled", (Task("range", iterations=1),))
TWICE = made_plan(RANGE, DEBUG, RANGE)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("m/es/sort", (1, 0)),
        ("m/es/debug/range", (1, 1)),
        ("m/es/debug#1/range", (1, 1)),
        ("m/es/range-settled#1/range", (0, 0)),
        ("m/es/range-settled#2/range", (2, 0)),
    ],
)
def test_a_reference_finds_its_task(text: str, place: tuple[int, int]):
    assert ref(text).place_in(TWICE) == place


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("m/es/range", "is 3 tasks", "range-settled#1/range, debug/range, range-settled#2/range"),
        ("m/es/range-settled/range", "is 2 tasks", "range-settled#1/range, range-settled#2/range"),
        ("m/es/rage", "no task 'rage'", "did you mean 'range'?"),
        ("m/es/debgu/range", "no challenge 'debgu'", "did you mean 'debug'?"),
        ("m/es/debug#2/range", "no challenge 'debug#2'", "debug"),
        ("m/es/range-settled#2/sort", "no task 'sort'", "known: range"),
        ("m/es/debug/sort#2", "no task 'sort#2'", "'sort'"),
    ],
)
def test_a_reference_to_none_or_several_says_so(text: str, message: str, hint: str):
    with pytest.raises(UsageError, match=message) as raised:
        ref(text).place_in(TWICE)
    assert hint in (raised.value.hint or "")

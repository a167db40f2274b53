"""What a record says about itself."""

from collections.abc import Callable

import msgspec
import pytest

from benchctl.results.figures import TaskSummary
from benchctl.results.model import BootRecord, ForkRecord, RunRecord, stray_boots, unanswered

FINE = TaskSummary(0, 0, "range", "range", samples=3)
FAILED = TaskSummary(0, 0, "range", "range", failures={"http_error": 1})
CUT_OFF = TaskSummary(0, 0, "range", "range", samples=2, cancelled=1)
UNSUPPORTED = TaskSummary(0, 0, "range", "range", unsupported="no such thing")


@pytest.mark.parametrize(
    ("counted", "summary", "stray"),
    [
        (4, FINE, False),
        (None, FINE, False),
        (5, FINE, True),
        (3, FINE, True),
        (3, FAILED, False),
        (3, UNSUPPORTED, False),
        (3, CUT_OFF, False),
        (5, CUT_OFF, True),
        (5, FAILED, True),
    ],
)
def test_a_node_need_not_count_what_it_refused(
    fork: Callable[..., ForkRecord], counted: int | None, summary: TaskSummary, *, stray: bool
):
    boot = BootRecord((0,), 1.0, 1.0, 1.0, 4, counted, (), "")
    found = stray_boots(fork("es", 0, summary, boots=(boot,)))
    assert found == ((boot,) if stray else ())


def test_tasks_without_any_answer_are_named_once_and_missing_features_are_none(
    record: Callable[..., RunRecord], fork: Callable[..., ForkRecord]
):
    summaries = (FINE, msgspec.structs.replace(FAILED, label="wrong"), UNSUPPORTED)
    forks = tuple(fork("es", block, *summaries) for block in range(2))
    assert unanswered(msgspec.structs.replace(record(), forks=forks)) == ("wrong of es",)
    assert unanswered(record("r", "es")) == ()

"""What a chart is to a page: a figure, and the same for those who do not see it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from benchctl.report.grid import Grid

OVERVIEW = "overview"
"""The group of charts that are about the whole run."""
LEAST_POINTS, LEAST_READINGS = 5, 10
"""What has fewer is told by its table: a plot of them shows nothing."""

_MOST_ABSENT = 6


class Chart(msgspec.Struct, frozen=True):
    """One chart of a page.

    Attributes:
        key: unique on its page; letters, digits and hyphens, since it becomes an anchor.
        group: `OVERVIEW`, or the task's title as `layout.task_name` gives it.
        title: above it.
        about: what is shown and how to read it, in one or two sentences; also its accessible description.
        figure: a plotly figure as plain JSON: `data` and `layout`.
        table: the same figures in words; None where a table of the page has them already.
    """

    key: str
    group: str
    title: str
    about: str
    figure: dict[str, Any]
    table: Grid | None = None


def not_drawn(absent: Sequence[str]) -> str:
    """The first of the forks that charts lack, and how many more there are; empty when there are none."""
    if not absent:
        return ""
    more = len(absent) - _MOST_ABSENT
    return f"Not drawn: {'; '.join(absent[:_MOST_ABSENT])}{f'; and {more} more' if more > 0 else ''}."

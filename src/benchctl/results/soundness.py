"""What no record of a run can say, though every field of it is of the right type."""

from collections import Counter
from itertools import pairwise

from benchctl.results.figures import Course, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan


def contradiction(record: RunRecord) -> str:
    """Why no figure of a record can be relied on, in words; empty for every record that benchctl writes."""
    if not record.plan.variants:
        return "its plan has no variant"
    forks = Counter((fork.block, fork.variant) for fork in record.forks)
    for (block, variant), times in forks.items():
        if times > 1:
            return f"it lists fork {block} of {variant} {times} times"
    for fork in record.forks:
        for summary in fork.summaries:
            whose = f"fork {fork.block} of {fork.variant}"
            if not _planned(summary, record.plan):
                return f"{whose} has figures of a task that is not in its plan"
            if summary.course is not None and not _sound(summary.course):
                return f"{whose} has a course whose levels do not fit its segments"
    return ""


def _planned(summary: TaskSummary, plan: Plan) -> bool:
    if not 0 <= summary.schedule < len(plan.schedules):
        return False
    return 0 <= summary.task < len(plan.schedules[summary.schedule].schedule)


def _sound(course: Course) -> bool:
    """Whether every segment begins after the one before and has a level, which is a time."""
    return (
        len(course.bounds) == len(course.levels_ns) > 0
        and course.bounds[0] == 0
        and all(first < second for first, second in pairwise((*course.bounds, course.of)))
        and all(level > 0 for level in course.levels_ns)
    )

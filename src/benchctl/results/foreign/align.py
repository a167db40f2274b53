"""Tasks of another tool's races under the places that the same tasks have in a plan of ours."""

from collections.abc import Sequence

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan


def aligned(forks: Sequence[ForkRecord], plan: Plan) -> tuple[ForkRecord, ...]:
    """Give every summary the place of the task of its name.

    Other tools leave administrative tasks out of their results, so that places do not agree; names do.

    Args:
        forks: of an imported run.
        plan: of the run that they are to stand beside.

    Returns:
        The forks with the summaries whose task the plan has exactly once.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for schedule, challenge in enumerate(plan.schedules):
        for task, one in enumerate(challenge.schedule):
            places.setdefault(one.label, []).append((schedule, task))
    return tuple(
        msgspec.structs.replace(
            fork,
            summaries=tuple(
                msgspec.structs.replace(one, schedule=found[0][0], task=found[0][1])
                for one in fork.summaries
                if len(found := places.get(one.label, [])) == 1
            ),
        )
        for fork in forks
    )

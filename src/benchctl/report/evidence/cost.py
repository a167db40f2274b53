"""What evidence cost, as a table: a line a task, a column a variant."""

from benchctl.report.grid import OPERATION, Grid
from benchctl.report.numbers import NOT_AVAILABLE, counted, interval, signed_percent
from benchctl.results.plan import Place
from benchctl.stats.analysis import Analysis
from benchctl.stats.evidence import EvidenceCost, TaskCost


def cost_grid(analysis: Analysis) -> Grid | None:
    """The table; None where no extra forks collected evidence, or none of them has a value."""
    cost = analysis.evidence
    if cost is None or not cost.tasks:
        return None
    by_place: dict[Place, dict[str, TaskCost]] = {}
    for one in cost.tasks:
        by_place.setdefault((one.schedule, one.task), {})[one.variant] = one
    lines = (
        (
            _name(next(iter(found.values())), analysis),
            *(_cell(found.get(variant)) for variant in analysis.variants),
        )
        for found in by_place.values()
    )
    return Grid.of(_title(cost), (OPERATION, *(f"{variant} %" for variant in analysis.variants)), lines)


def _title(cost: EvidenceCost) -> str:
    carrying = {one.evidence for one in cost.tasks}
    forks = " or ".join(counted(count, "fork") for count in sorted(carrying))
    alone = "; one fork: no interval" if carrying == {1} else ", with 95 % intervals"
    return (
        f"What evidence ({', '.join(cost.kinds)}) cost: mean service time of {forks} with it over plain ones "
        f"- 1{alone}; such forks run behind all others and enter no comparison"
    )


def _name(one: TaskCost, analysis: Analysis) -> str:
    if len(analysis.sections) == 1:
        return one.label
    return f"{analysis.sections[one.schedule].challenge}: {one.label}"


def _cell(one: TaskCost | None) -> str:
    if one is None:
        return NOT_AVAILABLE
    if one.low_percent is None:
        return signed_percent(one.percent)
    return f"{signed_percent(one.percent)} ({interval(one.low_percent, one.high_percent)})"

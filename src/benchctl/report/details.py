"""The tables below the results: what could be seen, and on request all times and the driver's figures."""

from benchctl.report.adjusted import adjusted_grids
from benchctl.report.builds import builds_grid
from benchctl.report.costs import costs_grid
from benchctl.report.driver import driver_grid
from benchctl.report.evidence.cost import cost_grid
from benchctl.report.layout import Grid, precision_grid
from benchctl.report.order import order_grids
from benchctl.report.times import times_grid
from benchctl.stats.analysis import Analysis


def further_grids(analysis: Analysis, *, details: bool) -> list[Grid]:
    """Those of the tables that there is something to say in: order effects first, which are results, too.

    Args:
        analysis: what to print.
        details: with all kinds of times, and what the driver itself did.
    """
    grids = [*order_grids(analysis), precision_grid(analysis), cost_grid(analysis)]
    if details:
        grids += [*adjusted_grids(analysis), builds_grid(analysis), costs_grid(analysis)]
        grids += [times_grid(analysis), driver_grid(analysis)]
    return [grid for grid in grids if grid is not None]

"""What must be said of figures that another tool measured."""

from collections.abc import Mapping

import msgspec

from benchctl.results.foreign.race import TITLES
from benchctl.results.model import Imported
from benchctl.stats import caveat
from benchctl.stats.analysis import Analysis


def with_imports(analysis: Analysis, imported: Mapping[str, Imported | None]) -> Analysis:
    """Add what holds of imported results; nothing changes where none are.

    Args:
        analysis: of them, perhaps beside results of our own.
        imported: variant -> where its results come from; None for those that benchctl measured.
    """
    foreign = {label: found for label, found in imported.items() if found is not None}
    if not foreign:
        return analysis
    by_tool: dict[str, list[str]] = {}
    for label, found in foreign.items():
        by_tool.setdefault(f"{TITLES[found.tool]} {found.version}".rstrip(), []).append(label)
    said = [caveat.imported(by_tool)]
    own = analysis.caveats
    if len(foreign) == len(imported):
        # Nobody knows how many builds of an index were behind them.
        own = tuple(doubt for doubt in own if doubt.code != "one-index-build")
    if len({found.files for found in foreign.values()}) > 1:
        said.append(caveat.unknown_hosts())
    return msgspec.structs.replace(analysis, caveats=(*said, *own))

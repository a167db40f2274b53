"""Evidence on the page of a run: call sites, and profiles."""

from benchctl.errors import BenchctlError
from benchctl.evidence.histories import history_tables
from benchctl.evidence.profile_report import profile_tables
from benchctl.report.charts import Chart
from benchctl.report.table import Table, worded
from benchctl.results.model import RunRecord
from benchctl.results.store import RunFolder
from benchctl.stats.analysis import Analysis


def page(
    _analysis: Analysis, folder: RunFolder | None = None, record: RunRecord | None = None
) -> tuple[list[Chart], list[Table]]:
    """Return tables of call sites and profiles, and no charts; nothing for a comparison.

    A profile that cannot be read does not cost a reader the page.
    """
    if folder is None or record is None:
        return [], []
    try:
        profiles = profile_tables(folder, record)
    except BenchctlError as err:
        profiles = [Table.of("Profiles", (worded("Cannot be read"),), ((err.message,),))]
    return [], [*history_tables(folder, record), *profiles]

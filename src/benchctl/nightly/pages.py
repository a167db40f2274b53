"""The pages of a suite, and those of the runs that they link to."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchctl.report.html.page import render_page, run_page
from benchctl.report.nightly.files import write_changed
from benchctl.report.nightly.site import write_site
from benchctl.report.nightly.suite import SuitePages
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.nightly.model import Event, NightRecord
from benchctl.results.store import RunStore
from benchctl.stats.analyse import analyse_run


@dataclass(frozen=True)
class Publisher:
    """Writes the pages of a suite.

    Attributes:
        folder: of the suite.
        store: where its runs are.
        site: folder of the pages of all suites.
        title: of the suite.
        margins: metric -> relative change that nobody is to be woken for.
        note: told of what cannot be read.
    """

    folder: SuiteFolder
    store: RunStore
    site: Path
    title: str
    margins: Mapping[str, float]
    note: Callable[[str], None]

    def publish(
        self, nights: Sequence[NightRecord], events: Sequence[Event], new_runs: Collection[str]
    ) -> Path:
        """Write what is new.

        Args:
            nights: of the suite, all of them.
            events: the same.
            new_runs: ids of the runs that have no page yet.

        Returns:
            The suite's page.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        pages = self.site / self.folder.root.name / "runs"
        for run in new_runs:
            self._write_run(pages, run)
        there = {path.stem for path in pages.glob("*.html")}
        series = self.folder.series(None, None, self.note)
        return write_site(
            self.site,
            SuitePages(
                name=self.folder.root.name,
                title=self.title,
                nights=nights,
                series=series,
                events=events,
                margins=self.margins,
            ),
            pages=there,
        )

    def _write_run(self, pages: Path, run: str) -> None:
        folder = self.store.find(run)
        record = folder.load()
        subject = run_page(folder, record, analyse_run(record), usual=self.store.root)
        write_changed(pages / f"{run}.html", render_page(subject, folder="../../assets"))


def without_page(site: Path, suite: str, nights: Sequence[NightRecord], store: RunStore) -> list[str]:
    """Runs of nights that are still there and have no page."""
    pages = site / suite / "runs"
    there = {folder.path.name for folder in store.folders()}
    return [
        run for night in nights for run in night.runs if run in there and not (pages / f"{run}.html").exists()
    ]

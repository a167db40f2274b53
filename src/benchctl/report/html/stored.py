"""Pages from stored runs: their samples read, and the files of a report written."""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from benchctl.disk import replacing
from benchctl.errors import BenchctlError, UsageError
from benchctl.report.charts.from_samples import sample_charts
from benchctl.report.evidence.charts import evidence_charts
from benchctl.report.grid import Grid, worded
from benchctl.report.html import assets
from benchctl.report.html.page import render_page
from benchctl.report.html.subject import Subject, comparison_subject, run_subject
from benchctl.report.layout import Command
from benchctl.report.profile.stored import profile_grids
from benchctl.results.model import RunRecord
from benchctl.results.reading import fork_sources
from benchctl.results.select import Archive, Selection
from benchctl.results.store import RunFolder, reference
from benchctl.stats.analysis import Analysis
from benchctl.stats.task_shape import run_shapes

_MARK = "benchctl"
_PLOTLY_MARK = "plotly.js"
_START_BYTES = 1000


def run_page(folder: RunFolder, record: RunRecord, analysis: Analysis, *, usual: Path) -> Subject:
    """The page of one run, with the charts of its samples as far as there are any.

    Args:
        folder: of the run.
        record: of it.
        analysis: of it.
        usual: where runs are looked for by default.
    """
    compared = [fork for fork in record.forks if not record.plan.is_extra(fork.block)]
    shapes = run_shapes(record.plan, fork_sources(folder, compared))
    name = reference(folder, usual)
    return run_subject(
        record,
        analysis,
        charts=(*sample_charts(shapes, analysis), *evidence_charts(folder, record, analysis)),
        without_samples=shapes.absent,
        profiles=_profiles(folder, record),
        commands=(
            Command("Print this run in a terminal", f"benchctl show {name}"),
            Command("Make this page again", f"benchctl report {name} --html DIR"),
        ),
    )


def _profiles(folder: RunFolder, record: RunRecord) -> tuple[Grid, ...]:
    """What was sampled of its nodes, or why that cannot be read: a page is worth more than its profiles."""
    try:
        return tuple(profile_grids(folder, record))
    except BenchctlError as err:
        return (Grid.of("Profiles", (worded("Cannot be read"),), ((err.message,),)),)


def comparison_page(
    archive: Archive, selection: Selection, analysis: Analysis, commands: Iterable[Command] = ()
) -> Subject:
    """The page of results that are compared, from one run or several.

    Args:
        archive: where they were found.
        selection: what is compared.
        analysis: of it.
        commands: that print or make this again.
    """
    sides = selection.sides
    sources = chain.from_iterable(
        fork_sources(archive.folder_of(side.run), side.forks, label=side.label) for side in sides
    )
    shapes = run_shapes(sides[0].run.plan, sources)
    return comparison_subject(
        [(side.label, len(side.forks), side.run) for side in sides],
        analysis,
        charts=tuple(sample_charts(shapes, analysis)),
        without_samples=shapes.absent,
        commands=tuple(commands),
    )


def whole_page(subject: Subject) -> str:
    """A page in one file, for standard output."""
    return render_page(subject, inline=True)


def write_pages(target: Path, pages: Mapping[str, str]) -> Path:
    """Write pages and what they need into a folder; each file appears whole or not at all.

    What stands in the folder already stays there, but for files of an earlier report.

    Args:
        target: the folder; it is made when there is none.
        pages: file name -> text; one of them is `index.html`.

    Returns:
        The path of the index.

    Raises:
        UsageError: the target is no folder, or holds files of these names that benchctl did not write.
        BenchctlError: it cannot be written.
    """
    # The index comes last: once it is there, everything that it links to is.
    names = [f"{assets.FOLDER}/{name}" for name in (assets.STYLE, assets.SCRIPT, assets.PLOTLY)]
    texts = {name: assets.text_of(Path(name).name) for name in names}
    texts |= {name: text for name, text in pages.items() if name != "index.html"}
    texts["index.html"] = pages["index.html"]
    try:
        refuse_foreign(target, texts)
        for name, text in texts.items():
            _replace(target / name, text)
    except OSError as err:
        raise BenchctlError(
            f"cannot write {err.filename or target}: {err.strerror}", hint="name another folder with --html"
        ) from err
    return target / "index.html"


def refuse_foreign(target: Path, names: Iterable[str]) -> None:
    """Nobody's own page is lost because it is called `index.html`, too.

    Args:
        target: the folder that pages are to go into; it need not be there.
        names: of the files.

    Raises:
        UsageError: the target is no folder, or holds files of these names that benchctl did not write.
        OSError: they cannot be read.
    """
    if target.exists() and not target.is_dir():
        raise UsageError(f"--html wants a folder, and {target} is a file", hint="name another one")
    for path in (target / name for name in names):
        if not path.exists():
            continue
        with path.open("rb") as file:
            start = file.read(_START_BYTES).decode(errors="replace")
        if (_PLOTLY_MARK if path.name == assets.PLOTLY else _MARK) not in start:
            raise UsageError(f"{path} is there and was not written by benchctl", hint="name another folder")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")

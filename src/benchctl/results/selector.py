"""What users write to say what is compared: `es`, `es@8.11.0`, `RUN`, `RUN:os`, `tag:now`, `tag:now:es`."""

import re
from collections.abc import Mapping, Sequence

from benchctl.errors import UsageError
from benchctl.results.archive import Archive
from benchctl.results.model import RunRecord
from benchctl.results.plan import EngineName
from benchctl.results.select import Selection, Wanted, select_sides, with_baseline

_ENGINES: Mapping[str, EngineName] = {
    "es": "elasticsearch",
    "os": "opensearch",
    "elasticsearch": "elasticsearch",
    "opensearch": "opensearch",
}
_VERSION = re.compile(r"(?P<engine>[a-z]+)@(?P<version>[0-9]\S*)")
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-")  # no variant is called so
_LEAST_SIDES = 2
_FORMS = "VARIANT, ENGINE@VERSION, RUN, RUN:VARIANT, tag:NAME or tag:NAME:VARIANT"


def choose_sides(
    archive: Archive,
    texts: Sequence[str],
    *,
    challenge: str | None = None,
    baseline: str | None = None,
    force: bool = False,
) -> Selection:
    """Find what a user wants to see side by side.

    Where the archive is of some runs only, one variant stands for its results in each of these, and no text
    at all for the runs themselves.

    Args:
        archive: the runs to choose from.
        texts: the sides, the first one the baseline unless `baseline` says otherwise.
        challenge: only runs of this challenge.
        baseline: which of the sides, by its text or the label of its column.
        force: compare unlike results when there are no others.

    Raises:
        UsageError: a text fits nothing, or several things; or there are fewer than two sides.
        BenchctlError: there are only unlike results and `force` was not given.
    """
    texts = _over_runs(texts, archive.only)
    if len(texts) < _LEAST_SIDES:
        raise UsageError(
            "a comparison needs two variants or more",
            hint=f"for example: benchctl compare es os; a side is {_FORMS}",
        )
    if baseline in texts:
        place = texts.index(baseline)
        texts = [baseline, *texts[:place], *texts[place + 1 :]]
        baseline = None
    wanted = [parse_side(text, archive) for text in texts]
    selection = select_sides(archive, wanted, challenge=challenge, force=force)
    if baseline is not None:
        selection = with_baseline(selection, baseline)
    return Selection(
        selection.sides,
        selection.differences,
        (*selection.remarks, *_unused(archive, selection), *archive.unreadable),
    )


def parse_side(text: str, archive: Archive) -> Wanted:
    """Read one side.

    Args:
        text: as in the first line of this module; `variant:NAME` and `run:NAME` are always clear.
        archive: where runs are looked up.

    Raises:
        UsageError: it fits nothing, or several things.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind == "tag":
        return _tagged(text, rest, archive)
    if colon and kind == "variant":
        return Wanted(rest, variant=rest)
    if colon and kind == "run":
        return _of_run(text, rest, archive)
    version = _VERSION.fullmatch(text)
    if version is not None and version["engine"] in _ENGINES:
        return Wanted(text, version=(_ENGINES[version["engine"]], version["version"]))
    return _of_run(text, text, archive) if colon or "/" in text else _bare(text, archive)


def _over_runs(texts: Sequence[str], runs: Sequence[str]) -> list[str]:
    """Sides of the named runs, where they are not named one by one."""
    if len(runs) >= _LEAST_SIDES and len(texts) <= 1:
        return [f"run:{run}:{texts[0]}" if texts else f"run:{run}" for run in runs]
    return list(texts)


def _bare(text: str, archive: Archive) -> Wanted:
    """A word that may be a variant's name, or the beginning of a run's."""
    run = _run_named(text, archive)
    if run is not None and run.id == text and _ID.match(text):
        return Wanted(text, run=run)
    if run is None and not archive.names(text):
        return Wanted(text, variant=text)
    stored = any(spec.name == text for record in archive for spec in record.plan.variants)
    if run is None:
        # Where it is no variant, `find` says which runs it may mean.
        return Wanted(text, variant=text) if stored else Wanted(text, run=archive.find(text))
    if stored:
        raise UsageError(
            f"'{text}' is a variant, and it names run {run.id}", hint=f"write variant:{text} or run:{text}"
        )
    return Wanted(text, run=run)


def _run_named(text: str, archive: Archive) -> RunRecord | None:
    """The run of this name; None when there is no such."""
    try:
        return archive.find(text)
    except UsageError:
        return None


def _of_run(text: str, name: str, archive: Archive) -> Wanted:
    """`RUN` or `RUN:VARIANT`; a path may have a colon of its own."""
    whole = _run_named(name, archive)
    if whole is not None:
        return Wanted(text, run=whole)
    run, colon, variant = name.rpartition(":")
    if not colon:
        return Wanted(text, run=archive.find(name))
    return Wanted(text, variant=variant, run=archive.find(run))


def _tagged(text: str, rest: str, archive: Archive) -> Wanted:
    """`tag:NAME` or `tag:NAME:VARIANT`: the newest run with that tag; a tag may have a colon of its own."""
    name, colon, variant = rest.rpartition(":")
    for record in archive:
        if rest in record.tags:
            return Wanted(text, run=record, tag=rest)
        if colon and name in record.tags and record.compared(variant):
            return Wanted(text, variant=variant, run=record, tag=name)
    known = sorted({tag for record in archive for tag in record.tags})
    asked = f"'{name}' and results of variant '{variant}'" if colon else f"'{rest}'"
    raise UsageError(f"no run has the tag {asked}", hint=f"tags of stored runs: {', '.join(known) or 'none'}")


def _unused(archive: Archive, selection: Selection) -> list[str]:
    """Runs that were named and not needed: nobody should think that they are in the figures."""
    used = {side.run.id for side in selection.sides}
    told = " ".join(selection.remarks)
    named = [archive.find(run).id for run in archive.only]
    return [
        f"run {run} is not in these figures: {' and '.join(sorted(used))} "
        f"{'has' if len(used) == 1 else 'have'} newer results of all that is compared"
        for run in dict.fromkeys(named)
        if run not in used and run not in told
    ]

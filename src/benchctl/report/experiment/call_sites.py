"""What the JVM did at an experiment's call sites, beside the figures of the forks in which it did so."""

import re
from collections.abc import Iterator

from benchctl.report.grid import ABOVE, VARIANT, Cell, Grid, worded
from benchctl.report.inlining.words import FOUND_WORDS, PARTLY
from benchctl.report.numbers import NOT_AVAILABLE, counted, figure
from benchctl.results.experiment import CallSite, ExperimentSpec
from benchctl.stats.experiment.model import ExperimentAnalysis, FateGroup, FateResult, SiteResult, SiteVariant

_AROUND = re.compile(r"^.*[.$](?=[^\W\d])", re.DOTALL)
TITLE = "What the JVM did"
_READING = (
    f"Fates: in the newest compilation by C2 that says how the call is made. {PARTLY}. Receivers: with the "
    "calls that type profiles had counted when C2 compiled, over these forks; HotSpot prints none of a "
    "virtual call."
)
_AFTER_THE_FACT = (
    "Forks that fared differently were put together after the fact: a difference between their figures is a "
    "lead, not a test of it."
)


def fate_grid(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Grid | None:
    """A line for every fate of every call site and variant; None where no call site is asked for."""
    if not spec.call_sites:
        return None
    results = {one.name: one for one in analysis.call_sites}
    units = " or ".join(dict.fromkeys(one.unit for one in results.values()))
    tasks = list(dict.fromkeys(site.task for site in spec.call_sites))
    alone = tasks[0] if len(tasks) == 1 else ""
    task = worded("Task")
    columns = (
        worded("Call"), VARIANT, worded("Fate"), "Forks", worded("Receivers"), task,
        f"{alone or 'Throughput'}, {units}",
    )  # fmt: skip
    lines = (line for site in spec.call_sites for line in _lines(site, results[site.name]))
    grid = Grid.of(TITLE, columns, lines)
    return grid.without(task.title) if alone else grid


def fate_lines(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Iterator[str]:
    """What is said below: where calls are, which logs are missing, and how to read it."""
    if not spec.call_sites:
        return
    results = {one.name: one for one in analysis.call_sites}
    for site in spec.call_sites:
        about = " ".join(site.about.split())
        yield f"{site.label}: {site.callee} in {site.method}, measurement {site.measurement}. {about}".strip()
        yield from _missing(site, results[site.name])
    variants = [one for result in results.values() for one in result.variants]
    yield _READING
    if any(len(one.groups) > 1 for one in variants):
        yield _AFTER_THE_FACT


def measured_text(one: FateResult) -> str:
    """`virtual call in 3 of 4 forks`; `inlined in 4 of 4 forks (at least 47 %)` where none differs."""
    text = f"{FOUND_WORDS[one.is_]} in {one.showing} of {counted(one.forks, 'fork')}"
    if one.at_least is not None:
        return f"{text} (at least {100 * one.at_least:.0f} %)"
    return text if one.at_most is None else f"{text} (at most {100 * one.at_most:.0f} %)"


def _lines(site: CallSite, result: SiteResult) -> Iterator[tuple[Cell | str, ...]]:
    label: Cell | str = site.label
    for one in result.variants:
        variant = one.variant
        total = sum(len(group.forks) for group in one.groups)
        for group in one.groups:
            yield (
                label,
                variant,
                FOUND_WORDS[group.found],
                f"{len(group.forks)} of {total}",
                _receivers(group),
                site.task,
                figure(group.throughput_per_s),
            )
            label, variant = ABOVE, ""
        if not one.groups:
            yield label, variant, "no log", NOT_AVAILABLE, "", site.task, NOT_AVAILABLE
            label = ABOVE


def _receivers(group: FateGroup) -> str:
    named = ", ".join(f"{_short(one.name)} {one.calls:,}" for one in group.receivers)
    others = group.calls - sum(one.calls for one in group.receivers)
    return f"{named}, others {others:,}" if named and others > 0 else named


def _short(name: str) -> str:
    """A class without its package, and a nested one without the class around it, but for a number's."""
    return _AROUND.sub("", name)


def _missing(site: CallSite, result: SiteResult) -> Iterator[str]:
    """Logs that are not there, and code that was given up."""
    for one in result.variants:
        name = f"{site.measurement}/{one.variant}"
        for block, words in ((each.block, each.words) for each in one.unread):
            yield f"No inlining log of {name}, block {block}: {words}."
        if not one.groups and not one.unread:
            yield f"No fork of {name} with an inlining log has finished."
        yield from _given_up(name, one)


def _given_up(name: str, one: SiteVariant) -> Iterator[str]:
    blocks = sorted(each.block for group in one.groups for each in group.forks if each.given_up)
    if blocks:
        listed = ", ".join(map(str, blocks))
        yield f"{name}: the JVM stopped using that compilation later on, in block {listed}."

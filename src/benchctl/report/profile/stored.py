"""A stored run's profiles, counted as they were asked for -> the table, the files and the grids of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchctl.errors import UsageError
from benchctl.jvm.profile.collapsed import collapse
from benchctl.jvm.profile.counting import Choice, Counted, engine_neutral, merged, without_lines
from benchctl.jvm.profile.shares import differences, shares
from benchctl.jvm.profile.stored import ForkProfile, count_fork, fork_profiles
from benchctl.nearest import suggestion
from benchctl.report.layout import Grid
from benchctl.report.numbers import counted
from benchctl.report.profile.document import profile_json, variant_entry
from benchctl.report.profile.flame import flame_data, render_flame
from benchctl.report.profile.text import (
    Form,
    Heading,
    difference_lines,
    frame_words,
    heading_lines,
    summary_lines,
)
from benchctl.results.model import RunRecord
from benchctl.results.places import task_named
from benchctl.results.plan import Place, Plan
from benchctl.results.store import RunFolder
from benchctl.results.windows import UnknownTimesError
from benchctl.stats.values import places

SECTION_LINES = 10


@dataclass(frozen=True)
class Side:
    """One variant's samples.

    Attributes:
        heading: what they are.
        forks: fork by fork.
        pooled: of all forks, under the names of their thread pools.
    """

    heading: Heading
    forks: tuple[Counted, ...]
    pooled: Counted


def profile_sides(folder: RunFolder, record: RunRecord, names: Sequence[str], form: Form) -> list[Side]:
    """Count the samples of some variants of a run.

    Args:
        folder: of the run.
        record: of it.
        names: of the variants, in order; none for all that have profiles.
        form: which samples, and how.

    Raises:
        UsageError: there is no such variant, profile, task or sample, or the form makes no sense.
        BenchctlError: a profile cannot be read, or it is not known when the task ran.
    """
    known = [variant.name for variant in record.plan.variants]
    for name in names:
        if name not in known:
            raise UsageError(f"the run has no variant '{name}'", hint=suggestion(name, known))
    found = {name: fork_profiles(folder, record, name) for name in names or known}
    empty = [name for name, forks in found.items() if not forks]
    if len(empty) == len(found) or (names and empty):
        raise UsageError(
            f"run {record.id} has no profile of {' or '.join(empty)}",
            hint="profiles are collected by: benchctl run --evidence profile",
        )
    try:
        sides = [_side(folder, record, name, forks, form) for name, forks in found.items() if forks]
    except UnknownTimesError as err:
        raise UnknownTimesError(err.message, hint="give --recorded to count all that was sampled") from err
    for side in sides:
        if not side.heading.samples:
            ways = "leave --thread or --mode out" if form.recorded else "leave --thread, --task or --mode out"
            raise UsageError(
                f"none of the {side.heading.total} samples of {side.heading.name} is among those asked for",
                hint=ways if form.recorded else f"{ways}, or give --recorded",
            )
    return sides


def profile_text(sides: Sequence[Side], form: Form) -> str:
    """A table for each variant, as luceneutil prints them."""
    return "\n\n".join(
        "\n".join(
            summary_lines(side.heading, shares(side.forks, size=form.size, inclusive=form.inclusive), form)
        )
        for side in sides
    )


def difference_text(sides: Sequence[Side], form: Form) -> str:
    """One table of how the second of two sides differs most from the first."""
    baseline, contender = sides
    found = differences(*_neutral(sides), size=form.size, inclusive=form.inclusive)
    return "\n".join(difference_lines(baseline.heading, contender.heading, found, form))


def document_text(run: str, sides: Sequence[Side], form: Form, *, differ: bool) -> str:
    """The same as JSON.

    Args:
        run: its id.
        sides: the variants.
        form: how their samples were counted.
        differ: for the difference of two, instead of the shares of each.
    """
    if differ:
        baseline, contender = _neutral(sides)
        found = differences(baseline, contender, size=form.size, inclusive=form.inclusive)
        return profile_json(run, form, [variant_entry(side.heading) for side in sides], found[: form.top])
    entries = [
        variant_entry(side.heading, shares(side.forks, size=form.size, inclusive=form.inclusive)[: form.top])
        for side in sides
    ]
    return profile_json(run, form, entries)


def collapsed_text(side: Side) -> str:
    """Its collapsed stacks, each under the name of its thread pool."""
    return collapse(side.pooled.stacks)


def flame_page(run: str, sides: Sequence[Side], form: Form) -> str:
    """A flame graph of one variant, or of how a second differs from it.

    Args:
        run: its id.
        sides: one or two.
        form: how their samples were counted.
    """
    names = [side.heading.name for side in sides]
    stacks = [side.pooled if len(sides) == 1 else engine_neutral(side.pooled) for side in sides]
    lines = [" ".join(heading_lines(side.heading, form)[:2]) for side in sides]
    lines += [side.heading.shortage for side in sides if side.heading.shortage]
    how = f"Mode: {form.mode}. Threads: {form.thread or 'all'}. Task: {form.when}."
    title = f"Profile of {' against '.join(names)}"
    return render_flame(title, [f"Run {run}", *lines, how], flame_data(names, stacks))


def profile_grids(folder: RunFolder, record: RunRecord) -> list[Grid]:
    """A short table for each variant of a run that has profiles, for its pages; none without any.

    Raises:
        BenchctlError: a profile cannot be read.
    """
    profiles = {variant.name: fork_profiles(folder, record, variant.name) for variant in record.plan.variants}
    grids = []
    for name, forks in profiles.items():
        if not forks:
            continue
        try:
            grids.append(_grid(_side(folder, record, name, forks, Form()), "while tasks were measured"))
        except UnknownTimesError:
            recorded = _side(folder, record, name, forks, Form(recorded=True))
            grids.append(_grid(recorded, "all that was recorded, since it is not known when tasks ran"))
    return grids


def _side(
    folder: RunFolder, record: RunRecord, name: str, profiles: Sequence[ForkProfile], form: Form
) -> Side:
    try:
        thread = re.compile(form.thread) if form.thread else None
    except re.error as err:
        raise UsageError(f"--thread '{form.thread}' is no regular expression: {err}") from err
    tasks = _tasks(record.plan, form)

    def count(*, native: bool, pools: bool) -> list[Counted]:
        choice = Choice(native, thread)
        found = [count_fork(one, choice, folder=folder, tasks=tasks, pools=pools) for one in profiles]
        return found if form.lines else [without_lines(fork) for fork in found]

    in_native_code = form.mode == "native"
    pooled = merged(count(native=in_native_code, pools=True))
    native = merged(count(native=True, pools=False))
    hottest = shares([native])
    heading = Heading(
        name=name,
        forks=len(profiles),
        samples=pooled.samples,
        total=pooled.total,
        cut=pooled.cut,
        unread=sum(one.unread for one in profiles),
        native=native.samples,
        native_frame=hottest[0].stack[0] if hottest else "",
    )
    return Side(heading, tuple(count(native=in_native_code, pools=False)), pooled)


def _tasks(plan: Plan, form: Form) -> Sequence[Place] | None:
    """Whose measured windows count; None for all that was recorded."""
    if form.recorded:
        return None
    return [task_named(plan, form.task)] if form.task else places(plan)


def _neutral(sides: Sequence[Side]) -> list[list[Counted]]:
    return [[engine_neutral(fork) for fork in side.forks] for side in sides]


def _grid(side: Side, when: str) -> Grid:
    shown = shares(side.forks)[:SECTION_LINES]
    heading = side.heading
    title = (
        f"Profile of {heading.name}: {counted(heading.samples, 'sample')} of threads that ran Java, "
        f"{counted(heading.forks, 'fork')}, {when}"
    )
    if heading.shortage:
        title = f"{title}. {heading.shortage}"
    lines = tuple((frame_words(one.stack[0]), f"{100 * one.share:.2f}", f"{one.samples}") for one in shown)
    return Grid(title, ("Method", "%", "Samples"), lines, frozenset({0}))

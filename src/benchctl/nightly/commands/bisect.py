"""`benchctl nightly bisect`: which of several changes an alarm is due to."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from benchctl.cli.measuring import measuring_options
from benchctl.cli.streams import note, say
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.nightly.confirm import LAST_GOOD, TONIGHT
from benchctl.nightly.folder import SuiteFolder, find_suite, recall
from benchctl.nightly.measure import only_about, task_names
from benchctl.nightly.model import Raised, alarms_of
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.store import RunStore
from benchctl.run.plan import reload_track
from benchctl.search.commands import SearchOptions, search_options
from benchctl.search.commands.bisect import MOST_FORKS, bisection, opened_bisection
from benchctl.search.record import BisectSpec, Point
from benchctl.spec import BusyAction
from benchctl.stats.metrics import task_at

_WHOLE: Mapping[str, tuple[str, ...]] = {
    "version": ("engine", "version", "distribution"),
    "JDK": ("jdk",),
    "heap": ("heap_mb",),
    "nodes": ("nodes",),
    "start": ("start",),
    "documents": ("documents",),
    "index by": ("index_from",),
    "warm-ups": ("warmups",),
}
_MAPPINGS: Mapping[str, str] = {
    "setting": "settings",
    "variable": "environment",
    "index setting": "index_settings",
}


_REPEATED = ("-XX:CompileCommand=", "-Xlog", "--add-", "-javaagent", "-agent")


def _flag_name(flag: str) -> str:
    """Return what a flag sets, whatever to: two of one name are one change, but for those that add up."""
    if flag.startswith(_REPEATED):
        return flag
    return re.sub(r"^-XX:[+-]", "-XX:", flag).partition("=")[0]


def _artifact_name(place: str) -> str:
    """Return the name of a jar or plug-in, without its version."""
    name = place.rpartition(":")[0] if re.fullmatch(r"[^:/]+:[^:/]+:[^:/]+", place) else Path(place).name
    return re.sub(r"-\d[^/]*$", "", name.removesuffix(".jar").removesuffix(".zip"))


_LISTS: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "flag": ("jvm_flags", _flag_name),
    "jar": ("jars", _artifact_name),
    "plug-in": ("plugins", _artifact_name),
}


def steps_between(good: VariantSpec, tonight: VariantSpec) -> list[tuple[Point, VariantSpec]]:
    """Return variants that lead from one to the other, each with one change more than that before it.

    The first is `good`, the last `tonight` but for its name. Flags, jars, plug-ins, settings and variables
    are changes of their own, and so is the order of flags where nothing else differs.
    """
    steps = [(Point(LAST_GOOD), msgspec.structs.replace(good, name=LAST_GOOD))]
    for what, changes in _changes(good, tonight):
        number = len(steps)
        spec = msgspec.structs.replace(steps[-1][1], name=f"change-{number}", **changes)
        steps.append((Point(spec.name, what), spec))
    return steps


def _changes(good: VariantSpec, tonight: VariantSpec) -> Iterator[tuple[str, dict[str, Any]]]:
    for what, names in _WHOLE.items():
        now = {name: getattr(tonight, name) for name in names}
        if any(getattr(good, name) != value for name, value in now.items()):
            shown = (str(value) for value in now.values() if value not in (None, (), ""))
            yield f"{what} {' '.join(shown) or 'default'}", now
    for what, (name, key) in _LISTS.items():
        for label, values in _list_changes(getattr(good, name), getattr(tonight, name), key):
            yield f"{what} {label}", {name: values}
    for what, name in _MAPPINGS.items():
        before, after = getattr(good, name), getattr(tonight, name)
        current = dict(before)
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key) or (key in before) != (key in after):
                current.pop(key, None)
                current |= {key: after[key]} if key in after else {}
                yield f"{what} {key}={after.get(key, 'default')}", {name: dict(current)}


def _list_changes(
    before: Sequence[str], after: Sequence[str], key: Callable[[str], str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    current = list(before)
    for name in dict.fromkeys(map(key, [*before, *after])):
        was, now = ([item for item in side if key(item) == name] for side in (before, after))
        if was != now:
            current = [item for item in current if key(item) != name] + now
            yield " ".join(now) or f"none of {' '.join(was)}", tuple(current)
    if current != list(after):
        yield "order", tuple(after)


@click.command("bisect")
@click.argument("suite", metavar="SUITE")
@click.argument("alarm", type=int, metavar="ALARM")
@search_options(MOST_FORKS)
@measuring_options
def bisect_command(
    suite: str, alarm: int, *, search_options: SearchOptions, on_busy: BusyAction | None, quiet: bool
) -> None:
    """Find which of several changes caused an alarm.

    A version, JDK, flag, jar or setting: they are added one after the other to the engine of the last good
    night, as benchctl bisect does with commits. Exits with 4 if the result is inconclusive.
    """
    home = resolve_home()
    folder = find_suite(home, suite)
    raised = _alarm(folder, alarm)
    confirmed = "" if raised.confirmation is None else raised.confirmation.run
    run = RunStore(Path(recall(folder).runs)).find(confirmed).load()
    if run.plan.micro is not None:
        raise UsageError(
            f"alarm {alarm} is about a microbenchmark", hint="try its changes one by one: benchctl micro run"
        )
    specs = {spec.name: spec for spec in run.plan.variants}
    steps = steps_between(specs[LAST_GOOD], specs[TONIGHT])
    if len(steps) <= 2:  # noqa: PLR2004 - the ends
        what = "; ".join(point.about for point, _ in steps[1:]) or "nothing that benchctl can set"
        say(f"{what} is all that differs: there is nothing to tell apart")
        return
    plan = _plan(run.plan, raised, search_options.most)
    task = raised.key.challenge, raised.key.task
    (place,) = (place for place, name in task_names(plan).items() if name == task)
    spec = BisectSpec(
        points=tuple(point for point, _ in steps),
        variants=tuple(variant for _, variant in steps),
        place=place,
        task=task_at(plan, place).label,
    )
    record = bisection(
        spec, plan, search_options, metric=raised.key.metric, identity=(f"{folder.root.name}-alarm-{alarm}",)
    )
    opened = opened_bisection(home, record, reload_track(plan))
    opened.again(search_options).conclude(search_options.output_format, on_busy=on_busy, quiet=quiet)


def _alarm(folder: SuiteFolder, number: int) -> Raised:
    """Return an alarm that a run has confirmed."""
    alarms = {alarm.raised.alarm: alarm.raised for alarm in alarms_of(folder.events(note))}
    if number not in alarms:
        raised = ", ".join(map(str, alarms)) or "none"
        raise UsageError(f"{folder.root.name} has no alarm {number}", hint=f"alarms so far: {raised}")
    if alarms[number].confirmation is None:
        raise UsageError(
            f"alarm {number} is not about a figure that a run has confirmed",
            hint="what changed then is all that is known: benchctl nightly status",
        )
    return alarms[number]


def _plan(confirmed: Plan, raised: Raised, most: int) -> Plan:
    """Return the plan of the confirming run, with only the challenge in question if others stay the same."""
    challenges = only_about(confirmed, {(raised.key.challenge, raised.key.task)})
    return msgspec.structs.replace(
        confirmed, schedules=challenges, forks=most, stop=None, evidence=None, index_builds=1
    )

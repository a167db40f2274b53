"""Comparability of results, and differences between runs and between variants."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from benchctl.results.figures import TaskSummary
from benchctl.results.model import EngineFacts, ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan, VariantSpec
from benchctl.results.reading import ForkSource
from benchctl.results.samples import Columns
from benchctl.spec import run_settings
from benchctl.track.model import Challenge, Task

Key = tuple[str, int, str, int]
"""Challenge and task by name, each with a number from 1 for those of one name."""


def task_keys(plan: Plan) -> dict[Key, Place]:
    """Return the place of every task by its key, the same in other plans that have that task."""
    challenges: Counter[str] = Counter()
    keys: dict[Key, Place] = {}
    for schedule, challenge in enumerate(plan.schedules):
        challenges[challenge.name] += 1
        tasks: Counter[str] = Counter()
        for place, task in enumerate(challenge.schedule):
            tasks[task.label] += 1
            keys[challenge.name, challenges[challenge.name], task.label, tasks[task.label]] = schedule, place
    return keys


def common_schedules(plans: tuple[Plan, Plan]) -> tuple[tuple[Challenge, ...], ...]:
    """Return the challenges of each of two plans with the tasks that both have, in the order of the first."""
    keys = [task_keys(plan) for plan in plans]
    common = [key for key in keys[0] if key in keys[1]]
    return tuple(
        tuple(
            _reduced(plan.schedules[schedule], [place for of, place in chosen if of == schedule])
            for schedule in dict.fromkeys(of for of, _ in chosen)
        )
        for plan, own in zip(plans, keys, strict=True)
        for chosen in [[own[key] for key in common]]
    )


def _reduced(challenge: Challenge, places: Sequence[int]) -> Challenge:
    tasks = [challenge.schedule[place] for place in places]
    used = {task.operation for task in tasks}
    return msgspec.structs.replace(
        challenge,
        # Numbers of parallel elements shift with the tasks before them.
        schedule=tuple(msgspec.structs.replace(task, group=None) for task in tasks),
        operations={name: body for name, body in challenge.operations.items() if name in used},
    )


def company(plan: Plan, place: Place) -> frozenset[str]:
    """Return the labels of the tasks that run at the same time as one."""
    schedule, task = place
    challenge = plan.schedules[schedule]
    step = next(step for step in challenge.steps if task in step)
    return frozenset(challenge.schedule[other].label for other in step if other != task)


def joined(plans: Sequence[Plan]) -> tuple[Plan, list[dict[Place, Place]]]:
    """Return the first plan with the tasks that only others have, and where each plan's tasks are in it."""
    first = plans[0]
    challenges: list[Challenge] = list(first.schedules)
    tasks: list[list[Task]] = [list(challenge.schedule) for challenge in challenges]
    places = task_keys(first)
    maps = []
    for plan in plans:
        own = task_keys(plan)
        targets: dict[int, int] = {}
        for key, (schedule, task) in own.items():
            if key not in places:
                challenge = plan.schedules[schedule]
                if schedule not in targets:
                    targets[schedule] = _target(challenges, plan, schedule)
                target = targets[schedule]
                if target == len(challenges):
                    challenges.append(challenge)
                    tasks.append([])
                places[key] = target, len(tasks[target])
                tasks[target].append(challenge.schedule[task])
        maps.append({place: places[key] for key, place in own.items()})
    schedules = (
        msgspec.structs.replace(challenge, schedule=tuple(own))
        for challenge, own in zip(challenges, tasks, strict=True)
    )
    return msgspec.structs.replace(first, schedules=tuple(schedules)), maps


@dataclass(frozen=True)
class JoinedRuns:
    """Runs laid side by side: a plan with the tasks of all, and their forks and files as those of one run."""

    plan: Plan
    places: Mapping[str, Mapping[Place, Place]]  # run -> where each of its tasks is in that plan
    # Run -> the number of its block 0: another for each where a side has several, so that blocks differ.
    first_blocks: Mapping[str, int]

    @classmethod
    def of(cls, sides: Iterable[Sequence[RunRecord]]) -> "JoinedRuns":
        """Join the runs of sides, of which several may have the same."""
        sides = list(sides)
        by_id = {run.id: run for runs in sides for run in runs}
        plan, places = joined([run.plan for run in by_id.values()])
        pooled = any(len(runs) > 1 for runs in sides)
        lengths = [
            1 + max((fork.block for fork in run.forks), default=0) if pooled else 0 for run in by_id.values()
        ]
        firsts = dict(zip(by_id, accumulate(lengths, initial=0), strict=False))
        return cls(plan, dict(zip(by_id, places, strict=True)), firsts)

    def moved(self, run: RunRecord, forks: Iterable[ForkRecord]) -> tuple[ForkRecord, ...]:
        """Return forks with every task at its place; of several runs, with the run as their index build.

        That is what a run is one draw of, beside host and day.
        """
        first = self.first_blocks[run.id]
        number = list(self.first_blocks).index(run.id)
        several = len(self.first_blocks) > 1
        return tuple(
            msgspec.structs.replace(
                fork,
                summaries=_at_places(fork.summaries, self.places[run.id]),
                block=first + fork.block,
                index_build=number if several else fork.index_build,
            )
            for fork in forks
        )

    def moved_source(self, run: RunRecord, source: ForkSource) -> ForkSource:
        """Return the files of a fork with every task at its place."""
        places = self.places[run.id]
        samples = None if source.samples is None else _MovedSamples(source.samples, places)
        return replace(
            source,
            samples=samples,
            block=self.first_blocks[run.id] + source.block,
        )


def _target(challenges: Sequence[Challenge], plan: Plan, schedule: int) -> int:
    """The position of the challenge of that name and number; a new one if there is none."""
    name = plan.schedules[schedule].name
    number = [challenge.name for challenge in plan.schedules[: schedule + 1]].count(name)
    same = [place for place, challenge in enumerate(challenges) if challenge.name == name]
    return same[number - 1] if number <= len(same) else len(challenges)


@dataclass(frozen=True)
class _MovedSamples:
    """Samples with every task at its other place; read anew by every iteration."""

    samples: Iterable[Columns]
    places: Mapping[Place, Place]

    def __iter__(self) -> Iterator[Columns]:
        for chunk in self.samples:
            schedules, tasks = chunk["schedule"].copy(), chunk["task"].copy()
            for (schedule, task), target in self.places.items():
                own = (chunk["schedule"] == schedule) & (chunk["task"] == task)
                schedules[own], tasks[own] = target
            yield {**chunk, "schedule": schedules, "task": tasks}


def _at_places(summaries: Iterable[TaskSummary], places: Mapping[Place, Place]) -> tuple[TaskSummary, ...]:
    targets = ((summary, places[summary.schedule, summary.task]) for summary in summaries)
    return tuple(
        msgspec.structs.replace(part, schedule=schedule, task=task) for part, (schedule, task) in targets
    )


# What of a plan decides the figures. Variants are what is compared; seed and forks only decide how well.
_ALIKE = (
    "track", "track_digest", "corpus", "segments", "ingest_clients", "schedules", "warmup_challenges",
    "pollution", "restart", "heap_mb", "page_cache", "redline", "pin", "index_builds", "plugin", "evidence",
    "load_hosts", "micro", "ingest_client", "together",
)  # fmt: skip

# Words for listings, which decide nothing.
_WORDS: Final[dict[str, Any]] = {
    "default": False,
    "description": "",
    "user_info": "",
    "meta": {},
    "remarks": (),
}

_PLURAL = frozenset(
    {"load_hosts", "segments", "ingest_clients", "schedules", "warmup_challenges", "index_builds"}
)

_EXCERPT = 40
_LEAD = 12
_ABSENT = object()

Variant = tuple[str, RunRecord]
"""(name, record): one variant's results in one run."""


def unlike_variants(one: Variant, other: Variant) -> tuple[str, ...]:
    """Return why two results cannot be compared; Java runtimes count, which runs only happen to share."""
    return tuple(_variant_reasons(one, other))


def unlike_settings(one: Variant, other: Variant) -> bool:
    """Return whether a run-wide setting that decides figures differs."""
    names = {setting.name for setting in run_settings()}.intersection(_ALIKE)
    return any(getattr(one[1].plan, name) != getattr(other[1].plan, name) for name in names)


def alike_variants(one: Variant, other: Variant) -> bool:
    """Return whether `unlike_variants` finds nothing, and both have the same tasks."""
    return same_tasks(one[1], other[1]) and next(_variant_reasons(one, other), None) is None


def same_tasks(one: RunRecord, other: RunRecord) -> bool:
    """Return whether runs have the same tasks in the same order."""
    return [*task_keys(one.plan)] == [*task_keys(other.plan)]


def _variant_reasons(one: Variant, other: Variant) -> Iterator[str]:
    if one[1].id == other[1].id:
        return
    runtimes = [
        next((facts.jdk for facts in record.engines if facts.variant == variant), "unknown")
        for variant, record in (one, other)
    ]
    yield from _reasons(one[1], other[1])
    if runtimes[0] != runtimes[1]:
        yield f"the Java runtimes differ ({runtimes[0]}, {runtimes[1]})"
    if one[0] == other[0]:
        yield from _changed_parts(one, other)


def _changed_parts(one: Variant, other: Variant) -> Iterator[str]:
    """A name stands for one thing: different traits make another variant, whatever its name.

    Version and distribution are excepted: comparing those of one name is what runs are tagged for. Java
    runtimes are told apart by the whole of their names.
    """
    sides = [
        next((variant for variant in resolved(record) if variant.label == name), None)
        for name, record in (one, other)
    ]
    if sides[0] is not None and sides[1] is not None:
        for name, here, there in _unequal(sides[0], sides[1]):
            if name not in ("version", "distribution", "JDK", "warm-up"):
                yield f"{one[0]} has other {name} ({here or 'none'}, {there or 'none'})"
        warmups = [record.plan.variant_warmups.get(name, ()) for name, record in (one, other)]
        if (first := _bare(warmups[0])) != (second := _bare(warmups[1])):
            yield f"{one[0]} has other warm-up challenges ({_difference(first, second)})"


def _reasons(one: RunRecord, other: RunRecord) -> Iterator[str]:
    here, there = one.environment, other.environment
    if here.fingerprint != there.fingerprint:
        yield f"the hosts differ ({here.hostname}, {there.hostname})"
    for name in _ALIKE:
        if name == "schedules":
            yield from _schedule_reasons(one.plan, other.plan)
            continue
        if name == "together" and one.plan.together != other.plan.together:
            yield "variants took turns in one of them only"
            continue
        first, second = _deciding(one.plan, name), _deciding(other.plan, name)
        # Challenges are the same object or equal in nearly all cases; only others are looked at twice.
        if first != second and (first := _bare(first)) != (second := _bare(second)):
            verb = "differ" if name in _PLURAL else "differs"
            yield f"{name.replace('_', ' ')} {verb} ({_difference(first, second)})"
    lacking = [record.left_out_of_pollution for record in (one, other)]
    if lacking[0] != lacking[1]:
        names = "; ".join(_names(found) for found in lacking)
        yield f"searches that were left out of the pollution differ ({names})"
    if here.benchctl != there.benchctl:
        yield f"benchctl differs ({here.benchctl}, {there.benchctl})"


def _schedule_reasons(one: Plan, other: Plan) -> Iterator[str]:
    """Yield why tasks that both plans have are not the same; tasks of one alone are no reason."""
    if one.schedules == other.schedules:
        return
    whole = (_bare(one.schedules), _bare(other.schedules))
    first, second = whole
    if not any(plan.swept or plan.redline for plan in (one, other)):
        first, second = map(_bare, common_schedules((one, other)))
    if not first or first != second:
        difference = _difference(first, second) if first else _difference(*whole)
        yield f"schedules differ ({difference})"
    else:
        mine, others = task_keys(one), task_keys(other)
        for key in (key for key in mine if key in others):
            here, there = company(one, mine[key]), company(other, others[key])
            if here != there:
                yield f"what runs at the same time as {key[2]} differs ({_names(here)}; {_names(there)})"


def _names(labels: Collection[str]) -> str:
    return ", ".join(sorted(labels)) or "nothing"


def deciding(plan: Plan) -> dict[str, object]:
    """Return by name everything of a plan that decides its figures."""
    return {name: _bare(_deciding(plan, name)) for name in _ALIKE}


def _deciding(plan: Plan, name: str) -> object:
    if name == "plugin":
        # What was executed, wherever it lay.
        return None if plan.plugin is None else plan.plugin.digest
    if name == "track" and plan.track_source is not None:
        # Other tracks of the repository change, too, and a checkout may lie anywhere.
        return f"{plan.track_source.track} of commit {plan.track_source.changed[:_DIGEST]}"
    if name == "evidence":
        # Of the forks that are compared: others bear no cost of it.
        return "+".join(plan.evidence_in(0)) or None
    if name == "micro" and plan.micro is not None:
        # Tasks say what was chosen, and the track's digest what the source is, wherever that lies.
        return " ".join((*plan.micro.dependencies, *plan.micro.arguments))
    if name == "corpus" and plan.corpus.files:
        # Its digest says which documents; files may lie anywhere.
        return msgspec.structs.replace(plan.corpus, files=())
    value: object = getattr(plan, name)
    return value


def _bare(value: object) -> object:
    """Challenges without their descriptions."""
    if not isinstance(value, tuple):
        return value
    return tuple(
        msgspec.structs.replace(
            item,
            schedule=tuple(msgspec.structs.replace(task, tags=(), meta={}) for task in item.schedule),
            **_WORDS,
        )
        if isinstance(item, Challenge)
        else item
        for item in value
    )


def _difference(first: object, second: object) -> str:
    """The first difference, with the way to it: `documents: 1, 2`."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        names = [
            "+".join(challenge.name for challenge in challenges) or "none" for challenges in (first, second)
        ]
        if names[0] != names[1]:
            return f"{names[0]}, {names[1]}"
        left, right = next(pair for pair in zip(first, second, strict=True) if pair[0] != pair[1])
        return f"in {left.name}, {_found(_of_challenge(left), _of_challenge(right))}"
    return _found(msgspec.to_builtins(first), msgspec.to_builtins(second))


def _of_challenge(challenge: Challenge) -> dict[str, Any]:
    """With its tasks by number and name: `task 2 (range)` says more than `schedule.1`."""
    whole: dict[str, Any] = msgspec.to_builtins(challenge)
    tasks = whole.pop("schedule")
    labelled = {
        f"task {place} ({task.label})": fields
        for place, (task, fields) in enumerate(zip(challenge.schedule, tasks, strict=True), 1)
    }
    return {**labelled, **whole}


def _found(first: object, second: object) -> str:
    way, left, right = _first_difference(first, second)
    shown = ", ".join(_excerpts(_text(left), _text(right)))
    return f"{'.'.join(way)}: {shown}" if way else shown


def _first_difference(
    first: object, second: object, way: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], object, object]:
    """The deepest place of the first difference between two structures, and what is there."""
    pairs: Iterator[tuple[str, object, object]] = iter(())
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys((*first, *second))
        pairs = ((str(key), first.get(key, _ABSENT), second.get(key, _ABSENT)) for key in keys)
    elif isinstance(first, list) and isinstance(second, list):
        lined = enumerate(itertools.zip_longest(first, second, fillvalue=_ABSENT))
        pairs = ((str(place), left, right) for place, (left, right) in lined)
    for name, left, right in pairs:
        if left != right:
            return _first_difference(left, right, (*way, name))
    return way, first, second


def _text(value: object) -> str:
    if value is _ABSENT or value is None:
        return "none"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _excerpts(one: str, other: str) -> tuple[str, str]:
    """Return both texts in brief, from shortly before the first difference."""
    same = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    start = max(0, same - _LEAD) if same >= _EXCERPT - _LEAD else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    before, after = "..." if start else "", "..." if len(text) > start + _EXCERPT else ""
    return f"{before}{text[start : start + _EXCERPT]}{after}"


_SHORT_NAMES: Final = {"elasticsearch": "es", "opensearch": "os", "jvm": "Java"}
_DIGEST: Final = 12


@dataclass(frozen=True)
class Resolved:
    """A variant and what it resolved to."""

    label: str
    spec: VariantSpec
    facts: EngineFacts | None  # what it resolved to; None while no node of it was up


def resolved(record: RunRecord) -> tuple[Resolved, ...]:
    """Return the variants of a run, in its order."""
    facts = {engine.variant: engine for engine in record.engines}
    if record.plan.swept is not None and set(facts) - {base.name for base in record.plan.swept.bases}:
        # What the points of a sweep differ by is what it says anyway.
        return tuple(Resolved(spec.name, spec, None) for spec in record.plan.swept.bases)
    return tuple(Resolved(spec.name, spec, facts.get(spec.name)) for spec in record.plan.variants)


def variant_differences(variants: Sequence[Resolved]) -> tuple[str, ...]:
    """Return `os-17 differs from os in: JDK 17.0.15 instead of 21.0.8` for each variant its name leaves open.

    A variant is compared with the first plain one of its engine and version, else with the first of that
    engine at all; without any other, it is described.
    """
    return tuple(line for variant in variants if (line := _line(variant, variants)))


def beyond(spec: VariantSpec) -> tuple[str, ...]:
    """Return a variant's settings beyond its engine and version, in words."""
    return tuple(_own(Resolved(spec.name, spec, None)))


def _line(one: Resolved, variants: Sequence[Resolved]) -> str:
    if one.spec.target is not None:
        return ""
    other = _base(one, variants)
    if other is None:
        parts = [] if _is_plain(one.spec) else list(_own(one))
        version = f"{_SHORT_NAMES[one.spec.engine]} {one.spec.version}"
        return f"{one.label} is {version} with: {'; '.join(parts)}" if parts else ""
    parts = [
        f"without {name} {there}"
        if not here
        else f"{name} {here}" + (f" instead of {there}" if there else "")
        for name, here, there in _unequal(one, other)
    ]
    return f"{one.label} differs from {other.label} in: {'; '.join(parts)}" if parts else ""


def _base(one: Resolved, variants: Sequence[Resolved]) -> Resolved | None:
    """The variant that one is compared with; None for the base of all others."""
    # A runtime or distribution is given by an option, and no name says it.
    if _is_plain(one.spec) and one.spec.jdk is None and one.spec.distribution is None:
        return None
    akin = [other for other in variants if other.spec.engine == one.spec.engine and other.spec.target is None]
    same = [other for other in akin if other.spec.version == one.spec.version]
    first = next((other for other in (*same, *akin) if _is_plain(other.spec)), (same or akin)[0])
    return None if first is one else first


def _is_plain(spec: VariantSpec) -> bool:
    """Return whether the name says all, such as `es` or `es@8.19.0`."""
    short = _SHORT_NAMES[spec.engine]
    return spec.name in (short, f"{short}@{spec.version}")


def _own(one: Resolved) -> Iterator[str]:
    """Yield what a variant adds to its engine and version."""
    plain = Resolved("", VariantSpec("", one.spec.engine, one.spec.version), None)
    usual = _traits(plain)
    for name, value in _traits(one).items():
        if value != usual.get(name) and name != "version" and (name != "JDK" or one.spec.jdk):
            yield f"{name} {value}"


def _unequal(one: Resolved, other: Resolved) -> Iterator[tuple[str, str, str]]:
    """Yield (trait, value, other value) of those that differ; empty where there is none."""
    # What a node says is held against what a node says.
    if one.facts is None or other.facts is None:
        one, other = (replace(side, facts=None) for side in (one, other))
    here, there = _traits(one), _traits(other)
    for name in dict.fromkeys((*here, *there)):
        if here.get(name) != there.get(name):
            yield name, here.get(name, ""), there.get(name, "")


def _traits(one: Resolved) -> dict[str, str]:
    """Everything of a variant that may differ, in words, by name; without what is as usual."""
    spec, facts = one.spec, one.facts
    if facts is None:
        parts = {"jars": " ".join(map(_short, spec.jars)), "plug-ins": " ".join(map(_short, spec.plugins))}
    else:
        parts = {f"jar {name}": digest[:_DIGEST] for name, digest in facts.jars.items()}
        parts |= {f"plug-in {name}": version for name, version in facts.plugins.items()}
    mappings = (
        ("setting", spec.settings),
        ("index setting", spec.index_settings),
        ("environment", spec.environment),
    )
    traits = {
        "version": spec.version if facts is None else facts.version,
        "distribution": _bare_url(spec.distribution or "Maven Central"),
        # The runtime's version, or its vendor if that is all there is.
        "JDK": (spec.java or "default") if facts is None else facts.jdk.rpartition(" ")[2],
        "heap": "the run's" if spec.heap_mb is None else f"{spec.heap_mb} MiB",
        "JVM flags": " ".join(spec.jvm_flags),
        **{f"{what} {name}": _shown(value) for what, own in mappings for name, value in own.items()},
        "index filled by": spec.index_from or "itself",
        **parts,
        "documents": "" if spec.documents is None else str(spec.documents),
        "warm-up": " ".join(map(_short, spec.warmups)),
        "start": spec.start,
    }
    return {name: value for name, value in traits.items() if value}


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _short(text: str) -> str:
    """A file by its name: its folder makes no difference."""
    return PurePath(text).name if text.startswith("/") else _bare_url(text)


def _bare_url(text: str) -> str:
    """A URL by its file's name: the rest may hold credentials, and reports are passed on."""
    return PurePath(urlsplit(text).path).name if text.startswith(("http://", "https://")) else text

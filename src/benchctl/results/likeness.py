"""Differences between runs and between variants, and runs laid side by side."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from benchctl.errors import UsageError
from benchctl.quantities import SIZE
from benchctl.results.figures import TaskSummary
from benchctl.results.model import EngineFacts, ForkRecord, RunRecord
from benchctl.results.plan import BUNDLED, Place, Plan, VariantSpec
from benchctl.results.samples import Columns
from benchctl.results.store import ForkSource
from benchctl.track.model import Challenge, Task

Facts = dict[str, Any]
"""Name -> value, in built-in types: what may differ."""

_EXCERPT: Final = 40
_LEAD: Final = 12
_DIGEST: Final = 12
_NOTHING: Final = "none"


class Difference(NamedTuple):
    """A fact that two sides do not share."""

    what: str  # its name, and the way to the first place that differs within it, with dots
    here: str
    there: str  # of both, an excerpt from where they differ; `none` where one side has nothing

    def __str__(self) -> str:
        """Return both values."""
        return f"different {self.what}: {self.here} vs {self.there}"


def differences(here: Facts, there: Facts) -> Iterator[Difference]:
    """Yield every fact that differs."""
    for name in dict.fromkeys((*here, *there)):
        way, left, right = _first_difference(here.get(name), there.get(name))
        if left != right:
            what = ".".join((name, *way))
            yield Difference(what, *_excerpts(_text(left), _text(right)))


def _first_difference(
    here: object, there: object, way: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], object, object]:
    """The deepest place of the first difference between two structures, and what is there."""
    pairs: Iterable[tuple[str, object, object]] = ()
    if isinstance(here, dict) and isinstance(there, dict):
        pairs = ((str(key), here.get(key), there.get(key)) for key in dict.fromkeys((*here, *there)))
    elif isinstance(here, list) and isinstance(there, list):
        pairs = (("", *pair) for pair in zip_longest(here, there))
    for name, left, right in pairs:
        if left != right:
            return _first_difference(left, right, (*way, name) if name else way)
    return way, here, there


def _text(value: object) -> str:
    if value is None or value == "":
        return _NOTHING
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _excerpts(*texts: str, longest: int = _EXCERPT) -> Iterator[str]:
    """Return texts in brief, from shortly before the first difference."""
    same = next((place for place, each in enumerate(zip_longest(*texts)) if len({*each}) > 1), 0)
    start = max(0, same - _LEAD) if same >= longest - _LEAD else 0
    for text in texts:
        before, after = "..." if start else "", "..." if len(text) > start + longest else ""
        yield f"{before}{text[start : start + longest]}{after}"


# Tasks by name, with a number from 1 among those of one name: the same in all plans that have the task.

_Name = tuple[str, int]


def _numbered(names: Iterable[str]) -> Iterator[_Name]:
    counts: Counter[str] = Counter()
    for name in names:
        counts[name] += 1
        yield name, counts[name]


def _named(schedules: Sequence[Challenge]) -> Iterator[tuple[_Name, Challenge, list[tuple[_Name, Task]]]]:
    names = _numbered(challenge.name for challenge in schedules)
    for name, challenge in zip(names, schedules, strict=True):
        labels = _numbered(task.label for task in challenge.schedule)
        yield name, challenge, [*zip(labels, challenge.schedule, strict=True)]


def _places(schedules: Sequence[Challenge]) -> dict[tuple[_Name, _Name], Place]:
    return {
        (name, label): (schedule, place)
        for schedule, (name, _, tasks) in enumerate(_named(schedules))
        for place, (label, _) in enumerate(tasks)
    }


def _task_facts(schedules: Sequence[Challenge]) -> Facts:
    """Return what decides the figures of each task, by `CHALLENGE/TASK`, without words about it."""
    facts: Facts = {}
    for name, challenge, tasks in _named(schedules):
        beside = {place: step for step in challenge.steps for place in step}
        for place, (label, task) in enumerate(tasks):
            others = sorted(tasks[other][1].label for other in beside[place] if other != place)
            facts[f"{_said(name)}/{_said(label)}"] = {
                # Numbers of parallel elements shift with the tasks before them.
                **msgspec.to_builtins(msgspec.structs.replace(task, tags=(), meta={}, group=None)),
                "same-time": others,
                "body": msgspec.to_builtins(challenge.operations.get(task.operation)),
                "settings": [challenge.cluster_settings, challenge.parameters, challenge.order],
            }
    return facts


def _said(name: _Name) -> str:
    return name[0] if name[1] == 1 else f"{name[0]}#{name[1]}"


# What of a plan decides its figures. Variants are what is compared; seed and forks only decide how well.
_DECIDING: Final = (
    "track_digest", "segments", "ingest_clients", "restart", "heap_mb", "page_cache", "redline", "pin",
    "index_builds", "load_hosts", "ingest_client", "together",
)  # fmt: skip


def deciding(plan: Plan) -> Facts:
    """Return everything of a plan that decides its figures, but its variants."""
    source = plan.track_source
    facts = {
        # Where files lie decides nothing, nor what else is in a repository of tracks.
        "track": f"{source.track} of commit {source.changed[:_DIGEST]}" if source else plan.track,
        "corpus": msgspec.structs.replace(plan.corpus, files=()),
        **{name: getattr(plan, name) for name in _DECIDING},
        "plugin": plan.plugin and plan.plugin.digest,
        # Of the forks that are compared: others bear no cost of it.
        "evidence": "+".join(plan.evidence_in(0)),
        # Tasks say what was chosen, and the track's digest what the source is.
        "micro": plan.micro and " ".join((*plan.micro.dependencies, *plan.micro.arguments)),
        "warmup_challenges": _in_order(plan.warmup_challenges),
        "pollution": _in_order([plan.pollution] if plan.pollution else []),
        "schedules": _task_facts(plan.schedules),
        "tasks": [*_task_facts(plan.schedules)],
    }
    return {name: msgspec.to_builtins(value) for name, value in facts.items()}


def _in_order(challenges: Sequence[Challenge]) -> list[Facts]:
    return [{name: facts} for name, facts in _task_facts(challenges).items()]


Variant = tuple[str, RunRecord]
"""(name, record): one variant's results in one run."""


def unlike_variants(one: Variant, other: Variant) -> tuple[str, ...]:
    """Return why two results cannot be compared; Java runtimes count, which runs only happen to share."""
    if one[1].id == other[1].id:
        return ()
    here, there = _facts(one), _facts(other)
    plans = (one[1].plan, other[1].plan)
    common = here["schedules"].keys() & there["schedules"].keys()
    for facts in (here, there):
        facts["schedules"] = {name: task for name, task in facts["schedules"].items() if name in common}
        # Tasks that one alone has are listed without a verdict.
        if common and not any(plan.swept or plan.redline for plan in plans):
            del facts["tasks"]
    reasons = [str(difference) for difference in differences(here, there)]
    if one[0] == other[0]:
        reasons += [f"{one[0]}: {difference}" for difference in differences(*_same_name(one, other))]
    return tuple(reasons)


def alike_variants(one: Variant, other: Variant) -> bool:
    """Return whether `unlike_variants` finds nothing, and both have the same tasks."""
    # Of hundreds of runs, most differ in what takes no time to see.
    places = [(run.environment.fingerprint, run.environment.benchctl) for _, run in (one, other)]
    plans = one[1].plan, other[1].plan
    plain = all(getattr(plans[0], name) == getattr(plans[1], name) for name in _DECIDING)
    return (
        places[0] == places[1] and plain and same_tasks(one[1], other[1]) and not unlike_variants(one, other)
    )


def same_tasks(one: RunRecord, other: RunRecord) -> bool:
    """Return whether runs have the same tasks in the same order."""
    return [*_places(one.plan.schedules)] == [*_places(other.plan.schedules)]


def _facts(variant: Variant) -> Facts:
    """Everything but a variant's own traits by which results of two runs may be incomparable."""
    name, run = variant
    return {
        "host": f"{run.environment.hostname}, {run.environment.fingerprint}",
        **{field.replace("_", " "): value for field, value in deciding(run.plan).items()},
        "searches left out of the pollution": sorted(run.left_out_of_pollution),
        "benchctl": run.environment.benchctl,
        "Java runtime": next((facts.jdk for facts in run.engines if facts.variant == name), "unknown"),
    }


def _same_name(one: Variant, other: Variant) -> list[Facts]:
    """Traits of variants of one name, which stands for one thing.

    Version and distribution are excepted: comparing those is what runs are tagged for.
    """
    name = one[0]
    sides = [side for _, run in (one, other) for side in resolved(run) if side.label == name]
    # A variant that a sweep made is none of its own.
    found = [*_traits_of_both(*sides)] if len(sides) == len((one, other)) else [Facts(), Facts()]
    for facts, (_, run) in zip(found, (one, other), strict=True):
        for trait in ("engine", "version", "distribution", "JDK"):
            facts.pop(trait, None)
        facts["warm-up"] = _in_order(run.plan.variant_warmups.get(name, ()))
    return found


@dataclass(frozen=True)
class Resolved:
    """A variant and what it resolved to."""

    label: str
    spec: VariantSpec
    facts: EngineFacts | None = None  # what it resolved to; None while no node of it was up


def resolved(record: RunRecord) -> tuple[Resolved, ...]:
    """Return the variants of a run, in its order."""
    facts = {engine.variant: engine for engine in record.engines}
    if record.plan.swept is not None and set(facts) - {base.name for base in record.plan.swept.bases}:
        # What the points of a sweep differ by is what it says anyway.
        return tuple(Resolved(spec.name, spec) for spec in record.plan.swept.bases)
    return tuple(Resolved(spec.name, spec, facts.get(spec.name)) for spec in record.plan.variants)


DifferenceKind = Literal["asked", "default", "unasked"]
"""Cause of a difference: a variant that says so, the engines' own defaults, or anything else."""


DIFFERENCES: Final[Mapping[DifferenceKind, str]] = {
    "unasked": "not specified by variants",
    "asked": "specified by variants",
    "default": "by the engines' own defaults",
}
"""Words for kinds, what a reader has to know first."""


class SideDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trait, mapping or setting in force that variants do not share with the first."""

    what: str  # as variants write it, such as `mapping:message.type`
    values: dict[str, str]  # by variant, in their order; `none` where one has nothing
    kinds: dict[str, DifferenceKind]  # by variant, of those with another value than the first

    @property
    def kind(self) -> DifferenceKind:
        """The kind that a reader has to know first."""
        return next(kind for kind in DIFFERENCES if kind in self.kinds.values())

    @property
    def of_index(self) -> bool:
        """Return whether the index itself differs."""
        return self.what.startswith(("mapping:", "index:")) or self.what in {"merge policy", "segments"}

    def text(self, longest: int = _EXCERPT) -> str:
        """Return `message is text / match_only_text`; of several variants, each value with theirs."""
        sides: dict[str, list[str]] = {}
        for label, value in self.values.items():
            sides.setdefault(value, []).append(label)
        values = [*_excerpts(*sides, longest=longest)]
        if len(self.values) > len(("baseline", "contender")):
            values = [
                f"{value} ({', '.join(own)})" for value, own in zip(values, sides.values(), strict=True)
            ]
        what = self.what
        if what.startswith("mapping:") and what.endswith(".type"):
            what = f"{what.removeprefix('mapping:').removesuffix('.type')} is"
        return f"{what} {' / '.join(values)}"


def side_differences(sides: Sequence[Resolved]) -> tuple[SideDifference, ...]:
    """Return in what variants differ: as nodes report it where all of them were up, else as asked for."""
    wanted = [_traits(side.spec, None) for side in sides]
    found = [_found(side, sides) for side in sides]
    differences = []
    for name in dict.fromkeys(name for facts in found for name in facts):
        values = [_text(facts.get(name, own.get(name))) for facts, own in zip(found, wanted, strict=True)]
        kinds = {
            side.label: _kind(name, [(sides[0], wanted[0]), (side, own)])
            for side, own, value in zip(sides, wanted, values, strict=True)
            if value != values[0]
            and not (name in _REPORTED and {_NOTHING, "unknown"} & {value, values[0]})
            and not (name == "build" and _other_engine(sides[0], side))
        }
        if kinds:
            labelled = {side.label: value for side, value in zip(sides, values, strict=True)}
            differences.append(SideDifference(name, labelled, kinds))
    return tuple(differences)


def _kind(name: str, pair: Sequence[tuple[Resolved, Facts]]) -> DifferenceKind:
    """Return why two sides, each with what it asked for, differ in a trait."""
    causes = (*_CAUSES.get(name, ()), f"{name.partition(' ')[0]}s")
    (one, first), (other, second) = pair
    asked = {own for own in {**first, **second} if _text(first.get(own)) != _text(second.get(own))}
    if name in asked or any(cause in own for cause in causes for own in asked):
        return "asked"
    # With its type or a part of it, the rest of a field changes.
    fields = [f"{own.removesuffix('.type')}." for own in asked if own.startswith("mapping:")]
    if name.startswith(tuple(fields)):
        return "asked"
    states = [side.facts.in_force for side in (one, other) if side.facts is not None]
    by_default = any(name in state.usual for state in states) and not any(
        name in state.given for state in states
    )
    by_default &= name not in _MEASURED
    by_default |= name == "Lucene" or (name == _OWN_FLAGS and _other_engine(one, other))
    by_default |= name == "JDK" and BUNDLED in {one.spec.java, other.spec.java}
    return "default" if by_default else "unasked"


def _other_engine(*sides: Resolved) -> bool:
    """Return whether engines differ, or their versions."""
    facts = [(side.spec.engine, (side.facts or side.spec).version) for side in sides]
    return facts[0] != facts[1]


def configured_alike(sides: Sequence[Resolved]) -> tuple[str, ...]:
    """Return the variants that are the first one again: what differs between them is chance."""
    known = [side for side in sides if side.facts is not None]
    return tuple(
        side.label
        for side in known[1:]
        if known[0] is sides[0]
        and side.spec.target == known[0].spec.target
        and not side_differences([known[0], side])
    )


_OWN_FLAGS: Final = "engine's JVM flags"
_REPORTED: Final = {"JDK", "Lucene", "build", "start", "heap", "garbage collector"}
# What has its default on all sides and is told first all the same: most of a difference may be its doing.
_MEASURED: Final = {"merge policy", "search concurrency", "index:codec", "segments"}
# Name -> parts of the names that it follows from, where a variant says these.
_CAUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "merge policy": ("merge.policy", "merge_policy"),
    "search concurrency": ("concurrent_segment_search", "parallel_collection"),
    "segments": ("index filled by", "documents", "merge"),
    "JDK": ("JDK", "distribution"),
    "build": ("distribution",),
    "garbage collector": ("JVM flags",),
}


def _found(side: Resolved, sides: Sequence[Resolved]) -> Facts:
    """Return the traits of a side among others."""
    own = side.facts
    if own is None or any(other.facts is None for other in sides):
        return _traits(side.spec, None)
    every = [in_force(other.facts.jvm_flags) for other in sides if other.facts is not None]
    flags = every[sides.index(side)]
    common = {flag for flag in flags if all(flag in others for others in every)} | {*side.spec.jvm_flags}
    facts = {
        **_traits(side.spec, own),
        "Lucene": own.lucene,
        "build": f"{own.build[:_DIGEST]} {own.archive_sha256[:_DIGEST]}",
        "start": own.start,
        "garbage collector": next(
            (match[1] for flag in flags if (match := _COLLECTOR.fullmatch(flag))), None
        ),
        "heap": next((_heap(flag) for flag in flags if flag.startswith("-Xmx")), None),
        _OWN_FLAGS: " ".join(
            flag
            for flag in flags
            if flag not in common and not _COLLECTOR.fullmatch(flag) and flag[:4] not in _HEAP
        ),
    }
    states = [other.facts.in_force for other in sides if other.facts is not None]
    if all(state.given for state in states):
        facts |= {**own.in_force.given, **own.in_force.usual}
    return facts


_COLLECTOR: Final = re.compile(r"-XX:\+Use(\w+)GC")
_HEAP: Final = {"-Xms", "-Xmx"}


def _heap(flag: str) -> str:
    size = flag.removeprefix("-Xmx")
    with suppress(UsageError):
        return f"{SIZE.parse(size)} MiB"
    return size


# Of flags of one kind, a virtual machine obeys the last; these commands add up.
_SETS: Final = re.compile(
    r"(-X(?:ms|mx|ss)).*"
    r"|(-XX:)(?!(?:CompileCommand|CompileOnly|OnError|OnOutOfMemoryError)=)[+-]?([^=]+).*"
    r"|(-D[^=]+).*",
    re.DOTALL,
)


def in_force(flags: Sequence[str]) -> list[str]:
    """Return flags without those that a later one of the same kind supersedes."""
    last: dict[object, str] = {}
    for place, flag in enumerate(flags):
        match = _SETS.fullmatch(flag)
        kind: object = match.groups() if match else place
        last.pop(kind, None)
        last[kind] = flag
    return [*last.values()]


def beyond(spec: VariantSpec) -> tuple[str, ...]:
    """Return a variant's settings beyond its engine and version, in words."""
    plain = VariantSpec(_SHORT_NAMES[spec.engine], spec.engine, spec.version)
    return tuple(
        f"{what} {here}" + (f" instead of {there}" if there != _NOTHING else "")
        for what, here, there in differences(_traits(spec, None), _traits(plain, None))
    )


_SHORT_NAMES: Final = {"elasticsearch": "es", "opensearch": "os", "jvm": "Java"}


def _traits_of_both(*sides: Resolved) -> Iterator[Facts]:
    """Return the traits of each: what nodes report, where all of them were up, else what was asked for."""
    known = all(side.facts is not None for side in sides)
    return (_traits(side.spec, side.facts if known else None) for side in sides)


def _traits(spec: VariantSpec, facts: EngineFacts | None) -> Facts:
    """Everything of a variant that may differ, by name."""
    if facts is None:
        parts = {"jars": " ".join(map(_short, spec.jars)), "plug-ins": " ".join(map(_short, spec.plugins))}
    else:
        parts = {f"jar {name}": digest[:_DIGEST] for name, digest in facts.jars.items()}
        parts |= {f"plug-in {name}": version for name, version in facts.plugins.items()}
    return {
        "engine": spec.engine,
        "version": spec.version if facts is None else facts.version,
        "distribution": "running cluster"
        if spec.target
        else _short_url(spec.distribution or "Maven Central"),
        # The runtime's version, or its vendor if that is all there is.
        "JDK": (spec.java or "default") if facts is None else facts.jdk.rpartition(" ")[2],
        "heap": "the run's" if spec.heap_mb is None else f"{spec.heap_mb} MiB",
        "JVM flags": " ".join(spec.jvm_flags),
        **{f"setting:{name}": value for name, value in spec.settings.items()},
        **spec.of_index,
        **{f"operation:{name}": value for name, value in spec.operations.items()},
        **{f"environment {name}": value for name, value in spec.environment.items()},
        "index filled by": spec.index_from or "itself",
        **parts,
        "documents": spec.documents,
        "warm-up": " ".join(map(_short, spec.warmups)),
        "start": spec.start,
    }


def _short(text: str) -> str:
    """A file by its name: its folder makes no difference."""
    return PurePath(text).name if text.startswith("/") else _short_url(text)


def _short_url(text: str) -> str:
    """A URL by its file's name: the rest may hold credentials, and reports are passed on."""
    return PurePath(urlsplit(text).path).name if text.startswith(("http://", "https://")) else text


def joined(plans: Sequence[Plan]) -> tuple[Plan, list[dict[Place, Place]]]:
    """Return the first plan with the tasks that only others have, and where each plan's tasks are in it."""
    merged: dict[_Name, tuple[Challenge, dict[_Name, Task]]] = {}
    for plan in plans:
        for name, challenge, tasks in _named(plan.schedules):
            own = merged.setdefault(name, (challenge, {}))[1]
            for label, task in tasks:
                own.setdefault(label, task)
    schedules = tuple(
        msgspec.structs.replace(challenge, schedule=tuple(tasks.values()))
        for challenge, tasks in merged.values()
    )
    places = _places(schedules)
    maps = [{place: places[key] for key, place in _places(plan.schedules).items()} for plan in plans]
    return msgspec.structs.replace(plans[0], schedules=schedules), maps


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

"""Turns options into a plan: everything is looked up and checked before any node starts."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
import psutil

from benchctl.engine.answers import compared
from benchctl.engine.declared import places, whole_settings, with_changes
from benchctl.engine.prepared_index import bytes_at_rest
from benchctl.engine.variant import VARIANT_OPTIONS
from benchctl.errors import UsageError, suggestion
from benchctl.hosts.file import Hosts, load_hosts
from benchctl.plugin.code import Consent
from benchctl.quantities import COUNT
from benchctl.results.plan import (
    HISTORY,
    Axis,
    CorpusSpec,
    DataOrigin,
    EngineName,
    EvidenceSpec,
    MicroSpec,
    PinSpec,
    Plan,
    PluginSpec,
    StopSpec,
    SweepSpec,
    Swept,
    VariantSpec,
)
from benchctl.run.documents import (
    FileOptions,
    expected_corpus,
    is_bulk,
    is_filling,
    needs_documents,
    origin_of,
)
from benchctl.run.host import allowed_cpus
from benchctl.run.targets import check_targets, only_reads
from benchctl.run.work import allowed_plugin, own_operations, track_path
from benchctl.slices import hook
from benchctl.spec import (
    BUILDS_OF_VECTORS,
    RunSettings,
    check_settings,
)
from benchctl.stats.metrics import check_told_by_clusters, metric, metric_names
from benchctl.track.library import TrackSource, challenge_names, track_names
from benchctl.track.load import (
    filter_tasks,
    load_challenge,
    load_track,
    parse_filters,
    refuse_unswept,
    reject_unused,
    warmup_names,
)
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations import Asking
from benchctl.track.operations.admin import CreateIndex
from benchctl.track.operations.search import LoggedSearch
from benchctl.track.pollution import POLLUTED

# Of all memory, not of what is free at the moment: the same command has the same plan on a machine.
_MOST_OF_MEMORY = 0.6
SEVERAL_PROCESSES = "the load comes from several processes"

SETTLING_DOCUMENTS = 100_000
"""Default corpus when counts are raised."""
_MOST_NAMES = 10
# For a few hundred thousand documents, unless the operation says otherwise.
_SETTLES_AFTER = 200
# A p90 of fewer than 100 is not precise; in turns, one in six requests may be the first of its turn.
_LEAST_MEASURED = 120
# Seconds that a fork is measured in a task. Of pairs that share their moments, most of the spread is between
# forks, and what costs time is their number; one after another, 10 s average over what the host does.
_IN_TURNS_S = 2.0
_APART_S = 10.0
_BLOG_DOCUMENTS = 1_740_763_348


# Options into a plan.


class RunSpec(RunSettings, frozen=True, kw_only=True):
    """The settings of a run as given, checked for types only; `plan_run` makes a plan of them.

    With `settle`, shipped challenges that only count requests get counts that warm the JIT up; see `settled`.
    What else there is, is explained where plans keep it.
    """

    variants: tuple[VariantSpec, ...]
    challenges: tuple[str, ...] = ()
    warmup_challenges: tuple[str, ...] = ()
    forks: int
    seed: int
    heap_mb: int
    track: str
    track_source: TrackSource | None = None
    corpus: CorpusSpec
    params: Mapping[str, Any]
    workers: int = 1
    pin: PinSpec | None = None
    stop: StopSpec | None = None
    files: FileOptions = FileOptions()
    consent: Consent | None = None
    evidence: EvidenceSpec | None = None
    settle: bool = False
    free_builds: bool = False  # whether the track decides how many index builds there are


class Axes(Protocol):
    """Variants and challenges of a sweep."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Swept setting."""

    @property
    def documents(self) -> tuple[int, ...]:
        """Numbers of documents of the prepared indices, where these are swept."""

    def variants(self, families: Sequence[VariantSpec]) -> list[tuple[VariantSpec, Swept]]:
        """Return every variant at every point of the axes that are about variants."""

    def schedules(
        self, load: Callable[[Mapping[str, Any]], tuple[tuple[Challenge, ...], Track]]
    ) -> tuple[tuple[Challenge, ...], tuple[Swept, ...]]:
        """Return every challenge at every point of the axes that are parameters."""

    def check(self, plan: Plan, known: Collection[str]) -> None:
        """Refuse a plan that measures one thing at several points; `known` are the files' parameters."""


def axes_of(texts: Sequence[str]) -> Axes:
    """Return what a sweep makes of variants and challenges."""
    axes: Axes = hook("sweep")(texts)
    return axes


def plan_run(options: RunSpec) -> tuple[Plan, Track]:
    """Load what the options name, check that it fits together, and freeze it.

    Parameters without a challenge's name apply to the track and the measured challenges; a warm-up challenge
    takes only its own (`warmup.iterations=50`), because its counts have another purpose.

    Raises:
        UsageError: If an option, file or combination is invalid; nothing has been started.
    """
    sweep = axes_of(options.sweep)
    families = options.variants
    options = _swept_options(options, sweep)
    check_options(options)
    common = _common(options.params)
    track, used = load_track(options.track, common)
    sources: dict[str, str] = {}
    names = options.challenges or (() if track.default_name is None else (track.default_name,))
    check_vectors(options.variants, track)
    schedules, swept = _schedules(options, names, options.params, used, sources)
    written = schedules
    is_generated = options.track in track_names() and options.files.local is None
    is_here = all(spec.target is None for spec in options.variants)
    # Fewer documents than the blog had take more requests.
    if options.settle and is_generated and is_here and options.corpus.documents < _BLOG_DOCUMENTS:
        alone = _alone(written, swept, options)
        schedules = tuple(
            settled(one, track, alone, warms_up=not _given(_WARM_UP, of, options.params))
            if of.of not in sources and _only_counts(one, of, options.params)
            else one
            for one, of in zip(written, swept, strict=True)
        )
    raised = schedules != written
    if raised and options.files.docs is None and not sweep.documents:
        corpus = msgspec.structs.replace(options.corpus, documents=SETTLING_DOCUMENTS)
        options = msgspec.structs.replace(options, corpus=corpus)
    # A file of the user's own has not been read yet.
    held = track.documents if options.files.local is None else 0
    documents = min(options.files.docs or held, held) or options.corpus.documents
    load = partial(
        _load,
        track=track,
        params=options.params,
        common=None,
        used=used,
        sources=sources,
        documents=documents,
    )
    warmups = load(options.warmup_challenges)
    own_warmups = {spec.name: load(spec.warmups) for spec in options.variants if spec.warmups}
    pollution = load([POLLUTED] if any(of.at.get(HISTORY) == POLLUTED for of in swept) else [])
    all_warmups = (
        *(one for challenges in own_warmups.values() for one in challenges),
        *warmups,
        *pollution,
    )
    if not schedules:
        known = tuple(track.challenges) or challenge_names()
        raise UsageError(
            "missing option --challenge NAME|FILE",
            hint=f"challenges are {', '.join(known[:_MOST_NAMES])}; list all with: benchctl list challenges",
        )
    reject_unused(options.params, used)
    plugin = allowed_plugin(options.track, track, (*all_warmups, *schedules), options.consent)
    track = track.with_challenges(*all_warmups, *schedules)
    _check_hosts(options, track, (*all_warmups, *schedules), plugin)
    _check_histories(track, schedules, swept)
    check_index_settings(options.variants, track, origin_of(track, schedules, all_warmups), schedules)
    plan = freeze(_with_builds(options, track, schedules), track, schedules, warmups)
    check_metrics(plan, track)
    check_targets(plan, track)
    if sweep.axes:
        points = {spec.name: point for spec, point in sweep.variants(families)}
        asked = dict.fromkeys(task.operation for challenge in schedules for task in challenge.schedule)
        preparing = tuple(name for name in asked if not track.operations[name].reported)
        of_plan = SweepSpec(sweep.axes, families, points, swept, preparing)
        plan = msgspec.structs.replace(plan, swept=of_plan)
        sweep.check(plan, used)
    plan = msgspec.structs.replace(
        plan,
        plugin=plugin,
        variant_warmups=own_warmups,
        pollution=pollution[0] if pollution else None,
        settled=raised,
    )
    return _apart(plan, track), track


def plan_ingest(options: RunSpec) -> tuple[Plan, Track]:
    """A plan without challenges and forks, whose run builds the indices of its variants and ends.

    Raises:
        UsageError: If an option is invalid, or the track declares no index to be filled.
    """
    check_options(msgspec.structs.replace(options, forks=options.index_builds))
    if options.sweep:
        raise UsageError(
            f"--sweep {options.sweep[0]}: what only builds indices is not swept",
            hint="make one for each value, or name what differs as variants",
        )
    track, used = load_track(options.track, _common(options.params))
    reject_unused(options.params, used)
    if origin_of(track, ()) == "empty":
        raise UsageError(f"track '{track.name}' declares no index that could be filled")
    check_index_settings(options.variants, track, "prepared", ())
    return freeze(msgspec.structs.replace(options, forks=0), track, ()), track


def _with_builds(options: RunSpec, track: Track, schedules: Sequence[Challenge]) -> RunSpec:
    """The options with several index builds of a track with vectors, unless their number is given."""
    decided = options.stop is not None and options.stop.decided
    here = all(spec.target is None for spec in options.variants)
    is_free = options.free_builds and track.has_vectors and here and not decided
    if is_free and origin_of(track, schedules) == "prepared":
        return msgspec.structs.replace(options, index_builds=min(BUILDS_OF_VECTORS, options.forks))
    return options


def _swept_options(options: RunSpec, sweep: Axes) -> RunSpec:
    """The options with every variant at every point, and the largest number of documents."""
    variants = tuple(spec for spec, _ in sweep.variants(options.variants)) if sweep.axes else options.variants
    options = msgspec.structs.replace(options, variants=variants)
    given = next((axis.name for axis in sweep.axes if axis.name.removeprefix("param:") in options.params), "")
    if given:
        raise UsageError(f"--param and --sweep both set {given}", hint="use only one of them")
    if not sweep.documents:
        return options
    # A trial brings a number of its own, which nobody asked for.
    asked = options.files.docs is not None and not options.files.at_most
    if asked or options.files.local is not None:
        other = "--docs" if options.files.local is None else "--corpus"
        raise UsageError(f"--sweep docs and {other} cannot be combined", hint="use only one of them")
    corpus = msgspec.structs.replace(options.corpus, documents=max(sweep.documents))
    return msgspec.structs.replace(options, corpus=corpus)


def _schedules(
    settings: RunSpec | Plan,
    names: Sequence[str],
    params: Mapping[str, Any],
    used: set[str],
    sources: dict[str, str],
) -> tuple[tuple[Challenge, ...], tuple[Swept, ...]]:
    """The measured challenges at every point of a sweep, and what they are; `used` and `sources` grow."""

    def load(values: Mapping[str, Any]) -> tuple[tuple[Challenge, ...], Track]:
        merged = {**params, **values}
        common = _common(merged)
        track, known = load_track(settings.track, common)
        used.update(known)
        challenges = _load(names, track, merged, common, used, sources)
        unused = next((name for name in values if name not in used), None)
        if unused is not None:
            raise refuse_unswept(unused, [one.name for one in challenges], used, ("docs", *VARIANT_OPTIONS))
        if challenges:
            include, exclude = parse_filters(settings.include_tasks), parse_filters(settings.exclude_tasks)
            challenges = filter_tasks(challenges, track.operations, include=include, exclude=exclude)
        return challenges, track

    return axes_of(settings.sweep).schedules(load)


def _check_hosts(
    options: RunSpec, track: Track, challenges: Iterable[Challenge], plugin: PluginSpec | None
) -> None:
    """Refuse load from other hosts of what only this one has."""
    if not options.hosts:
        return
    if plugin is not None:
        raise UsageError(
            "--hosts: the track's plug-in is executed where the load is made, and is only on this host",
            hint="remove --hosts, or take a track without a plug-in",
        )
    asked = {task.operation for challenge in challenges for task in challenge.schedule}
    if any(isinstance(track.operations[name], LoggedSearch) for name in asked):
        raise UsageError("--hosts: the track's log of queries is only on this host", hint="remove --hosts")


def _check_histories(track: Track, schedules: Sequence[Challenge], swept: Sequence[Swept]) -> None:
    for challenge, of in zip(schedules, swept, strict=True):
        sends = any(is_bulk(track.operations[task.operation]) for task in challenge.schedule)
        if HISTORY in of.at and (sends or is_filling(track, challenge)):
            raise UsageError(
                f"--sweep history: challenge '{of.of}' makes or changes its data, which all histories search",
                hint="sweep challenges that search prepared data, or exclude tasks: --exclude-tasks",
            )


_WARM_UP = "warmup_iterations"


def _given(name: str, of: Swept, params: Mapping[str, Any]) -> bool:
    """Return whether a parameter or the sweep of a challenge sets a value of its tasks."""
    return not {name, f"{of.of}.{name}"}.isdisjoint({*params, *(at.removeprefix("param:") for at in of.at)})


def _only_counts(challenge: Challenge, of: Swept, params: Mapping[str, Any]) -> bool:
    """True if a challenge only counts requests, and neither a parameter nor its sweep sets their number."""
    return not _given("iterations", of, params) and all(task.only_counted for task in challenge.schedule)


def _alone(challenges: Sequence[Challenge], swept: Sequence[Swept], options: RunSpec) -> set[str]:
    """Operations that some node of the run meets without having run anything else."""
    if options.warmup_challenges:
        return set()
    alone = [
        ({task.operation for task in challenge.schedule}, options.restart == "task" or HISTORY in of.at)
        for challenge, of in zip(challenges, swept, strict=True)
    ]
    return set().union(*(names for names, apart in alone if apart or len(names) == 1))


def settled(
    challenge: Challenge, track: Track, alone: Collection[str] = (), *, warms_up: bool = True
) -> Challenge:
    """A challenge whose searches warm up for as long as operations need, and are measured for long enough.

    The fewer documents a request visits, the more requests it takes. A `range` over 400,000 takes thousands,
    and tasks that have not settled are marked anyway. Operations that run `alone` in some challenge of a run
    get more in all of them, so that their figures there can be compared. Without `warms_up` the challenge's
    own warm-up is kept.
    """
    operations = track.operations | challenge.operations

    def lengthened(task: Task) -> Task:
        operation = operations[task.operation]
        if not isinstance(operation, Asking):
            return task
        requests = operation.settles_after(_SETTLES_AFTER, alone=task.operation in alone)
        warm_up, measured = (math.ceil(count / task.clients) for count in (requests, _LEAST_MEASURED))
        return msgspec.structs.replace(
            task,
            warmup_iterations=warm_up if warms_up else task.warmup_iterations,
            iterations=max(task.iterations or 1, measured),
            least_time=_IN_TURNS_S,
        )

    return msgspec.structs.replace(challenge, schedule=tuple(map(lengthened, challenge.schedule)))


def track_remarks(plan: Plan) -> tuple[str, ...]:
    """Return what the track's loader remarks on the plan's challenges, for readers."""
    outdated = "" if plan.track_source is None else plan.track_source.outdated
    challenges = (*plan.all_warmups, *plan.schedules)
    remarks = (remark for challenge in challenges for remark in challenge.remarks)
    return tuple(dict.fromkeys(filter(None, (outdated, *remarks))))


def settling_text(plan: Plan) -> str:
    """The raised counts, for readers; empty if none were."""
    if not plan.settled:
        return ""
    tasks = [task for challenge in plan.schedules for task in challenge.schedule if task.least_time]
    raised = dict.fromkeys(f"{task.label} {task.warmup_iterations}" for task in tasks)
    return (
        f"{COUNT.text(plan.corpus.documents)} documents; unmeasured requests first, to warm the JIT up "
        f"({', '.join(raised)}), and {tasks[0].least_time:g}s measured; as in the JSON: --warmup as-written"
    )


def freeze(
    options: RunSpec,
    track: Track,
    schedules: tuple[Challenge, ...],
    warmups: tuple[Challenge, ...] = (),
) -> Plan:
    """A plan from checked options and what was loaded for them.

    Raises:
        UsageError: If challenges would find no data, or there are no documents to make it from.
    """
    origin = origin_of(track, schedules, warmups)
    if origin == "empty":
        option = "--index-builds" if options.index_builds > 1 else "--page-cache"
        if options.index_builds > 1 or options.page_cache != "as-is":
            raise UsageError(
                f"{option}: nothing is prepared, since challenge '{schedules[0].name}' makes its own data",
                hint="remove it: nodes start empty, and every fork builds its own index",
            )
    hosts = checked_hosts(options) if options.hosts else None
    corpus = options.corpus
    if needs_documents(options.variants):
        corpus = expected_corpus(options.corpus, options.files, track, schedules, origin)
    # What is asked for and planned under one name is taken over.
    same = (name for name in Plan.__struct_fields__ if name in RunSpec.__struct_fields__)
    known = options.track in track_names()
    fields: dict[str, Any] = {
        **{name: getattr(options, name) for name in same},
        "hosts": "" if hosts is None else str(hosts.path),
        "load_hosts": () if hosts is None else hosts.load,
        "schedules": schedules,
        "warmup_challenges": warmups,
        "track": options.track if known else str(Path(options.track).absolute()),
        "track_digest": track.digest,
        "corpus": corpus,
        "params": dict(options.params),
        "origin": origin,
    }
    return Plan(**fields)


def _apart(plan: Plan, track: Track) -> Plan:
    """Return a plan that says why its variants take no turns, and measures for longer without any."""
    plan = msgspec.structs.replace(plan, apart=why_apart(plan, track))
    if plan.together:
        return plan
    replace = msgspec.structs.replace
    schedules = (
        replace(one, schedule=tuple(replace(t, least_time=t.least_time and _APART_S) for t in one.schedule))
        for one in plan.schedules
    )
    return replace(plan, schedules=tuple(schedules))


def why_apart(plan: Plan, track: Track) -> str:
    """Return why variants are measured one after another, for readers; empty if they can take turns."""
    if len(plan.variants) == 1:
        return ""
    challenges = (*plan.all_warmups, *plan.schedules)
    operations = track.with_challenges(*challenges).operations
    tasks = [task for challenge in challenges for task in challenge.schedule]
    writing = next((task.label for task in tasks if not only_reads(operations[task.operation])), "")
    hosts = [_hosts_of(spec) for spec in plan.variants]
    shared = any(first & second for first, second in combinations(hosts, 2))
    needed, memory = _memory_of(plan), psutil.virtual_memory().total
    reasons = (
        (plan.one_by_one, "--one-by-one"),
        (plan.origin == "empty", "every fork makes its own data"),
        (bool(writing), f"{writing} may write"),
        (plan.page_cache == "cold", "a cold page cache is that of all nodes"),
        (plan.workers > 1 or bool(plan.load_hosts), SEVERAL_PROCESSES),
        (plan.plugin is not None, "the track's plug-in is executed"),
        (any(hosts) and (shared or not all(hosts)), "clusters share a host"),
        (len(allowed_cpus()) == 1, "there is one CPU"),
        (
            needed > _MOST_OF_MEMORY * memory,
            f"nodes need {needed / 2**30:.1f} GiB together, too much of {memory / 2**30:.1f} GiB of memory",
        ),
    )
    return next((text for holds, text in reasons if holds), "")


def _hosts_of(spec: VariantSpec) -> frozenset[str]:
    """Return the hosts of a running cluster; nodes that benchctl starts share its own."""
    if spec.target is None:
        return frozenset()
    return frozenset(urlsplit(host).hostname or host for host in spec.target.hosts)


def _memory_of(plan: Plan) -> float:
    """Return the bytes of heaps and indices that are in use at the same time, at most."""
    started = {spec.name: spec for spec in plan.variants if spec.target is None}
    return max(
        sum(
            (spec.heap_mb or plan.heap_mb) * 2**20
            + plan.of(spec).corpus.documents * bytes_at_rest(plan.of(spec).corpus)
            for name in names
            if (spec := started.get(name)) is not None
        )
        for names in plan.compared_together([spec.name for spec in plan.variants])
    )


def reload_track(plan: Plan) -> Track:
    """The track of an existing plan, with the plan's parameters; its digest tells whether it has changed.

    Raises:
        UsageError: If the track is missing or broken.
    """
    if plan.micro is not None:
        now: MicroSpec = hook("micro_source")(Path(plan.micro.source))
        return Track(name=plan.track, operations={}, digest=now.digest)
    track, _ = load_track(track_path(plan), _common(plan.params))
    return track.with_challenges(*plan.all_warmups, *plan.schedules)


def _common(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without a challenge's name, for the track and every measured challenge."""
    return {name: value for name, value in params.items() if "." not in name}


def _load(
    names: Iterable[str],
    track: Track,
    params: Mapping[str, Any],
    common: Mapping[str, Any] | None,
    used: set[str],
    sources: dict[str, str],
    *,
    documents: int = 0,
) -> tuple[Challenge, ...]:
    """Load challenges; notes the parameters they used, and the paths of files. Warm-ups take no `common`."""
    challenges = []
    for name in names:
        # Of its own parameters, given its name or the path of its file.
        prefix = f"{name if name in challenge_names() else Path(name).stem}."
        own = {key.removeprefix(prefix): value for key, value in params.items() if key.startswith(prefix)}
        challenge, found = load_challenge(name, track, {**(common or {}), **own}, documents)
        if common is None:
            used |= {prefix + key for key in found}
        else:
            used |= {key if key not in own else prefix + key for key in found}
            # A common parameter that a challenge overrides counts as used.
            used |= {key for key in found if key in own and key in common}
        if name not in warmup_names() and name not in track.challenges:
            _note_source(challenge.name, str(Path(name).absolute()), sources)
        challenges.append(challenge)
    return tuple(challenges)


def _note_source(name: str, path: str, sources: dict[str, str]) -> None:
    """Note a challenge's file; names must be unique in a run, since results are found by them."""
    if name in challenge_names() or sources.get(name, path) != path:
        other = sources.get(name, "a challenge that comes with benchctl")
        raise UsageError(
            f"{path}: $.name: '{name}' is also the name of {other}", hint="give it a unique name"
        )
    sources[name] = path


# What can be refused before anything is prepared.


def check_options(options: RunSpec) -> None:
    """Check what can be checked without files.

    Raises:
        UsageError: If a number is out of range, variants share a name, or options do not fit each other.
    """
    names = [variant.name for variant in options.variants]
    if not names:
        raise UsageError("no variant to run", hint="give --variant")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"duplicate variant '{twice}'", hint="label one of them: --variant LABEL=BASE")
    check_settings(options)
    figures = metric_names(options.metrics)
    target = next((variant.name for variant in options.variants if variant.target is not None), None)
    histories = any(axis.startswith(f"{HISTORY}=") for axis in options.sweep)
    if target is not None:
        check_told_by_clusters(figures)
        for asked, option in (
            (histories, "--sweep history"),
            (options.index_builds > 1, "--index-builds"),
            (options.page_cache != "as-is", "--page-cache"),
            (options.pin is not None, "--pin"),
            (options.evidence is not None, "--evidence"),
        ):
            if asked:
                raise UsageError(
                    f"{option}: '{target}' is a running cluster (--target), and is not configured",
                    hint=f"remove {option}, or measure nodes that benchctl starts (--variant)",
                )
    warmed = bool(options.warmup_challenges) or any(spec.warmups for spec in options.variants)
    stop = options.stop or StopSpec()
    rules = (
        (
            histories and (options.restart != "challenge" or warmed),
            "--sweep history decides what a node ran before, as do --restart and warm-up challenges",
            "use only one of them",
        ),
        (
            options.index_builds > max(options.forks, 1),
            f"--index-builds {options.index_builds} needs at least {options.index_builds} forks",
            "raise --forks: forks take the builds in turn",
        ),
        (stop.budget_s is not None and stop.budget_s <= 0, "--budget must be more than 0s", ""),
        (
            stop.margin is not None and not (stop.decided and stop.margin > 0),
            "--margin requires --until-decided and must be more than 0%",
            "for a finished run: benchctl compare RUN --margin 5%",
        ),
        (
            stop.decided and options.index_builds > 1,
            "--until-decided cannot be used with --index-builds: it counts forks, not builds",
            "",
        ),
        (
            stop.decided and len(names) == 1,
            "--until-decided requires at least two variants",
            "add another --variant",
        ),
        (
            stop.decided and options.forks < stop.least_forks,
            f"--until-decided needs at least {stop.least_forks} forks, not --forks {options.forks}",
            "raise or remove --forks",
        ),
    )
    for broken, text, hint in rules:
        if broken:
            raise UsageError(text, hint=hint)


def check_index_settings(
    variants: Iterable[VariantSpec], track: Track, origin: DataOrigin, schedules: Iterable[Challenge]
) -> None:
    """Refuse settings, mappings and bodies that would have no effect.

    Raises:
        UsageError: If a variant has settings or mappings, and no index is made of the track's body that could
            get them; if it has a body for something that is not measured, or has none.
    """
    variants = list(variants)
    name = next((spec.name for spec in variants if spec.of_index), None)
    asked = {task.operation: track.operations[task.operation] for one in schedules for task in one.schedule}
    operations = asked.values()
    made = any(isinstance(operation, CreateIndex) and operation.body is None for operation in operations)
    # Data streams have theirs in templates, and no track has both.
    if name is not None and ((origin == "empty" and not made) or not places(track).indices):
        raise UsageError(
            f"variant '{name}' has index settings or mappings, but no index is made of the track's body",
            hint="set them where the data are made: in the challenge, or in the track's templates",
        )
    for spec in variants:
        with_changes(places(track.of(spec.engine)), spec.index_settings, spec.mappings)
        own_operations(asked, spec)
        known = [one.name for one in operations if compared(one) and hasattr(one, "body")]
        if unknown := next((name for name in spec.operations if name not in known), ""):
            raise UsageError(
                f"variant '{spec.name}': no search '{unknown}' is measured",
                hint=suggestion(unknown, known),
            )


_OWN_TYPE: Mapping[EngineName, str] = {"elasticsearch": "dense_vector", "opensearch": "knn_vector"}
_KNN = "org.opensearch.plugin:opensearch-knn"
_WITH_KNN = f"write, for instance, --variant os@2.19.1,plugin:{_KNN}:2.19.1.0"


def check_vectors(variants: Iterable[VariantSpec], track: Track) -> None:
    """Refuse nodes that cannot have the fields of vectors in a track's mappings.

    Raises:
        UsageError: If a field is of a type of the other engine, or OpenSearch lacks its plug-in for vectors,
            or native libraries that the field needs, which come with full distributions only.
    """
    for spec in variants:
        if spec.target is not None or spec.place is not None:
            continue
        for index in with_changes(places(track.of(spec.engine)), {}, spec.mappings).indices:
            for name, field in _vector_fields(index.body.mappings):
                where = f"variant '{spec.name}': field '{name}' of track '{track.name}'"
                if field["type"] != _OWN_TYPE[spec.engine]:
                    raise UsageError(
                        f"{where} is a {field['type']}, which {spec.engine} does not have",
                        hint="remove the variant, or give the track's index a body for each engine",
                    )
                if spec.engine != "opensearch" or spec.distribution == "official":
                    continue
                if not any("opensearch-knn" in plugin for plugin in spec.plugins):
                    raise UsageError(f"{where} requires the plug-in opensearch-knn", hint=_WITH_KNN)
                engine = (field.get("method") or {}).get("engine", "faiss, the default,")
                if engine != "lucene" and str(whole_settings(index).get("index.knn")).lower() == "true":
                    raise UsageError(
                        f"{where}: engine {engine} requires native libraries, which opensearch-knn lacks",
                        hint='set "engine": "lucene" in the mapping, or use distribution:official',
                    )


def _vector_fields(mapped: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, field in (mapped.get("properties") or {}).items():
        if isinstance(field, dict):
            if field.get("type") in _OWN_TYPE.values():
                yield name, field
            yield from _vector_fields(field)


def checked_hosts(plan: RunSpec | Plan) -> Hosts:
    """The hosts of a plan, if they reach what is measured.

    Raises:
        UsageError: If the hosts do not, or are not those that the plan was made for.
    """
    hosts = load_hosts(Path(plan.hosts))
    hosts.check_nodes(plan.variants)
    if isinstance(plan, Plan) and hosts.load != plan.load_hosts:
        raise UsageError(
            f"the load came from {', '.join(plan.load_hosts) or 'this host'}, and by {hosts.path} it would "
            f"come from {', '.join(hosts.load) or 'this host'}",
            hint="what more is measured must have the same load: restore the old names",
        )
    return hosts


def check_metrics(plan: Plan, track: Track) -> None:
    """Refuse a requested metric that no task that is shown, or index, has."""
    tasks = [task for schedule in plan.schedules for task in schedule.schedule]
    shown = [task for task in tasks if track.operations[task.operation].reported] or tasks
    for figure in map(metric, metric_names(plan.metrics)):
        if figure.kind.built and plan.origin == "prepared":
            continue
        reasons = [figure.lacking(task, track.operations[task.operation]) for task in shown]
        if all(reasons):
            # Of tasks that lack it for several reasons, the longest is the most specific.
            reason, task = max(zip(reasons, shown, strict=True), key=lambda told: len(told[0]))
            raise UsageError(
                f"--metric {figure.kind.name}: no task reports it; '{task.label}': {reason}",
                hint="list metrics with: benchctl list metrics",
            )

"""A run from plan to record: new ones are prepared, interrupted ones resumed if nothing has changed."""

import itertools
import os
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import chain, cycle, islice
from typing import Any, Final

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.lock import SHARE_VARIABLE, shares_host
from benchctl.report.numbers import counted
from benchctl.results.figures import Calibration
from benchctl.results.model import FORKS_FOR_VERDICT, RECORD_VERSION, Environment, RunRecord
from benchctl.results.plan import CorpusSpec, Plan, StopSpec, cpu_list
from benchctl.results.store import RunFolder, reference
from benchctl.run.bench import Bench, SharedObserver
from benchctl.run.documents import (
    FileOptions,
    Parcel,
    bring_vectors,
    check_files,
    find_corpus,
    is_generated,
    needs_documents,
    parcels,
)
from benchctl.run.forecast import Past, announce
from benchctl.run.host import allowed_cpus, cores_of, describe_host, pin_caveats
from benchctl.run.plan import track_remarks
from benchctl.run.prepare import (
    check_memory,
    prepare_corpus,
    prepare_started,
    started_alike,
    started_as_before,
)
from benchctl.run.session import AnySubject, Start, Subject, TargetSubject
from benchctl.run.study import (
    NotResumable,
    OpenRun,
    Study,
    ending,
    reason_to_stop,
    seconds_spent,
    shortfall,
    within,
)
from benchctl.run.targets import corpus_of_targets, prepare_target, target_caveats
from benchctl.run.work import check_work, default_target, plugin_changes
from benchctl.slices import hook
from benchctl.spec import DEFAULT_FORKS, MOST_FORKS
from benchctl.track.model import Challenge, Track, TrackOperation
from benchctl.track.values import POOL_LIMIT, Terms


def prepare_subjects(bench: Bench, plan: Plan, track: Track) -> tuple[Plan, list[AnySubject]]:
    """Prepare all that forks need; running clusters first, since their problems show at once."""
    if plan.micro is not None:
        return plan, [*hook("micro").prepare_micro(bench.home, plan, bench.observer.progress)]

    observer = SharedObserver(bench.observer)

    @cache
    def corpus(count: int) -> tuple[CorpusSpec, Sequence[Parcel]]:
        spec = msgspec.structs.replace(plan.corpus, documents=count)
        if is_generated(plan):
            prepared = prepare_corpus(bench.home, count, spec.seed, observer, spec.generator)
            spec = msgspec.structs.replace(
                spec, digest=prepared.digest, generator_version=prepared.generator_version
            )
        return spec, parcels(msgspec.structs.replace(plan, corpus=spec), track, bench.home)

    targets = {
        spec.name: prepare_target(spec, bench.endpoints[spec.name], plan, track, corpus, bench.observer)
        for spec in plan.variants
        if spec.target is not None
    }
    filled_before = corpus_of_targets(plan, targets.values())
    if filled_before is not None:
        return filled_before, list(targets.values())
    if plan.origin == "empty":
        observer.note(f"challenge {plan.schedules[0].name} makes its own data: every fork begins without any")
    started = [spec for spec in plan.variants if spec.name not in targets]
    prepared = started_alike(
        prepare_started(started, plan, track, corpus, bench.home, observer), bench.observer
    )
    subjects: dict[str, AnySubject] = {**targets, **{subject.spec.name: subject for subject in prepared}}
    plan = msgspec.structs.replace(plan, corpus=corpus(plan.corpus.documents)[0])
    return plan, [subjects[spec.name] for spec in plan.variants]


# Reasons to doubt values of a run, known before its first fork.

HIGH_LOAD_PER_CPU = 0.5
_VECTOR_API: Final = "jdk.incubator.vector"


def host_caveats(environment: Environment, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return reasons to doubt values measured on this host."""
    caveats = []
    if environment.other_java:
        caveats.append(f"other Java processes were up: {', '.join(environment.other_java)}")
    if environment.governor not in {None, "performance"}:
        caveats.append(f"the CPU governor is '{environment.governor}', not 'performance'")
    if environment.load_before[0] > HIGH_LOAD_PER_CPU * environment.cpus:
        load = environment.load_before[0]
        caveats.append(f"the load before the run was {load:.1f} on {environment.cpus} CPUs")
    if shares_host(environ):
        caveats.append(f"other benchctls may have measured at the same time ({SHARE_VARIABLE} is set)")
    return tuple(caveats)


def plan_caveats(plan: Plan) -> tuple[str, ...]:
    """Return caveats about how the load is generated, and about the data of forks."""
    caveats = []
    if plan.test_mode:
        caveats.append("--test-mode: tasks were cut to a few requests, so the values are meaningless")
    if plan.workers > 1:
        each = " on each of its hosts" if plan.load_hosts else ""
        caveats.append(f"the load came from {plan.workers} processes (--workers){each}")
    if plan.load_hosts:
        caveats.append(
            f"the load came from {counted(len(plan.load_hosts), 'host')} ({', '.join(plan.load_hosts)}): "
            "every time measured has their network in it"
        )
    if plan.micro is not None:
        return (*caveats, *hook("micro").micro_caveats(plan))
    if plan.origin == "empty":
        caveats.append(
            "every fork made its own data: results were not compared before the run, and the segments that "
            "were searched differ from fork to fork"
        )
    return tuple(caveats)


def engine_caveats(subjects: Sequence[AnySubject], track: Track) -> tuple[str, ...]:
    """Return caveats of engines: what they lack, and modules that are not those of their like."""
    caveats = []
    own = [subject for subject in subjects if isinstance(subject, Subject)]
    caveats += [
        f"{subject.spec.name}: {lacking}" for subject in own for lacking in subject.installation.lacking
    ]
    slow = ", ".join(subject.spec.name for subject in own if _VECTOR_API not in subject.jdk.modules)
    if slow and track.has_vectors:
        caveats.append(
            f"kNN is slower than on a full JDK: the Java runtime of {slow} lacks {_VECTOR_API}, which full "
            "JDKs have (jdk:PATH, jdk:bundled)"
        )
    first: dict[str, Subject] = {}
    for subject in own:
        other = first.setdefault(subject.spec.engine, subject)
        if unlike := {*subject.installation.modules} ^ {*other.installation.modules}:
            caveats.append(
                f"the modules of {subject.spec.name} are not those of {other.spec.name} "
                f"({', '.join(sorted(unlike))}): modules load subclasses, which can change "
                "what the JIT inlines"
            )
    return tuple(caveats)


# Changes since a run began that prevent resuming it.


def environment_changes(before: Environment, now: Environment) -> list[str]:
    """Differences between two descriptions of a host that prevent resuming."""
    fixed = (
        "hostname", "kernel", "cpu_model", "cpus", "governor", "memory_bytes", "virtualization", "python",
        "benchctl", "benchctl_commit", "libcurl",
    )  # fmt: skip
    return [
        f"{name.replace('_', ' ')} was {getattr(before, name)}, is {getattr(now, name)}"
        for name in fixed
        if getattr(before, name) != getattr(now, name)
    ]


def track_changes(plan: Plan, track: Track) -> list[str]:
    """Return differences of a reloaded track, or its plug-in, from the plan's."""
    changes = plugin_changes(plan)
    if plan.track_digest != track.digest:
        changes.append(f"track {track.name} was {plan.track_digest[:12]}, is {track.digest[:12]}")
    return changes


def pin_changes(plan: Plan, allowed: Sequence[int]) -> list[str]:
    """Return the CPUs, as text, that nodes and driver were pinned to and that are no longer available."""
    wanted = () if plan.pin is None else (*plan.pin.node, *plan.pin.driver)
    missing = set(wanted) - set(allowed)
    return [f"CPUs {cpu_list(missing)}, which it was pinned to, are not available"] if missing else []


def engine_changes(record: RunRecord, subjects: Sequence[AnySubject]) -> list[str]:
    """Differences in archives, runtimes and prepared indices; a rebuilt index is a different one."""
    changes = []
    by_variant = {facts.variant: facts for facts in record.engines}
    for subject in subjects:
        name = subject.spec.name
        if (facts := by_variant.get(name)) is not None:
            changes += subject.changes(facts)
        index = record.indices.get(name)
        if index is None:
            continue
        builds = [record.builds.get(name, (index,)), subject.builds]
        if isinstance(subject, TargetSubject):
            before, now = ([(facts.documents, facts.segments) for facts in own] for own in builds)
            if now and before != now:
                changes.append(f"the index of {name} has changed")
            continue
        # Equal keys only mean that the same was wanted; ingest times tell builds apart.
        same = [[msgspec.structs.replace(facts, cached=False) for facts in own] for own in builds]
        if same[0] != same[1]:
            changes.append(f"the prepared index of {name} has changed or was built again")
    return list(dict.fromkeys(changes))


# The life of a run.


@dataclass(frozen=True)
class Extras:
    """Options of a new run beyond its plan."""

    calibration: Calibration | None = None
    tags: tuple[str, ...] = ()
    files: FileOptions = field(default_factory=FileOptions)
    # For forks, evaluated after preparation; None for the plan's limits.
    left_s: Callable[[], float] | None = None
    forecast: bool = True  # announce what to expect from earlier runs


NO_EXTRAS = Extras()


def start_run(
    bench: Bench, plan: Plan, track: Track, extras: Extras = NO_EXTRAS
) -> tuple[RunFolder, RunRecord]:
    """Prepare and run a new plan; its corpus digest may still be empty.

    Returns:
        The run's folder and its final record, which includes failed forks.

    Raises:
        UsageError, BenchctlError: as for `open_run`, or the run was interrupted.
    """
    run = open_run(bench, plan, track, extras)
    return run.folder, _measured(bench, run)


def _measured(bench: Bench, run: OpenRun) -> RunRecord:
    """Measure what a run is missing, and record how it ended."""
    try:
        return _ended(bench, run)
    finally:
        run.release()


def _ended(bench: Bench, run: OpenRun) -> RunRecord:
    study = Study(
        [run],
        bench.observer,
        seed=run.record.plan.seed,
        ends=lambda records, block: reason_to_stop(records[0], block),
        goes_on_without=False,
    )
    with ending(lambda _status, _reason: None, run.summary, run.resumed_by):
        ended = study.measure()
    lacking = "" if run.record.missing() else shortfall(run.record)
    if lacking:
        run.doubt(lacking)
    for text in filter(None, (ended, lacking)):
        bench.observer.note(text)
    return run.record


def open_run(bench: Bench, plan: Plan, track: Track, extras: Extras = NO_EXTRAS) -> OpenRun:
    """Prepare a new plan and create its folder, without measuring yet.

    Raises:
        UsageError: If the plan's documents are missing, or there is not enough memory for its heaps.
        BenchctlError: If preparation fails, or results cannot be written.
    """
    environment = describe_host()
    clean_scratch(bench.home)
    on_nodes = plan.micro is None
    remarks = track_remarks(plan)
    for remark in remarks:
        bench.observer.note(remark)
    if on_nodes and any(spec.target is None for spec in plan.variants):
        check_memory(plan, environment.memory_bytes)
    bench.store.open()
    clock = time.monotonic()
    if on_nodes:
        bring_vectors(plan, track, extras.files.folders, bench.home, bench.observer)
        if needs_documents(plan.variants):
            corpus = find_corpus(plan, track, extras.files, bench.home, bench.observer)
            plan = msgspec.structs.replace(plan, corpus=corpus)
        if track.has_vectors:
            bench.observer.stage("exact neighbours of the vectors that are searched for")
        check_work(plan, track, bench.home)
    plan, subjects = prepare_subjects(bench, plan, track)
    plan, track = with_terms(bench, plan, track, subjects)
    prepare_s = time.monotonic() - clock
    if extras.left_s is not None:
        plan = msgspec.structs.replace(plan, stop=within(plan.stop, extras.left_s()))
    fork_s = None
    if extras.forecast:
        past = Past(bench.store, environment.fingerprint)
        fork_s = announce(past, plan, track, bench.observer)
    now = datetime.now(UTC)
    label = "+".join(plan.challenges) or "ingest"
    folder = bench.store.create(bench.store.new_id(label, now))
    record = RunRecord(
        record_version=RECORD_VERSION,
        id=folder.path.name,
        created=now.isoformat(timespec="seconds"),
        status="running",
        plan=plan,
        environment=environment,
        indices={
            subject.spec.name: subject.index_facts for subject in subjects if subject.index_facts is not None
        },
        builds={subject.spec.name: subject.builds for subject in subjects if len(subject.builds) > 1},
        caveats=(
            *remarks,
            *host_caveats(environment),
            *plan_caveats(plan),
            *engine_caveats(subjects, track),
            *pin_caveats(plan, cores_of(allowed_cpus())),
            *target_caveats(
                [subject for subject in subjects if isinstance(subject, TargetSubject)], plan.corpus.documents
            ),
        ),
        calibration=extras.calibration,
        tags=extras.tags,
    )
    with ExitStack() as held:
        held.enter_context(folder.writing())
        folder.save(record)
        run = OpenRun(bench, folder, record, track, subjects, fork_s=fork_s)
        run.timings["prepare-s"] = prepare_s
        run.hold(held.pop_all())
    return run


def resume_run(
    bench: Bench,
    folder: RunFolder,
    track: Track,
    *,
    budget_s: float | None = None,
) -> RunRecord:
    """Run the forks that a record is missing; none if it ended early by its own rule.

    If it was interrupted before its answers were known, they are asked.
    `budget_s` is for these forks, instead of what its rule leaves; None for that.

    Raises:
        NotResumable: If what is measured, or where, has changed.
        BenchctlError: If `start_run` would raise one.
    """
    record = folder.load()
    if record.stopped and not record.missing():
        bench.observer.note(f"run {record.id} is complete: it {record.stopped}; nothing is measured")
        return record
    run = reopen_run(bench, folder, track)
    if budget_s is not None:
        rule = record.plan.stop or StopSpec(least_forks=FORKS_FOR_VERDICT)
        rule = msgspec.structs.replace(rule, budget_s=seconds_spent(record) + budget_s, least_blocks=1)
        run.extend(msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, stop=rule)))
    return _measured(bench, run)


@dataclass(frozen=True)
class More:
    """Forks that what is finished gets beyond those that it has."""

    forks: int | None = None  # of every side; the most of a side with `until_decided`; None for as usual
    budget_s: float | None = None  # for these forks; None for no limit
    until_decided: bool = False

    def further(self, have: int) -> int:
        """Return how many are added to so many; where something else ends them, as many as there may be."""
        if self.forks is not None:
            return self.forks
        return max(1, MOST_FORKS - have) if self.until_decided or self.budget_s is not None else DEFAULT_FORKS


def add_blocks(bench: Bench, folder: RunFolder, track: Track, more: More) -> RunRecord:
    """Add blocks to a finished run if nothing has changed; see `extended`.

    Raises:
        NotResumable: If what is measured, or where, has changed.
        BenchctlError: If `start_run` would raise one.
    """
    run = reopen_run(bench, folder, track)
    run.extend(extended(run.record, more, reference(folder, bench.home.runs)))
    return _measured(bench, run)


def extended(record: RunRecord, more: More, name: str = "") -> RunRecord:
    """A finished run with further blocks, which counts as a look at its figures; its old rule is over.

    `name` is that of the run on a command line, if it is not its id.

    Raises:
        UsageError: If the run is not finished.
    """
    if record.unfinished:
        raise UsageError(
            f"run {record.id} is not finished ({record.unfinished})",
            hint=f"resume with: benchctl resume {name or record.id}",
        )
    rule = record.plan.stop or StopSpec(least_forks=FORKS_FOR_VERDICT)
    looks = None if record.looks is None or rule.decided else record.looks + 1
    first = 1 + max(record.own_blocks, default=-1)
    # Skip numbers that belong to forks for evidence.
    free = (block for block in itertools.count(first) if not record.plan.is_extra(block))
    added = tuple(itertools.islice(free, more.further(len(record.own_blocks))))
    budget_s = None if more.budget_s is None else round(seconds_spent(record)) + more.budget_s
    rule = msgspec.structs.replace(rule, budget_s=budget_s, decided=more.until_decided)
    is_empty = (rule.budget_s, rule.margin, rule.decided) == (None, None, False)
    longer = record.with_blocks(added, None if is_empty else rule)
    lacking = shortfall(record)
    caveats = tuple(text for text in longer.caveats if text != lacking)
    return msgspec.structs.replace(longer, caveats=caveats, looks=looks)


def reopen_run(bench: Bench, folder: RunFolder, track: Track) -> OpenRun:
    """Prepare an existing run again, so that it can go on.

    Raises:
        NotResumable: If what is measured, or where, has changed.
        BenchctlError: If `open_run` would raise one.
    """
    with ExitStack() as held:
        held.enter_context(folder.writing())
        run = _reopened(bench, folder, track)
        run.hold(held.pop_all())
    return run


def _reopened(bench: Bench, folder: RunFolder, track: Track) -> OpenRun:
    record = folder.load()
    # Cheap checks first: preparing may take long.
    require_unchanged(record, track)
    clean_scratch(bench.home)
    check_files(record.plan, bench.home)
    plan, subjects = prepare_subjects(bench, record.plan, track)
    changes = engine_changes(record, subjects)
    if plan.corpus.digest != record.plan.corpus.digest:
        changes.append(f"corpus was {record.plan.corpus.digest[:12]}, is {plan.corpus.digest[:12]}")
    _refuse_changes(record, changes)
    subjects = started_as_before(record.engines, subjects, bench.observer)
    _, track = with_terms(bench, plan, track, subjects)
    return OpenRun(bench, folder, record, track, subjects)


def require_unchanged(record: RunRecord, track: Track) -> None:
    """Check that host, CPUs and track are those of a run, as far as that shows without preparing anything.

    Raises:
        NotResumable: If one has changed.
    """
    changes = environment_changes(record.environment, describe_host())
    changes += pin_changes(record.plan, allowed_cpus())
    _refuse_changes(record, [*changes, *track_changes(record.plan, track)])


def _refuse_changes(record: RunRecord, changes: Sequence[str]) -> None:
    if changes:
        raise NotResumable(
            f"run {record.id} cannot be resumed, because this has changed: " + "; ".join(changes),
            hint="start a new run; the finished forks of the old one stay readable",
        )


def clean_scratch(home: Home) -> None:
    """Remove leftovers of a killed benchctl; call it with the host lock held."""
    for leftover in home.scratch.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)


# Terms of the index as changing values: asked once, kept beside the prepared index, and with the run.

_PAGE: Final = 10_000
_MOST_TERMS: Final = 1_000_000

_Counts = dict[str, list[tuple[Any, int]]]
"""Field -> its terms and how many documents each hits, by term."""


def with_terms(bench: Bench, plan: Plan, track: Track, subjects: Sequence[AnySubject]) -> tuple[Plan, Track]:
    """The plan and its track with the terms that values of kind `terms` take, of the first variant's index.

    Raises:
        UsageError: If there is no index to be asked, or no such term in it.
        BenchctlError: If the index cannot be asked.
    """
    fields = dict.fromkeys(field for _, _, terms in _unasked(track.operations) for field in terms.fields)
    if not fields:
        return plan, track
    if plan.origin == "empty":
        raise UsageError(
            "values of kind 'terms' come from a prepared index, but the challenge creates its own",
            hint="name them in a list",
        )
    bench.observer.stage(f"terms of {', '.join(fields)}")
    counts = _counts(bench, plan, track, subjects[0], list(fields))
    drawn = {
        (operation, name): _drawn(terms, counts, plan, f"{operation} {name}")
        for operation, name, terms in _unasked(track.operations)
    }

    def filled(operations: Mapping[str, Any]) -> dict[str, Any]:
        by_name = dict(operations)
        for (operation, name), items in drawn.items():
            if operation in by_name:
                changed = by_name[operation]
                values = {**changed.values, name: msgspec.structs.replace(changed.values[name], items=items)}
                by_name[operation] = msgspec.structs.replace(changed, values=values)
        return by_name

    def with_items(challenges: Sequence[Challenge]) -> tuple[Challenge, ...]:
        return tuple(msgspec.structs.replace(one, operations=filled(one.operations)) for one in challenges)

    filled_plan = msgspec.structs.replace(
        plan, schedules=with_items(plan.schedules), warmup_challenges=with_items(plan.warmup_challenges)
    )
    return filled_plan, msgspec.structs.replace(track, operations=filled(track.operations))


def _unasked(operations: Mapping[str, TrackOperation]) -> Iterator[tuple[str, str, Terms]]:
    for operation, content in operations.items():
        for name, source in getattr(content, "values", {}).items():
            if isinstance(source, Terms) and not source.items:
                yield operation, name, source


def _drawn(source: Terms, counts: _Counts, plan: Plan, key: str) -> tuple[Any, ...]:
    documents = plan.corpus.documents if source.below < 1 else 1
    least, below = source.least * documents, source.below * documents
    terms = [(name, term, count) for name in source.fields for term, count in counts[name]]
    orders: defaultdict[int, list[Any]] = defaultdict(list)
    for name, term, count in terms:
        if least <= count < below:
            item, order = (term, 0) if isinstance(source.field, str) else ({name: term}, len(str(count)))
            orders[order].append(item)
    if not orders:
        most = max((count for _, _, count in terms), default=0)
        raise UsageError(
            f"no term of {' or '.join(source.fields)} hits from {least:g} to {below:g} documents ({key}): of "
            f"{len(terms):,}, none hits more than {most:,}",
            hint="change least and below, or --docs",
        )
    # By the documents, not the run: nights, and runs that are compared, ask for the same.
    draw = random.Random(f"{plan.corpus.seed} {key}")  # noqa: S311 - has to be repeatable
    size = min(source.size, POOL_LIMIT // len(orders))
    samples = [draw.sample(group, min(size, len(group))) for _, group in sorted(orders.items())]
    most = max(map(len, samples))
    # In turn, so that orders come equally often however values are picked.
    return tuple(chain.from_iterable(zip(*(islice(cycle(group), most) for group in samples), strict=True)))


def _counts(bench: Bench, plan: Plan, track: Track, subject: AnySubject, fields: Sequence[str]) -> _Counts:
    target = default_target(plan, track)
    if isinstance(subject, TargetSubject):
        with SearchClient(subject.facts.engine, subject.address.endpoint) as client:
            return {field: _asked(client, target, field) for field in fields}
    if not isinstance(subject, Subject) or subject.index is None:
        raise UsageError("values of kind 'terms' come from a prepared index", hint="name them in a list")
    path = subject.index.root / "terms.json"
    counts: _Counts = {}
    with suppress(msgspec.DecodeError), disk_errors(f"read {path}"):
        counts = msgspec.json.decode(read_file(path), type=_Counts) if path.exists() else {}
    missing = [field for field in fields if field not in counts]
    if missing:
        with (
            subject.workspace(bench.home, "terms") as workspace,
            subject.start(Start(workspace, workspace / "boot", bench.home, plan.heap_mb, target)) as node,
        ):
            counts |= {field: _asked(node.client, target, field) for field in missing}
            node.stop(at_once=True)
        with disk_errors(f"write {path}"):
            path.write_bytes(msgspec.json.encode(counts))
    return counts


class _Key(msgspec.Struct):
    term: Any


class _Bucket(msgspec.Struct):
    key: _Key
    doc_count: int


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket]
    after_key: dict[str, Any] | None = None


class _Page(msgspec.Struct):
    aggregations: dict[str, _Buckets]


def _asked(client: SearchClient, target: str, field: str) -> list[tuple[Any, int]]:
    """Yield the terms of a field, in their order, page by page."""
    terms: list[tuple[Any, int]] = []
    composite: dict[str, Any] = {"sources": [{"term": {"terms": {"field": field}}}], "size": _PAGE}
    while True:
        body = {"size": 0, "aggs": {"all": {"composite": composite}}}
        try:
            answer = client.request("POST", f"/{target}/_search", body=body)
            page = msgspec.convert(answer, _Page).aggregations["all"]
        except (msgspec.ValidationError, KeyError) as err:
            raise BenchctlError(f"the terms of {field} do not have the expected form: {err}") from err
        except NodeRequestError as err:
            raise BenchctlError(
                f"the terms of {field} cannot be read: {err.reason}",
                hint="name a field with doc values, such as a keyword or a number",
            ) from err
        terms += [(bucket.key.term, bucket.doc_count) for bucket in page.buckets]
        if page.after_key is None or len(page.buckets) < _PAGE:
            return terms
        if len(terms) >= _MOST_TERMS:
            raise UsageError(f"{field} has more than {_MOST_TERMS:,} terms", hint="name another field")
        composite = {**composite, "after": page.after_key}

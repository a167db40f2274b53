"""Forecast of a run before it starts: its steps, how it ends, and seconds by its last run or its parts."""

import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from benchctl.corpus.generated import corpus_name, load_corpus
from benchctl.corpus.source import is_elsewhere
from benchctl.engine.distribution import cached_archive, installed
from benchctl.engine.variant import base_variant, text_of
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.report.numbers import counted, duration
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, VariantSpec, boots
from benchctl.results.store import RunStore
from benchctl.run.bench import Observer
from benchctl.run.documents import FileOptions, is_bulk, is_generated, needs_documents
from benchctl.run.prepare import index_keys
from benchctl.run.study import stop_text
from benchctl.track.model import Task, Track, TrackOperation

# Reading them delays the start, by about 2 ms each.
_MOST_RECORDS = 100
_MOST_NAMED = 5
_SHOWN_BYTES = 5e7

# Seconds, measured on two cores: fetching and unpacking; an index without its documents, with its answers.
_ENGINE_S = 5.0
_INDEX_S = 20.0

FORK_S: Final = 3.0
"""Of a fork without earlier ones: copying the index, writing the samples."""
BOOT_S: Final = 8.0
"""Of the same, for every node: its start, its calming down, its stop."""
MICRO_S: Final = 5.0
"""Of a microbenchmark: a JVM, its start, and some seconds of iterations."""
DOCUMENTS_PER_S: Final = 12_000.0
"""Of big5 on two cores, refresh, force merge and flush included."""
# A request takes from 2 ms (range) to 40 ms (composite aggregation) on a million documents.
_LEAST_REQUEST_S = 0.001
_REQUEST_S_PER_MILLION_DOCUMENTS = 0.01
# Of a search for a red-line: six of `range` on a million documents took 21 on average.
_REDLINE_STEPS = 20


@dataclass(frozen=True)
class Ahead:
    """A run that is to be made."""

    plan: Plan
    track: Track
    files: FileOptions

    @property
    def is_generated(self) -> bool:
        """Return whether benchctl generates the documents; no file has been read yet."""
        none_of_files = not self.track.corpora and self.files.local is None
        return is_generated(self.plan) and none_of_files and self.plan.micro is None


def preparation(runs: Sequence[Ahead], home: Home, past: "Past") -> list[str]:
    """Return the steps of runs and roughly what they take, for readers; the home is only looked at."""
    steps: list[str] = []
    seconds = 0.0
    specs = [
        (run, spec)
        for run in runs
        for spec in run.plan.variants
        if spec.target is None and run.plan.micro is None
    ]
    engines = {
        (spec.engine, spec.version, spec.distribution): spec for _, spec in specs if spec.place is None
    }
    for names, spec in engines.items():
        if cached_archive(home, spec) is None:
            steps.append(" ".join(("fetch", *filter(None, names))))
            seconds += _ENGINE_S
    corpora = dict.fromkeys(
        (run.plan.corpus.generator, run.plan.of(spec).corpus.documents, run.plan.corpus.seed)
        for run in runs
        for spec in run.plan.variants
        if run.is_generated and (run.plan.origin == "empty" or needs_documents(run.plan.variants))
    )
    for generator, documents, seed in corpora:
        if not (home.root / "corpora" / corpus_name(generator, documents, seed)).exists():
            steps.append(f"generate {documents:,} documents")
    files = {file.path: run for run in runs for file in run.plan.corpus.files if is_elsewhere(file)}
    steps += [f"fetch {path}{_size_text(path, run.track)}" for path, run in files.items()]
    missing = dict(build for run, spec in specs for build in _missing(run, spec, home).items())
    for title, times in Counter(title for title, _ in missing.values()).items():
        steps.append(f"index {title}{f', {times} times' if times > 1 else ''}")
    seconds += sum(_INDEX_S + documents / DOCUMENTS_PER_S for _, documents in missing.values())
    measured, unknown = 0, ""
    for run in runs:
        block_s = past.block_s(run.plan, run.track)
        forks = _forks(run.plan, block_s)
        measured += forks * len(run.plan.variants)
        seconds += forks * (block_s or 0.0)
        unknown = unknown or (uncounted(run.plan, run.track) if block_s is None else "")
    about = "about " if any(run.plan.by_time for run in runs) else ""
    about = "up to " if unknown or any(run.plan.stop and run.plan.stop.decided for run in runs) else about
    if measured:
        steps.append(f"measure {about}{counted(measured, 'fork')}")
    # Without forks or builds to be made, all builds are there.
    return [
        f"steps: {'; '.join(steps) or 'none: all index builds are in the cache'}",
        f"no estimate: {unknown}" if unknown else f"total: about {duration(seconds)}, downloads not counted",
    ]


def _forks(plan: Plan, block_s: float | None) -> int:
    """Return the maximum forks of every variant, those for evidence included: with a budget, what fits."""
    forks = plan.forks
    if plan.stop is not None and plan.stop.budget_s is not None and block_s is not None:
        forks = min(forks, plan.stop.blocks_in(block_s, plan.index_builds))
    return forks + len(plan.extra_blocks)


def _missing(run: Ahead, spec: VariantSpec, home: Home) -> dict[object, tuple[str, int]]:
    """Return what is known of every build of a variant that may have to be made -> its title and documents.

    Those of engines or documents that are not there yet, or that only a run can tell, count as missing.
    """
    if run.plan.origin != "prepared":
        return {}
    plan, builder = run.plan.of(spec), base_variant(spec.index_from) if spec.index_from else spec
    settings = tuple(f"{name}={text_of(one)}" for name, one in spec.of_index.items())
    having = f" with {', '.join(settings)}" if settings else ""
    title = f"on {builder.engine} {builder.version}{having}", plan.corpus.documents
    folder = (
        home.root / "corpora" / corpus_name(plan.corpus.generator, plan.corpus.documents, plan.corpus.seed)
    )
    installation = installed(home, builder)
    with suppress(BenchctlError):
        digest = load_corpus(folder).digest if run.is_generated and folder.exists() else plan.corpus.digest
        if digest and installation is not None:
            corpus = msgspec.structs.replace(plan.corpus, digest=digest)
            keys = index_keys(installation, spec, msgspec.structs.replace(plan, corpus=corpus), run.track)
            names = [key.folder_name for key in keys]
            return {name: title for name in names if not (home.root / "indices" / name).exists()}
    alike = (title, builder.distribution, builder.plugins, run.track.digest, plan.corpus, plan.segments)
    senders = (plan.ingest_clients, plan.ingest_client)
    return {msgspec.json.encode((alike, senders, build)): title for build in range(plan.index_builds)}


def uncounted(plan: Plan, track: Track) -> str:
    """Return why nothing tells how long a fork takes, for readers; empty if its tasks do."""
    challenges = (*plan.all_warmups, *plan.schedules)
    operations = track.with_challenges(*challenges).operations
    for challenge in challenges:
        for step in challenge.steps:
            enders = [task for task in (challenge.schedule[place] for place in step) if task.completes]
            if enders and all(_is_uncounted(task, operations[task.operation]) for task in enders):
                names = " or ".join(task.label for task in enders)
                return f"challenge {challenge.name} lasts until {names} ends, without a count or period"
    return ""


def _is_uncounted(task: Task, operation: TrackOperation) -> bool:
    """Return whether only the operation knows when a task ends; bulk requests end with the documents."""
    return operation.ends and task.iterations is None and task.time_period is None and not is_bulk(operation)


def rough_fork_s(plan: Plan, track: Track, spec: VariantSpec) -> float | None:
    """Return the seconds of a fork that nothing like it was made of, from its parts; None if uncounted."""
    if plan.micro is not None:
        return MICRO_S * sum(len(schedule.schedule) for schedule in plan.schedules)
    if uncounted(plan, track):
        return None
    documents = plan.of(spec).corpus.documents
    operations = track.with_challenges(*plan.all_warmups, *plan.schedules).operations
    starts = boots(plan)
    challenges = [one for steps in starts for one in plan.warmups_of(spec.name, steps[0][0][0])]
    seconds = FORK_S + len(starts) * BOOT_S
    for challenge in (*challenges, *plan.schedules):
        for step in challenge.steps:
            tasks = [(task, operations[task.operation]) for task in (challenge.schedule[at] for at in step)]
            ending = [pair for pair in tasks if pair[0].completes and not _is_uncounted(*pair)]
            seconds_of = [(pair[0].planned_s is None, _task_s(*pair, documents)) for pair in ending or tasks]
            # What has a period or a rate passes beside the rest, which shares the node.
            paced = [task_s for asks, task_s in seconds_of if not asks]
            busy_s = sum(task_s for asks, task_s in seconds_of if asks)
            together_s = max([*paced, busy_s])
            seconds += min(task_s for _, task_s in seconds_of) if ending else together_s
    if plan.redline is not None:
        search = plan.redline
        seconds += search.warm_up_s + _REDLINE_STEPS * (search.settle_s + search.step_s)
    return seconds


def _task_s(task: Task, operation: TrackOperation, documents: int) -> float:
    """Return roughly the seconds of a task that nothing else ends."""
    if task.iterations is None and task.time_period is None and is_bulk(operation):
        paced_per_s = DOCUMENTS_PER_S if task.rate_per_s is None else task.rate_per_s * task.per_request
        return documents / min(DOCUMENTS_PER_S, paced_per_s)
    if task.planned_s is not None:
        return task.planned_s
    request_s = max(_LEAST_REQUEST_S, _REQUEST_S_PER_MILLION_DOCUMENTS * documents / 1e6)
    measured_s = max((task.iterations or 1) * request_s, task.least_time or 0.0)
    return (task.warmup_iterations or 0) * request_s + measured_s


def _size_text(path: str, track: Track) -> str:
    """Return the size of a file as it is fetched, for readers; empty if unknown."""
    files = (file for corpus in track.corpora for file in corpus.documents)
    size = next((file.published_bytes for file in files if path.endswith(f"/{file.source_file}")), None)
    return f" ({size / 1e9:.1f} GB)" if size and size >= _SHOWN_BYTES else ""


def rate_lines(plan: Plan) -> list[str]:
    """Return which tasks are throttled, the longest first, and how to change that, for readers."""
    paced = [
        (None if challenge.enders(place) else task.planned_s, task)
        for challenge in plan.schedules
        for place, task in enumerate(challenge.schedule)
        if task.rate_per_s is not None and plan.redline is None
    ]
    if not paced:
        return []
    paced.sort(key=lambda pair: -(pair[0] or 0.0))
    texts = [
        f"{task.label} to {task.rate_per_s:,g} requests/s"
        + ("" if planned_s is None else f" ({duration(planned_s)} a fork)")
        for planned_s, task in paced[:_MOST_NAMED]
    ]
    texts += [f"{len(paced) - _MOST_NAMED} more tasks"] if len(paced) > _MOST_NAMED else []
    return [f"throttled: {', '.join(texts)}; as fast as nodes answer instead: --param target_throughput=0"]


class Past:
    """The last run of a plan on a host: what its forks took, and what it could detect.

    Without one, seconds are put together from parts: so much for a fork, every node start and every request.
    """

    def __init__(self, store: RunStore, fingerprint: str) -> None:
        """Look at the newest runs of a store, made on the host with this fingerprint."""
        self._store = store
        self._fingerprint = fingerprint
        self._last: dict[str, RunRecord | None] = {}

    def last(self, plan: Plan) -> RunRecord | None:
        """Return the newest run that measured the same with the same variants; None without one."""
        key = plan.digest
        if key not in self._last:
            alike = (
                record
                for record in islice(self._store.newest(), _MOST_RECORDS)
                if record.environment.fingerprint == self._fingerprint
                and _same(plan, record.plan)
                and all(record.compared(spec.name) for spec in plan.variants)
            )
            self._last[key] = next(alike, None)
        return self._last[key]

    def fork_s(self, plan: Plan, track: Track, variant: VariantSpec) -> float | None:
        """Return the seconds of a fork of a variant; None if nothing tells them."""
        last = self.last(plan)
        if last is not None:
            return statistics.median(fork.wall_s for fork in last.compared(variant.name))
        return rough_fork_s(plan, track, variant)

    def block_s(self, plan: Plan, track: Track) -> float | None:
        """Return the seconds of one fork of every variant; None if nothing tells them."""
        seconds = [self.fork_s(plan, track, spec) for spec in plan.variants]
        return None if None in seconds else sum(filter(None, seconds))


# What of a plan decides how much forks differ and how long they take; seed and forks are not in it, nor is
# the digest of the documents, which is not known before they are made.
_SAME = (
    "variants", "track", "schedules", "warmup_challenges", "pollution", "restart", "heap_mb", "segments",
    "page_cache", "workers", "redline", "pin", "load_hosts", "together",
)  # fmt: skip


def _same(plan: Plan, other: Plan) -> bool:
    corpora = [(one.corpus.documents, one.corpus.seed, one.evidence_in(0)) for one in (plan, other)]
    return corpora[0] == corpora[1] and all(getattr(plan, name) == getattr(other, name) for name in _SAME)


def announce(past: Past, plan: Plan, track: Track, observer: Observer) -> float | None:
    """Announce a run; returns the expected seconds of a fork, on average over the variants, if known."""
    # Imports scipy for a sixth of a second, too long for `benchctl run --help`.
    from benchctl.report.planning import forecast_lines  # noqa: PLC0415 - see above
    from benchctl.stats.analyse import analyse_run  # noqa: PLC0415 - see above

    last, block_s = past.last(plan), past.block_s(plan, track)
    analysis = None if last is None else analyse_run(last)
    unknown = f"no estimate: {uncounted(plan, track)}" if block_s is None else ""
    for line in filter(None, (stop_text(plan), *forecast_lines(analysis, plan, block_s), unknown)):
        observer.note(line)
    return None if block_s is None else block_s / len(plan.variants)

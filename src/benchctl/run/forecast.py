"""Announcement of a run before it starts: how it will end, and what to expect from earlier runs."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

import msgspec

from benchctl.corpus.generated import corpus_name, load_corpus, needed_bytes
from benchctl.corpus.source import is_elsewhere
from benchctl.engine.distribution import cached_archive, installed
from benchctl.engine.prepared_index import BYTES_PER_DOCUMENT, BYTES_PER_DOCUMENT_AT_REST, known_builds
from benchctl.engine.variant import base_variant
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.report.numbers import counted, duration
from benchctl.results.model import IndexFacts, RunRecord
from benchctl.results.plan import CorpusFile, EngineName, Plan, VariantSpec, boots
from benchctl.results.store import RunStore
from benchctl.run.bench import Observer
from benchctl.run.documents import FileOptions, documents_sent, is_bulk, is_generated, needs_documents
from benchctl.run.prepare import index_keys
from benchctl.run.stopping import stop_text
from benchctl.track.model import Task, Track

# Reading them delays the start, by about 2 ms each.
_MOST_RECORDS = 100


# Bytes: an archive from Maven Central, unpacked with its class-data-sharing archive, and a Java runtime.
# Engine and named distribution -> size of the archive and unpacked. Roughly so for the makers' own.
_BYTES = {
    ("elasticsearch", None): (81e6, 175e6),
    ("opensearch", None): (46e6, 125e6),
    ("elasticsearch", "official"): (6e8, 12e8),
    ("opensearch", "official"): (8e8, 12e8),
    ("opensearch", "min"): (25e7, 45e7),
}
_RUNTIME_BYTES = 120e6
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
REQUEST_S: Final = 0.001
"""The least that a request takes."""
REQUEST_S_PER_MILLION_DOCUMENTS: Final = 0.01
"""The rule: between a range (2 ms) and a composite aggregation (40 ms) of a million documents."""
DOCUMENTS_PER_S: Final = 12_000.0
"""Of big5 on two cores, refresh, force merge and flush included, where no index was built yet."""
_SHARE_THAT_TELLS = 0.1
_REDLINE_STEPS = 20
"""Of a search: six of `range` on a million documents took 21 on average."""


class Indexing:
    """Indexing speed of engines on this host, from earlier builds of prepared indices.

    All of their documents over all of their seconds, refresh, force merge and flush included: of the same
    engine and track, else of the engine; `DOCUMENTS_PER_S` where none is a tenth as large. Small ones are
    over before a node is warm.
    """

    def __init__(self, builds: Iterable[tuple[str, IndexFacts]] = ()) -> None:
        self._built = [
            (f"{name.partition('-')[0]}-", name.rpartition(f"-{facts.documents}-")[0], facts)
            for name, facts in builds
        ]

    def seconds(self, engine: str, track: str, documents: int) -> float:
        """Return the seconds that this many documents of a track take."""
        own = [
            (name, facts)
            for begin, name, facts in self._built
            if begin == f"{engine}-" and facts.documents >= documents * _SHARE_THAT_TELLS
        ]
        alike = [facts for name, facts in own if name.endswith(f"-{track}")] or [facts for _, facts in own]
        built = sum(facts.documents for facts in alike)
        reports = [facts.ingest for facts in alike]
        built_s = sum(
            report.ingest_s + report.refresh_s + report.force_merge_s + report.flush_s for report in reports
        )
        return documents * (built_s / built if built else 1 / DOCUMENTS_PER_S)


class Steps(msgspec.Struct, frozen=True):
    """Rough durations of preparation and measurement; cached parts are looked up."""

    steps: tuple[str, ...]
    download_bytes: float
    disk_bytes: float
    seconds: float
    untried: tuple[str, ...]  # index settings that only a node can accept or refuse

    def lines(self) -> list[str]:
        """For readers."""
        sizes = ((self.download_bytes, "to download"), (self.disk_bytes, "of disk"))
        size = "".join(f"{amount / 1e9:.1f} GB {what}, " for amount, what in sizes if amount >= _SHOWN_BYTES)
        # Without forks or builds to be made, all builds are there.
        steps = "; ".join(self.steps) or (
            "none: all index builds are in the cache, and are shown again as they were made; another corpus "
            "seed has fresh ones, or delete their directories in indices/ of BENCHCTL_HOME"
        )
        lines = [f"steps: {steps}", f"in all about {size}{duration(self.seconds)}"]
        if self.untried:
            lines.append(f"checked when the index is made: {', '.join(self.untried)}")
        return lines


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


def preparation(runs: Sequence[Ahead], home: Home, past: "Past") -> Steps:
    """The steps of runs, and roughly what they take; nothing is done, and the home is only looked at."""
    steps: list[str] = []
    download = disk = seconds = 0.0
    engines = {
        (spec.engine, spec.version, spec.distribution): spec
        for run in runs
        for spec in run.plan.variants
        if spec.target is None and run.plan.micro is None
    }
    for spec in engines.values():
        if spec.place is None and cached_archive(home, spec) is None:
            steps.append(" ".join(filter(None, ("fetch", spec.engine, spec.version, spec.distribution))))
            archive, unpacked = _BYTES[spec.engine, spec.distribution]
            download += archive
            disk += archive + unpacked
            seconds += _ENGINE_S
    if engines and not any((home.root / "jdks").glob("*")):
        disk += _RUNTIME_BYTES
    corpora = dict.fromkeys(
        (run.plan.corpus.generator, run.plan.of(spec).corpus.documents, run.plan.corpus.seed)
        for run in runs
        for spec in run.plan.variants
        if run.is_generated and (run.plan.origin == "empty" or needs_documents(run.plan.variants))
    )
    for generator, documents, seed in corpora:
        if not (home.root / "corpora" / corpus_name(generator, documents, seed)).exists():
            steps.append(f"generate {documents:,} documents")
            disk += needed_bytes(generator, documents)
    fetched = {
        file.path: _published_bytes(file, run.track)
        for run in runs
        for file in run.plan.corpus.files
        if is_elsewhere(file)
    }
    for path, size in fetched.items():
        steps.append(f"fetch {path.rpartition('/')[2]}")
        download += size
        disk += size
    missing = _missing(runs, home)
    counts = Counter(missing)
    sizes = len({documents for _, documents, _ in corpora}) > 1
    for build, times in counts.items():
        of = f"{build.documents:,} documents " if sizes else ""
        having = f" with {', '.join(build.given)}" if build.given else ""
        steps.append(
            f"index {of}on {build.engine} {build.version}{having}{f', {times} times' if times > 1 else ''}"
        )
        disk += build.documents * (BYTES_PER_DOCUMENT + (times - 1) * BYTES_PER_DOCUMENT_AT_REST)
        seconds += times * (_INDEX_S + past.indexing.seconds(build.engine, build.track, build.documents))
    measured = 0
    about = "about " if any(run.plan.by_time for run in runs) else ""
    about = "up to " if any(run.plan.stop and run.plan.stop.decided for run in runs) else about
    for run in runs:
        plan = run.plan
        block_s = past.block_s(plan, run.track)
        forks = _forks(plan, block_s)
        measured += forks * len(plan.variants)
        seconds += forks * block_s
    if measured:
        steps.append(f"measure {about}{counted(measured, 'fork')}")
    # Of what challenges make, every fork is the first.
    own = (_given(spec) for run in runs if run.plan.origin == "empty" for spec in run.plan.variants)
    untried = dict.fromkeys(given for each in (*(build.given for build in counts), *own) for given in each)
    return Steps(tuple(steps), download, disk, seconds, tuple(untried))


def _forks(plan: Plan, block_s: float) -> int:
    """Return the maximum forks of every variant, those for evidence included: with a budget, what fits."""
    has_budget = plan.stop is not None and plan.stop.budget_s is not None
    forks = (
        min(plan.forks, plan.stop.blocks_in(block_s, plan.index_builds))
        if plan.stop and has_budget
        else plan.forks
    )
    return forks + (0 if plan.evidence is None else plan.evidence.extra_forks)


def _given(spec: VariantSpec) -> tuple[str, ...]:
    """Index settings, as given."""
    return tuple(f"index:{name.removeprefix('index.')}={one}" for name, one in spec.index_settings.items())


@dataclass(frozen=True)
class _Build:
    """A prepared index to be built; equal ones differ by their number alone."""

    engine: EngineName
    version: str
    track: str
    documents: int
    given: tuple[str, ...]


def _missing(runs: Iterable[Ahead], home: Home) -> list[_Build]:
    """The builds of prepared indices that are not there: each once, whichever variants share it."""
    kept = {name for name, _ in known_builds(home)}
    builds: dict[object, _Build | None] = {}
    for run in runs:
        plan, track = run.plan, run.track
        for spec in plan.variants if plan.origin == "prepared" else ():
            if spec.target is not None:
                continue
            own = plan.of(spec)
            build = _Build(spec.engine, spec.version, track.name, own.corpus.documents, _given(spec))
            names = _folder_names(spec, own, track, home, generated=run.is_generated)
            for number in range(plan.index_builds):
                key = (
                    build, number, track.digest, own.corpus.seed, plan.segments, plan.ingest_clients,
                    plan.ingest_client, spec.distribution, spec.plugins,
                )  # fmt: skip
                if key in builds:
                    continue
                name = next((each for each in kept if fnmatchcase(each, names[number])), None)
                builds[key] = build if name is None else None
                # Of those that are known by no more than their names, none counts twice.
                kept.discard(name or "")
    return [build for build in builds.values() if build is not None]


def _folder_names(spec: VariantSpec, plan: Plan, track: Track, home: Home, *, generated: bool) -> list[str]:
    """The folder of each build, none if it cannot be there yet; else a pattern of them."""
    if spec.index_from is not None:
        spec = base_variant(spec.index_from)
    is_plain = spec.place is None and not spec.plugins
    if is_plain and (generated or plan.corpus.digest):
        made = plan.corpus
        folder = home.root / "corpora" / corpus_name(made.generator, made.documents, made.seed)
        installation = installed(home, spec) if folder.exists() or not generated else None
        if installation is None:
            return [""] * plan.index_builds
        with suppress(BenchctlError):
            digest = load_corpus(folder).digest if generated else made.digest
            corpus = msgspec.structs.replace(made, digest=digest)
            own = msgspec.structs.replace(plan, corpus=corpus)
            return [key.folder_name for key in index_keys(installation, spec, own, track)]
    stem = f"{spec.engine}-{spec.version}-{track.name}-{plan.corpus.documents}-{'[0-9a-f]' * 12}"
    return [stem + (f"-build-{number}" if number else "") for number in range(plan.index_builds)]


def rough_fork_s(plan: Plan, track: Track, spec: VariantSpec, indexing: Indexing) -> float:
    """Seconds of a fork that nothing like it was made of, from its parts."""
    if plan.micro is not None:
        return MICRO_S * sum(len(schedule.schedule) for schedule in plan.schedules)
    plan = plan.of(spec)
    operations = track.with_challenges(*plan.all_warmups, *plan.schedules).operations
    starts = boots(plan)
    warmups = [
        task
        for steps in starts
        for challenge in plan.warmups_of(spec.name, steps[0][0][0])
        for task in challenge.schedule
    ]
    seconds = FORK_S + len(starts) * BOOT_S
    request_s = max(REQUEST_S, REQUEST_S_PER_MILLION_DOCUMENTS * plan.corpus.documents / 1e6)
    for task in [*warmups, *(task for schedule in plan.schedules for task in schedule.schedule)]:
        operation = operations[task.operation]
        if task.iterations is None and task.time_period is None and is_bulk(operation):
            documents = documents_sent(operation, track, plan.corpus.documents)
            own_s = 0.0 if task.rate_per_s is None else documents / (task.rate_per_s * task.per_request)
            seconds += max(own_s, indexing.seconds(spec.engine, track.name, documents))
        else:
            seconds += task_s(task, request_s)
    if plan.redline is not None:
        search = plan.redline
        seconds += search.warm_up_s + _REDLINE_STEPS * (search.settle_s + search.step_s)
    return seconds


def task_s(task: Task, request_s: float) -> float:
    """Seconds of a task: as planned, or as long as its requests take."""
    if task.planned_s is not None:
        return task.planned_s
    measured_s = max((task.iterations or 1) * request_s, task.least_time or 0.0)
    return (task.warmup_iterations or 0) * request_s + measured_s


_MOST_LINES = 5


def document_lines(files: Sequence[CorpusFile], track: Track) -> list[str]:
    """Return what is known of files of documents before a run reads or fetches them, for readers."""
    lines = []
    for file in files:
        name = file.path.rpartition("/")[2]
        count = counted(file.held, "document") if file.held else "documents not counted"
        count += " by the track" if file.held and not file.sha256 else ""
        count += f", {file.documents:,} of them used" if 0 < file.documents < file.held else ""
        if is_elsewhere(file):
            size = _published_bytes(file, track)
            of_size = f" ({size / 1e9:.1f} GB)" if size >= _SHOWN_BYTES else ""
            count += f", to be fetched from {file.path.removesuffix(name)}{of_size}"
        lines.append(f"{name}: {count}")
    return _few(lines, "files")


def _published_bytes(file: CorpusFile, track: Track) -> int:
    """Size of a file as it is fetched; 0 if unknown."""
    return next(
        (
            documents.published_bytes or 0
            for corpus in track.corpora
            for documents in corpus.documents
            if corpus.name == file.corpus and file.path.endswith(f"/{documents.source_file}")
        ),
        0,
    )


def rate_lines(plan: Plan) -> list[str]:
    """Return which tasks are throttled, for how long and how to change that, and requests of many clients."""
    if plan.redline is not None:
        return []
    tasks = [task for challenge in plan.schedules for task in challenge.schedule]
    paced = [task for task in tasks if task.rate_per_s is not None]
    paced.sort(key=lambda task: -(task.planned_s or 0.0))
    lines = _few(
        [
            f"{task.label}: throttled to {task.rate_per_s:,g} requests/s"
            + ("" if task.planned_s is None else f", {duration(task.planned_s)} a fork")
            for task in paced
        ],
        "tasks",
    )
    lines += ["as fast as nodes answer instead: --param target_throughput=0"] if paced else []
    shared = [
        f"{task.label}: {task.clients:,} clients x {task.iterations:,} iterations = "
        f"{task.clients * task.iterations:,} requests"
        for task in tasks
        if task.clients > 1 and task.iterations is not None
    ]
    return lines + _few(shared, "tasks")


def _few(lines: Sequence[str], what: str) -> list[str]:
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"and {more} more {what}"] if more > 0 else [])]


class Past:
    """The last run of a plan on a host: what its forks took, and what it could detect.

    Without one, seconds are put together from parts: so much for a fork, every node start and every request.
    """

    def __init__(self, store: RunStore, fingerprint: str, home: Home) -> None:
        """Look at the newest runs of a store, made on the host with this fingerprint."""
        self._store = store
        self._fingerprint = fingerprint
        self._last: dict[str, RunRecord | None] = {}
        self.indexing = Indexing(known_builds(home))

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

    def fork_s(self, plan: Plan, track: Track, variant: VariantSpec) -> float:
        """Return the seconds of a fork of a variant."""
        last = self.last(plan)
        if last is not None:
            return statistics.median(fork.wall_s for fork in last.compared(variant.name))
        return rough_fork_s(plan, track, variant, self.indexing)

    def block_s(self, plan: Plan, track: Track) -> float:
        """Return the seconds of one fork of every variant."""
        return sum(self.fork_s(plan, track, spec) for spec in plan.variants)


# What of a plan decides how much forks differ and how long they take; seed and forks are not in it, nor is
# the digest of the documents, which is not known before they are made.
_SAME = (
    "variants", "track", "schedules", "warmup_challenges", "pollution", "restart", "heap_mb", "segments",
    "page_cache", "workers", "redline", "pin", "load_hosts", "together",
)  # fmt: skip


def _same(plan: Plan, other: Plan) -> bool:
    corpora = [(one.corpus.documents, one.corpus.seed, one.evidence_in(0)) for one in (plan, other)]
    return corpora[0] == corpora[1] and all(getattr(plan, name) == getattr(other, name) for name in _SAME)


def announce(past: Past, plan: Plan, track: Track, observer: Observer) -> float:
    """Announce a run; returns the expected seconds of a fork, on average over the variants."""
    # Imports scipy for a sixth of a second, too long for `benchctl run --help`.
    from benchctl.report.planning import forecast_lines  # noqa: PLC0415 - see above
    from benchctl.stats.analyse import analyse_run  # noqa: PLC0415 - see above

    rule = stop_text(plan)
    if rule:
        observer.note(rule)
    last, block_s = past.last(plan), past.block_s(plan, track)
    for line in forecast_lines(None if last is None else analyse_run(last), plan, block_s):
        observer.note(line)
    return block_s / len(plan.variants)

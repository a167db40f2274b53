"""Preparation before the first fork: engines, a Java runtime, the corpus, indices, results of searches."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import psutil

from benchctl.corpus.generated import Corpus, ensure_corpus
from benchctl.disk import RESERVE_BYTES, free_bytes
from benchctl.engine.answers import AnswerBook, compare_answers
from benchctl.engine.client import SearchClient
from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import check_asked, equip
from benchctl.engine.launch import starts_of
from benchctl.engine.node import ARCHIVED, archive_classes
from benchctl.engine.prepared_index import (
    DamagedIndexError,
    IndexKey,
    PreparedIndex,
    bytes_per_document,
    find_prepared,
)
from benchctl.engine.target import explained
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.model import AnswerCheck, EngineFacts
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec
from benchctl.run.bench import Observer, SharedObserver, side_by_side
from benchctl.run.building import Workshop, build_index, logs_kept_of_failure
from benchctl.run.documents import Parcel
from benchctl.run.host import allowed_cpus
from benchctl.run.plan import operations_used
from benchctl.run.session import AnySubject, Start, Subject, TargetSubject
from benchctl.run.work import default_target
from benchctl.slices import hook
from benchctl.track.model import GeneratorName, Track
from benchctl.track.operations import Asking

# The rest is for the JVMs themselves and the page cache.
_MOST_OF_MEMORY = 0.75
_CPUS_A_BUILD = 2
# JVMs with larger heaps have wider pointers, and share no classes with those that have not.
_MOST_COMPRESSED_MB = 31 * 1024
# Of answer books beside prepared indices: raised when the form of answers changes.
BOOK_VERSION = 5


def prepare_corpus(
    home: Home, documents: int, seed: int, observer: Observer, generator: GeneratorName = "big5"
) -> Corpus:
    """Generate a corpus, unless it exists."""
    written = 0

    def progress(new: int) -> None:
        nonlocal written
        written += new
        observer.progress("documents", written, documents)

    observer.stage(f"corpus of {documents:,} {generator} documents")
    return ensure_corpus(home, documents, generator=generator, seed=seed, progress=progress)


Corpora = Callable[[int], tuple[CorpusSpec, Sequence[Parcel]]]
"""Returns a corpus of that many documents, made if it is missing, and what is sent of it."""


def prepare_started(
    specs: Sequence[VariantSpec],
    plan: Plan,
    track: Track,
    corpora: Corpora,
    home: Home,
    observer: SharedObserver,
) -> list[Subject]:
    """Prepare variants whose nodes benchctl starts: engines, runtimes, indices, archives of classes.

    What exists is skipped. Downloads run beside each other and beside the generation of the corpus.

    Raises:
        BenchctlError: If a step fails.
    """
    counts = dict.fromkeys(plan.of(spec).corpus.documents for spec in specs)

    def generate() -> None:
        for count in counts:
            corpora(count)

    def equip_all(alike: Sequence[VariantSpec]) -> None:
        for spec in alike:
            equipment[spec.name] = _equip(spec, plan, home, observer)

    equipment: dict[str, tuple[Subject, Installation]] = {}
    # Variants of one archive download it once.
    by_archive: dict[object, list[VariantSpec]] = {}
    for spec in specs:
        by_archive.setdefault((spec.engine, spec.version, spec.distribution), []).append(spec)
    steps: list[Callable[[], None]] = [
        generate,
        *(partial(equip_all, alike) for alike in by_archive.values()),
    ]
    side_by_side(steps, observer, len(steps))
    equipped = [equipment[spec.name] for spec in specs]
    making = _Builds(plan, track, corpora, home, observer, equipped)
    numbers = range(0 if plan.origin == "empty" else plan.index_builds)
    builds = [making.indices(number) for number in numbers]
    subjects = []
    for place, (subject, _) in enumerate(equipped):
        own = tuple(made[place] for made in builds)
        unarchived = _archived(subject, home, observer)
        subjects.append(
            dataclasses.replace(
                subject, index=own[0] if own else None, more_builds=own[1:], unarchived=unarchived
            )
        )
    return subjects


def _equip(spec: VariantSpec, plan: Plan, home: Home, observer: Observer) -> tuple[Subject, Installation]:
    """Install a variant's engine and runtime; the other installation fills its indices."""
    observer.stage(f"{spec.name}: engine and Java runtime")
    equipment = equip(home, spec, observer.progress)
    installation, jdk = equipment.installation, equipment.jdk
    for lacking in installation.lacking:
        observer.note(f"{spec.name}: {lacking}")
    if plan.evidence_kinds:
        hook("collectors").check_runtime(plan.evidence_kinds, jdk.home)
    starts = starts_of(home, installation) if spec.start == "direct" else None
    return Subject(spec, installation, jdk, None, starts=starts), equipment.builder


@dataclass(frozen=True)
class _Builds:
    """Builder of the variants' indices, one build number after the other.

    So builds of all variants take turns, and what the host does meanwhile meets all of them.
    """

    plan: Plan
    track: Track
    corpora: Corpora
    home: Home
    observer: SharedObserver
    equipped: Sequence[tuple[Subject, Installation]]

    def indices(self, number: int) -> list[PreparedIndex]:
        """Return each variant's build of a number, made unless it exists; several may share one."""
        orders: dict[str, tuple[IndexKey, list[Subject]]] = {}
        wanted = []
        for subject, builder in self.equipped:
            documents = self.corpora(self.plan.of(subject.spec).corpus.documents)[0]
            own = msgspec.structs.replace(self.plan, corpus=documents)
            key = index_keys(builder, subject.spec, own, self.track)[number]
            orders.setdefault(key.folder_name, (key, []))[1].append(subject)
            wanted.append(key.folder_name)
        most = _builds_at_once(self.plan, allowed_cpus(), psutil.virtual_memory().total)
        missing = [key for key, _ in orders.values() if not (self.home.indices / key.folder_name).exists()]
        if len(missing) > 1:
            most = min(most, _with_space(missing, free_bytes(self.home.scratch)))
        beside = min(most, len(missing)) > 1
        steps = [partial(self._index, key, subjects, beside=beside) for key, subjects in orders.values()]
        made = dict(zip(orders, side_by_side(steps, self.observer, most), strict=True))
        return [made[one] for one in wanted]

    def _index(self, key: IndexKey, subjects: Sequence[Subject], *, beside: bool) -> PreparedIndex:
        plan, home = self.plan, self.home
        # Builds that are replicates are built alike: nothing else is done on the first one's node.
        plain = [subject for subject in subjects if plan.index_builds == 1 and _is_plain(subject, key)]
        subject = (*plain, *subjects)[0]
        self.observer.stage(f"{subject.spec.name}: prepared index")
        index = _prepared(home, key, self.observer)
        if index is not None:
            return index
        later = (dataclasses.replace(key, build=build) for build in range(key.build + 1, plan.index_builds))
        several = f", build {key.build + 1} of {plan.index_builds}" if plan.index_builds > 1 else ""
        heap_mb = building_heap_mb(plan)
        shop = Workshop(
            home,
            subject.jdk,
            heap_mb,
            self.corpora(key.corpus.documents)[1],
            self.observer,
            title=f"{key.installation.engine} {key.installation.version}{several}",
            more=sum(not (home.indices / key.folder_name).exists() for key in later),
            beside=beside,
        )
        if plain:
            shop = dataclasses.replace(shop, ask=partial(self._ask, subject, key), starts=subject.starts)
            if subject.starts is not None and heap_mb < _MOST_COMPRESSED_MB:
                archive = subject.starts.archive(key.installation, subject.jdk)
                shop = dataclasses.replace(shop, archive=archive if archive.refusal is None else None)
        return build_index(shop, key)

    def _ask(self, subject: Subject, key: IndexKey, client: SearchClient, root: Path) -> None:
        """Ask the node that filled an index, and keep the answers with it."""
        own = msgspec.structs.replace(self.plan, corpus=key.corpus)
        book = AnswerBook(root / _book_name(subject))
        book.fill(client, operations_used(own, self.track), default_target(own, self.track))


def _is_plain(subject: Subject, key: IndexKey) -> bool:
    """Return whether a variant's measured nodes are set up as the one that fills its index."""
    spec = subject.spec
    changed = spec.jvm_flags or spec.settings or spec.environment
    return not changed and subject.installation == key.installation


def _builds_at_once(plan: Plan, cpus: Sequence[int], memory_bytes: int) -> int:
    """Return how many indices are built at a time: each has two CPUs and its heap.

    Several builds of each are replicates, whose times are compared.
    """
    own = [spec for spec in plan.variants if spec.target is None]
    if plan.index_builds > 1 or not own:
        return 1
    heaps = int(_MOST_OF_MEMORY * memory_bytes / 2**20) // building_heap_mb(plan)
    return max(1, min(len(cpus) // _CPUS_A_BUILD, heaps))


def _with_space(missing: Sequence[IndexKey], free: int) -> int:
    """Return how many indices there is space for at a time; each is checked alone once it is begun."""
    each = max(key.corpus.documents * bytes_per_document(key.corpus) for key in missing)
    return max(1, int((free - RESERVE_BYTES) // max(each, 1)))


def _archived(subject: Subject, home: Home, observer: Observer) -> str:
    """Make the archive of classes, unless it exists, or return why there is none."""
    name, starts = subject.spec.name, subject.starts
    if starts is None:
        return ""
    if starts.archive(subject.installation, subject.jdk).refusal is None:
        observer.stage(f"{name}: making a class-data archive, once")
    unarchived = archive_classes(home, subject.installation, subject.jdk, starts)
    for reason in set(starts.refused.values()):
        observer.note(f"{name}: nodes are started by the engine's script: {reason}")
    return unarchived


def started_alike(subjects: Sequence[Subject], observer: Observer) -> list[Subject]:
    """Return subjects whose nodes all start with an archive of classes, or none: loading differs by it."""
    lacking = {subject.spec.name: subject.unarchived for subject in subjects if subject.unarchived}
    if not lacking:
        return list(subjects)
    for name, reason in lacking.items():
        observer.note(f"{name}: class-data archive skipped: {reason}")
    if others := [
        subject.spec.name for subject in subjects if subject.starts is not None and not subject.unarchived
    ]:
        observer.note(
            f"{', '.join(others)}: started without their class-data archives, too, to be comparable"
        )
    return [subject.without_archive() for subject in subjects]


def started_as_before(
    engines: Sequence[EngineFacts], subjects: Sequence[AnySubject], observer: Observer
) -> list[AnySubject]:
    """Return subjects of a run that goes on, without an archive of classes if its first forks had none."""
    manners = {facts.start for facts in engines}
    if "direct" not in manners or ARCHIVED in manners:
        return list(subjects)
    observer.note("nodes start without class-data archives, as in the run's first forks")
    return [subject.without_archive() if isinstance(subject, Subject) else subject for subject in subjects]


def _prepared(home: Home, key: IndexKey, observer: Observer) -> PreparedIndex | None:
    """The prepared index of a key; None if it is missing or damaged."""
    try:
        return find_prepared(home, key.folder_name)
    except DamagedIndexError as err:
        observer.note(f"{err.message}; it is built again")
        return None


def index_keys(builder: Installation, spec: VariantSpec, plan: Plan, track: Track) -> list[IndexKey]:
    """Return the keys of all builds of a variant's prepared index; the plan's documents must be known."""
    first = IndexKey(
        builder,
        plan.corpus,
        track,
        plan.segments,
        plan.ingest_clients,
        ingest_client=plan.ingest_client,
        index_settings=spec.index_settings,
    )
    return [dataclasses.replace(first, build=build) for build in range(plan.index_builds)]


def check_answers(
    subjects: Sequence[AnySubject],
    plan: Plan,
    track: Track,
    home: Home,
    observer: Observer,
) -> AnswerCheck:
    """Compare the engines' answers to every search; what was not asked yet is, on unmeasured node starts.

    A prepared index is frozen, so its answers are kept beside it. All of its
    builds hold the same documents: the first one answers for them. A running cluster is asked every time.
    """
    operations = operations_used(plan, track)
    books = {}
    for subject in subjects:
        name = subject.spec.name
        book = _book(subject)
        missing = book.missing(operations)
        if missing:
            asked = "1 operation" if len(missing) == 1 else f"{len(missing)} operations"
            observer.stage(f"{name}: asking {asked}, unmeasured")
            if isinstance(subject, Subject):
                _ask_all(subject, missing, book, plan, track, home)
            elif isinstance(subject, TargetSubject):
                address = subject.address
                with (
                    explained(address.name, address.endpoint),
                    SearchClient(subject.facts.engine, address.endpoint) as client,
                ):
                    book.fill(client, missing, default_target(plan, track))
        books[name] = book
    checks = []
    for count in dict.fromkeys(plan.of(subject.spec).corpus.documents for subject in subjects):
        group = [subject for subject in subjects if plan.of(subject.spec).corpus.documents == count]
        own = {subject.spec.name: books[subject.spec.name] for subject in group}
        checks.append(compare_answers(operations, own, group[0].spec.name))
    check = AnswerCheck(
        tuple(operation.name for operation in operations),
        {
            operation.name: {
                name: hits for each in checks for name, hits in each.exact_hits[operation.name].items()
            }
            for operation in operations
        },
        tuple(finding for each in checks for finding in each.findings),
    )
    left_out = plan.polluting & check.refused
    for finding in check.findings:
        if finding.operation not in left_out:
            observer.note(
                f"answers: {finding.operation} on {finding.variant} is {finding.kind}: {finding.detail}"
            )
    if left_out:
        observer.note(
            "left out of the pollution of all variants, since a node refuses them: "
            f"{', '.join(sorted(left_out))}"
        )
    return check


def _book(subject: AnySubject) -> AnswerBook:
    """A variant's earlier answers, if they are still valid: for the same index, on a JVM set up alike."""
    if not isinstance(subject, Subject) or subject.index is None:
        return AnswerBook()
    return AnswerBook(subject.index.root / _book_name(subject))


def _book_name(subject: Subject) -> str:
    spec, installation = subject.spec, subject.installation
    # Of an index of another engine, each of those that read it has answers of its own; a replaced jar has to
    # prove that it answers the same.
    parts = (
        BOOK_VERSION,
        f"{subject.jdk.vendor} {subject.jdk.version}",
        f"{installation.engine} {installation.version}",
        installation.jars,
        spec.jvm_flags,
        spec.settings,
        spec.environment,
    )
    digest = hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:12]
    return f"answers-{digest}.json"


def _ask_all(
    subject: Subject, operations: Iterable[Asking], book: AnswerBook, plan: Plan, track: Track, home: Home
) -> None:
    if subject.index is None:
        raise BenchctlError(f"{subject.spec.name} has no prepared index to ask")
    target = default_target(plan, track)
    with (
        subject.workspace(home, "answers") as workspace,
        logs_kept_of_failure(workspace / "boot", home.logs / f"answers-{subject.spec.name}"),
        # Set up as when measured: a flag or a setting may change the answers.
        subject.start(Start(workspace, workspace / "boot", home, plan.heap_mb, target)) as node,
    ):
        found = len(node.client.segments(target))
        if found != len(subject.index.facts.segments):
            raise BenchctlError(
                f"{subject.spec.name}: a copy of the prepared index has {found} segments, "
                f"{len(subject.index.facts.segments)} were prepared",
                hint=f"delete {subject.index.root}; the next run builds it again",
            )
        book.fill(node.client, operations, target)
        # As in forks: its index is a disposable copy.
        node.stop(at_once=not subject.spec.jvm_flags)


def building_heap_mb(plan: Plan) -> int:
    """Heap of nodes that fill indices, MiB: the plan's, but at most the largest measured one."""
    return min(
        plan.heap_mb, max(spec.heap_mb or plan.heap_mb for spec in plan.variants if spec.target is None)
    )


def check_host(plan: Plan, home: Home) -> None:
    """Check what a plan needs of this host, without downloading or starting anything.

    Raises:
        UsageError: If a heap is too large, the home's path breaks command lines, or there is no such version,
            distribution or Java home.
        BenchctlError: If the Maven repository cannot be reached.
    """
    own = [spec for spec in plan.variants if spec.target is None and plan.micro is None]
    if own:
        check_memory(plan, psutil.virtual_memory().total)
    for spec in own:
        check_asked(home, spec)


def check_memory(plan: Plan, memory_bytes: int) -> None:
    """Check the heaps of every variant; see `check_heap`."""
    for spec in plan.variants:
        if spec.target is None:
            check_heap(spec.heap_mb or plan.heap_mb, memory_bytes)


def check_heap(heap_mb: int, memory_bytes: int) -> None:
    """Refuse a heap that would make the host swap, which would be measured.

    Raises:
        UsageError: If it is more than three quarters of memory.
    """
    most_mb = int(_MOST_OF_MEMORY * memory_bytes / 2**20)
    if heap_mb > most_mb:
        raise UsageError(
            f"a heap of {heap_mb} MB leaves too little of {memory_bytes / 2**30:.1f} GiB of memory",
            hint=f"give at most --heap {most_mb}m, or heap:{most_mb}m to the variant",
        )

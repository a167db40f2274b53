"""The data every fork starts on, and the documents of a run: generated, from files, or none."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from benchctl.corpus.generated import ensure_corpus, open_documents
from benchctl.corpus.indexed import unpacked
from benchctl.corpus.queries import QUERIES
from benchctl.corpus.source import (
    TRIAL_DOCUMENTS,
    Fetch,
    corpus_digest,
    corpus_folder,
    find_documents,
    find_file,
    is_published,
    local_file,
    not_found,
    open_file,
    require_file,
)
from benchctl.corpus.source import names_of as file_names
from benchctl.disk import disk_errors, replacing
from benchctl.engine.declared import places
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.load.work import Source
from benchctl.results.plan import CorpusFile, CorpusSpec, DataOrigin, Plan, VariantSpec
from benchctl.run.bench import Observer
from benchctl.track.library import find_track, track_names
from benchctl.track.model import Challenge, Corpus, Documents, Track, TrackOperation
from benchctl.track.operations.admin import CreateDataStream, CreateIndex, names_of
from benchctl.track.operations.catalogue import Composite, parts_of
from benchctl.track.operations.search import Bulk, BulkVectors, RawRequest

_BULKS = frozenset({"bulk", "bulk-vector-data-set"})
_RESTORE = "restore-snapshot"


def origin_of(track: Track, schedules: Sequence[Challenge], warmups: Sequence[Challenge] = ()) -> DataOrigin:
    """Return whether forks start on prepared data, or on an empty node that the challenge fills.

    `warmups` run on every fresh node before the measured `schedules`.

    Raises:
        UsageError: If a challenge would run before there is any data.
    """
    making = [challenge.name for challenge in schedules if is_filling(track, challenge)]
    if not making:
        return "prepared" if places(track).names else "empty"
    early = schedules[0].name
    if early not in making:
        raise UsageError(
            f"challenge '{early}' comes before '{making[0]}', which makes the data: it would find none",
            hint=f"name '{making[0]}' first, or run '{early}' by itself, on data that benchctl prepares",
        )
    if warmups:
        raise UsageError(
            f"warm-up challenge '{warmups[0].name}' runs on every fresh node first, when '{early}' has not "
            "made its data yet",
            hint="remove --warmup-challenge, or warm up by tasks of the challenge itself",
        )
    return "empty"


def is_filling(track: Track, challenge: Challenge) -> bool:
    """Return whether a challenge makes its data, and starts on an empty node.

    It does when it creates what the track declares, restores a snapshot, or indexes the track's corpora. One
    that only sends generated documents to an index of its own appends to what was prepared, and so does one
    that creates further indices.
    """
    operations = {**track.operations, **challenge.operations}
    declared = places(track).names
    return any(
        _makes_data(operations[task.operation], declared, bool(track.corpora)) for task in challenge.schedule
    )


def needed_corpora(track: Track, schedules: Iterable[Challenge], origin: DataOrigin) -> tuple[Corpus, ...]:
    """The corpora that a run sends: all for prepared data, otherwise those that its tasks ask for."""
    if origin == "prepared":
        return track.corpora
    tasks = [track.operations[task.operation] for challenge in schedules for task in challenge.schedule]
    sending = [operation for operation in tasks if is_bulk(operation)]
    corpora = []
    for corpus in track.corpora:
        documents = tuple(
            document
            for document in corpus.documents
            if any(_asks_for(operation, corpus, document) for operation in sending)
        )
        if documents:
            corpora.append(msgspec.structs.replace(corpus, documents=documents))
    return tuple(corpora)


def streams_made(plan: Plan, track: Track) -> tuple[str, ...]:
    """Data streams that a plan's own tasks create or fill, by name."""
    operations = track.with_challenges(*plan.all_warmups, *plan.schedules).operations
    streams: dict[str, None] = {}
    for challenge in plan.schedules:
        for task in challenge.schedule:
            operation = operations[task.operation]
            if isinstance(operation, CreateDataStream | Bulk):
                streams |= dict.fromkeys(names_of(operation.data_stream))
    return tuple(streams)


def sends_documents(track: Track, schedules: Iterable[Challenge]) -> bool:
    """Return whether any task sends documents of a corpus, and not only vectors of a data set."""
    operations = (track.operations[task.operation] for challenge in schedules for task in challenge.schedule)
    return any(is_bulk(one) and not isinstance(one, BulkVectors) for one in operations)


def _makes_data(operation: TrackOperation, declared: tuple[str, ...], corpora: bool) -> bool:  # noqa: FBT001 - of the track
    if isinstance(operation, Composite):
        return any(_makes_data(part, declared, corpora) for part in parts_of(operation))
    if isinstance(operation, CreateIndex | CreateDataStream):
        named = names_of(operation.index if isinstance(operation, CreateIndex) else operation.data_stream)
        # No names, or nothing declared, means everything.
        return not named or not declared or not set(named).isdisjoint(declared)
    if isinstance(operation, RawRequest):
        return operation.method == "PUT" and operation.path.partition("?")[0].strip("/") in declared
    # By name, which includes a plug-in's operations.
    sends = is_bulk(operation) and (corpora or isinstance(operation, BulkVectors))
    return operation.type_name == _RESTORE or sends


def is_bulk(operation: TrackOperation) -> bool:
    """Return whether an operation sends documents of a corpus, by its type's name: a plug-in's, too."""
    return operation.type_name in _BULKS


def _asks_for(operation: TrackOperation, corpus: Corpus, documents: Documents) -> bool:
    if not isinstance(operation, Bulk):
        # Only a plug-in's code knows what it sends.
        return not isinstance(operation, BulkVectors)
    return (
        _chosen(corpus.name, names_of(operation.corpora))
        and _chosen(documents.target_index, names_of(operation.indices))
        and _chosen(documents.target_data_stream, names_of(operation.data_streams))
    )


def _chosen(name: str | None, names: tuple[str, ...]) -> bool:
    return not names or name in names


GENERATED_DOCUMENTS = 1_000_000
"""Default size of a generated corpus."""

_MOST_NAMES = 10
_NONE = CorpusSpec(seed=0, documents=0, generator_version=0, digest="")


@dataclass(frozen=True)
class FileOptions:
    """The user's options about documents from files."""

    local: Path | None = None  # in place of files of the track; None for these alone
    folders: tuple[Path, ...] = ()  # searched in addition to the track's own
    docs: int | None = None  # in total; None for all
    at_most: bool = False  # for a trial: fewer will do, and a track uses the first of each set


@dataclass(frozen=True)
class GeneratedReader:
    """Opens the generated corpus of a plan, in any process."""

    home: Home
    corpus: CorpusSpec

    def __call__(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Documents [start, stop), by default all."""
        corpus = ensure_corpus(
            self.home, self.corpus.documents, generator=self.corpus.generator, seed=self.corpus.seed
        )
        return open_documents(corpus, start=start, stop=stop)


@dataclass(frozen=True)
class FileReader:
    """Opens a file of documents, in any process."""

    home: Home
    file: CorpusFile

    def __call__(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Documents [start, stop) of those that are used, by default all."""
        return open_file(self.file, self.home, start=start, stop=stop)


@dataclass(frozen=True)
class Parcel:
    """Documents for one target when an index is prepared."""

    reader: Callable[..., Iterator[bytes]]  # of (start, stop): blocks of whole lines, by default of all
    documents: int
    bytes_each: float
    index: str | None = None  # None if action lines name it, or for a data stream
    data_stream: str | None = None
    has_actions: bool = False

    @property
    def target(self) -> str:
        """Index or stream that gets the documents; empty when their action lines name it."""
        return self.index or self.data_stream or ""


def expected_corpus(
    generated: CorpusSpec,
    files: FileOptions,
    track: Track,
    schedules: Sequence[Challenge],
    origin: DataOrigin,
) -> CorpusSpec:
    """A plan's documents before any file was read: for files, according to the track.

    `generated` are the generated documents, if there are any.

    Raises:
        UsageError: If nothing can fill the track, or the user's own file is missing or does not
            fit.
    """
    wanted = places(track)
    if files.local is None and files.folders and not track.corpora:
        raise UsageError(
            f"--corpus-dir is about files of documents, and those of track '{track.name}' are generated",
            hint="give --corpus FILE, or remove it",
        )
    if files.local is not None:
        if not wanted.names:
            raise UsageError(f"--corpus: track '{track.name}' has no index", hint="name another track")
        require_file(files.local)
        return msgspec.structs.replace(_NONE, documents=files.docs or 0)
    if track.corpora:
        needed = needed_corpora(track, schedules, origin)
        counts = [documents.document_count or 0 for corpus in needed for documents in corpus.documents]
        if files.at_most:
            return msgspec.structs.replace(_NONE, documents=sum(min(n, TRIAL_DOCUMENTS) for n in counts))
        held = sum(counts)
        return msgspec.structs.replace(_NONE, documents=held if files.docs is None else min(files.docs, held))
    if origin == "empty" and not sends_documents(track, schedules):
        return _NONE
    if len(wanted.names) != 1:
        raise UsageError(
            f"track '{track.name}' has {len(wanted.names)} indices and names no corpora to fill them",
            hint="add `corpora` to it, with a target-index for each file",
        )
    return msgspec.structs.replace(generated, generator=track.generator)


def needs_documents(variants: Iterable[VariantSpec]) -> bool:
    """Return whether anything may have to be filled: running clusters only if they may be written to."""
    targets = (spec.target for spec in variants)
    return any(target is None or target.fill or target.writes for target in targets)


def is_generated(plan: Plan) -> bool:
    """Return whether benchctl generates the documents of a plan."""
    return plan.corpus.documents > 0 and not plan.corpus.files


def find_corpus(
    plan: Plan,
    track: Track,
    files: FileOptions,
    home: Home,
    observer: Observer,
    *,
    looking: bool = False,
) -> CorpusSpec:
    """Scan the files of a new plan's documents, if it has any; each is read once, and remembered.

    When only `looking`, they are as the track declares them, and nothing is read or fetched.

    Returns:
        The plan's corpus with its files; unchanged if it is generated. Its digest is empty where no file was
        read.

    Raises:
        UsageError: If a file is missing, or does not match the track.
        BenchctlError: If a file is damaged or cannot be fetched.
    """
    lines = 0

    def progress(new: int) -> None:
        nonlocal lines
        lines += new
        observer.progress("lines", lines, 0)

    if files.local is not None:
        observer.stage(f"looking at {files.local}")
        corpus_files: tuple[CorpusFile, ...] = (
            _local(files.local, files, track, home, progress, looking=looking),
        )
    elif not track.corpora:
        return plan.corpus
    else:
        corpus_files = _declared(plan, track, files, home, observer, progress, looking=looking)
    is_known = bool(corpus_files) and all(file.sha256 for file in corpus_files)
    # Of the user's own file, nobody knows how many before it is read.
    documents = sum(file.documents for file in corpus_files) if all(f.documents for f in corpus_files) else 0
    return CorpusSpec(0, documents, 0, corpus_digest(corpus_files) if is_known else "", corpus_files)


def check_files(plan: Plan, home: Home) -> None:
    """Check that the files of an existing plan are unchanged.

    Raises:
        BenchctlError: If a file is missing or has changed.
    """
    for file in plan.corpus.files:
        try:
            now = local_file(Path(file.path), index="", home=home, has_actions=file.has_actions)
        except UsageError as err:
            raise BenchctlError(f"the documents of this run are gone: {err.message}", hint=err.hint) from err
        if now.sha256 != file.sha256:
            raise BenchctlError(
                f"{file.path} has changed: it held {file.held:,} documents, SHA-256 {file.sha256[:12]}; now "
                f"{now.held:,}, {now.sha256[:12]}",
                hint="restore the old file, or start a new run",
            )


def parcels(plan: Plan, track: Track, home: Home) -> tuple[Parcel, ...]:
    """Return the parcels that prepare a plan's data, in order; its documents must be known."""
    corpus = plan.corpus
    if not corpus.files:
        wanted = places(track)
        index = wanted.indices[0].name if wanted.indices else None
        stream = wanted.data_streams[0] if index is None and wanted.data_streams else None
        reader = GeneratedReader(home, corpus)
        return (Parcel(reader, corpus.documents, 0.0, index, stream),) if corpus.documents else ()
    return tuple(
        Parcel(
            FileReader(home, file),
            file.documents,
            file.raw_bytes / max(file.held, 1),
            file.index,
            file.data_stream,
            file.has_actions,
        )
        for file in corpus.files
    )


def sources(plan: Plan, track: Track, home: Home) -> tuple[Source, ...]:
    """Return the sources of tasks that send documents; empty if those are generated."""
    # What operations call the track's only corpus is the user's file in its place.
    only = track.corpora[0].name if len(track.corpora) == 1 else ""
    return tuple(
        Source(
            open=FileReader(home, file),
            document_count=file.documents,
            corpus=file.corpus or only,
            index=file.index,
            data_stream=file.data_stream,
            type=file.type,
            has_actions=file.has_actions,
        )
        for file in plan.corpus.files
    )


def data_set_files(plan: Plan, track: Track, home: Home) -> dict[tuple[str, str], Path]:
    """Return the files of the track's vectors and logs, by name and format, whether they exist or not.

    Vectors are beside the track or in the home, where `bring_vectors` and `benchctl corpus fetch` put them.
    """
    found = {(log.name, QUERIES): log_file(plan, track, log.name) for log in track.logs}
    for corpus in track.corpora:
        for file in (file for file in corpus.documents if file.source_format != "bulk"):
            name = file_names(file)[file.packed]
            beside = track_folder(plan) / name
            kept = corpus_folder(home, corpus.name) / name
            found[corpus.name, file.source_format] = beside if beside.is_file() else kept
    return found


def log_file(plan: Plan, track: Track, name: str) -> Path:
    """Return the file of a track's log of queries, which is beside the track."""
    (log,) = (log for log in track.logs if log.name == name)
    return track_folder(plan) / log.documents[0].source_file


def vector_corpora(operation: TrackOperation) -> set[str]:
    """Return the names of the track's corpora that an operation takes vectors or neighbours of."""
    keys = ("data_set_corpus", "neighbors_data_set_corpus")
    names = (getattr(part, key, None) for part in parts_of(operation) for key in keys)
    return {name for name in names if name}


def bring_vectors(
    plan: Plan,
    track: Track,
    folders: Sequence[Path],
    home: Home,
    observer: Observer,
    *,
    looking: bool = False,
) -> None:
    """Copy or fetch the files of vectors that a plan's tasks name into the home, and unpack them.

    `folders` are searched in addition to the track's own. When only `looking`, nothing is written, and what
    can be had is taken for granted.

    Raises:
        UsageError: If a file is nowhere, and has no source.
        BenchctlError: If it cannot be had or unpacked.
    """
    challenges = (*plan.all_warmups, *plan.schedules)
    operations = track.with_challenges(*challenges).operations
    tasks = (operations[task.operation] for challenge in challenges for task in challenge.schedule)
    named = set().union(*map(vector_corpora, tasks))
    places_of_files = data_set_files(plan, track, home)
    for corpus in (corpus for corpus in track.corpora if corpus.name in named):
        for file in (file for file in corpus.documents if file.source_format != "bulk"):
            plain = places_of_files[corpus.name, file.source_format]
            if plain.is_file():
                continue
            own = [track_folder(plan), plain.parent, *folders]
            packed = find_file(file, own)
            if packed is None and not is_published(file):
                raise not_found(corpus, file, own)
            if looking:
                continue
            observer.stage(f"vectors of corpus {corpus.name}")
            packed = packed or Fetch(home, observer.progress).get(corpus, file)
            if packed != plain:
                plain.parent.mkdir(parents=True, exist_ok=True)
                with (
                    disk_errors(f"write {plain}"),
                    replacing(plain) as partial_file,
                    partial_file.open("wb") as sink,
                ):
                    sink.writelines(unpacked(packed))


def track_folder(plan: Plan) -> Path:
    """Return the directory of a plan's track."""
    path = find_track(plan.track) if plan.track in track_names() else Path(plan.track)
    return path if path.is_dir() else path.parent


def _local(
    path: Path,
    files: FileOptions,
    track: Track,
    home: Home,
    progress: Callable[[int], None],
    *,
    looking: bool,
) -> CorpusFile:
    """The user's own file, in place of the track's documents; action lines name any of its indices."""
    wanted = places(track)
    target = wanted.names[0]
    is_index = target in {index.name for index in wanted.indices}
    index = target if is_index else ""
    if looking:
        return CorpusFile(
            path=str(path.absolute()),
            documents=0 if files.at_most else files.docs or 0,
            held=0,
            raw_bytes=0,
            sha256="",
            index=index or None,
            data_stream=None if is_index else target,
        )
    look = partial(local_file, path, index=index, home=home, progress=progress)
    file = look() if files.docs is None or files.at_most else look(docs=files.docs)
    if files.at_most and files.docs is not None and file.held > files.docs:
        file = look(docs=files.docs)
    if not file.held:
        raise UsageError(f"{path} holds no documents", hint="give a file with one JSON document a line")
    if not file.has_actions and len(wanted.names) > 1:
        raise UsageError(
            f"--corpus: track '{track.name}' has {len(wanted.names)} indices, and {path} has no action lines",
            hint=f"give a file whose action lines name the indices: {', '.join(wanted.names[:_MOST_NAMES])}",
        )
    if is_index or file.has_actions:
        return file
    return msgspec.structs.replace(file, index=None, data_stream=target)


def _declared(
    plan: Plan,
    track: Track,
    files: FileOptions,
    home: Home,
    observer: Observer,
    progress: Callable[[int], None],
    *,
    looking: bool,
) -> tuple[CorpusFile, ...]:
    """The track's corpora, as far as the plan needs them."""
    needed = needed_corpora(track, plan.schedules, plan.origin)
    if not needed:
        return ()
    observer.stage(f"documents of track {track.name}")
    corpus_files = find_documents(
        needed,
        folders=(*files.folders, track_folder(plan)),
        home=home,
        docs=None if files.at_most else files.docs,
        trial=files.at_most,
        note=observer.note,
        progress=progress,
        downloading=observer.progress,
        looking=looking,
    )
    if not corpus_files and plan.origin == "prepared":
        raise UsageError(
            f"the corpora of track '{track.name}' hold no JSON documents: vectors and streams without an end "
            "are not prepared",
            hint="run a challenge that asks for none of them, or give --corpus FILE",
        )
    return corpus_files

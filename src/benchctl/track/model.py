"""The typed model of a track: indices, corpora, operations, challenges, tasks, in Rally's terms and keys."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from benchctl.errors import Mistakes, UsageError
from benchctl.track.operations import MOST_WAIT_S, PositiveSeconds
from benchctl.track.operations.catalogue import AnyOperation, PluginOperation
from benchctl.track.template import Document, Label, Name, Remark, convert, encoded_names

SourceFormat = Literal["bulk", "hdf5", "big-ann", "otlp-proto", "queries"]

_Size = Annotated[int, msgspec.Meta(ge=0)]
_PACKED = (".bz2", ".gz", ".zst", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2")


class SourcePart(msgspec.Struct, frozen=True, rename="kebab"):
    """Part of a large file that is published in pieces."""

    name: str
    size: int


class _Destination(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """Keys of a file of documents that its corpus may have for all of its files."""

    base_url: str | None = None  # the folder of the published file
    source_format: SourceFormat = "bulk"  # `bulk` is a JSON document a line; others hold vectors or telemetry
    # Where its documents go; None when they say so themselves, or go to a data stream.
    target_index: str | None = None
    target_data_stream: str | None = None  # the same for a data stream
    target_type: str | None = None  # of the documents, for engines that had types
    includes_action_and_meta_data: bool = False  # whether a line before each document says what to do with it


class Documents(_Destination, frozen=True, kw_only=True):
    """A file of documents."""

    source_file: str  # its name, as it is published: compressed, if it is
    document_count: _Size | None = None  # how many documents it holds; None where a stream has no end
    compressed_bytes: _Size | None = None  # of the file as published; None when the track does not say
    uncompressed_bytes: _Size | None = None  # of its text; None when the track does not say
    source_url: str | None = None  # the published file itself, where it has a name of its own
    source_file_parts: tuple[SourcePart, ...] = ()  # the pieces that it is published in; empty for one file
    meta: dict[str, Any] = {}

    @property
    def packed(self) -> bool:
        """Return whether the published file is compressed."""
        return self.source_file.endswith(_PACKED)

    @property
    def published_bytes(self) -> int | None:
        """Size of the file as it is published; None when the track does not say."""
        return self.compressed_bytes if self.packed else self.uncompressed_bytes


class Corpus(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A named set of documents."""

    name: str
    documents: tuple[Documents, ...]
    # Which source a stream of documents without an end comes from; empty for files.
    streaming_ingestion: str = ""
    meta: dict[str, Any] = {}


class _CorpusEntry(_Destination, frozen=True, kw_only=True):
    """A corpus in a file."""

    name: Name
    documents: tuple[dict[str, Any], ...]
    streaming_ingestion: str = ""
    meta: dict[str, Any] = {}


class Targets(NamedTuple):
    """The indices or data streams that documents of a track can go to; the only one is the default."""

    indices: tuple[str, ...]
    types: tuple[str, ...]  # of the documents of all indices, for engines that had types
    data_streams: tuple[str, ...]


def read_corpora(entries: Sequence[Any], document: Document, targets: Targets) -> tuple[Corpus, ...]:
    """Parse the corpora of a track, the JSON at `$.corpora`.

    Raises:
        UsageError: If something is wrong or contradictory; messages name file and JSON path.
    """
    mistakes = Mistakes()
    corpora: dict[str, Corpus] = {}
    only = (("target-index", targets.indices), ("target-data-stream", targets.data_streams))
    defaults = {key: names[0] for key, names in only if len(names) == 1}
    if len(targets.indices) == len(targets.types) == 1:
        defaults["target-type"] = targets.types[0]
    for place, raw in enumerate(entries):
        where = f"$.corpora[{place}]"
        with mistakes.part():
            entry = convert(raw, _CorpusEntry, document, where)
            if entry.name in corpora:
                mistakes.add(document.refuse(f"{where}.name", f"two corpora are called '{entry.name}'"))
            shared = encoded_names(_Destination)
            own = {key: value for key, value in msgspec.to_builtins(entry).items() if key in shared}
            documents = []
            for number, item in enumerate(entry.documents):
                keys = {**defaults, **own, **item}
                with mistakes.part():
                    documents.append(
                        _documents(keys, entry, document, f"{where}.documents[{number}]", targets)
                    )
            corpora[entry.name] = Corpus(entry.name, tuple(documents), entry.streaming_ingestion, entry.meta)
    mistakes.settle()
    return tuple(corpora.values())


def _documents(
    keys: dict[str, Any], entry: _CorpusEntry, document: Document, where: str, targets: Targets
) -> Documents:
    found = convert(keys, Documents, document, where)
    if found.includes_action_and_meta_data:
        # The documents say themselves where they go.
        nowhere = {"target_index": None, "target_data_stream": None, "target_type": None}
        found = msgspec.structs.replace(found, **nowhere)
    for broken, text in _rules(found, targets, streams=bool(entry.streaming_ingestion)):
        if broken:
            raise document.refuse(where, text)
    return found


def _rules(found: Documents, targets: Targets, *, streams: bool) -> Iterator[tuple[bool, str]]:
    """Yield rules of a file of documents: true if broken, and the text."""
    yield found.document_count is None and not streams, "document-count is missing"
    parts, size = sum(part.size for part in found.source_file_parts), found.published_bytes
    is_other = bool(parts) and size is not None and parts != size
    yield is_other, f"its source-file-parts have {parts:,} bytes together, the file {size or 0:,}"
    index, stream = found.target_index is not None, found.target_data_stream is not None
    yield index and stream, "target-index and target-data-stream exclude each other"
    yield index and bool(targets.data_streams), "target-index in a track with data streams"
    yield stream and bool(targets.indices), "target-data-stream in a track with indices"
    yield stream and found.target_type is not None, "documents of a data stream have no target-type"
    kind = "target-data-stream" if targets.data_streams else "target-index"
    yield not (index or stream or found.includes_action_and_meta_data), f"a {kind} is needed for them"


TrackOperation = AnyOperation | PluginOperation
TemplateKind = Literal["index", "composable", "component"]
ScheduleName = Literal["deterministic", "poisson", "unthrottled", "logged"]

MOST_CLIENTS = 4096
"""A client is a thread and a connection."""
_Clients = Annotated[int, msgspec.Meta(ge=1, le=MOST_CLIENTS)]
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Requests = Annotated[int, msgspec.Meta(ge=1, le=10**12)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_WAIT_S)]


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """An entry of a schedule. Iterations are per client, as in Rally."""

    operation: str  # the operation's name
    name: Label = ""  # the task's own name; empty means the operation's
    clients: _Clients = 1
    warmup_iterations: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None = None
    iterations: _Requests | None = None  # measured requests per client; None with a time period
    warmup_time_period: _Seconds | None = None  # seconds of unmeasured requests
    time_period: PositiveSeconds | None = None  # seconds of measured requests
    least_time: float | None = None  # seconds that it measures at least beyond its iterations; benchctl's own
    # Units a second over all clients; None means as fast as the node answers.
    target_throughput: _Positive | None = None
    # Seconds between requests over all clients; the other way to say target_throughput.
    target_interval: _Positive | None = None
    # How arrivals are spaced when there is a target; `logged` takes them from the track's log of queries.
    schedule: ScheduleName = "deterministic"
    log_start: Annotated[float, msgspec.Meta(ge=0)] = (
        0.0  # of a logged schedule: seconds of the log that are left out before
    )
    log_speed: _Positive = 1.0  # how many times as fast as they came they are sent
    ramp_up_time_period: _Seconds | None = None  # seconds over which the clients start one after the other
    # `non-fatal` lets the task go on after failed requests whatever the run's policy is.
    ignore_response_error_level: Literal["non-fatal"] | None = None
    # Units of target_throughput in one request: 1 for requests, the documents of a body where the target is
    # in documents.
    per_request: float = 1.0
    group: int | None = None  # which parallel element of the schedule it stands in; None when it runs alone
    # How many clients the tasks of the group share; None means as many as they have together.
    lanes: int | None = None
    completes: bool = False
    # Its requests and those of the rest of its group come in one random order, over as many clients as each
    # of these tasks has.
    mixed: bool = False
    tags: tuple[Name, ...] = ()
    meta: dict[str, Any] = {}
    # The plug-in's scheduler that spaces its requests; None means `schedule` does.
    scheduler: str | None = None
    scheduler_params: dict[str, Any] = {}
    # The name that a task has in common with others which only differ in `clients`: points of a curve, in
    # random order. Empty for all other tasks.
    swept: str = ""

    @property
    def label(self) -> str:
        """The name that tables show."""
        return self.name or self.operation

    @property
    def rate_per_s(self) -> float | None:
        """Offered requests a second over all clients; None when the task is closed loop."""
        if self.target_interval is not None:
            return 1.0 / self.target_interval
        if self.target_throughput is None:
            return None
        return self.target_throughput / self.per_request

    @property
    def throttled(self) -> bool:
        """Return whether requests have due times: by a rate, a log, or a plug-in's scheduler."""
        return self.rate_per_s is not None or self.schedule == "logged" or self.scheduler is not None

    @property
    def only_counted(self) -> bool:
        """Return whether its length is a number of requests only: no warm-up, time or rate."""
        warm_up = self.warmup_iterations is not None or self.warmup_time_period is not None
        return self.iterations is not None and not warm_up and not self.throttled

    @property
    def planned_s(self) -> float | None:
        """Seconds that its time periods or its rate make it last; None when the node decides."""
        warmup_s = self.warmup_time_period or 0.0
        if self.time_period is not None:
            return warmup_s + self.time_period
        if not self.rate_per_s:
            return None
        requests = self.clients * ((self.warmup_iterations or 0) + (self.iterations or 1))
        return warmup_s + requests / self.rate_per_s


class Challenge(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A named schedule of tasks."""

    name: Label
    schedule: tuple[Task, ...]
    default: bool = False
    description: str = ""
    operations: dict[str, TrackOperation] = {}  # those that are defined within the schedule, by name
    cluster_settings: dict[str, Any] = {}
    user_info: str = ""  # shown when the challenge is run
    meta: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    # Of its steps: as they are written, or at random, another one in each block, by the run's seed.
    order: Literal["written", "random"] = "written"
    remarks: tuple[str, ...] = ()  # of the loader on its file and on the track, as far as they bear on it

    @property
    def steps(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the tasks that run at the same time, in order: one, or a parallel element's."""

        def element(place: int) -> tuple[bool, int]:
            group = self.schedule[place].group
            return (True, place) if group is None else (False, group)

        return tuple(tuple(places) for _, places in groupby(range(len(self.schedule)), element))

    def is_whole(self, place: int) -> bool:
        """Return whether the task at a position stands for all others of its element, which are a mix."""
        step = next(step for step in self.steps if place in step)
        return not self.schedule[place].mixed and any(self.schedule[other].mixed for other in step)

    def enders(self, place: int) -> tuple[Task, ...]:
        """Return the other tasks of a parallel element whose end is that of the task at a position, too."""
        step = next(step for step in self.steps if place in step)
        return tuple(
            self.schedule[other] for other in step if other != place and self.schedule[other].completes
        )


class IndexBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body to create an index with: settings, mappings and aliases."""

    settings: dict[str, Any] = {}
    mappings: dict[str, Any] = {}
    aliases: dict[str, Any] = {}

    @property
    def shards(self) -> int:
        """Primary shards; engines give one where the settings say nothing.

        Raises:
            ValueError: If the settings say something that is not a number.
        """
        nested = mapping_of(self.settings.get("index")).get("number_of_shards")
        count = (
            self.settings.get("index.number_of_shards", self.settings.get("number_of_shards", nested)) or 1
        )
        try:
            return int(count)
        except (TypeError, ValueError) as err:
            raise ValueError(f"number_of_shards is not a number: {count!r}") from err


class Index(msgspec.Struct, frozen=True, omit_defaults=True):
    """An index of a track."""

    name: str
    body: IndexBody
    types: tuple[str, ...] = ()  # of its documents, for engines that had types
    opensearch: IndexBody | None = None  # of OpenSearch's index, where `body` is Elasticsearch's alone


class Template(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A template of a track."""

    name: str
    kind: TemplateKind  # of the old kind, composable, or a component of those
    body: dict[str, Any]
    index_pattern: str | None = None  # of the indices that it is for; None for components
    delete_matching_indices: bool = True  # whether those go when the template goes


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a track that is wrong while the rest can be used."""

    message: str  # with the place in the file
    hint: str = ""
    challenge: str = ""  # that cannot be run because of it; empty for an operation
    default: bool = False  # whether that challenge is the one that the track prefers
    operation: str = ""  # that no challenge can name because of it; empty for a challenge

    @property
    def error(self) -> UsageError:
        """The error to raise where the part is needed after all."""
        return UsageError(self.message, hint=self.hint)


GeneratorName = Literal["big5", "cluster-metrics", "vectors"]
"""Default generator for a track that declares no corpora."""


class Track(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A loaded track."""

    name: str
    operations: dict[str, TrackOperation]
    digest: str  # SHA-256 over what it means, so that results of different tracks are never compared
    indices: tuple[Index, ...] = ()  # that documents go to and searches ask
    data_streams: tuple[str, ...] = ()
    templates: tuple[Template, ...] = ()
    # Which documents there are, and where they come from; empty for generated ones.
    corpora: tuple[Corpus, ...] = ()
    generator: GeneratorName = "big5"  # of those
    # Of queries, each of one file: `query-log`, which logged searches send, and `pollution`.
    logs: tuple[Corpus, ...] = ()
    challenges: dict[str, Challenge] = {}  # the track's own that can be run, by name
    description: str = ""
    meta: dict[str, Any] = {}
    parameters: dict[str, Any] = {}  # for its plug-in
    dependencies: tuple[str, ...] = ()  # Python packages that its plug-in needs
    plugin: str | None = None  # file name of its Python plug-in; None when there is none beside it
    known: tuple[str, ...] = ()  # parameters that its files know
    remarks: tuple[Remark, ...] = ()  # what was passed over when it was read
    faults: tuple[Fault, ...] = ()  # what keeps others of its challenges from being run

    def of(self, engine: str) -> "Track":
        """Return the track with the index bodies of an engine."""
        indices = (
            msgspec.structs.replace(
                index, body=(engine == "opensearch" and index.opensearch) or index.body, opensearch=None
            )
            for index in self.indices
        )
        return msgspec.structs.replace(self, indices=tuple(indices))

    @property
    def has_vectors(self) -> bool:
        """True if a mapping has vectors for searches of nearest neighbours."""
        mappings = msgspec.json.encode((self.indices, self.templates))
        return b'"type":"dense_vector"' in mappings or b'"type":"knn_vector"' in mappings

    @property
    def documents(self) -> int:
        """Number of documents of its corpora; 0 for generated ones."""
        return sum(file.document_count or 0 for corpus in self.corpora for file in corpus.documents)

    @property
    def default_name(self) -> str | None:
        """The challenge to run by default, possibly a faulty one: the one marked so, or the only one."""
        faulty = [fault for fault in self.faults if fault.challenge]
        names = [*self.challenges, *(fault.challenge for fault in faulty)]
        marked = [name for name, challenge in self.challenges.items() if challenge.default]
        marked += [fault.challenge for fault in faulty if fault.default]
        chosen = marked or (names if len(names) == 1 else [])
        return chosen[0] if chosen else None

    def fault_of(self, challenge: str) -> Fault | None:
        """Return what prevents a challenge from being run."""
        return next((fault for fault in self.faults if challenge and fault.challenge == challenge), None)

    def remarks_on(self, *challenges: Challenge) -> tuple[str, ...]:
        """Return what the loader remarks on some of its challenges, one line a kind."""
        names = {challenge.name for challenge in challenges}
        used = {task.operation for challenge in challenges for task in challenge.schedule}
        places: dict[str, list[str]] = {}
        for remark in self.remarks:
            if remark.challenge in {"", *names} and remark.operation in {"", *used}:
                places.setdefault(remark.message, []).append(remark.place)
        return tuple(
            f"{first}: {message}" + (f" ({len(others)} more places)" if others else "")
            for message, (first, *others) in places.items()
        )

    def lacking(self, challenge: Challenge) -> tuple[str, ...]:
        """Return what a challenge needs beyond benchctl itself, one phrase each, in order of use."""
        operations = self.operations | challenge.operations
        reasons: dict[str, None] = {}
        for task in challenge.schedule:
            operation = operations[task.operation]
            if isinstance(operation, PluginOperation):
                reasons[f"task '{task.label}': {operation.lacks}"] = None
            if task.scheduler is not None:
                reasons[f"task '{task.label}': scheduler '{task.scheduler}'"] = None
        return tuple(reasons)

    def with_challenges(self, *challenges: Challenge) -> "Track":
        """Return the track with the operations that these challenges define.

        Raises:
            UsageError: If two of them define different ones of the same name.
        """
        defined: dict[str, TrackOperation] = {}
        for challenge in challenges:
            for name, operation in challenge.operations.items():
                if defined.setdefault(name, operation) != operation:
                    raise UsageError(
                        f"challenge {challenge.name} and one before it define different operations '{name}'",
                        hint="give each a unique name",
                    )
        return msgspec.structs.replace(self, operations={**self.operations, **defined})


# On nodes without data streams, plain indices from the same templates replace them.
DATA_STREAM = "data_stream"
"""The key that makes a composable template one of data streams."""
DATA_STREAMS = "/_data_stream/*"
"""The request that tells whether a node supports data streams."""

_TIMESTAMP = "@timestamp"


def as_plain_template(body: Mapping[str, Any], templates: Iterable[Template]) -> dict[str, Any]:
    """Return a composable template of plain indices that otherwise equal those of its data stream.

    A node maps a data stream's timestamp as a date unless a template maps it; so does this. Other templates
    are unchanged. `templates` include the components that it may be composed of.
    """
    if DATA_STREAM not in body:
        return dict(body)
    rest = {key: value for key, value in body.items() if key != DATA_STREAM}
    # OpenSearch allows templates to name the field.
    field = mapping_of(mapping_of(body[DATA_STREAM]).get("timestamp_field")).get("name") or _TIMESTAMP
    parts = [
        template.body
        for template in templates
        if template.kind == "component" and template.name in (body.get("composed_of") or ())
    ]
    own = [mapping_of(mapping_of(part.get("template")).get("mappings")) for part in (rest, *parts)]
    if any(field in mapping_of(mappings.get("properties")) for mappings in own):
        return rest
    properties = {**mapping_of(own[0].get("properties")), field: {"type": "date"}}
    template = {**mapping_of(rest.get("template")), "mappings": {**own[0], "properties": properties}}
    return {**rest, "template": template}


def mapping_of(value: object) -> dict[str, Any]:
    """Return an object of JSON; anything else is an empty one."""
    return value if isinstance(value, dict) else {}

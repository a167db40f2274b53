"""The track as plug-ins see it: Rally's classes with the attributes that they read and change."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from benchctl.plugin.rally_api import class_name
from benchctl.track import model
from benchctl.track.operations import Operation as AnyOperation
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation


class _OperationType(Enum):
    """Built-in operation types by the names of their classes in Rally."""

    def to_hyphenated_string(self) -> str:
        return str(self.value)


OperationType = _OperationType("OperationType", {class_name(kind): kind for kind in OPERATION_TYPES})  # type: ignore[call-arg]


class TypeName(str):
    """A document type: a string, which the oldest plug-ins use as an object with a name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)


@dataclass
class Index:
    """An index or data stream."""

    name: str
    body: dict[str, Any] | None = None
    types: list[TypeName] = field(default_factory=list)


@dataclass
class IndexTemplate:
    """An index template, of either kind."""

    name: str
    pattern: str | None
    content: dict[str, Any]
    delete_matching_indices: bool = True


@dataclass
class ComponentTemplate:
    """A component of composable templates."""

    name: str
    content: dict[str, Any]


class Documents:
    """A file of documents.

    Not a dataclass: plug-ins derive classes that turn some attributes into properties.
    """

    SOURCE_FORMAT_BULK = "bulk"
    document_archive: str | None = None
    base_url: str | None = None
    includes_action_and_meta_data = False
    number_of_documents = 0
    compressed_size_in_bytes: int | None = None
    uncompressed_size_in_bytes: int | None = None
    target_index: str | None = None
    target_data_stream: str | None = None
    target_type: str | None = None

    def __init__(
        self, source_format: str = SOURCE_FORMAT_BULK, document_file: str | None = None, **given: Any
    ) -> None:
        self.source_format = source_format
        self.document_file = document_file
        for name, value in {"meta_data": {}, **given}.items():
            own = getattr(type(self), name, None)
            if not isinstance(own, property) or own.fset is not None:
                setattr(self, name, value)


@dataclass
class DocumentCorpus:
    """A named set of documents."""

    name: str
    documents: list[Documents] = field(default_factory=list)
    meta_data: dict[str, Any] = field(default_factory=dict)

    def number_of_documents(self, source_format: str = Documents.SOURCE_FORMAT_BULK) -> int:
        """Return how many there are in files of a format."""
        files = [document for document in self.documents if document.source_format == source_format]
        return sum(document.number_of_documents for document in files)


@dataclass
class Operation:
    """The operation of a task."""

    name: str
    operation_type: str
    params: dict[str, Any]
    param_source: str | None = None
    meta_data: dict[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return self.operation_type


@dataclass
class Task:
    """An entry of a schedule."""

    name: str
    operation: Operation
    clients: int = 1
    warmup_iterations: int | None = None
    iterations: int | None = None
    warmup_time_period: float | None = None
    time_period: float | None = None
    schedule: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    meta_data: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator["Task"]:
        return iter((self,))


@dataclass
class Challenge:
    """A named schedule."""

    name: str
    description: str = ""
    default: bool = False
    selected: bool = False
    meta_data: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    schedule: list[Task] = field(default_factory=list)


@dataclass
class Track:
    """The track."""

    name: str
    description: str = ""
    meta_data: dict[str, Any] = field(default_factory=dict)
    challenges: list[Challenge] = field(default_factory=list)
    indices: list[Index] = field(default_factory=list)
    data_streams: list[Index] = field(default_factory=list)
    templates: list[IndexTemplate] = field(default_factory=list)
    composable_templates: list[IndexTemplate] = field(default_factory=list)
    component_templates: list[ComponentTemplate] = field(default_factory=list)
    corpora: list[DocumentCorpus] = field(default_factory=list)
    root: str | None = None

    @property
    def selected_challenge(self) -> Challenge | None:
        return next((challenge for challenge in self.challenges if challenge.selected), None)

    @property
    def selected_challenge_or_default(self) -> Challenge | None:
        marked = [challenge for challenge in self.challenges if challenge.default]
        if not marked and len(self.challenges) == 1:
            marked = self.challenges
        return self.selected_challenge or next(iter(marked), None)

    selected_test_procedure = selected_challenge
    selected_test_procedure_or_default = selected_challenge_or_default

    @property
    def test_procedures(self) -> list[Challenge]:
        return self.challenges

    def index_names(self) -> list[str]:
        return [index.name for index in self.indices]

    def data_stream_names(self) -> list[str]:
        return [stream.name for stream in self.data_streams]


def track_of(track: model.Track, challenge: model.Challenge | None, root: Path) -> Track:
    """Return a track for plug-ins to change, with the challenge being run; benchctl's own is not affected."""
    challenges = dict(track.challenges)
    if challenge is not None:
        challenges[challenge.name] = challenge
    return Track(
        name=track.name,
        description=track.description,
        meta_data=_copy(track.meta),
        challenges=[
            _challenge(declared, track, selected=challenge is not None and declared.name == challenge.name)
            for declared in challenges.values()
        ],
        indices=[
            Index(index.name, msgspec.to_builtins(index.body), [TypeName(kind) for kind in index.types])
            for index in track.indices
        ],
        data_streams=[Index(name) for name in track.data_streams],
        templates=_templates(track, "index"),
        composable_templates=_templates(track, "composable"),
        component_templates=[
            ComponentTemplate(template.name, _copy(template.body))
            for template in track.templates
            if template.kind == "component"
        ],
        corpora=[_corpus(corpus, root) for corpus in track.corpora],
        root=str(root),
    )


def task_of(task: model.Task, operation: AnyOperation) -> Task:
    """Return a task for plug-ins."""
    throttle = ("clients", "target_throughput", "target_interval")
    params = {name.replace("_", "-"): getattr(task, name) for name in throttle}
    same = ("clients", "warmup_iterations", "iterations", "warmup_time_period", "time_period")
    return Task(
        name=task.label,
        operation=_operation(operation),
        **{name: getattr(task, name) for name in same},
        schedule=task.scheduler or task.schedule,
        params={name: value for name, value in params.items() if value is not None}
        | _copy(task.scheduler_params),
        tags=list(task.tags),
        meta_data=_copy(task.meta),
    )


def _operation(operation: AnyOperation) -> Operation:
    meta = _copy(operation.meta)
    if isinstance(operation, PluginOperation):
        params = _copy(operation.params)
        return Operation(operation.name, operation.type, params, operation.param_source, meta)
    return Operation(operation.name, operation.type_name, msgspec.to_builtins(operation), None, meta)


def _challenge(challenge: model.Challenge, track: model.Track, *, selected: bool) -> Challenge:
    operations = track.operations | challenge.operations
    return Challenge(
        name=challenge.name,
        description=challenge.description,
        default=challenge.default,
        selected=selected,
        meta_data=_copy(challenge.meta),
        parameters=_copy(challenge.parameters),
        schedule=[task_of(task, operations[task.operation]) for task in challenge.schedule],
    )


def _templates(track: model.Track, kind: model.TemplateKind) -> list[IndexTemplate]:
    return [
        IndexTemplate(
            template.name, template.index_pattern, _copy(template.body), template.delete_matching_indices
        )
        for template in track.templates
        if template.kind == kind
    ]


def _corpus(corpus: model.Corpus, root: Path) -> DocumentCorpus:
    documents = [
        Documents(
            document.source_format,
            str(root / document.source_file),
            base_url=document.base_url,
            includes_action_and_meta_data=document.includes_action_and_meta_data,
            number_of_documents=document.document_count or 0,
            compressed_size_in_bytes=document.compressed_bytes,
            uncompressed_size_in_bytes=document.uncompressed_bytes,
            target_index=document.target_index,
            target_data_stream=document.target_data_stream,
            target_type=document.target_type,
            meta_data=_copy(document.meta),
        )
        for document in corpus.documents
    ]
    return DocumentCorpus(corpus.name, documents, _copy(corpus.meta))


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return copied


CLASSES: Mapping[str, Any] = {
    **{
        kind.__name__: kind
        for kind in (
            Index, IndexTemplate, ComponentTemplate, Documents, DocumentCorpus, Operation, Task, Challenge,
            Track,
        )
    },
    "OperationType": OperationType,
    "Workload": Track,
    "TestProcedure": Challenge,
}  # fmt: skip
"""Names that plug-ins import -> the track's classes."""

"""A track's main file, Rally's `track.json` or OpenSearch Benchmark's `workload.json`, in its typed form."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchctl.errors import UsageError
from benchctl.track.corpora import Targets, read_corpora
from benchctl.track.model import (
    Challenge,
    Fault,
    Index,
    IndexBody,
    Template,
    TemplateKind,
    Track,
    TrackOperation,
)
from benchctl.track.operations.reading import IncompleteError, read_operation
from benchctl.track.plugin import find_plugin
from benchctl.track.rules import check_challenge
from benchctl.track.schedule import Context, read_challenge
from benchctl.track.template.document import Document, convert, encoded_names, know, read_document
from benchctl.track.template.renderer import Renderer

_VERSION = 2
_SEVERAL = ("challenges", "test_procedures")
_ONE = ("challenge", "test_procedure")
_IN_PLACE = "schedule"


class _TrackFile(msgspec.Struct, frozen=True, rename="kebab"):
    version: int | str | float = _VERSION
    description: str | None = None
    meta: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    dependencies: tuple[str, ...] | None = None
    indices: tuple[dict[str, Any], ...] | None = None
    data_streams: tuple[dict[str, Any], ...] | None = None
    templates: tuple[dict[str, Any], ...] | None = None
    composable_templates: tuple[dict[str, Any], ...] | None = None
    component_templates: tuple[dict[str, Any], ...] | None = None
    corpora: tuple[dict[str, Any], ...] | None = None
    operations: tuple[Any, ...] | None = None
    challenges: tuple[dict[str, Any], ...] | None = None
    challenge: dict[str, Any] | None = None
    test_procedures: tuple[dict[str, Any], ...] | None = msgspec.field(name="test_procedures", default=None)
    test_procedure: dict[str, Any] | None = msgspec.field(name="test_procedure", default=None)
    schedule: tuple[dict[str, Any], ...] | None = None


class _IndexEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    body: str | None = None
    types: tuple[str, ...] = ()


class _DataStreamEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: str


class _TemplateEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    template: str
    template_path: str | None = None
    index_pattern: str | None = None
    delete_matching_indices: bool = True


know([*encoded_names(_TrackFile), *encoded_names(_IndexEntry), *encoded_names(_TemplateEntry)])
# Of Rally's first version; tracks that were brought up to the second one still have it.
_OLD_URL = "data-url"
know([_OLD_URL])


def read_track(path: Path, renderer: Renderer) -> Track:
    """Read a track.

    Args:
        path: of its main file.
        renderer: of its templates; what it knows of parameters afterwards covers the whole track.

    Raises:
        UsageError: something is missing or wrong; the message names file and JSON path.
    """
    document, raw = read_document(renderer.render(path), lenient=True)
    if not isinstance(raw, Mapping):
        raise document.refuse("$", "a track is an object")
    try:
        return _Reader(path, renderer, document).track(raw)
    except RecursionError as err:
        raise UsageError(f"{path}: something in it is nested too deeply") from err


class _Reader:
    """Reads one track."""

    def __init__(self, path: Path, renderer: Renderer, document: Document) -> None:
        self._path = path
        self._renderer = renderer
        self._document = document
        self._documents = [document]
        self._plugin = find_plugin(path.parent)
        self._unusable: dict[str, UsageError] = {}
        self._faults: list[Fault] = []

    def track(self, raw: Mapping[str, Any]) -> Track:
        """All of it."""
        self._check_age(raw)
        entry = convert(raw, _TrackFile, self._document, "$")
        self._check_version(entry.version)
        indices = tuple(
            self._index(one, f"$.indices[{place}]") for place, one in enumerate(entry.indices or ())
        )
        data_streams = tuple(
            convert(one, _DataStreamEntry, self._document, f"$.data-streams[{place}]").name
            for place, one in enumerate(entry.data_streams or ())
        )
        if indices and data_streams:
            raise self._document.refuse(
                "$", "indices and data-streams exclude each other", key="data-streams"
            )
        names, types = (
            tuple(index.name for index in indices),
            tuple(t for index in indices for t in index.types),
        )
        targets = Targets(names, types, data_streams)
        track = Track(
            name=self._path.resolve().parent.name,
            operations=self._operations(entry.operations or ()),
            digest="",
            indices=indices,
            data_streams=data_streams,
            templates=tuple(self._templates(entry)),
            corpora=read_corpora(entry.corpora or (), self._document, targets),
            description=entry.description or "",
            meta=entry.meta or {},
            parameters=entry.parameters or {},
            dependencies=entry.dependencies or (),
            plugin=None if self._plugin is None else self._plugin.name,
        )
        challenges = self._challenges(entry, track.operations)
        return msgspec.structs.replace(
            track,
            challenges=challenges,
            digest=_digest(track),
            known=tuple(sorted(self._renderer.known)),
            notes=tuple(note for document in self._documents for note in document.notes),
            faults=tuple(self._faults),
        )

    def _check_age(self, raw: Mapping[str, Any]) -> None:
        outdated = _OLD_URL in raw and "corpora" not in raw
        if outdated or (raw.get("version", _VERSION) == _VERSION and _has_typed_documents(raw)):
            raise self._document.refuse(
                "$", "the track is of Rally's first version, whose indices held their documents",
                hint=f"benchctl reads version {_VERSION}, Rally's since 2018",
            )  # fmt: skip

    def _check_version(self, version: float | str) -> None:
        try:
            number = int(version)
        except (ValueError, OverflowError) as err:
            raise self._document.refuse("$.version", f"'{version}' is no number") from err
        if number != _VERSION:
            raise self._document.refuse(
                "$.version", f"the track is of version {number}; benchctl reads version {_VERSION}"
            )

    def _operations(self, entries: Iterable[Any]) -> dict[str, TrackOperation]:
        found: dict[str, TrackOperation] = {}
        for place, raw in enumerate(entries):
            where = f"$.operations[{place}]"
            # A bare name is a type without anything else.
            named = {"operation-type": raw} if isinstance(raw, str) else raw
            try:
                operation = read_operation(named, self._document, where, plugin=self._plugin)
            except UsageError as err:
                # Only the challenges that name it cannot be run.
                self._unusable[_name_of(named)] = err
                if isinstance(err, IncompleteError):
                    # Workloads define operations that their tasks redefine.
                    missing = err.message.rpartition(": ")[2]
                    self._document.note(where, f"{missing}: no task can name it")
                else:
                    self._faults.append(Fault(err.message, err.hint, operation=_name_of(named)))
                continue
            if operation.name in found:
                raise self._document.refuse(where, f"two operations are called '{operation.name}'")
            found[operation.name] = operation
        return found

    def _challenges(
        self, entry: _TrackFile, operations: Mapping[str, TrackOperation]
    ) -> dict[str, Challenge]:
        given = [name for name in (*_SEVERAL, *_ONE, _IN_PLACE) if getattr(entry, name) is not None]
        if len(given) > 1:
            raise self._document.refuse("$", f"{' and '.join(given)} exclude each other", key=given[1])
        found = self._sound_challenges(entry, given[0], operations) if given else {}
        if self._faults and not found:
            raise self._faults[0].error
        defaults = [challenge.name for challenge in found.values() if challenge.default]
        if len(defaults) > 1:
            raise self._document.refuse(
                f"$.{given[0]}", f"{' and '.join(defaults)} are both the default: only one can be"
            )
        return found

    def _sound_challenges(
        self, entry: _TrackFile, given: str, operations: Mapping[str, TrackOperation]
    ) -> dict[str, Challenge]:
        """Those that can be run; what is wrong with the others is kept for whoever asks for them."""
        value = getattr(entry, given)
        places: list[tuple[str, Any]] = [(f"$.{given}", value)]
        if given in _SEVERAL:
            places = [(f"$.{given}[{place}]", one) for place, one in enumerate(value)]
        elif given == _IN_PLACE:
            places = [("$", {"name": "default", "schedule": list(value)})]
        context = Context(self._document, self._path.parent.name, operations, self._plugin, self._unusable)
        found: dict[str, Challenge] = {}
        for where, raw in places:
            try:
                challenge = read_challenge(raw, context, where)
                check_challenge(challenge, {**operations, **challenge.operations}, self._document, where)
            except UsageError as err:
                name = str(raw.get("name") or where)
                self._faults.append(Fault(err.message, err.hint, name, default=raw.get("default") is True))
                continue
            if challenge.name in found:
                raise self._document.refuse(
                    where, f"two challenges are called '{challenge.name}'", key="name"
                )
            found[challenge.name] = challenge
        return found

    def _index(self, raw: Any, where: str) -> Index:  # noqa: ANN401 - JSON of any shape
        entry = convert(raw, _IndexEntry, self._document, where)
        if not entry.body:
            return Index(entry.name, IndexBody(), entry.types)
        document, value = self._read_beside(entry.body, f"{where}.body")
        body = convert(value, IndexBody, document, "$")
        try:
            shards = body.shards
        except ValueError as err:
            raise document.refuse("$.settings", f"number_of_shards is no number: {err}") from err
        if shards < 1:
            raise document.refuse("$.settings", "number_of_shards must be at least 1")
        return Index(entry.name, body, entry.types)

    def _templates(self, entry: _TrackFile) -> Iterable[Template]:
        kinds: tuple[tuple[TemplateKind, str], ...] = (
            ("index", "templates"),
            ("composable", "composable-templates"),
            ("component", "component-templates"),
        )
        for kind, key in kinds:
            for place, raw in enumerate(getattr(entry, key.replace("-", "_")) or ()):
                yield self._template(raw, kind, f"$.{key}[{place}]")

    def _template(self, raw: Any, kind: TemplateKind, where: str) -> Template:  # noqa: ANN401 - JSON of any shape
        entry = convert(raw, _TemplateEntry, self._document, where)
        if kind != "component" and entry.index_pattern is None:
            raise self._document.refuse(where, "index-pattern is missing")
        document, body = self._read_beside(entry.template, f"{where}.template")
        inner = "$"
        for key in entry.template_path.split(".") if entry.template_path else ():
            if not isinstance(body, Mapping) or key not in body:
                raise self._document.refuse(
                    f"{where}.template-path", f"there is no '{key}' at {inner} of {document.name}"
                )
            body, inner = body[key], f"{inner}.{key}"
        if not isinstance(body, dict):
            raise document.refuse(inner, "a template is an object")
        return Template(entry.name, kind, body, entry.index_pattern, entry.delete_matching_indices)

    def _read_beside(self, name: str, where: str) -> tuple[Document, Any]:
        """Another file of the track, a template like the main one."""
        path = self._path.parent / name
        if "\0" in name or not self._renderer.reach.allows(path.resolve()):
            raise self._document.refuse(where, f"'{name}' lies outside the track and the folders beside it")
        if not self._renderer.reach.holds(path):
            raise self._document.refuse(where, f"there is no file '{name}' in {self._path.parent}")
        document, value = read_document(self._renderer.render(path), lenient=True)
        self._documents.append(document)
        return document, value


def _name_of(operation: object) -> str:
    """What tasks call an operation, as far as it can be told of one that cannot be read."""
    said = operation if isinstance(operation, Mapping) else {}
    return str(said.get("name") or said.get("operation-type") or "")


def _has_typed_documents(raw: Mapping[str, Any]) -> bool:
    """Whether the types of an index are objects, as they were when they held the documents."""
    indices = raw.get("indices")
    if not isinstance(indices, list):
        return False
    types = [index.get("types") for index in indices if isinstance(index, Mapping)]
    return any(isinstance(one, Mapping) for some in types if isinstance(some, list) for one in some)


def _digest(track: Track) -> str:
    """Over the meaning, not the files: white space and comments make no difference to what is measured."""
    operations = sorted((name, operation.meaning) for name, operation in track.operations.items())
    meaning: tuple[Any, ...]
    if len(track.indices) == 1 and not track.templates and not track.corpora:
        # Generated documents in one index: the form that stored results know.
        meaning = (track.index_name, track.index_body, operations)
    else:
        meaning = (track.indices, track.data_streams, track.templates, track.corpora, operations)
    return hashlib.sha256(msgspec.json.encode(meaning, order="sorted")).hexdigest()

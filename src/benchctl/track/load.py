"""The loader of tracks and challenges, by name or path, and filters of their tasks."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchctl.errors import Mistakes, UsageError, guess, suggestion
from benchctl.track.library import challenge_names, find_challenge, find_track
from benchctl.track.model import (
    Challenge,
    Corpus,
    Documents,
    Fault,
    GeneratorName,
    Index,
    IndexBody,
    Targets,
    Task,
    Template,
    TemplateKind,
    Track,
    TrackOperation,
    read_corpora,
)
from benchctl.track.operations import Asking, Operation
from benchctl.track.operations.admin import CreateTemplate
from benchctl.track.operations.catalogue import Composite, OpenPointInTime, find_plugin, parts_of
from benchctl.track.operations.search import POLLUTION_LOG, QUERY_LOG, LoggedSearch, MultiSearch, VectorSearch
from benchctl.track.pollution import POLLUTED, pollution
from benchctl.track.schedule import Context, check_challenge, read_challenge, read_operation
from benchctl.track.template import Document, IndexName, Renderer, convert, in_words, read_document

T = TypeVar("T")

_VERSION = 2
_VERSION_OF_NODES = "distribution_version"  # a variable of templates that OpenSearch Benchmark documents
MOST_NAMES = 10
"""Candidates that a message lists."""
_SEVERAL = ("challenges", "test_procedures", "scenarios")
_ONE = ("challenge", "test_procedure")
_IN_PLACE = "schedule"
_TEMPLATES: Mapping[TemplateKind, str] = {
    "index": "templates",
    "composable": "composable-templates",
    "component": "component-templates",
}


class _TrackFile(msgspec.Struct, frozen=True, rename="kebab"):
    version: int | str = _VERSION
    description: str = ""
    meta: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    dependencies: tuple[str, ...] = ()
    indices: tuple[dict[str, Any], ...] = ()
    data_streams: tuple[dict[str, Any], ...] = ()
    templates: tuple[dict[str, Any], ...] = ()
    composable_templates: tuple[dict[str, Any], ...] = ()
    component_templates: tuple[dict[str, Any], ...] = ()
    corpora: tuple[dict[str, Any], ...] = ()
    generator: GeneratorName = "big5"
    query_log: dict[str, Any] | None = None
    pollution: dict[str, Any] | str | None = None
    operations: tuple[Any, ...] = ()
    challenges: tuple[dict[str, Any], ...] | None = None
    challenge: dict[str, Any] | None = None
    test_procedures: tuple[dict[str, Any], ...] | None = msgspec.field(name="test_procedures", default=None)
    scenarios: tuple[dict[str, Any], ...] | None = None
    test_procedure: dict[str, Any] | None = msgspec.field(name="test_procedure", default=None)
    schedule: tuple[dict[str, Any], ...] | None = None


class _Bodies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    elasticsearch: str
    opensearch: str


class _IndexEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: IndexName
    body: str | _Bodies | None = None
    types: tuple[str, ...] = ()


class _DataStreamEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: IndexName


class _TemplateEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: IndexName
    template: str
    template_path: str | None = None
    index_pattern: str | None = None
    delete_matching_indices: bool = True


class _Reader:
    def __init__(self, path: Path, renderer: Renderer, document: Document) -> None:
        self._path = path
        self._renderer = renderer
        self._document = document
        self._documents = [document]
        self._plugin = find_plugin(path.parent)
        self._unusable: dict[str, UsageError] = {}
        self._faults: list[Fault] = []
        self._mistakes = Mistakes()  # that leave nothing of the track to be used

    def track(self, raw: Mapping[str, Any]) -> Track:
        entry = convert(raw, _TrackFile, self._document, "$")
        if str(entry.version) != str(_VERSION):
            message = f"the track is of version {entry.version}; benchctl reads version {_VERSION}"
            self._mistakes.add(self._document.refuse("$.version", message))
        # One that is wrong keeps its place: what refers to it is not refused for that, too.
        indices = self._each("$.indices", entry.indices, self._index, lambda name: Index(name, IndexBody()))
        data_streams = self._each("$.data-streams", entry.data_streams, self._data_stream, str)
        if entry.indices and entry.data_streams:
            message = "indices and data-streams exclude each other"
            self._mistakes.add(self._document.refuse("$", message, key="data-streams"))
        types = tuple(kind for index in indices for kind in index.types)
        targets = Targets(tuple(index.name for index in indices), types, data_streams)
        templates = tuple(self._templates(entry))
        corpora: tuple[Corpus, ...] = ()
        with self._mistakes.part():
            corpora = read_corpora(entry.corpora, self._document, targets)
        given = ((QUERY_LOG, entry.query_log), (POLLUTION_LOG, entry.pollution))
        logs = tuple(self._log(name, raw) for name, raw in given if raw is not None)
        track = Track(
            name=self._path.resolve().parent.name,
            operations=self._operations(entry.operations),
            digest="",
            indices=indices,
            data_streams=data_streams,
            templates=templates,
            corpora=corpora,
            generator=entry.generator,
            logs=logs,
            description=entry.description,
            meta=entry.meta,
            parameters=entry.parameters,
            dependencies=entry.dependencies,
            plugin=self._plugin,
        )
        challenges = self._challenges(entry, track)
        if not challenges:
            for fault in self._faults:
                self._mistakes.add(fault.error)
        self._mistakes.settle()
        return msgspec.structs.replace(
            track,
            challenges=challenges,
            digest=_digest(track),
            known=tuple(sorted(self._renderer.known)),
            remarks=tuple(remark for document in self._documents for remark in document.remarks),
            faults=tuple(self._faults),
        )

    def _each(
        self,
        where: str,
        entries: Iterable[Any],
        read: Callable[[Any, str], T],
        stand_in: Callable[[str], T],
    ) -> tuple[T, ...]:
        parts = []
        for place, raw in enumerate(entries):
            part = stand_in(str(raw.get("name")))
            with self._mistakes.part():
                part = read(raw, f"{where}[{place}]")
            parts.append(part)
        return tuple(parts)

    def _log(self, name: str, raw: dict[str, Any] | str) -> Corpus:
        """A log of queries, which is a file like those of documents; a text is its name."""
        keys = {"source-file": raw} if isinstance(raw, str) else raw
        file = convert(keys, Documents, self._document, f"$.{name}")
        path = self._path.parent / file.source_file
        if file.packed or Path(file.source_file).name != file.source_file or not path.is_file():
            problem = "is packed" if file.packed else "is not a file beside the track"
            raise self._document.refuse(
                f"$.{name}",
                f"the log of queries '{file.source_file}' {problem}",
                hint="`benchctl track new NAME --queries LOG` makes such a file: queries.json",
            )
        # Another log is another track.
        with path.open("rb") as content:
            meta = {**file.meta, "sha256": hashlib.file_digest(content, "sha256").hexdigest()}
        return Corpus(name, (msgspec.structs.replace(file, source_format="queries", meta=meta),))

    def _data_stream(self, raw: Any, where: str) -> str:
        return convert(raw, _DataStreamEntry, self._document, where).name

    def _operations(self, entries: Iterable[Any]) -> dict[str, TrackOperation]:
        operations: dict[str, TrackOperation] = {}
        for place, raw in enumerate(entries):
            where = f"$.operations[{place}]"
            # A bare name is a type without parameters.
            named = {"operation-type": raw} if isinstance(raw, str) else raw
            self._document.operation = _name_of(named)
            try:
                operation = read_operation(named, self._document, where, plugin=self._plugin)
            except UsageError as err:
                self._document.operation = ""
                # Only challenges that refer to it cannot be run.
                self._unusable[_name_of(named)] = err
                for error in err.errors:
                    missing = error.message.rpartition(": ")[2]
                    if missing.endswith(" is missing"):
                        # Workloads define operations that their tasks redefine.
                        self._document.note(where, f"{missing}: no task can name it")
                    else:
                        self._faults.append(Fault(error.message, error.hint, operation=_name_of(named)))
                continue
            if operation.name in operations:
                twice = f"two operations are called '{operation.name}'"
                self._mistakes.add(self._document.refuse(where, twice))
            operations[operation.name] = operation
        self._document.operation = ""
        return operations

    def _challenges(self, entry: _TrackFile, track: Track) -> dict[str, Challenge]:
        """Challenges that can be run; errors of the others are kept for those who ask for them."""
        document = self._document
        given = [key for key in (*_SEVERAL, *_ONE, _IN_PLACE) if getattr(entry, key) is not None]
        if len(given) > 1:
            message = f"{' and '.join(given)} exclude each other"
            self._mistakes.add(document.refuse("$", message, key=given[1]))
        context = Context(document, self._path.parent.name, track.operations, self._plugin, self._unusable)
        challenges: dict[str, Challenge] = {}
        for where, raw in _places(given[0], getattr(entry, given[0])) if given else ():
            name = str(raw.get("name") or where)
            document.challenge = name
            try:
                challenge = read_challenge(raw, context, where)
                _check(challenge, track, document, where)
            except UsageError as err:
                default = raw.get("default") is True
                self._faults += (Fault(one.message, one.hint, name, default=default) for one in err.errors)
                continue
            finally:
                document.challenge = ""
            if challenge.name in challenges:
                twice = f"two challenges are called '{name}'"
                self._mistakes.add(document.refuse(where, twice, key="name"))
            challenges[challenge.name] = challenge
        defaults = [challenge.name for challenge in challenges.values() if challenge.default]
        if len(defaults) > 1:
            message = f"{' and '.join(defaults)} are both the default: only one can be"
            self._mistakes.add(document.refuse(f"$.{given[0]}", message))
        return challenges

    def _index(self, raw: Any, where: str) -> Index:
        entry = convert(raw, _IndexEntry, self._document, where)
        own, where = entry.body, f"{where}.body"
        if isinstance(own, _Bodies):
            opensearch = self._body(own.opensearch, f"{where}.opensearch")
            body = self._body(own.elasticsearch, f"{where}.elasticsearch")
            return Index(entry.name, body, entry.types, opensearch)
        return Index(entry.name, self._body(own, where) if own else IndexBody(), entry.types)

    def _body(self, name: str, where: str) -> IndexBody:
        document, value = self._read_beside(name, where)
        body = convert(value, IndexBody, document, "$")
        try:
            problem = "number_of_shards must be at least 1" if body.shards < 1 else ""
        except ValueError as err:
            problem = str(err)
        if problem:
            raise document.refuse("$.settings", problem)
        return body

    def _templates(self, entry: _TrackFile) -> Iterable[Template]:
        for kind, key in _TEMPLATES.items():
            yield from self._each(
                f"$.{key}",
                getattr(entry, key.replace("-", "_")),
                partial(self._template, kind),
                lambda name, kind=kind: Template(name, kind, {}),  # type: ignore[misc]
            )

    def _template(self, kind: TemplateKind, raw: Any, where: str) -> Template:
        entry = convert(raw, _TemplateEntry, self._document, where)
        if kind != "component" and entry.index_pattern is None:
            raise self._document.refuse(where, "index-pattern is missing")
        document, body = self._read_beside(entry.template, f"{where}.template")
        inner = "$"
        for key in entry.template_path.split(".") if entry.template_path else ():
            if not isinstance(body, Mapping) or key not in body:
                message = f"no '{key}' at {inner} of {document.name}"
                raise self._document.refuse(f"{where}.template-path", message)
            body, inner = body[key], f"{inner}.{key}"
        if not isinstance(body, dict):
            raise document.refuse(inner, "a template is an object")
        return Template(entry.name, kind, body, entry.index_pattern, entry.delete_matching_indices)

    def _read_beside(self, name: str, where: str) -> tuple[Document, Any]:
        """Read another file of the track, a template like the main one."""
        path = self._path.parent / name
        if "\0" in name or not self._renderer.reach.allows(path.resolve()):
            raise self._document.refuse(where, f"'{name}' is outside the track and its siblings")
        if not self._renderer.reach.holds(path):
            raise self._document.refuse(where, f"no such file: '{name}' in {self._path.parent}")
        document, value = read_document(self._renderer.render(path), lenient=True)
        self._documents.append(document)
        return document, value


def _places(key: str, value: Any) -> Sequence[tuple[str, dict[str, Any]]]:
    """JSON paths and objects of a track's challenges."""
    if key in _SEVERAL:
        return [(f"$.{key}[{place}]", item) for place, item in enumerate(value)]
    return [("$", {"name": "default", "schedule": value}) if key == _IN_PLACE else (f"$.{key}", value)]


def _check(challenge: Challenge, track: Track, document: Document, where: str = "$") -> None:
    """Check a challenge by itself, and what its tasks refer to in its track."""
    operations = {**track.operations, **challenge.operations}
    mistakes = Mistakes()
    with mistakes.part():
        check_challenge(challenge, operations, document, where)
    for element, places in enumerate(challenge.steps):
        for task in (challenge.schedule[place] for place in places):
            problem = _reference_problem(operations[task.operation], track)
            if problem:
                message = f"task '{task.label}': {problem}"
                mistakes.add(document.refuse(f"{where}.schedule[{element}]", message))
    mistakes.settle()


def _reference_problem(operation: Operation, track: Track) -> str:
    """Return what an operation leaves open, or refers to without a declaration; empty for neither.

    Rally refuses both, too.
    """
    names = (*(index.name for index in track.indices), *track.data_streams)
    if isinstance(operation, LoggedSearch) and operation.log not in {log.name for log in track.logs}:
        return f"needs the key '{operation.log}' of the track: the file of its queries"
    if len(names) > 1 and _names_no_index(operation):
        return f"names no index, and the track has {len(names)}: {', '.join(names[:MOST_NAMES])}"
    if not isinstance(operation, CreateTemplate) or operation.body is not None:
        return ""
    kind = operation.type_name.removeprefix("create-").removesuffix("-template")
    declared = [template.name for template in track.templates if template.kind == kind]
    if operation.template is None and not declared:
        return f"needs a template and a body: the track declares no {kind} template"
    if operation.template is not None and operation.template not in declared:
        return f"the track declares no {kind} template '{operation.template}', and no body"
    return ""


def _names_no_index(operation: Operation) -> bool:
    if isinstance(operation, Composite):
        # As in Rally, its searches without an index ask all of them.
        return any(isinstance(part, OpenPointInTime) and not part.target for part in parts_of(operation))
    if isinstance(operation, MultiSearch) and all(search.index for search in operation.searches):
        return False
    needing = Asking | VectorSearch
    is_logged = isinstance(operation, LoggedSearch)  # its log names them
    return isinstance(operation, needing) and not operation.target and not is_logged


def _name_of(operation: object) -> str:
    """An operation's name in tasks, as far as it is known of an invalid one."""
    fields = operation if isinstance(operation, Mapping) else {}
    return str(fields.get("name") or fields.get("operation-type") or "")


def _digest(track: Track) -> str:
    """Over the meaning, not the files: white space and comments do not affect measurements."""
    operations = sorted((name, operation.meaning) for name, operation in track.operations.items())
    meaning = (track.indices, track.data_streams, track.templates, track.corpora, track.logs, operations)
    return hashlib.sha256(msgspec.json.encode(meaning, order="sorted")).hexdigest()


# Parameters of every challenge, even if its file is not a template: they set the tasks' key of the same name.
TASK_PARAMETERS = ("iterations", "warmup_iterations", "target_throughput", "clients")


def load_track(name: str, params: Mapping[str, Any]) -> tuple[Track, set[str]]:
    """Load a track, and the names of all parameters that its files use.

    Args:
        name: a shipped track's name, or the path of a folder or file: Rally's `track.json`, or OpenSearch
            Benchmark's `workload.json`.
        params: template parameters.

    Raises:
        UsageError: If something is missing or wrong; the message names file and JSON path.
    """
    path = find_track(name)
    renderer = Renderer(path.parent, params, lenient=True)
    document, raw = read_document(renderer.render(path), lenient=True)
    if not isinstance(raw, Mapping):
        raise document.refuse("$", "a track is an object")
    if _VERSION_OF_NODES in renderer.known.difference(params):
        document.note("$", f"'{_VERSION_OF_NODES}' is not set from the variants: give it with --param")
    try:
        return _Reader(path, renderer, document).track(raw), renderer.known
    except RecursionError as err:
        raise UsageError(f"{path}: something in it is nested too deeply") from err


def warmup_names() -> tuple[str, ...]:
    """Return the names of challenges for warming up: the shipped ones, and the one derived from a track."""
    return (*challenge_names(), POLLUTED)


def load_challenge(
    name: str, track: Track, params: Mapping[str, Any], documents: int = 0
) -> tuple[Challenge, set[str]]:
    """Load a challenge, set its parameters and check it against the track.

    A parameter named like a key in TASK_PARAMETERS sets that key of every task, unless the file uses a
    template variable of that name itself.

    Args:
        name: of one of the track's own challenges, or of a shipped one; `polluted` for the one that is
            derived from the track; or the path of a file.
        track: whose operations its tasks refer to.
        params: template parameters.
        documents: that are searched, which decide how long `polluted` takes; 0 if that is not known.

    Returns:
        The challenge, and the names of the parameters that it uses.

    Raises:
        UsageError: If something is missing or wrong; the message names file and JSON path.
    """
    fault = track.fault_of(name)
    if fault is not None:
        raise fault.error
    document = Document(f"challenge {name}")
    own_remarks: list[str] = []
    if name in track.challenges:
        challenge, param_names = track.challenges[name], set(track.known)
    elif name == POLLUTED:
        challenge, param_names = pollution(track, documents), set()
    else:
        path = find_challenge(name, (*track.challenges, *warmup_names()))
        renderer = Renderer(path.parent, params)
        document, raw = read_document(renderer.render(path))
        unusable = {fault.operation: fault.error for fault in track.faults if fault.operation}
        context = Context(document, track.name, track.operations, unusable=unusable)
        try:
            challenge, param_names = read_challenge(raw, context), renderer.known
        except RecursionError as err:
            raise UsageError(f"{path}: something in it is nested too deeply") from err
        own_remarks = [str(remark) for remark in document.remarks]
    overrides = {
        key: value for key, value in params.items() if key in TASK_PARAMETERS and key not in param_names
    }
    if overrides:
        written = ", ".join(f"{key}={value}" for key, value in overrides.items())
        document = Document(f"challenge {challenge.name} with {written}")
    operations = track.operations | challenge.operations
    tasks = tuple(
        _override(task, _fitting(overrides, task, operations[task.operation]), document)
        for task in challenge.schedule
    )
    remarks = tuple(dict.fromkeys([*own_remarks, *track.remarks_on(challenge)]))
    result = msgspec.structs.replace(challenge, schedule=tasks, remarks=remarks)
    _check(result, track, document)
    return result, param_names | {key for key in params if key in TASK_PARAMETERS}


def _fitting(overrides: Mapping[str, Any], task: Task, operation: Operation) -> Mapping[str, Any]:
    """The parameters that make sense for a task.

    Nobody who asks for 300 iterations wants 300 force-merges, or a corpus truncated to 300 bodies.
    """
    if not operation.reported:
        return {}
    if operation.shares_work and task.iterations is None:
        return {name: value for name, value in overrides.items() if "iterations" not in name}
    return overrides


def _override(task: Task, overrides: Mapping[str, Any], document: Document) -> Task:
    """The task with these keys replaced; 0 as a rate removes the rate."""
    if not overrides:
        return task
    types = {field.name: field.type for field in msgspec.structs.fields(Task)}
    converted: dict[str, Any] = {}
    for key, value in overrides.items():
        if key == "target_throughput" and value == 0:
            converted[key] = None
            # Poisson arrivals need a rate.
            converted["schedule"] = "deterministic" if task.schedule == "poisson" else task.schedule
            continue
        try:
            converted[key] = msgspec.convert(value, types[key])
        except msgspec.ValidationError as err:
            raise UsageError(f"{document.name}: parameter {key}: {in_words(err)}") from err
    if "target_throughput" in converted:
        converted["target_interval"] = None
    if converted.get("iterations") is not None:
        converted["time_period"] = None
        # Both apply to periods only.
        converted["warmup_time_period"] = None
        converted["ramp_up_time_period"] = None
    return msgspec.structs.replace(task, **converted)


def reject_lacking(track: Track, challenge: Challenge) -> None:
    """Refuse a challenge that needs the track's plug-in.

    Raises:
        UsageError: If it does; the message names everything that is missing.
    """
    lacking = track.lacking(challenge)
    if lacking:
        there = f"in {track.plugin}" if track.plugin else "which is not in the track's directory"
        raise UsageError(
            f"challenge '{challenge.name}' of track '{track.name}' needs a Python plug-in, {there}: "
            f"{'; '.join(lacking)}"
        )


class UnusedParameter(UsageError):  # noqa: N818 - what is so; whether it is a mistake depends on who gave it
    """A parameter that nothing uses; whether that is a mistake depends on who gave it."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"--param {name}: no challenge or track uses it", hint=hint)
        self.name = name


def reject_unused(params: Mapping[str, Any], known: set[str]) -> None:
    """Refuse a parameter that no file of the track or challenges uses: it is a typo.

    Raises:
        UnusedParameter: If there is one; the message names it and the nearest parameter that is used.
    """
    for name in params:
        if name not in known:
            others = known.union(TASK_PARAMETERS) - {name}
            raise UnusedParameter(name, suggestion(name, sorted(others)))


def refuse_unswept(
    name: str, challenges: Iterable[str], known: Iterable[str], options: Iterable[str] = ()
) -> UsageError:
    """Return the error for a swept parameter that changes nothing of challenges.

    `known` are the parameters of their files, `options` what else could be swept.
    """
    names = sorted({one for one in (*known, *TASK_PARAMETERS) if "." not in one} - {name})
    variable = f"{{{{ {name.replace('-', '_')} | default(VALUE) }}}}"
    way = guess(name, (*names, *options)) or f"its parameters: {', '.join(names[:MOST_NAMES])}"
    return UsageError(
        f"--sweep {name}: challenge {' and '.join(challenges)} does not use parameter '{name}'",
        hint=f"{way}; to make it one, write {variable} in place of the value; of an index: index:{name}",
    )


def parse_filters(text: str) -> tuple[str, ...]:
    """Parse comma-separated filters: a task's name, `type:search`, `tag:setup`."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def filter_tasks(
    challenges: Sequence[Challenge],
    operations: Mapping[str, Operation],
    *,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
) -> tuple[Challenge, ...]:
    """Return challenges with some of their tasks.

    Args:
        challenges: as loaded, at least one.
        operations: the track's.
        include: keep only matches of these; empty keeps all.
        exclude: remove matches of these.

    Raises:
        UsageError: If a filter matches no task of any challenge, a challenge is left without tasks, or with
            one that no longer ends.
    """
    if not include and not exclude:
        return tuple(challenges)
    labels = {
        label
        for challenge in challenges
        for task in challenge.schedule
        for label in _labels(task, {**operations, **challenge.operations})
    }
    for text in (*include, *exclude):
        if text not in labels:
            names = " or ".join(f"'{challenge.name}'" for challenge in challenges)
            kind = next((prefix for prefix in _PREFIXES if text.startswith(prefix)), "")
            choices = (label for label in labels if label.startswith(kind or _NAME))
            raise UsageError(
                f"no task of challenge {names} matches the filter '{text}'",
                hint=suggestion(text, sorted(choice if kind else choice[len(_NAME) :] for choice in choices)),
            )
    return tuple(
        _filtered(challenge, {**operations, **challenge.operations}, include, exclude)
        for challenge in challenges
    )


_NAME = "name:"  # of a task whose name begins like a filter by something else
_PREFIXES = (_NAME, "type:", "tag:")


def _labels(task: Task, operations: Mapping[str, Operation]) -> set[str]:
    """Every filter that matches a task."""
    operation = operations[task.operation]
    own = (operation.tags,) if isinstance(operation.tags, str) else operation.tags
    tags = {f"tag:{tag}" for tag in (*task.tags, *own)}
    return {task.label, f"{_NAME}{task.label}", f"type:{operation.type_name}"} | tags


def _filtered(
    challenge: Challenge,
    operations: Mapping[str, Operation],
    include: Collection[str],
    exclude: Collection[str],
) -> Challenge:
    labels = [_labels(task, operations) for task in challenge.schedule]
    kept = {
        place: task
        for place, task in enumerate(challenge.schedule)
        if (not include or not labels[place].isdisjoint(include)) and labels[place].isdisjoint(exclude)
    }
    if not kept:
        raise UsageError(f"the filters leave no task of challenge '{challenge.name}'")
    for places in challenge.steps:
        remaining = [kept[place] for place in places if place in kept]
        ending = [task.label for task in (challenge.schedule[place] for place in places) if task.completes]
        if ending and remaining and not any(task.completes for task in remaining):
            raise UsageError(
                f"the filters remove '{ending[0]}' of challenge '{challenge.name}', whose end ends "
                f"'{remaining[0].label}'",
                hint="include both, or exclude both",
            )
    left = msgspec.structs.replace(challenge, schedule=tuple(kept.values()))
    # A task may have been ended by a parallel one that is gone now.
    check_challenge(left, operations, Document(f"challenge {challenge.name}, filtered"))
    return left

"""The work of a plan's tasks: their context, what has to be there for it, and the track's plug-in."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from benchctl.corpus.queries import query_log
from benchctl.engine.answers import compared
from benchctl.engine.declared import EVERYTHING, OWN, Places, places, refusal, with_changes
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.load.executor import Job, TaskResult
from benchctl.load.work import WorkContext
from benchctl.load.work.openers import open_workload
from benchctl.load.work.vectors import check_data_sets
from benchctl.plugin.code import Code, Consent, read_code
from benchctl.plugin.code import refusal as plugin_refusal
from benchctl.plugin.session import PluginError, PluginUse, check_registered
from benchctl.report.numbers import counted
from benchctl.results.plan import Plan, PluginSpec, VariantSpec
from benchctl.results.samples import Outcome
from benchctl.run.documents import (
    GeneratedReader,
    data_set_files,
    is_bulk,
    is_generated,
    log_file,
    sources,
    vector_corpora,
)
from benchctl.track.library import checked_out, find_track
from benchctl.track.load import reject_lacking
from benchctl.track.model import Challenge, Track, TrackOperation
from benchctl.track.operations.admin import CreateDataStream, CreateIndex, CreateTemplate
from benchctl.track.operations.catalogue import OPERATION_TYPES, Composite, PluginOperation, parts_of
from benchctl.track.operations.search import POLLUTION_LOG, LoggedSearch, OneSearch, RawRequest


def allowed_plugin(
    name: str, track: Track, challenges: Iterable[Challenge], consent: Consent | None
) -> PluginSpec | None:
    """The plug-in that challenges need, executed once to check it; None when none is needed.

    A plug-in that only changes the track is executed if the user trusts it. `name` is the track's as given.

    Raises:
        UsageError: If the plug-in is needed and may not be executed, is missing, fails, or lacks something.
    """
    needing = [challenge for challenge in challenges if track.lacking(challenge)]
    code = read_code(find_track(name).parent)
    if not needing and (code is None or not code.processes or consent is None or not consent.covers(code)):
        return None
    if code is None or consent is None or not consent.covers(code):
        try:
            reject_lacking(track, needing[0])
        except UsageError as err:
            raise plugin_refusal(err.message, code) from err
    if code is None:
        return None
    for problem in plugin_problems(code, track, needing):
        raise problem
    return PluginSpec(str(code.path), code.digest)


def plugin_problems(code: Code, track: Track, challenges: Iterable[Challenge]) -> list[UsageError]:
    """Execute a trusted plug-in, and check whether it provides what challenges need.

    Returns:
        What is missing, one error for each challenge that cannot be run.

    Raises:
        UsageError: If the plug-in fails.
    """
    scheduled = list(challenges)
    try:
        replies = check_registered(code, [_needed(track, challenge) for challenge in scheduled])
    except PluginError as err:
        raise UsageError(err.message, hint=err.hint) from err
    return [
        UsageError(
            f"challenge '{challenge.name}' needs what the plug-in {code.path} does not register: "
            f"{'; '.join(missing)}"
        )
        for challenge, missing in zip(scheduled, replies, strict=True)
        if missing
    ]


def track_path(plan: Plan) -> str:
    """Return the name or path of a plan's track; a checkout that is gone is made again.

    Raises:
        BenchctlError: If its repository cannot be copied.
    """
    source = plan.track_source
    if source is None or Path(plan.track).exists():
        return plan.track
    # The home may be another one.
    path, _ = checked_out(resolve_home(), source.repository, source.track, source.commit)
    return str(path)


def confirm_plugin(plan: Plan, consent: Consent) -> None:
    """Check consent again when a run is resumed, which somebody else may have started.

    Raises:
        UsageError: If the user of this home has not consented.
    """
    if plan.plugin is None:
        return
    track_path(plan)  # else the plug-in comes back later, without consent
    code = read_code(Path(plan.plugin.path).parent)
    # A changed plug-in is not executed at all: `plugin_changes` reports it.
    if code is not None and code.digest == plan.plugin.digest and not consent.covers(code):
        raise plugin_refusal("the run needs the Python plug-in of its track", code)


def plugin_use(plan: Plan, track: Track, session: int = 0) -> PluginUse | None:
    """Describe how the load finds the plan's plug-in; tasks of one `session` share its modules' state."""
    if plan.plugin is None:
        return None
    return PluginUse(Path(plan.plugin.path).parent, plan.plugin.digest, track, session=session)


def plugin_changes(plan: Plan) -> list[str]:
    """Return how the plan's plug-in has changed."""
    if plan.plugin is None:
        return []
    code = read_code(Path(plan.plugin.path).parent)
    if code is None:
        return [f"the plug-in {plan.plugin.path} is gone"]
    if code.digest == plan.plugin.digest:
        return []
    return [f"the plug-in {plan.plugin.path} was {plan.plugin.digest[:12]}, is {code.digest[:12]}"]


def _needed(track: Track, challenge: Challenge) -> dict[str, frozenset[str]]:
    """Names that have to be registered, by kind."""
    by_name = track.operations | challenge.operations
    operations = [by_name[task.operation] for task in challenge.schedule]
    foreign = [operation for operation in operations if isinstance(operation, PluginOperation)]
    return {
        "param source": frozenset(
            custom.param_source for custom in foreign if custom.param_source is not None
        ),
        "operation type": frozenset(custom.type for custom in foreign if custom.type not in OPERATION_TYPES),
        "scheduler": frozenset(task.scheduler for task in challenge.schedule if task.scheduler is not None),
    }


def work_context(
    plan: Plan, track: Track, home: Home, variant: VariantSpec, session: int = 0, version: str = ""
) -> WorkContext:
    """The context of a plan's tasks.

    Operations that name no index mean the only index or data stream, as in Rally. Of several they mean all:
    by name if those certainly exist, else whatever the challenge has created by then. Tasks of the same
    `session` share the state of the plug-in's modules; `version` is the engine's, empty while no node is up.
    """
    plan = plan.of(variant)
    own = Places(track.of(variant.engine).indices, ())
    declared = with_changes(own, variant.index_settings, variant.mappings)
    bodies = {index.name: msgspec.to_builtins(index.body) for index in declared.indices}
    return WorkContext(
        index_name=default_target(plan, track),
        index_body=next(iter(bodies.values())) if len(bodies) == 1 else {},
        indices=bodies,
        mark={} if variant.target is None else OWN,
        data_streams=track.data_streams,
        templates=track.templates,
        seed=plan.seed,
        documents=GeneratedReader(home, plan.corpus) if is_generated(plan) else None,
        document_count=plan.corpus.documents,
        sources=sources(plan, track, home),
        engine=variant.engine,
        corpus=plan.corpus if is_generated(plan) else None,
        data_sets=data_set_files(plan, track, home),
        home=home,
        assertions=plan.assertions,
        plugin=plugin_use(plan, track, session),
        version=version,
    )


def default_target(plan: Plan, track: Track) -> str:
    """The target of operations that name no index, as a path component."""
    wanted = places(track, plan.corpus.files)
    return wanted.target if plan.origin == "prepared" or len(wanted.names) == 1 else EVERYTHING


def check_work(plan: Plan, track: Track, home: Home, *, looking: bool = False) -> None:
    """Prepare every task's work once for every variant, without a node, to find out what is missing.

    Vectors are read here, and exact neighbours found, which takes longer than a node should have to wait; not
    if it is only `looking`, when files may still have to be fetched.

    Raises:
        UsageError: If something that an operation needs is missing.
    """
    contexts = {
        msgspec.json.encode((spec.engine, spec.of_index, spec.documents, spec.operations)): (
            work_context(plan, track, home, spec),
            spec,
        )
        for spec in plan.variants
    }
    for (own, spec), challenge in itertools.product(contexts.values(), (*plan.all_warmups, *plan.schedules)):
        context = replace(own, home=None) if looking else own
        operations = own_operations({**track.operations, **challenge.operations}, spec)
        try:
            for task in challenge.schedule:
                operation = operations[task.operation]
                if isinstance(operation, PluginOperation):
                    # Its code may do anything when it is opened; it was checked when it was allowed.
                    continue
                names = vector_corpora(operation)
                files = [path for (name, _), path in own.data_sets.items() if name in names]
                if looking and not all(path.is_file() for path in files):
                    continue
                open_workload(operation, context, clients=task.clients, key=task.label).close()
            if not looking:
                check_data_sets([operations[task.operation] for task in challenge.schedule], context)
        except BenchctlError as err:
            raise UsageError(f"challenge '{challenge.name}', {err.message}", hint=err.hint) from err


_RESTORE = "restore-snapshot"
# All other PUT requests configure something.
_OF_DOCUMENTS = re.compile(r"/_(doc|create|bulk)\b")


def check_prepared(job: Job, result: TaskResult, given: Mapping[str, Any], *, searched: bool) -> None:
    """Fail if a task could not make or change what later tasks work on: their figures would be of other work.

    `given` are the variant's settings and mappings, as written; `searched` tells whether later tasks search
    what it sends.

    Raises:
        BenchctlError: If it failed, in the node's words; except for tasks whose failures are not fatal.
    """
    if not result.failures or job.task.ignore_response_error_level == "non-fatal":
        return
    count = sum(failure.count for failure in result.failures)
    reason = next((detail for failure in result.failures for detail in failure.details), "no reason given")
    operation = job.operation
    if is_bulk(operation):
        if searched:
            raise BenchctlError(
                f"task {job.task.label}: {counted(count, 'request')} failed, so later tasks would search "
                f"other documents: {reason}",
                hint=_COUNTED_INSTEAD,
            )
        return
    # Succeeding after retries is not a failure; part 0 is the operation itself.
    if any(((chunk["outcome"] == Outcome.OK) & (chunk["part"] == 0)).any() for chunk in result.samples):
        return
    # A plug-in's operations are known by the names of their types alone.
    kind = OPERATION_TYPES.get(operation.type_name, PluginOperation)
    if issubclass(kind, CreateIndex | CreateDataStream | CreateTemplate) or operation.type_name == _RESTORE:
        raise refusal(f"what task {job.task.label} makes", reason, given)
    # What the node lacks altogether is n/a.
    if result.unsupported is None and _configures(operation):
        raise BenchctlError(
            f"task {job.task.label} failed, which later tasks depend on: {reason}", hint=_COUNTED_INSTEAD
        )


_COUNTED_INSTEAD = (
    "correct the track, or exclude the task with --exclude-tasks; a task with "
    '"ignore-response-error-level": "non-fatal" has its failures counted instead'
)


def _configures(operation: TrackOperation) -> bool:
    """Return whether an operation changes what others find, rather than being what is measured."""
    if isinstance(operation, Composite):
        return any(map(_configures, parts_of(operation)))
    if isinstance(operation, RawRequest):
        hidden = operation.include_in_reporting is False and operation.method not in {"GET", "HEAD"}
        return hidden or (operation.method == "PUT" and not _OF_DOCUMENTS.search(operation.path))
    kind = OPERATION_TYPES.get(operation.type_name)
    return kind is not None and not (kind.shown or kind.reads)


def tasks_before_searches(plan: Plan, track: Track) -> frozenset[tuple[int, int]]:
    """Return (schedule, task) of all tasks before the last step in which more than indexing is measured."""
    before: set[tuple[int, int]] = set()
    is_followed = False
    # A search for a red-line repeats its tasks.
    schedules = plan.schedules if plan.redline is None else ()
    for number, challenge in reversed(list(enumerate(schedules))):
        for step in reversed(challenge.steps):
            if is_followed:
                before.update((number, place) for place in step)
            operations = [track.operations[challenge.schedule[place].operation] for place in step]
            is_followed = is_followed or any(
                operation.reported and not is_bulk(operation) for operation in operations
            )
    return frozenset(before)


def own_operations(
    operations: Mapping[str, TrackOperation], variant: VariantSpec
) -> dict[str, TrackOperation]:
    """Return operations by name, with the bodies that a variant has for them.

    Raises:
        UsageError: If an operation cannot have such a body.
    """
    changed = dict(operations)
    for name, body in variant.operations.items():
        if name in operations:
            try:
                changed[name] = msgspec.convert(
                    {**msgspec.to_builtins(operations[name]), "body": body}, type(operations[name])
                )
            except msgspec.ValidationError as err:
                raise UsageError(f"variant '{variant.name}', operation '{name}': {err}") from err
    return changed


def operations_used(
    plan: Plan, track: Track, variant: VariantSpec | None = None
) -> tuple[TrackOperation, ...]:
    """The plan's operations whose answers can be compared, in order of first use, or a variant's.

    Only those with searches, since a raw request may do anything.
    """
    challenges = (*plan.all_warmups, *plan.schedules)
    operations = track.with_challenges(*challenges).operations
    operations = operations if variant is None else own_operations(operations, variant)
    names = dict.fromkeys(task.operation for challenge in challenges for task in challenge.schedule)
    used = [operations[name] for name in names]
    logged = sum(isinstance(operation, LoggedSearch) for operation in used)
    used = [_with_searches(operation, plan, track, logged) for operation in used]
    return tuple(operation for operation in used if compared(operation))


# Different requests of a log whose answers are compared, and of each of its shapes at least.
_MOST_COMPARED, _LEAST_COMPARED = 2_000, 20


def _with_searches(operation: TrackOperation, plan: Plan, track: Track, shapes: int) -> TrackOperation:
    """Return an operation on a log with different requests that it sends."""
    if not isinstance(operation, LoggedSearch) or operation.log == POLLUTION_LOG:
        return operation
    most = max(_MOST_COMPARED // shapes, _LEAST_COMPARED)
    different = query_log(log_file(plan, track, operation.log)).distinct(operation.shape, most)
    searches = tuple(OneSearch(body, index or None, params) for index, params, body in different)
    return msgspec.structs.replace(operation, searches=searches)

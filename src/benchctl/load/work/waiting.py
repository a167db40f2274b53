"""Operations that wait: pauses, and questions that are asked again until the answer is the wanted one."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.judge import UNDECODABLE, judge_plain, shorten
from benchctl.load.request import Answer, Judge, Request
from benchctl.load.work.envelope import Envelope
from benchctl.load.work.searches import PATH_SAFE, searches_in
from benchctl.load.workload import Numbered, Reply, Script, Workload, WorkOrder, ask
from benchctl.results.samples import Outcome
from benchctl.track.operations.admin import (
    ForceMerge,
    RunUntil,
    WaitForCurrentSnapshotsCreate,
    WaitForRecovery,
    WaitForSnapshotCreate,
)
from benchctl.track.operations.common import Condition, Criterion, is_number
from benchctl.track.operations.search import Sleep

_OK = Answer(Outcome.OK)

Verdict = Callable[[int, bytes], Answer | None]
"""HTTP status and body of an answer that came well -> how the whole ends; None: ask again."""


class _Task(msgspec.Struct):
    task: str


class _TaskState(msgspec.Struct):
    completed: bool
    error: msgspec.Raw = msgspec.Raw()
    response: "_TaskResponse | None" = None


class _Shards(msgspec.Struct):
    failed: int = 0


class _TaskResponse(msgspec.Struct):
    shards: _Shards = msgspec.field(name="_shards", default_factory=_Shards)


class _SnapshotState(msgspec.Struct):
    state: str = ""  # not in every list


class _SnapshotStates(msgspec.Struct):
    snapshots: list[_SnapshotState]


class _ShardStage(msgspec.Struct):
    stage: str


class _IndexStages(msgspec.Struct):
    shards: list[_ShardStage]


_decode_task = msgspec.json.Decoder(_Task).decode
_decode_task_state = msgspec.json.Decoder(_TaskState).decode
_decode_snapshots = msgspec.json.Decoder(_SnapshotStates).decode
_decode_stages = msgspec.json.Decoder(dict[str, _IndexStages]).decode


def open_sleep(operation: Sleep, order: WorkOrder) -> Workload:
    """A pause; nothing is sent."""

    def script(_number: int) -> Script:
        yield operation.duration
        return _OK

    return Numbered(script, order.clients)


def judge_condition(condition: Condition, root: str = "") -> Judge:
    """Judges an answer by what stands at one place in it.

    Args:
        condition: what has to stand where.
        root: a path in front of the condition's.
    """

    def judge(status: int, body: bytes) -> Answer:
        plain = judge_plain(status, body)
        if plain.outcome is not Outcome.OK:
            return plain
        try:
            found = at_path(msgspec.json.decode(body), f"{root}{condition.path}")
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"not JSON: {err}"))
        if found == condition.expected_value:
            return _OK
        wanted = msgspec.json.encode(condition.expected_value).decode()
        there = msgspec.json.encode(found).decode()
        return Answer(Outcome.BAD_BODY, reason=shorten(f"{condition.path} is {there}, not {wanted}"))

    return judge


def at_path(found: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    """What stands at a place, by keys with dots between them, numbers for lists; None where nothing does."""
    for key in path.split("."):
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def open_run_until(operation: RunUntil, order: WorkOrder) -> Workload:
    """A request, sent again and again until its answer meets the criterion."""
    given = operation.body
    body = given.encode() if isinstance(given, str) else msgspec.json.encode(given) if given else b""
    question = Envelope(operation).request(
        operation.method,
        quote(operation.path, safe=PATH_SAFE),
        body,
        params=operation.url_params,
        judge=judge_plain,
        searches=searches_in(operation.method, operation.path, body, order.context),
    )

    def verdict(_status: int, answer: bytes) -> Answer | None:
        found = at_path(msgspec.json.decode(answer), operation.json_path)
        return _OK if _meets(operation.criterion, found) else None

    return asked_until(question, verdict, operation.retry_wait_interval, order)


def _meets(criterion: Criterion, found: object) -> bool:
    if criterion.operator in {"exists", "not_exists"}:
        return (found is not None) == (criterion.operator == "exists")
    if not is_number(found):
        return False
    value, target = float(str(found)), float(str(criterion.value))
    return {
        "gte": value >= target,
        "lte": value <= target,
        "eq": value == target,
        "neq": value != target,
    }[criterion.operator]


def open_force_merge_polled(operation: ForceMerge, order: WorkOrder) -> Workload:
    """A merge that is started by one request, and asked after until it is done."""
    envelope = Envelope(operation)
    start = envelope.request(
        "POST",
        f"/{order.index(operation.target)}/_forcemerge",
        params={**force_merge_params(operation), "wait_for_completion": "false"},
        judge=judge_plain,
    )

    def script(_number: int) -> Script:
        started = yield from ask(start)
        if started.answer.outcome is not Outcome.OK:
            return started.answer
        try:
            task = _decode_task(started.exchange.body).task
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"the merge has no task to ask after: {err}"))
        question = envelope.request("GET", f"/_tasks/{quote(task, safe=':')}", judge=judge_plain)
        return (yield from poll(question, _merge_verdict, operation.poll_period))

    return Numbered(script, order.clients)


def force_merge_params(operation: ForceMerge) -> dict[str, str]:
    """The query of a force-merge."""
    most = operation.max_num_segments
    return operation.url_params | ({} if most is None else {"max_num_segments": str(most)})


def _merge_verdict(_status: int, body: bytes) -> Answer | None:
    state = _decode_task_state(body)
    if not state.completed:
        return None
    if error := bytes(state.error).decode(errors="replace"):
        return Answer(Outcome.HTTP_ERROR, reason=shorten(f"the merge failed: {error}"))
    failed = state.response.shards.failed if state.response is not None else 0
    if failed:
        return Answer(Outcome.PARTIAL, failed_shards=failed, reason=f"{failed} shards failed")
    return _OK


def open_wait_for_snapshot(operation: WaitForSnapshotCreate, order: WorkOrder) -> Workload:
    """Until a snapshot is complete, or has failed."""
    question = Envelope(operation).request(
        "GET",
        f"/_snapshot/{quote(operation.repository, safe='')}/{quote(operation.snapshot, safe='')}/_status",
        params={"ignore_unavailable": "true", **operation.url_params},
        judge=judge_plain,
    )
    return asked_until(question, _snapshot_verdict, operation.completion_recheck_wait_period, order)


def _snapshot_verdict(_status: int, body: bytes) -> Answer | None:
    states = {snapshot.state for snapshot in _decode_snapshots(body).snapshots}
    if not states:
        return Answer(Outcome.HTTP_ERROR, reason="there is no such snapshot")
    if states & {"FAILED", "PARTIAL", "ABORTED"}:
        return Answer(Outcome.PARTIAL, reason=f"the snapshot is {', '.join(sorted(states))}")
    return _OK if states == {"SUCCESS"} else None


def open_wait_for_current_snapshots(operation: WaitForCurrentSnapshotsCreate, order: WorkOrder) -> Workload:
    """Until no snapshot is being taken."""
    question = Envelope(operation).request(
        "GET",
        f"/_snapshot/{quote(operation.repository, safe='')}/_current",
        params={"verbose": "false", **operation.url_params},
        judge=judge_plain,
    )
    return asked_until(question, _no_snapshots, operation.completion_recheck_wait_period, order)


def _no_snapshots(_status: int, body: bytes) -> Answer | None:
    return None if _decode_snapshots(body).snapshots else _OK


def open_wait_for_recovery(operation: WaitForRecovery, order: WorkOrder) -> Workload:
    """Until every shard of an index has been recovered."""
    question = Envelope(operation).request(
        "GET",
        f"/{order.index(operation.target)}/_recovery",
        params=operation.url_params,
        judge=judge_plain,
    )
    return asked_until(question, _recovery_verdict, operation.completion_recheck_wait_period, order)


def _recovery_verdict(_status: int, body: bytes) -> Answer | None:
    # There is nothing yet when the question comes before the recovery is planned.
    stages = [shard.stage for index in _decode_stages(body).values() for shard in index.shards]
    return _OK if stages and all(stage == "DONE" for stage in stages) else None


def asked_until(question: Request, verdict: Verdict, period_s: float, order: WorkOrder) -> Workload:
    """A question that is asked every so many seconds until there is a verdict."""
    return Numbered(lambda _number: poll(question, verdict, period_s), order.clients)


def poll(question: Request, verdict: Verdict, period_s: float) -> Script:
    """Ask until there is a verdict, or until the question fails."""
    while True:
        reply: Reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        try:
            found = verdict(reply.exchange.status, reply.exchange.body)
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"it does not say how far it is: {err}"))
        if found is not None:
            return found
        yield period_s

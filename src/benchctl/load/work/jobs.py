"""Background jobs of the engines: transforms, downsampling, shrinking, machine learning."""

from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.request import (
    UNDECODABLE,
    Answer,
    Request,
    judge_health,
    judge_plain,
    shorten,
)
from benchctl.load.work.admin import at_path
from benchctl.load.work.common import LONG_TIMEOUT_S, Envelope, with_body
from benchctl.load.workload import Item, Numbered, Repeated, Reply, Script, Workload, WorkOrder, ask
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations.admin import (
    Downsample,
    ShrinkIndex,
    TrainKnnModel,
    WaitForTransform,
)
from benchctl.track.operations.common import url_param

_OK = Answer(Outcome.OK)
_TRANSFORMS: Mapping[EngineName, str] = {
    "elasticsearch": "/_transform",
    "opensearch": "/_plugins/_transform",
}


def open_wait_for_transform(operation: WaitForTransform, order: WorkOrder) -> Workload:
    """Until a transform has stopped."""
    envelope = Envelope(operation)
    path = f"{_TRANSFORMS[order.context.engine]}/{quote(operation.transform_id, safe='')}"
    return Numbered(lambda _number: _stop(operation, envelope, path, order), order.clients)


def _stats(path: str, order: WorkOrder) -> str:
    return f"{path}/{'_stats' if order.context.engine == 'elasticsearch' else '_explain'}"


def _defined(**params: object) -> dict[str, str]:
    return {name: url_param(value) for name, value in params.items() if value is not None}


def _stop(operation: WaitForTransform, envelope: Envelope, path: str, order: WorkOrder) -> Script:
    """Stop at the next checkpoint, and poll until it has stopped or the time is up."""
    engine = order.context.engine
    own = {
        "wait_for_completion": "false",
        **_defined(
            force=operation.force or None,
            timeout=operation.timeout,
            wait_for_checkpoint=operation.wait_for_checkpoint,
        ),
    }
    # OpenSearch's transforms know none of these.
    params = {**(own if engine == "elasticsearch" else {}), **operation.url_params}
    stopped = yield from ask(envelope.request("POST", f"{path}/_stop", params=params, judge=judge_plain))
    if stopped.answer.outcome is not Outcome.OK or not operation.wait_for_completion:
        return stopped.answer
    question = envelope.request("GET", _stats(path, order), judge=judge_plain)
    while True:
        reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        verdict = _verdict(reply.exchange.body, operation, engine)
        if verdict is not None:
            return verdict
        if reply.exchange.end_ns - stopped.exchange.start_ns > operation.transform_timeout * 1e9:
            return Answer(
                Outcome.TIMEOUT, reason=f"the transform goes on after {operation.transform_timeout:g} s"
            )
        yield operation.poll_interval


def _verdict(body: bytes, operation: WaitForTransform, engine: EngineName) -> Answer | None:
    """How the wait for a transform ends; None while it goes on."""
    try:
        state, reason = _state(msgspec.json.decode(body), operation.transform_id, engine)
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not a state: {err}"))
    if not state:
        return Answer(Outcome.BAD_BODY, reason="it does not say in which state the transform is")
    if state == "failed":
        return Answer(Outcome.PARTIAL, reason=shorten(f"the transform failed: {reason}"))
    return _OK if state in {"stopped", "finished"} else None


def _state(found: Any, name: str, engine: EngineName) -> tuple[str, str]:
    """A transform's state and the reason for it, in either engine's format."""
    if engine == "elasticsearch":
        first = at_path(found, "transforms.0")
        return str(at_path(first, "state") or ""), str(at_path(first, "reason"))
    about = found.get(name) if isinstance(found, dict) else None
    state = at_path(about, "transform_metadata.status")
    return str(state or ""), str(at_path(about, "transform_metadata.failure_reason"))


def open_downsample(operation: Downsample, order: WorkOrder) -> Workload:
    """A coarser index, in one synchronous request."""
    source = operation.source_index or order.context.index_name
    target = operation.target_index or f"{source}-{operation.fixed_interval}"
    body = {"fixed_interval": operation.fixed_interval}
    if operation.sampling_method is not None:
        body["sampling_method"] = operation.sampling_method
    return Repeated(
        Envelope(operation, timeout_s=LONG_TIMEOUT_S).request(
            "POST",
            f"/{quote(source, safe='')}/_downsample/{quote(target, safe='')}",
            msgspec.json.encode(body),
            params=operation.url_params,
            judge=judge_plain,
        )
    )


def open_shrink(operation: ShrinkIndex, order: WorkOrder) -> Workload:
    """Indices with fewer shards, one after the other."""
    return Numbered(lambda _number: _shrink_all(operation, order), order.clients)


_Found = Generator[Item, Reply | None, list[str] | Answer]


def _shrink_all(operation: ShrinkIndex, order: WorkOrder) -> Script:
    envelope = Envelope(operation, timeout_s=LONG_TIMEOUT_S)
    listing = envelope.request(
        "GET", f"/{quote(operation.source_index, safe=',*')}/_settings", judge=judge_plain
    )
    sources = yield from _keys(listing, "")
    if isinstance(sources, Answer):
        return sources
    if not sources:
        return Answer(Outcome.HTTP_ERROR, reason=f"there is no index '{operation.source_index}'")
    nodes: list[str] | Answer = [operation.shrink_node] if operation.shrink_node else []
    if not nodes:
        nodes = yield from _keys(envelope.request("GET", "/_nodes/data:true", judge=judge_plain), "nodes")
    if isinstance(nodes, Answer):
        return nodes
    if not nodes:
        return Answer(Outcome.HTTP_ERROR, reason="no node holds data")
    stem = _stem(sources)
    for place, source in enumerate(sources):
        node = nodes[(order.context.seed + place) % len(nodes)]
        target = operation.target_index + source.removeprefix(stem)
        failed = yield from _shrink(operation, envelope, source, target, node)
        if failed is not None:
            return failed
    return _OK


def _stem(names: list[str]) -> str:
    """The common prefix of sorted names."""
    first, last = names[0], names[-1]
    alike = next((place for place, letter in enumerate(first) if not last.startswith(letter, place)), None)
    return first[:alike]


def _shrink(operation: ShrinkIndex, envelope: Envelope, source: str, target: str, node: str) -> Script:
    """Move all shards of an index to one node, block writes, and shrink it; the first failure, or None."""
    key = "_name" if operation.shrink_node else "_id"
    where = f"index.routing.allocation.require.{key}"
    settings = {**(operation.target_body.get("settings") or {}), where: None, "index.blocks.write": None}
    source_path, target_path = quote(source, safe=""), quote(target, safe="")
    steps = [
        with_body(
            envelope.request(
                "PUT", f"/{source_path}/_settings", params={"preserve_existing": "true"}, judge=judge_plain
            ),
            msgspec.json.encode({"settings": {where: node, "index.blocks.write": "true"}}),
        ),
        _settled(envelope, source_path),
        with_body(
            envelope.request(
                "PUT",
                f"/{source_path}/_shrink/{target_path}",
                params=operation.url_params,
                judge=judge_plain,
            ),
            msgspec.json.encode({**operation.target_body, "settings": settings}),
        ),
        _settled(envelope, target_path),
    ]
    for request in steps:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
    return None


def _settled(envelope: Envelope, path: str) -> Request:
    """A request that is answered once no shard of an index is moving."""
    return envelope.request(
        "GET",
        f"/_cluster/health/{path}",
        params={
            "wait_for_events": "languid",
            "wait_for_no_initializing_shards": "true",
            "wait_for_no_relocating_shards": "true",
            "timeout": f"{LONG_TIMEOUT_S:.0f}s",
        },
        judge=judge_health,
    )


def _keys(request: Request, path: str) -> _Found:
    """The sorted keys of an object in an answer; or the answer, if it failed."""
    reply = yield from ask(request)
    if reply.answer.outcome is not Outcome.OK:
        return reply.answer
    try:
        found = msgspec.json.decode(reply.exchange.body)
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not JSON: {err}"))
    found = at_path(found, path) if path else found
    return sorted(found) if isinstance(found, dict) else []


def open_train_model(operation: TrainKnnModel, order: WorkOrder) -> Workload:
    """A k-NN model, polled until it is trained."""
    envelope = Envelope(operation)
    path = f"/_plugins/_knn/models/{quote(operation.model_id, safe='')}"
    body = msgspec.json.encode(operation.body)
    train = envelope.request("POST", f"{path}/_train", body, params=operation.url_params, judge=judge_plain)
    question = envelope.request("GET", path, judge=judge_plain)

    def script(_number: int) -> Script:
        reply = yield from ask(train)
        for _ in range(operation.retries + 1):
            if reply.answer.outcome is not Outcome.OK:
                return reply.answer
            reply = yield from ask(question)
            verdict = _trained(reply.exchange.body) if reply.answer.outcome is Outcome.OK else reply.answer
            if verdict is not None:
                return verdict
            yield operation.poll_period
        return Answer(Outcome.TIMEOUT, reason=f"still in training after {operation.retries} questions")

    return Numbered(script, order.clients)


class _Model(msgspec.Struct):
    state: str
    error: str = ""


_decode_model = msgspec.json.Decoder(_Model).decode


def _trained(body: bytes) -> Answer | None:
    try:
        found = _decode_model(body)
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not a model: {err}"))
    if found.state == "training":
        return None
    if found.state == "created":
        return _OK
    return Answer(Outcome.PARTIAL, reason=shorten(f"the model is {found.state}: {found.error}"))

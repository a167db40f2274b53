"""Machine learning: Elasticsearch's jobs and datafeeds, OpenSearch's models; the core nodes have neither."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.envelope import Envelope
from benchctl.load.judge import UNDECODABLE, accepting, judge_plain, shorten
from benchctl.load.request import Answer
from benchctl.load.workload import Numbered, Repeated, Script, Workload, WorkOrder, ask
from benchctl.results.samples import Outcome
from benchctl.track import machine_learning as asked
from benchctl.track.common import Operation, url_param

_NOT_FOUND = 404
_OK = Answer(Outcome.OK)


@dataclass(frozen=True)
class _Form:
    """What the request of one type looks like.

    Attributes:
        method: of HTTP.
        path: `{}` stands for the name of what it works on.
        name: the operation's field with that.
        body: what is sent, from the operation.
        params: names of fields that go into the query when they say something.
        missing: whether a missing thing is no failure.
    """

    method: str
    path: str
    name: str
    body: Callable[[Any], object] | None = None
    params: tuple[str, ...] = ()
    missing: bool = False


_DATAFEED, _JOB = "/_ml/datafeeds/{}", "/_ml/anomaly_detectors/{}"


def _own_body(operation: Any) -> object:  # noqa: ANN401 - the classes share no base
    return operation.body


def _start_body(operation: asked.StartMlDatafeed) -> object:
    found = {"start": operation.start, "end": operation.end, "timeout": operation.timeout}
    return {**{key: value for key, value in found.items() if value is not None}, **(operation.body or {})}


_FORMS: Mapping[type[Operation], _Form] = {
    asked.CreateMlDatafeed: _Form("PUT", _DATAFEED, "datafeed_id", _own_body),
    asked.DeleteMlDatafeed: _Form("DELETE", _DATAFEED, "datafeed_id", params=("force",), missing=True),
    asked.StartMlDatafeed: _Form("POST", f"{_DATAFEED}/_start", "datafeed_id", _start_body),
    asked.StopMlDatafeed: _Form(
        "POST", f"{_DATAFEED}/_stop", "datafeed_id", params=("force", "timeout")
    ),
    asked.CreateMlJob: _Form("PUT", _JOB, "job_id", _own_body),
    asked.DeleteMlJob: _Form("DELETE", _JOB, "job_id", params=("force",), missing=True),
    asked.OpenMlJob: _Form("POST", f"{_JOB}/_open", "job_id"),
    asked.CloseMlJob: _Form("POST", f"{_JOB}/_close", "job_id", params=("force", "timeout")),
}  # fmt: skip

_MODELS: tuple[type[Operation], ...] = (
    asked.RegisterMlModel,
    asked.DeployMlModel,
    asked.DeleteMlModel,
    asked.CreateMlConnector,
    asked.DeleteMlConnector,
    asked.RegisterRemoteMlModel,
)


def open_ml(operation: Operation, order: WorkOrder) -> Workload:  # noqa: ARG001 - openers have one shape
    """One request to Elasticsearch's jobs and datafeeds."""
    form = _FORMS[type(operation)]
    body = None if form.body is None else form.body(operation)
    said = {name: getattr(operation, name) for name in form.params}
    params = {name: url_param(value) for name, value in said.items() if value}
    return Repeated(
        Envelope(operation).request(
            form.method,
            form.path.format(quote(getattr(operation, form.name), safe="")),
            msgspec.json.encode(body) if body else b"",
            params={**params, **operation.url_params},
            judge=accepting(judge_plain, {_NOT_FOUND} if form.missing else ()),
        )
    )


def open_models(operation: Operation, order: WorkOrder) -> Workload:
    """OpenSearch's models of languages: a node that lacks them says so, on one that has them benchctl does.

    What they do (uploads of models, tasks that load them) is not done yet.
    """
    probe = Envelope(operation).request("GET", "/_plugins/_ml/stats", judge=judge_plain)

    def script(_number: int) -> Script:
        reply = yield from ask(probe)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        reason = f"{operation.type_name}: benchctl cannot do this to models yet"
        return Answer(Outcome.HTTP_ERROR, reason=reason, lacking=reason)

    return Numbered(script, order.clients)


def open_train_model(operation: asked.TrainKnnModel, order: WorkOrder) -> Workload:
    """A model for the nearest vectors, asked for until it is there."""
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


def open_delete_model(operation: asked.DeleteKnnModel, order: WorkOrder) -> Workload:  # noqa: ARG001 - openers have one shape
    """A model for the nearest vectors goes."""
    missing = {_NOT_FOUND} if operation.ignore_if_model_does_not_exist else ()
    return Repeated(
        Envelope(operation).request(
            "DELETE",
            f"/_plugins/_knn/models/{quote(operation.model_id, safe='')}",
            params=operation.url_params,
            judge=accepting(judge_plain, missing),
        )
    )


MACHINE_LEARNING: Mapping[type[Operation], Callable[[Any, WorkOrder], Workload]] = {
    **dict.fromkeys(_FORMS, open_ml),
    **dict.fromkeys(_MODELS, open_models),
    asked.TrainKnnModel: open_train_model,
    asked.DeleteKnnModel: open_delete_model,
}
"""What makes the work of each type."""

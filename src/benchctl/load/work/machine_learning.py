"""Machine learning: Elasticsearch's jobs and datafeeds, OpenSearch's models; the core nodes have neither."""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from benchctl.load.judge import UNDECODABLE, accepting, judge_plain, shorten
from benchctl.load.request import Answer
from benchctl.load.work.envelope import Envelope
from benchctl.load.work.forms import Form, own_body, said
from benchctl.load.workload import Numbered, Opener, Repeated, Script, Workload, WorkOrder, ask
from benchctl.results.samples import Outcome
from benchctl.track.operations import admin as asked
from benchctl.track.operations.common import Operation

_OK = Answer(Outcome.OK)


_DATAFEED, _JOB = "/_ml/datafeeds/{datafeed_id}", "/_ml/anomaly_detectors/{job_id}"


def _start_body(operation: asked.StartMlDatafeed) -> object:
    found = {"start": operation.start, "end": operation.end, "timeout": operation.timeout}
    return {**{key: value for key, value in found.items() if value is not None}, **(operation.body or {})}


_FORMS: Mapping[type[Operation], Form] = {
    asked.CreateMlDatafeed: Form("PUT", _DATAFEED, own_body),
    asked.DeleteMlDatafeed: Form("DELETE", _DATAFEED, params=said("force"), missing=True),
    asked.StartMlDatafeed: Form("POST", f"{_DATAFEED}/_start", _start_body),
    asked.StopMlDatafeed: Form("POST", f"{_DATAFEED}/_stop", params=said("force", "timeout")),
    asked.CreateMlJob: Form("PUT", _JOB, own_body),
    asked.DeleteMlJob: Form("DELETE", _JOB, params=said("force"), missing=True),
    asked.OpenMlJob: Form("POST", f"{_JOB}/_open"),
    asked.CloseMlJob: Form("POST", f"{_JOB}/_close", params=said("force", "timeout")),
}

_MODELS: tuple[type[Operation], ...] = (
    asked.RegisterMlModel,
    asked.DeployMlModel,
    asked.DeleteMlModel,
    asked.CreateMlConnector,
    asked.DeleteMlConnector,
    asked.RegisterRemoteMlModel,
)


def open_ml(operation: Operation, order: WorkOrder) -> Workload:
    """One request to Elasticsearch's jobs and datafeeds."""
    return _FORMS[type(operation)].open(operation, order)


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
    missing = {HTTPStatus.NOT_FOUND} if operation.ignore_if_model_does_not_exist else ()
    return Repeated(
        Envelope(operation).request(
            "DELETE",
            f"/_plugins/_knn/models/{quote(operation.model_id, safe='')}",
            params=operation.url_params,
            judge=accepting(judge_plain, missing),
        )
    )


MACHINE_LEARNING: Mapping[type[Operation], Opener] = {
    **dict.fromkeys(_FORMS, open_ml),
    **dict.fromkeys(_MODELS, open_models),
    asked.TrainKnnModel: open_train_model,
    asked.DeleteKnnModel: open_delete_model,
}
"""What makes the work of each type."""

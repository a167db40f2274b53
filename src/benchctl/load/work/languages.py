"""Queries in languages of their own: SQL, whose further pages come by a cursor, and ES|QL."""

from collections.abc import Mapping

import msgspec

from benchctl.load.judge import UNDECODABLE, judge_plain, shorten
from benchctl.load.request import Answer
from benchctl.load.work.envelope import Envelope, with_body
from benchctl.load.workload import Numbered, Repeated, Script, Workload, WorkOrder, ask
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations.search import Esql, EsqlProfile, Sql

_SQL_PATHS: Mapping[EngineName, str] = {"elasticsearch": "/_sql", "opensearch": "/_plugins/_sql"}


class _SqlPage(msgspec.Struct, gc=False):
    cursor: str = ""


class _Rows(msgspec.Struct, gc=False):
    is_partial: bool = False
    took: int = -1


_decode_partial = msgspec.json.Decoder(_Rows).decode
_decode_page = msgspec.json.Decoder(_SqlPage).decode


def open_sql(operation: Sql, order: WorkOrder) -> Workload:
    """A query and its further pages; a cursor that is left over is closed.

    The engines run these queries as searches; how often they count them depends on the query.
    """
    envelope = Envelope(operation)
    path = _SQL_PATHS[order.context.engine]
    query = envelope.request(
        "POST",
        path,
        msgspec.json.encode(operation.body),
        params=operation.url_params,
        judge=judge_plain,
        searches=1,
    )
    if operation.pages == 1 and "fetch_size" not in operation.body:
        return Repeated(query)
    more = envelope.request("POST", path, params=operation.url_params, judge=judge_plain, searches=1)
    close = envelope.request("POST", f"{path}/close", judge=judge_plain)

    def script(_number: int) -> Script:
        request, cursor = query, b""
        answer = Answer(Outcome.OK)
        for _ in range(operation.pages):
            reply = yield from ask(request)
            answer = reply.answer
            if answer.outcome is not Outcome.OK:
                break
            try:
                found = _decode_page(reply.exchange.body).cursor
            except UNDECODABLE as err:
                answer = Answer(Outcome.BAD_BODY, reason=shorten(f"not a page of rows: {err}"))
                break
            cursor = msgspec.json.encode({"cursor": found}) if found else b""
            if not cursor:
                break
            request = with_body(more, cursor)
        if cursor:
            closed = yield from ask(with_body(close, cursor))
            answer = answer if answer.outcome is not Outcome.OK else closed.answer
        return answer

    return Numbered(script, order.clients)


def judge_esql(status: int, body: bytes) -> Answer:
    """An answer that some shards gave nothing to says so of itself, and has a status of 200."""
    plain = judge_plain(status, body)
    if plain.outcome is not Outcome.OK:
        return plain
    try:
        found = _decode_partial(body)
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not an answer of rows: {err}"))
    if found.is_partial:
        return Answer(Outcome.PARTIAL, found.took, reason="the rows are not all (is_partial)")
    return Answer(Outcome.OK, found.took)


def open_esql(operation: Esql | EsqlProfile, order: WorkOrder) -> Workload:  # noqa: ARG001 - openers have one shape
    """A query in ES|QL; the engine does not count it among its searches."""
    body = {**operation.body, "query": operation.query}
    if isinstance(operation, EsqlProfile):
        body["profile"] = True
    if operation.filter is not None:
        body["filter"] = operation.filter
    return Repeated(
        Envelope(operation).request(
            "POST",
            "/_query",
            msgspec.json.encode(body),
            params=operation.url_params,
            judge=judge_esql,
        )
    )

"""Documents of a live index: all of them, or an even random sample, page by page."""

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from benchctl.engine.client import SearchClient
from benchctl.engine.wires import NodeRequestError
from benchctl.errors import BenchctlError, UsageError

PAGE_BYTES = 8 * 2**20
"""Aimed at for a page: what is in memory at a time."""

_MOST_HITS = 2000
_LEAST_HITS = 10
_KEEP_ALIVE = "5m"
_TIMEOUT_S = 600.0
_GRAIN = 2**24  # random scores are whole multiples of 1 / 2^24
_SPARE = 4.0  # standard deviations by which a draw is larger than the sample

Hit = Mapping[str, Any]
"""A document as a search gives it: `_id`, `_source`, and `_routing` where it has one."""


class _Total(msgspec.Struct):
    value: Annotated[int, msgspec.Meta(ge=0)]


class _Hits(msgspec.Struct):
    total: _Total
    hits: list[dict[str, Any]]


class _Shards(msgspec.Struct):
    failed: int = 0


class Page(msgspec.Struct):
    """A search's answer, as far as it is looked at; clusters that run already may be anything."""

    hits: _Hits
    shards: _Shards = msgspec.field(default_factory=_Shards, name="_shards")
    timed_out: bool = False
    scroll: str | None = msgspec.field(default=None, name="_scroll_id")


def read_page(answer: object) -> Page:
    """An answer in its form.

    Raises:
        BenchctlError: it is no search's.
    """
    try:
        return msgspec.convert(answer, Page)
    except msgspec.ValidationError as err:
        raise BenchctlError(
            f"the cluster answers a search with something else: {err}",
            hint="see whether it is Elasticsearch from version 7 on, or OpenSearch",
        ) from err


@dataclass(frozen=True)
class Draw:
    """Which documents are read.

    Attributes:
        held: documents of the index.
        wanted: how many of them.
        body: of the search that finds these, or some more.
        seed: of the choice.
    """

    held: int
    wanted: int
    body: Mapping[str, Any]
    seed: int


def plan_draw(client: SearchClient, index: str, *, docs: int | None, seed: int) -> Draw:
    """Find the search for a sample: every document gets a random score, and those above a bound are meant.

    So a sample takes one pass over the index, whatever its size is.

    Args:
        client: of the cluster.
        index: name of the index.
        docs: how many documents; None for all.
        seed: of the choice; the same seed chooses the same documents while the index is as it is.

    Raises:
        UsageError: the index has no documents.
        NodeRequestError: the cluster refuses.
    """
    every: dict[str, Any] = {"query": {"match_all": {}}}
    held = _count(client, index, every)
    if held == 0:
        raise UsageError(f"the index '{index}' has no documents")
    if docs is None or docs >= held:
        return Draw(held, held, every, seed)
    share = (docs + _SPARE * math.sqrt(docs) + 1) / held
    while True:
        steps = min(_GRAIN, math.ceil(share * _GRAIN))
        body = {
            "query": {
                "function_score": {
                    "query": {"match_all": {}},
                    "random_score": {"seed": seed, "field": "_seq_no"},
                    "boost_mode": "replace",
                }
            },
            "min_score": (_GRAIN - steps) / _GRAIN,
        }
        if steps == _GRAIN or _count(client, index, body) >= docs:
            return Draw(held, docs, body, seed)
        share *= 2


def read_hits(client: SearchClient, index: str, draw: Draw, *, page: int) -> Iterator[list[Hit]]:
    """The documents of a draw in the index's order, page by page, as they were at the first one.

    Raises:
        BenchctlError: a page is incomplete, or a document cannot be read.
        NodeRequestError: the cluster refuses.
    """
    body = {**draw.body, "size": page, "sort": ["_doc"], "track_total_hits": True}
    path = f"/{quote(index, safe='')}/_search"
    answer = read_page(
        client.request("POST", path, params={"scroll": _KEEP_ALIVE}, body=body, timeout_s=_TIMEOUT_S)
    )
    scroll = answer.scroll
    try:
        left = answer.hits.total.value
        needed = min(draw.wanted, left)
        choice = random.Random(draw.seed)  # noqa: S311 - reproducible, not secret
        while needed:
            _check(answer, left)
            chosen: list[Hit] = []
            for hit in answer.hits.hits:
                # Knuth's algorithm S: exactly so many of those that are there, each as likely as the others.
                if choice.random() * left < needed:
                    chosen.append(_readable(hit))
                    needed -= 1
                left -= 1
            yield chosen
            if needed:
                again = {"scroll": _KEEP_ALIVE, "scroll_id": scroll}
                answer = read_page(
                    client.request("POST", "/_search/scroll", body=again, timeout_s=_TIMEOUT_S)
                )
                scroll = answer.scroll or scroll
    finally:
        with suppress(NodeRequestError):  # it ends by itself, a little later
            client.request("DELETE", "/_search/scroll", body={"scroll_id": [scroll]})


def page_size(document_bytes: float, largest: int | None) -> int:
    """Hits of a page that takes about PAGE_BYTES.

    Args:
        document_bytes: mean size of a document in the index.
        largest: bound of the index's own; None for none.
    """
    size = round(PAGE_BYTES / max(document_bytes, 1.0))
    bound = _MOST_HITS if largest is None else min(_MOST_HITS, largest)
    return max(1, min(bound, max(_LEAST_HITS, size)))


def _count(client: SearchClient, index: str, body: Mapping[str, Any]) -> int:
    counting = {**body, "size": 0, "track_total_hits": True}
    answer = read_page(client.search(index, counting, timeout_s=_TIMEOUT_S))
    _check(answer, None)
    return answer.hits.total.value


def _check(answer: Page, left: int | None) -> None:
    """A page that lacks something must not pass for the whole.

    Args:
        answer: the page.
        left: documents that are still to come; None where none are asked for.
    """
    failed = answer.shards.failed
    if failed or answer.timed_out:
        raise BenchctlError(
            f"the cluster gave an incomplete page: {failed} shards failed",
            hint="see whether all shards of the index are there and well",
        )
    if left is not None and not answer.hits.hits:
        raise BenchctlError(f"the cluster stopped giving documents while {left:,} were still to come")


def _readable(hit: Hit) -> Hit:
    if not isinstance(hit.get("_source"), dict):
        raise BenchctlError(f"document {hit.get('_id')} comes without its `_source`")
    return hit

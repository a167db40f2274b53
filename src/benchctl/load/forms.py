"""Forms of requests: which judge reads the response to a path, and which fields that judge needs."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from benchctl.load.request import (
    Judge,
    judge_begun,
    judge_bulk,
    judge_by_query,
    judge_count,
    judge_health,
    judge_listed,
    judge_multi_search,
    judge_plain,
    judge_rows,
    judge_search,
    judge_shards,
    judge_snapshot,
    judge_stated_shards,
)

_FILTER = "filter_path="


class _Kind(NamedTuple):
    methods: frozenset[str]
    path: re.Pattern[str]  # of the whole path, without slashes at its ends
    judge: Judge
    needs: tuple[str, ...]  # fields of a response, as `filter_path` writes them


def _kind(methods: str, path: str, judge: Judge, *needs: str) -> _Kind:
    return _Kind(frozenset(methods.split()), re.compile(path), judge, needs)


_SHARDS = ("_shards.total", "_shards.failed")
_SEARCH = ("took", "timed_out", *_SHARDS)

_KINDS = (
    _kind(
        "GET POST",
        r"(.+/)?(_search(/scroll(/[^/]+)?|/template)?|_knn_search|_rollup_search|_fleet_search)",
        judge_search,
        *_SEARCH,
    ),
    _kind(
        "GET POST",
        r"(.+/)?(_msearch(/template)?|_fleet_msearch)",
        judge_multi_search,
        "took",
        "responses.status",
        "responses.error",
        *(f"responses.{name}" for name in _SEARCH),
    ),
    _kind("POST PUT", r"(.+/)?_bulk", judge_bulk, "took", "errors", "items.*.error"),
    _kind("GET POST", r"(.+/)?_count", judge_count, "count", *_SHARDS),
    _kind(
        "GET POST",
        r"(.+/)?(_refresh|_flush|_forcemerge|_cache/clear)",
        judge_shards,
        "task",
        *_SHARDS,
    ),
    _kind("POST", r"(.+/)?(_pit|_search/point_in_time)", judge_stated_shards, "id", "pit_id", *_SHARDS),
    _kind("POST PUT DELETE", r"[^/]+/(_doc|_create|_update)(/[^/]+)?", judge_stated_shards, *_SHARDS),
    _kind(
        "GET POST",
        r"(.+/)?(_async_search|_plugins/_asynchronous_search)(/[^/]+)?",
        judge_begun,
        "id",
        "is_running",
        "is_partial",
        "state",
        "error",
        *(f"response.{name}" for name in _SEARCH),
    ),
    _kind(
        "POST",
        r"(.+/)?(_update_by_query|_delete_by_query|_reindex)",
        judge_by_query,
        "took",
        "timed_out",
        "failures",
        "task",
    ),
    _kind("GET POST", r"(.+/)?(_field_caps|_mget)", judge_listed, "failures", "docs.error"),
    _kind("POST", r"_query|(.+/)?_eql/search", judge_rows, "took", "is_partial", "timed_out"),
    _kind("GET", r"_cluster/health(/.+)?", judge_health, "status", "timed_out"),
    _kind(
        "PUT POST",
        r"_snapshot/[^/]+/[^_/][^/]*(/_restore)?",
        judge_snapshot,
        "accepted",
        "snapshot.state",
        "snapshot.shards.failed",
    ),
)


def _kind_of(method: str, path: str) -> _Kind | None:
    plain = path.partition("?")[0].strip("/")
    return next((kind for kind in _KINDS if method in kind.methods and kind.path.fullmatch(plain)), None)


def judge_of(method: str, path: str) -> Judge:
    """Return the judge of a request's response; `path` may have a query."""
    kind = _kind_of(method, path)
    return judge_plain if kind is None else kind.judge


def answerable(method: str, path: str, reads: Collection[str] = ()) -> str:
    """Return the path whose `filter_path` lets through what the response is judged by.

    Args:
        method: of the request.
        path: with its query, percent-encoded.
        reads: further fields that the operation needs, as `filter_path` writes them.
    """
    plain, mark, query = path.partition("?")
    if _FILTER not in query:
        return path
    kind = _kind_of(method, path)
    needs = (*(() if kind is None else kind.needs), *reads)
    parts = [_widened(part, needs) if part.startswith(_FILTER) else part for part in query.split("&")]
    return plain + mark + "&".join(part for part in parts if part != _FILTER)


def _widened(parameter: str, needs: Iterable[str]) -> str:
    """`filter_path` without exclusions of what is needed, and with it where only some fields are included."""
    patterns = [text for text in unquote_plus(parameter[len(_FILTER) :]).split(",") if text]
    excluded = [text for text in patterns if text.startswith("-") and not _hides(text[1:], needs)]
    included = [text for text in patterns if not text.startswith("-")]
    if included:
        included += [name for name in needs if name not in included]
    return _FILTER + quote(",".join(included + excluded), safe=",*")


def _hides(pattern: str, needs: Iterable[str]) -> bool:
    """Return whether an exclusion takes one of these fields, or what they are in, away."""
    texts = {"**": ".+", "*": r"[^.]+"}
    keys = [texts.get(key) or re.escape(key).replace(r"\*", r"[^.]*") for key in pattern.split(".")]
    hidden = re.compile(r"\.".join(keys) + r"(\..+)?")
    return any(hidden.fullmatch(name) for name in needs)

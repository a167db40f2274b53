"""Logs of searches as engines write them: slow logs in JSON, exports of query insights, and plain lines."""

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec

from benchctl.corpus.indexed import unpacked
from benchctl.errors import UsageError

_MOST_LINE_BYTES = 1 << 26
_MOST_TOOK_MS = 10**9
_MOST_MS = 7 * 10**12  # the year 2191
_SECONDS = 10**9, 10**11  # numbers that are seconds since 1970: as milliseconds, they are days in it
_MOST_EXPORT_BYTES = 1 << 29
# Shards of one search log it at nearly the same time.
_TOGETHER_MS = 10_000
_LOOKED_THROUGH = 1_000  # lines, for searches that wait in vain
_HINT: Final = (
    "give a search slow log in JSON (..._index_search_slowlog.json), an export of OpenSearch's query "
    'insights, or lines such as {"timestamp": "2026-11-30T12:00:00Z", "index": "logs", "body": {"query": {}}}'
)


EXPORT: Final = re.compile(rb'\s*\{\s*"top_queries"')
"""The beginning of an export of query insights."""


class Query(NamedTuple):
    """A search of a log."""

    at_ms: int  # when it began, since 1970
    indices: tuple[str, ...]  # names or patterns; none where the log does not say
    params: str  # the query of its URL
    body: dict[str, Any]
    took_ms: float | None  # the engine's time; None where the log does not say


class _Line(NamedTuple):
    query: Query
    shard: str = ""  # which of its index
    shards: int = 1  # that the search asked
    key: bytes = b""  # equal for the lines of one search


TOO_DEEP: Final = "a search that is nested too deeply"


class LeftOut(Exception):  # noqa: N818 - what happens to a line, not a mistake
    """A line that is no search to be sent again; the text tells what it is."""


# A slow log's fields: of 8 and 9, and of 7 and OpenSearch.
_ECS: Final = "elasticsearch.slowlog."
_TOOK: Final = re.compile(r"(?P<number>[\d.]+)(?P<unit>nanos|micros|ms|s|m|h)")
_UNITS_MS: Final = {"nanos": 1e-6, "micros": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_FETCH: Final = re.compile(r"slowlog\.fetch|i\.s\.s\.fetch")
_ESCAPED: Final = re.compile(r'\s*\{\s*\\"')
_OF_REQUESTS: Final = re.compile(r"search_request_slowlog")
_SEARCH: Final = re.compile(r"search_?slowlog|search\.slowlog|i\.s\.s\.query")
_SHARD: Final = re.compile(r"\[(?P<index>.+)\]\[(?P<shard>\d+)\]")
_SENT_ELSEWHERE: Final = re.compile(r"/_(?!all/|search/?$)", re.IGNORECASE)
_OWN_PARAMS: Final = frozenset({"pretty", "human", "error_trace", "filter_path", "scroll"})


def read_line(line: Mapping[str, Any]) -> _Line:
    """Read one line of any of these logs.

    Raises:
        LeftOut: If it is no search, or one that cannot be sent again.
    """
    line = line.get("_source", line)
    if _ECS + "source" in line or ("source" in line and "message" in line):
        found = _of_slow_log(line)
    elif "source" in line:
        found = _of_insights(line)
    elif "body" in line:
        found = _of_plain(line)
    else:
        raise LeftOut("a line of another kind")
    body = found.query.body
    if "pit" in body:
        raise LeftOut("a search of a point in time, which is gone")
    if "slice" in body:
        raise LeftOut("a slice of a scroll")
    return found


def _of_slow_log(line: Mapping[str, Any]) -> _Line:
    own = {key.removeprefix(_ECS): value for key, value in line.items()}
    kind = f"{line.get('event.dataset')} {line.get('type')} {line.get('log.logger')} {line.get('component')}"
    if _FETCH.search(kind):
        raise LeftOut("the fetch phase of a search, whose query phase is read")
    match = _SHARD.search(str(own.get("message", "")))
    if _OF_REQUESTS.search(kind):
        raise LeftOut("a line of the log of requests, which names no index")
    if not (_SEARCH.search(kind) and match):
        raise LeftOut("a line of another kind")
    took = _TOOK.fullmatch(str(own.get("took")))
    took_ms = float(took["number"]) * _UNITS_MS[took["unit"]] if took else float(own.get("took_millis") or 0)
    at_ms = _moment_ms(line.get("@timestamp", line.get("timestamp"))) - round(took_ms)
    by_frequencies = str(own.get("search_type")).upper() == "DFS_QUERY_THEN_FETCH"
    params = "search_type=dfs_query_then_fetch" if by_frequencies else ""
    shards = re.search(r"\d+", str(own.get("total_shards", 1)))
    return _Line(
        Query(at_ms, (match["index"],), params, _body(own["source"]), took_ms),
        f"{match['index']} {match['shard']}",
        int(shards[0]) if shards else 1,
        hashlib.sha256(f"{own['source']} {own.get('id')}".encode()).digest(),
    )


def _of_insights(line: Mapping[str, Any]) -> _Line:
    if str(line.get("group_by", "NONE")).upper() != "NONE":
        raise LeftOut("a group of query insights, which is many searches")
    latency = line.get("latency") or (line.get("measurements") or {}).get("latency")
    while isinstance(latency, Mapping):
        latency = latency.get("number", latency.get("value"))
    indices = _names(line.get("indices"))
    at_ms = _moment_ms(line.get("timestamp"))
    return _Line(Query(at_ms, indices, "", _body(line["source"]), _took_ms(latency)))


def _of_plain(line: Mapping[str, Any]) -> _Line:
    path, _, params = str(line.get("path") or "").partition("?")
    if _SENT_ELSEWHERE.search(path):
        # The last: names of documents and indices may be anything.
        raise LeftOut(f"a request to {re.findall(r'/_[A-Za-z_/]+', path)[-1].rstrip('/')}")
    named = line.get("index") or path.partition("/_search")[0].strip("/")
    given = dict(parse_qsl(params or str(line.get("params") or ""), keep_blank_values=True))
    if "scroll" in given:
        raise LeftOut("the first page of a scroll")
    kept = {name: value for name, value in given.items() if name not in _OWN_PARAMS}
    indices = _names(named)
    took = line.get("took_ms", line.get("took"))
    at_ms = _moment_ms(line.get("timestamp", line.get("@timestamp")))
    return _Line(Query(at_ms, indices, urlencode(kept), _body(line["body"]), _took_ms(took)))


def _names(named: Any) -> tuple[str, ...]:
    parts = named.split(",") if isinstance(named, str) else named if isinstance(named, list) else []
    return tuple(str(name) for name in parts if name)


def _took_ms(value: Any) -> float | None:
    """Return a time that is one: of the engine, or None."""
    took_ms = -1.0 if value is None else float(value)
    return took_ms if 0 <= took_ms < _MOST_TOOK_MS else None


def _body(source: Any) -> dict[str, Any]:
    if isinstance(source, str):
        try:
            if _ESCAPED.match(source):
                # Slow logs are JSON in which this is a text that was escaped before.
                source = msgspec.json.decode(f'"{source}"', type=str)
            source = msgspec.json.decode(source) if source.strip() else {}
        except msgspec.DecodeError as err:
            raise LeftOut("a search whose body is cut off") from err
    if not isinstance(source, dict):
        raise LeftOut("a search with another body than an object")
    return source


def _moment_ms(value: Any) -> int:
    """Return milliseconds since 1970, of such a number or of a date."""
    try:
        if isinstance(value, int | float) or str(value).isdigit():
            number = int(float(value))
            if number > _MOST_MS:
                raise LeftOut("a search whose time is not in milliseconds or seconds")
            return number * 1000 if _SECONDS[0] <= number < _SECONDS[1] else number
        moment = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError) as err:
        raise LeftOut("a search without a time") from err
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


class _Joined:
    """Joins the lines of shards to searches: a slow log has a line a shard."""

    def __init__(self) -> None:
        # By key, searches that lack shards, the first to come first: the shards that they have, and the rest.
        self._open: dict[bytes, list[tuple[set[str], Query]]] = {}
        self._lines = 0

    def add(self, line: _Line) -> Iterator[Query]:
        """Yield the searches that are complete with a line, or have waited too long for others."""
        query = line.query
        if line.shards == 1:
            yield query
            return
        self._lines += 1
        if self._lines % _LOOKED_THROUGH == 0:
            yield from self._late(query.at_ms)
        waiting = self._open.setdefault(line.key, [])
        # Of equal searches at the same time, the first that lacks this shard.
        for place, (shards, first) in enumerate(waiting):
            if line.shard not in shards and abs(query.at_ms - first.at_ms) <= _TOGETHER_MS:
                del waiting[place]
                break
        else:
            place, shards, first = len(waiting), set(), query
        joined = Query(
            min(first.at_ms, query.at_ms),
            tuple(dict.fromkeys((*first.indices, *query.indices))),
            first.params,
            first.body,
            max(first.took_ms or 0, query.took_ms or 0),
        )
        if len(shards) + 1 == line.shards:
            yield joined
        else:
            waiting.insert(place, (shards | {line.shard}, joined))
        if not waiting:
            del self._open[line.key]

    def rest(self) -> Iterator[Query]:
        """Yield those whose shards did not all log: engines skip shards that cannot match."""
        yield from (query for waiting in self._open.values() for _, query in waiting)
        self._open.clear()

    def _late(self, now_ms: int) -> Iterator[Query]:
        for key, waiting in list(self._open.items()):
            kept = [one for one in waiting if abs(now_ms - one[1].at_ms) <= _TOGETHER_MS]
            yield from (query for _, query in waiting if abs(now_ms - query.at_ms) > _TOGETHER_MS)
            if kept:
                self._open[key] = kept
            else:
                del self._open[key]


def read_log(
    path: Path, patterns: Sequence[str], progress: Callable[[int], None], left_out: Counter[str]
) -> Iterator[Query]:
    """Yield the searches of a log, in the order of its lines; one may be late by the time that it took.

    Args:
        path: of a file, plain or compressed.
        patterns: of indices; those of other indices are left out. None mean all.
        progress: called with the bytes read so far, decompressed.
        left_out: takes how many lines are no searches, by what they are.

    Raises:
        UsageError: If the file has no search.
        BenchctlError: If it cannot be read, or is damaged.
    """
    joined = _Joined()
    found = 0
    for line in chain(_lines(path, progress), (None,)):
        try:
            done = joined.rest() if line is None else joined.add(read_line(_object(line)))
            for query in done:
                if patterns and not _chosen(query, patterns):
                    left_out["a search of another index"] += 1
                    continue
                found += 1
                yield query
        except LeftOut as err:
            left_out[str(err)] += 1
        except (TypeError, ValueError, AttributeError, OverflowError):
            left_out["a search with a value of the wrong type"] += 1
        except RecursionError:
            left_out[TOO_DEEP] += 1
    if not found:
        kinds = ", ".join(f"{count:,} x {kind}" for kind, count in left_out.most_common(3)) or "it is empty"
        raise UsageError(f"{path} has no searches: {kinds}", hint=_HINT)


def _chosen(query: Query, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in query.indices for pattern in patterns)


def _object(line: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(line, Mapping):
        return line
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as err:
        raise LeftOut("a line that cannot be read as JSON") from err
    if not isinstance(found, dict):
        raise LeftOut("a line of another kind")
    return found


def _lines(path: Path, progress: Callable[[int], None]) -> Iterator[bytes | Mapping[str, Any]]:
    """Yield the lines of a file, or the entries of an export, which is one object."""
    chunks = unpacked(path)
    head = next(chunks, b"").removeprefix(codecs.BOM_UTF8)
    if EXPORT.match(head):
        yield from _exported(path, chain((head,), chunks))
        return
    rest, read = b"", 0
    for chunk in chain((head,), chunks):
        read += len(chunk)
        progress(read)
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MOST_LINE_BYTES:
            raise UsageError(f"{path}: a line has more than {_MOST_LINE_BYTES:,} bytes", hint=_HINT)
        yield from (line for line in lines if line.strip())
    if rest.strip():
        yield rest


def _exported(path: Path, chunks: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    content = bytearray()
    for chunk in chunks:
        content += chunk
        if len(content) > _MOST_EXPORT_BYTES:
            raise UsageError(
                f"{path}: an export in one object of more than {_MOST_EXPORT_BYTES:,} bytes",
                hint="write its entries as lines, one a search",
            )
    try:
        entries = _object(bytes(content)).get("top_queries")
    except LeftOut as err:
        raise UsageError(f"{path}: the export is not one JSON object", hint=_HINT) from err
    yield from (one for one in entries if isinstance(one, dict)) if isinstance(entries, list) else ()

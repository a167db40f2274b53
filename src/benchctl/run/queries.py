"""Makes a track of a log of searches: the log by shape, and challenges that send it again."""

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.corpus.indexed import SUFFIXES
from benchctl.corpus.query_log import TOO_DEEP, Query, read_log
from benchctl.corpus.shapes import Anonymizer, described, shape
from benchctl.errors import UsageError
from benchctl.run.bench import Observer
from benchctl.run.capture import ITERATIONS, WARM_UP, Keys, Part, fill_in
from benchctl.track.operations.search import QUERY_LOG

QUERIES_FILE: Final = "queries.json"
WHOLE: Final = "whole log"
OTHERS: Final = "other shapes"
MOST_SHAPES: Final = 60
"""Shapes that have an operation of their own; those of least time are one together."""
_MOST_KNOWN: Final = 100_000
_MOST_OF_TIME: Final = 0.9
_WINDOW_S: Final = 120
_LEAST_S: Final = 1.0
_MOST_WARMUP_S: Final = 30.0
_REQUESTS: Final = 2000  # of a mix
_MOST_ITEMS, _MOST_CHARACTERS = 5, 200  # of an example
# Clients of a replay: so many times as many as the log had searches at a time.
_TIMES_AT_A_TIME, _LEAST_CLIENTS, _MOST_CLIENTS = 4, 8, 64
_KEPT_PARAMS: Final = frozenset(
    {"request_cache", "search_type", "pre_filter_shard_size", "ignore_unavailable", "allow_no_indices",
     "expand_wildcards", "batched_reduce_size", "max_concurrent_shard_requests", "typed_keys"}
)  # fmt: skip


@dataclass
class Shape:
    """Searches of a log that differ in values only."""

    name: str
    example: Any
    count: int = 0
    took_ms: float = 0.0


@dataclass
class Digest:
    """Contents of a log, once it was read."""

    shapes: list[Shape] = field(default_factory=list)  # by their time, or their count where it is unknown
    left_out: Counter[str] = field(default_factory=Counter)
    indices: Counter[str] = field(default_factory=Counter)
    searches: int = 0
    seconds: float = 0.0  # from the first search to the last
    timed: bool = True  # whether the log says how long searches took
    dropped_params: frozenset[str] = frozenset()  # of URLs, which a name might be in
    start_s: float = 0.0  # of the window that a replay sends by default, the busiest
    window_s: float = 0.0
    clients: int = _LEAST_CLIENTS


def of_log(
    log: Path,
    digest: Digest,
    observer: Observer,
    *,
    patterns: Sequence[str] = (),
    anonymizer: Anonymizer | None = None,
) -> Part:
    """Return the part of a track with the searches of a log, which is read in a stream.

    Args:
        log: the file, in any format of `read_log`.
        digest: takes what the log holds.
        observer: is told how far it is.
        patterns: of indices whose searches to take; none means all.
        anonymizer: makes other words of values.

    Raises:
        UsageError: If the log has no searches.
        BenchctlError: If it cannot be read.
    """
    # Before documents are read for minutes.
    next(read_log(log, patterns, lambda _read: None, Counter()))

    def fill(ready: Path, keys: Keys) -> Keys:
        known: dict[bytes, int] = {}  # digest of a shape -> its number
        shapes: list[Shape] = []
        times, tooks, numbers, ends = array("q"), array("f"), array("q"), array("q", [0])
        own = [index["name"] for index in keys["indices"]]
        dropped: set[str] = set()
        raw = ready / "unsorted.json"
        # Of a packed file, nobody knows how much is left.
        total = 0 if log.suffix in SUFFIXES else log.stat().st_size
        observer.stage(f"reading {log}")
        progress = partial(observer.progress, "bytes", total=total)
        with raw.open("wb") as sink:
            for query in read_log(log, patterns, progress, digest.left_out):
                target = _target(query, own)
                if target is None:
                    digest.left_out["a search of indices that are not in the track"] += 1
                    continue
                try:
                    number = _number(query, known, shapes, anonymizer)
                    line = _line(query, target, anonymizer, dropped)
                except RecursionError:
                    digest.left_out[TOO_DEEP] += 1
                    continue
                digest.indices.update(query.indices)
                ends.append(ends[-1] + sink.write(line))
                times.append(query.at_ms + (anonymizer.shift_ms if anonymizer else 0))
                tooks.append(-1 if query.took_ms is None else query.took_ms)
                numbers.append(number)
        if not numbers:
            raise UsageError(
                f"{log}: no search is of an index of the track: {', '.join(own)}",
                hint="choose another --from-index or --track, or other --index patterns",
            )
        digest.dropped_params = frozenset(dropped)
        at_ms, took_ms = np.array(times), np.array(tooks)
        names = _named(shapes, np.array(numbers), took_ms, digest)
        _sorted(raw, ready / QUERIES_FILE, at_ms, np.array(ends), [names[number] for number in numbers])
        raw.unlink()
        _span(at_ms, took_ms, digest)
        size = (ready / QUERIES_FILE).stat().st_size
        return _keys(keys, digest, size)

    return fill


def _target(query: Query, own: Sequence[str]) -> str | None:
    """Return what a search asks of the track's indices: empty for its only one, None for none of them."""
    if len(own) == 1:
        return ""
    matching = [name for name in own if any(fnmatchcase(name, asked) for asked in query.indices)]
    return ",".join(matching) if matching or not query.indices else None


def _number(query: Query, known: dict[bytes, int], shapes: list[Shape], anonymizer: Anonymizer | None) -> int:
    # What a URL says is another search, too.
    names = ",".join(sorted(name for name, _ in parse_qsl(query.params)))
    key = hashlib.sha256(shape(query.body) + names.encode()).digest()
    number = known.get(key)
    if number is None:
        if len(shapes) > _MOST_KNOWN:
            return _MOST_KNOWN
        number = known[key] = len(shapes)
        example = _cut(anonymizer.body(query.body) if anonymizer else query.body)
        shapes.append(Shape(described(query.body) if number < _MOST_KNOWN else OTHERS, example))
    return number


def _cut(example: Any) -> Any:
    """Return an example of a shape for readers, of which long lists and texts are only the beginning."""
    if isinstance(example, dict):
        return {key: _cut(value) for key, value in example.items()}
    if isinstance(example, list):
        return [_cut(item) for item in example[:_MOST_ITEMS]]
    return example[:_MOST_CHARACTERS] if isinstance(example, str) else example


def _line(query: Query, target: str, anonymizer: Anonymizer | None, dropped: set[str]) -> bytes:
    """Return a search without its time and its shape, which are put before."""
    params = query.params
    if anonymizer is not None and params:
        given = parse_qsl(params)
        dropped.update(name for name, _ in given if name not in _KEPT_PARAMS)
        params = urlencode([pair for pair in given if pair[0] in _KEPT_PARAMS])
    fields: dict[str, Any] = {} if query.took_ms is None else {"took_ms": query.took_ms}
    fields |= {"index": target} if target else {}
    fields |= {"params": params} if params else {}
    body = anonymizer.body(query.body) if anonymizer else query.body
    return msgspec.json.encode({**fields, "body": body}) + b"\n"


def _named(
    shapes: list[Shape], numbers: npt.NDArray[np.int64], took_ms: npt.NDArray[np.float32], digest: Digest
) -> list[str]:
    """Return the name of each shape, and put them into the digest, those of most time first."""
    digest.timed = bool((took_ms >= 0).all())
    counts = np.bincount(numbers, minlength=len(shapes))
    spent = np.bincount(numbers, np.maximum(took_ms, 0), minlength=len(shapes))
    order = np.argsort(-(spent if digest.timed and spent.any() else counts), kind="stable").tolist()
    seen: Counter[str] = Counter()
    names = [OTHERS] * len(shapes)
    for rank, number in enumerate(order):
        one = shapes[number]
        if rank >= MOST_SHAPES and len(shapes) > MOST_SHAPES + 1:
            one.name = OTHERS
        else:
            seen[one.name] += 1
            one.name += f" {seen[one.name]}" if seen[one.name] > 1 else ""
        names[number] = one.name
        one.count, one.took_ms = int(counts[number]), float(spent[number])
    kept = [shapes[number] for number in order if names[number] != OTHERS]
    rest = [shapes[number] for number in order if names[number] == OTHERS]
    if rest:
        counted = sum(one.count for one in rest)
        kept.append(Shape(OTHERS, rest[0].example, counted, sum(one.took_ms for one in rest)))
    digest.shapes = kept
    return names


def _sorted(
    raw: Path, path: Path, at_ms: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], names: Sequence[str]
) -> None:
    """Write the lines in the order of their times: a log has them in the order of their ends."""
    with raw.open("rb") as source, path.open("wb") as sink:
        for place in np.argsort(at_ms, kind="stable").tolist():
            source.seek(ends[place])
            rest = source.read(ends[place + 1] - ends[place])
            sink.write(
                f'{{"timestamp":{at_ms[place]},"shape":{json.dumps(names[place])},'.encode() + rest[1:]
            )


def _span(at_ms: npt.NDArray[np.int64], took_ms: npt.NDArray[np.float32], digest: Digest) -> None:
    """Find how long the log is, its busiest stretch, and how many searches were at work at a time."""
    since_s = np.sort(at_ms - at_ms.min()) / 1000
    digest.searches = since_s.size
    digest.seconds = float(since_s[-1])
    digest.window_s = min(max(digest.seconds, _LEAST_S), _WINDOW_S)
    if digest.seconds > _WINDOW_S:
        # From each search on, how many come.
        follow = np.searchsorted(since_s, since_s + _WINDOW_S) - np.arange(since_s.size)
        digest.start_s = float(since_s[np.argmax(follow)])
    began = at_ms.astype(np.float64)
    edges = np.concatenate([began, began + np.maximum(took_ms, 1)])
    steps = np.concatenate([np.ones(began.size), -np.ones(began.size)])
    at_a_time = int(np.cumsum(steps[np.lexsort((steps, edges))]).max())
    digest.clients = min(max(_TIMES_AT_A_TIME * at_a_time, _LEAST_CLIENTS), _MOST_CLIENTS)


def _keys(keys: Keys, digest: Digest, size: int) -> Keys:
    whole_ms = sum(one.took_ms for one in digest.shapes)

    def share(one: Shape) -> float:
        return one.took_ms / whole_ms if whole_ms and digest.timed else one.count / digest.searches

    operations: list[Keys] = [
        {
            "name": one.name,
            "operation-type": "logged-search",
            "shape": one.name,
            "meta": {"searches": one.count, "took-ms": round(one.took_ms), "example": one.example},
        }
        for one in digest.shapes
    ]
    speed = "(speed | default(1) | between(0.001, 1000))"
    seconds = f"(seconds | default({round(digest.window_s, 3)} / {speed}) | between(0.1, 1000000, 'seconds'))"
    warmup_s = f"(warmup | default([{_MOST_WARMUP_S}, {seconds} / 4] | min))"
    one_client = "(clients | default(1) | between(1, 4096))"
    logged = {
        "schedule": "logged",
        "log-start": fill_in(f"start | default({digest.start_s})"),
        "log-speed": fill_in(speed),
        "warmup-time-period": fill_in(warmup_s),
        "time-period": fill_in(f"{seconds} - {warmup_s}"),
    }
    whole = {"name": WHOLE, "operation": WHOLE}
    counts = {"warmup-iterations": WARM_UP, "iterations": ITERATIONS}
    most: list[Shape] = []
    for one in digest.shapes:
        if sum(map(share, most)) < _MOST_OF_TIME:
            most.append(one)

    def often(one: Shape, requests: str) -> str:
        part = round(one.count / digest.searches, 6)
        return fill_in(f"[1, ({part} * {requests} / {one_client}) | round | int] | max")

    replay = [{"operation": one.name, **logged} for one in digest.shapes]
    mix = [
        {
            "operation": one.name,
            "warmup-iterations": often(one, f"(warmup_requests | default({_REQUESTS // 4}))"),
            "iterations": often(one, f"(requests | default({_REQUESTS}))"),
        }
        for one in digest.shapes
    ]
    clients, single = fill_in(f"clients | default({digest.clients})"), fill_in(one_client)
    return {
        "description": f"{keys['description']}; a log of {digest.searches:,} searches",
        QUERY_LOG: {
            "source-file": QUERIES_FILE,
            "document-count": digest.searches,
            "uncompressed-bytes": size,
        },
        "operations": [*operations, {"name": WHOLE, "operation-type": "all-together"}],
        "challenges": [
            {
                "name": "replay",
                "default": True,
                "description": "the log at its times",
                "schedule": [
                    {"parallel": {"mix": True, "clients": clients, "tasks": [{**whole, **logged}, *replay]}}
                ],
            },
            {
                "name": "mix",
                "description": "shapes at random, as often as in the log",
                "schedule": [
                    {
                        "parallel": {
                            "mix": True,
                            "clients": single,
                            "tasks": [{**whole, "iterations": 1}, *mix],
                        }
                    }
                ],
            },
            {
                "name": "by-shape",
                "description": f"one shape after the other, those of {_MOST_OF_TIME:.0%} of the time",
                "schedule": [{"operation": one.name, "clients": single, **counts} for one in most],
            },
        ],
    }

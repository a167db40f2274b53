"""The log of queries of a track: a line a search, in the order of their times, grouped by shape."""

import mmap
from array import array
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError

QUERIES = "queries"
"""The source format of corpora that hold queries."""
_NS_PER_MS = 1_000_000
_LOOKED_AT = 20_000  # searches of a shape, to find different ones among


class Logged(msgspec.Struct, frozen=True, omit_defaults=True):
    """A search, as tracks keep it; `track new --queries` reads the same."""

    timestamp: int  # when it began, milliseconds since 1970
    body: msgspec.Raw
    shape: str = ""  # name of the operation that stands for its shape
    index: str = ""  # names or patterns with commas between; empty means the track's index
    params: str = ""  # the query of its URL
    took_ms: float | None = None  # of the engine, as the log says


class _Head(msgspec.Struct):
    timestamp: int
    shape: str = ""


class Sent(NamedTuple):
    """A search to be sent."""

    path: str
    body: bytes


class QueryLog:
    """A plain file of logged searches, read where it is; thread-safe.

    Raises:
        BenchctlError: If the file is missing, or one of its lines is no such search.
    """

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as err:  # an empty file cannot be mapped
            raise _broken(path, str(err)) from err
        decode = msgspec.json.Decoder(_Head).decode
        ends, times, shapes = array("q", [0]), array("q"), array("i")
        names: dict[str, int] = {}
        while line := self._content.readline():
            try:
                head = decode(line)
            except msgspec.DecodeError as err:
                raise _broken(path, f"line {len(ends)}: {err}") from err
            ends.append(ends[-1] + len(line))
            times.append(head.timestamp)
            shapes.append(names.setdefault(head.shape, len(names)))
        self._ends, self._shapes = np.array(ends), np.array(shapes)
        self._since_ns = (np.array(times) - min(times)) * _NS_PER_MS
        self._names = names
        self._decode = msgspec.json.Decoder(Logged).decode

    def places(self, shape: str | None) -> npt.NDArray[np.int64]:
        """Return the places of a shape's searches in the log, or of all, in order.

        Raises:
            BenchctlError: If the log has none.
        """
        if shape is None:
            return np.arange(self._shapes.size)
        found = np.flatnonzero(self._shapes == self._names.get(shape, -1))
        if found.size == 0:
            raise BenchctlError(f"the log of queries has none of shape '{shape}'")
        return found

    def since_ns(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return when searches began, in ns from the first of the log."""
        since_ns: npt.NDArray[np.int64] = self._since_ns[places]
        return since_ns

    def at(self, place: int) -> Logged:
        """Return a search."""
        return self._decode(self._content[self._ends[place] : self._ends[place + 1]])

    def sent(self, place: int, index: str) -> Sent:
        """Return a search as it is sent; `index` is for those that name none, as a part of a path."""
        logged = self.at(place)
        target = quote(logged.index, safe=",*") or index
        query = f"?{logged.params}" if logged.params else ""
        return Sent(f"/{target}/_search{query}", bytes(logged.body))

    def distinct(self, shape: str | None, most: int) -> Iterator[tuple[str, dict[str, str], Any]]:
        """Yield index, URL parameters and body of each different search, evenly spread if too many."""
        places = self.places(shape)
        looked = map(self.at, places[:: -(-places.size // _LOOKED_AT)].tolist())
        found = dict.fromkeys((one.index, one.params, bytes(one.body)) for one in looked)
        for index, params, body in list(found)[:: -(-len(found) // most)]:
            yield index, dict(parse_qsl(params)), msgspec.json.decode(body)


def _broken(path: Path, reason: str) -> BenchctlError:
    return BenchctlError(
        f"cannot read the queries of {path}: {reason}", hint="create its track again: benchctl track new"
    )


@lru_cache(maxsize=4)
def _opened(path: Path, modified_ns: int) -> QueryLog:
    del modified_ns
    return QueryLog(path)


def query_log(path: Path) -> QueryLog:
    """Return the log of a file, which is read once by each process.

    Raises:
        BenchctlError: If the file is missing, or one of its lines is no search.
    """
    try:
        modified_ns = path.stat().st_mtime_ns
    except OSError as err:
        raise _broken(path, err.strerror or str(err)) from err
    return _opened(path, modified_ns)

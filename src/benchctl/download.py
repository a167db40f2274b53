"""Files over HTTP: pieces joined into one file, each resumed where the last attempt ended."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from benchctl.disk import FreeBytes, disk_errors, free_bytes, read_file, require_space
from benchctl.errors import BenchctlError
from benchctl.network import Courier, Progress, Trouble, Unanswered, network_errors, outside, shown

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_CUT = "the connection ended before the download was complete"
_PAUSES_S = (1.0, 3.0, 10.0, 30.0)
"""Before each new attempt; one that came further than all before starts the series again."""
_FURTHER_BYTES = 1 << 12  # of a server that drips, every attempt would come a little further

_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_PASSING_TROUBLES = {Trouble.UNRESOLVED, Trouble.REFUSED, Trouble.TIMEOUT, Trouble.BROKEN}


class Piece(msgspec.Struct, frozen=True):
    """A file on a server; its size in bytes is None where nothing states it."""

    url: str
    size: int | None = None


@dataclass(frozen=True)
class Advice:
    """Hints about failures; they depend on where the address is from."""

    unreachable: str
    refused: str
    unfinished: str  # the connection ends again and again
    other_size: str = ""  # the file is not as large as stated


class _State(msgspec.Struct):
    """Origin of a partial download, stored next to it."""

    urls: tuple[str, ...]
    begins: list[int]  # offsets in the file of the pieces that were begun
    versions: list[str]  # the server's version of each of these; empty where it has none


class RefusedError(BenchctlError):
    """A server answers that it does not hand out the file."""


class _IncompleteError(Exception):
    """An attempt ended early, and may be resumed."""


@dataclass(frozen=True)
class Download:
    """A file to download."""

    pieces: Sequence[Piece]  # in order
    target: Path  # appears when all has come
    progress: Progress
    advice: Advice
    free: FreeBytes = free_bytes
    pause: Callable[[float], None] = time.sleep

    def run(self) -> Path:
        """Download the file, or what is lacking of it, and return its path.

        Of a failed attempt the beginning is kept, for the next one to resume.

        Raises:
            RefusedError: If a server refuses.
            BenchctlError: If it gives another size, or disconnects again and again; or if the disk is too
                small.
        """
        with disk_errors(f"write {self.target}"):
            self.target.parent.mkdir(parents=True, exist_ok=True)
            with self._partial.open("ab") as sink, outside() as courier:
                state = self._state(sink)
                for number, piece in enumerate(self.pieces):
                    self._get(courier, piece, number, sink, state)
                    sink.flush()
            self._partial.replace(self.target)
            self._beside.unlink(missing_ok=True)
        return self.target

    @property
    def _partial(self) -> Path:
        return self.target.with_name(f".{self.target.name}.partial")

    @property
    def _beside(self) -> Path:
        return self.target.with_name(f".{self.target.name}.partial.json")

    @property
    def _total(self) -> int:
        """Bytes of all pieces; 0 as long as that is unknown."""
        sizes = [piece.size for piece in self.pieces]
        return 0 if None in sizes else sum(size or 0 for size in sizes)

    def _state(self, sink: IO[bytes]) -> _State:
        """Return that of the last attempt; a new one, and empty the file, if it was about something else."""
        urls = tuple(piece.url for piece in self.pieces)
        with suppress(FileNotFoundError, msgspec.DecodeError):
            state = msgspec.json.decode(read_file(self._beside), type=_State)
            if state.urls == urls and len(state.begins) == len(state.versions) <= len(urls):
                return state
        sink.truncate(0)
        return _State(urls, [], [])

    def _get(self, courier: Courier, piece: Piece, number: int, sink: IO[bytes], state: _State) -> None:
        """Append what is lacking of a piece, in as many attempts as it takes."""
        if number + 1 < len(state.begins):
            return  # a later one was begun already
        if number == len(state.begins):
            state.begins.append(_end(sink))
            state.versions.append("")
        furthest = _end(sink)
        failures = 0
        while True:
            try:
                with network_errors(f"download {_shown(piece)}", hint=self.advice.unreachable):
                    self._attempt(courier, piece, number, sink, state)
                break
            except _IncompleteError as err:
                failures = failures + 1 if _end(sink) < furthest + _FURTHER_BYTES else 0
                furthest = max(furthest, _end(sink))
                if failures > len(_PAUSES_S):
                    raise BenchctlError(
                        f"cannot download {_shown(piece)}: {err}; {_end(sink):,} bytes received",
                        hint=self.advice.unfinished,
                    ) from err
                self.pause(_PAUSES_S[max(failures - 1, 0)])

    def _attempt(self, courier: Courier, piece: Piece, number: int, sink: IO[bytes], state: _State) -> None:
        """Send one request for the rest of a piece; of an _IncompleteError, what came is in the file."""
        begin = state.begins[number]
        have = _end(sink) - begin
        if have and have == piece.size:
            return
        size, began = piece.size, False

        def accept(status: int, headers: Mapping[str, str], chunk: bytes) -> None:
            nonlocal size, began
            if not began:
                size = self._accept(status, headers, piece, number, sink, state)
                began = True
            sink.write(chunk)
            self._check_space(0)  # the server may send more than it said, and others write, too
            self.progress(f"bytes of {self.target.name}", sink.tell(), self._total or begin + (size or 0))
            if size is not None and sink.tell() - begin > size:
                self._check_size(piece, sink.tell() - begin)

        # Ranges count the bytes that lie on the server.
        request_headers = {"accept-encoding": "identity"} | ({"range": f"bytes={have}-"} if have else {})
        try:
            answer = courier.ask("GET", piece.url, headers=request_headers, deadline_s=None, receive=accept)
            accept(answer.status, answer.headers, b"")
        except Unanswered as err:
            if err.trouble in _PASSING_TROUBLES and err.partial is not None:
                accept(err.partial.status, err.partial.headers, b"")
            elif err.trouble not in _PASSING_TROUBLES or not state.versions[number]:
                raise  # it never answered: most likely the address is wrong, or there is no network
            raise _IncompleteError(_CUT if began else "no response") from err
        finally:
            sink.flush()
        if size is not None and _end(sink) - begin < size:
            raise _IncompleteError(_CUT)
        self._check_size(piece, _end(sink) - begin)

    def _accept(
        self,
        status: int,
        headers: Mapping[str, str],
        piece: Piece,
        number: int,
        sink: IO[bytes],
        state: _State,
    ) -> int | None:
        """Make ready for the body of an answer; return the size of the whole piece, None if unknown."""
        begin = state.begins[number]
        have = _end(sink) - begin
        start, total = self._offered(status, headers, piece, have)
        version = f"{headers.get('etag') or headers.get('last-modified') or ''} {total}"
        if start != have or (have and version != state.versions[number]):
            # What has come is of another version, or the server knows no ranges.
            sink.truncate(begin)
            have = 0
            if start != have:
                raise _IncompleteError("it changed on the server")
        state.versions[number] = version
        self._beside.write_bytes(msgspec.json.encode(state))
        self._check_size(piece, total)
        size = total if piece.size is None else piece.size
        self._check_space((self._total or begin + (size or 0)) - begin - have)
        return size

    def _offered(
        self, status: int, headers: Mapping[str, str], piece: Piece, have: int
    ) -> tuple[int, int | None]:
        """Return where in the piece the answer begins, and the size of the piece; None if unknown."""
        if status == HTTPStatus.PARTIAL_CONTENT:
            unit, _, text = headers.get("content-range", "").partition(" ")
            span, _, total = text.partition("/")
            begin = _number(span.partition("-")[0])
            return (-1, None) if unit.lower() != "bytes" or begin is None else (begin, _number(total))
        if status == HTTPStatus.OK:
            return 0, _number(headers.get("content-length", ""))
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return -1, None
        if status in _PASSING:
            raise _IncompleteError(f"HTTP {status}")
        raise RefusedError(f"cannot download {_shown(piece)}: HTTP {status}", hint=self.advice.refused)

    def _check_size(self, piece: Piece, total: int | None) -> None:
        if piece.size is not None and total is not None and total != piece.size:
            raise BenchctlError(
                f"{_shown(piece)} has {total:,} bytes, and {piece.size:,} are expected",
                hint=self.advice.other_size,
            )

    def _check_space(self, lacking: int) -> None:
        folder = self.target.parent
        require_space(folder, lacking, f"download {self.target.name}", available=self.free(folder))


def _end(sink: IO[bytes]) -> int:
    """Return the size of the file so far."""
    return sink.seek(0, 2)


def _shown(piece: Piece) -> str:
    return shown(urlsplit(piece.url))


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None

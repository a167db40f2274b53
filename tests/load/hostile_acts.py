"""What a hostile server does to a request: a catalogue of answers, odd, bad, broken and missing."""

import gzip
from collections.abc import Iterator

from benchctl.results.samples import Outcome
from load.hostile_server import PLAIN, Act, Doom, Drip, Flood, Last, Step, Then, answered, found, head, whole

# No answer of these is ever meant for anybody.
STRAY = 77_000_000_000_000


def chunked(body: bytes, size: int) -> Iterator[bytes]:
    """A body in chunks of that size, without the last, empty one."""
    for start in range(0, len(body), size):
        chunk = body[start : start + size]
        yield b"%x;why=not\r\n%s\r\n" % (len(chunk), chunk)


_CHUNKED_HEAD = head("transfer-encoding: chunked")
_BUSY = b'{"error":{"type":"rejected_execution","reason":"too busy"}}'
_DEEP = 100_000
_BOMB = gzip.compress(b" " * (64 << 20))


def _said(name: str, *steps: Step, outcome: Outcome) -> Act:
    """An act that is the same for every request."""
    return Act(name, lambda _serial: steps, outcome)


def _broken(name: str, *steps: Step) -> Act:
    return _said(name, *steps, outcome=Outcome.RESET)


def _nonsense(name: str, *steps: Step) -> Act:
    return _said(name, *steps, outcome=Outcome.BAD_BODY)


CLOSED_WITH_ITS_END = answered("closed with its end", lambda body: Last(whole(body)))

# Odd, but every one of them is an answer.
GOOD = (
    PLAIN,
    answered("byte by byte", lambda body: Drip(whole(body))),
    answered(
        "in chunks", _CHUNKED_HEAD, lambda body: b"".join(chunked(body, 7)), b"0\r\nx-trailer: 1\r\n\r\n"
    ),
    answered("100 first", head(status="HTTP/1.1 100 Continue"), whole),
    answered("103 first", head("link: </a>", status="HTTP/1.1 103 Early Hints") * 3, whole),
    answered("as HTTP/1.0", lambda body: Last(head(status="HTTP/1.0 200 OK") + body)),
    answered("without a length", lambda body: Last(head() + body)),
    answered("close announced", lambda body: whole(body, "connection: close"), Then.CLOSE),
    answered("close announced and kept", lambda body: whole(body, "connection: close"), Then.HANG),
    CLOSED_WITH_ITS_END,
    answered("longer than it says", lambda body: whole(body) + b" and more"),
    answered("two answers", lambda body: whole(body) + whole(found(STRAY))),
    answered("bad bytes aside", lambda body: whole(b'{"a":"\\u0000","b":[1e400],' + body[1:])),
)

# An answer, after which the next connection opens and is reset at once.
DOOMING = answered(
    "the next is doomed", Doom.THE_NEXT, lambda body: whole(body, "connection: close"), Then.CLOSE
)

# Answers that are whole, and say that something went wrong.
FAILED = (
    _said("429", whole(_BUSY, status="HTTP/1.1 429 Too Many"), outcome=Outcome.REJECTED),
    _said("503", whole(_BUSY, status="HTTP/1.1 503 Unavailable"), outcome=Outcome.HTTP_ERROR),
    _said("status 999", whole(b"", status="HTTP/1.1 999 ?"), outcome=Outcome.HTTP_ERROR),
    _said(
        "redirection",
        whole(b"", "location: /stray/_search", status="HTTP/1.1 307 Elsewhere"),
        outcome=Outcome.HTTP_ERROR,
    ),
    _said("304", head(status="HTTP/1.1 304 Not Modified"), outcome=Outcome.HTTP_ERROR),
    _said(
        "401", whole(b"", "www-authenticate: Basic", status="HTTP/1.1 401 Who"), outcome=Outcome.HTTP_ERROR
    ),
    _said("timed_out", whole(found(STRAY).replace(b"false", b"true")), outcome=Outcome.TIMEOUT),
    _said("a shard failed", whole(found(STRAY).replace(b'failed":0', b'failed":2')), outcome=Outcome.PARTIAL),
    _nonsense("204", head(status="HTTP/1.1 204 No Content")),
    _nonsense("empty body", whole(b"")),
    _nonsense("NUL bytes", whole(b"\0" * 64)),
    _nonsense("no UTF-8", whole(b'{"took":1,"hits":{"total":{"value":1,"relation":"\xff\xfe"}}}')),
    _nonsense("gzip unasked", whole(gzip.compress(found(STRAY)), "content-encoding: gzip")),
    _nonsense("cut JSON", whole(found(STRAY)[:-9])),
    _nonsense("deep array", whole(b"[" * _DEEP)),
    _nonsense("deep unknown key", whole(b'{"took":1,"x":' + b"[" * _DEEP + b"]" * _DEEP + b"}")),
    _nonsense("beyond int64", whole(found(2**64))),
    _nonsense("took beyond int32", whole(found(1).replace(b'took":1', b'took":4294967296'))),
    _nonsense("shards beyond int16", whole(found(1).replace(b'failed":0', b'failed":99999'))),
    _nonsense("negative hits", whole(found(1).replace(b":1,", b":-1,"))),
    _nonsense("too short a length", head("content-length: 9") + found(STRAY)),
)

# Connections that break.
BROKEN = (
    _broken("reset before the answer", Then.RESET),
    _broken("closed before the answer", Then.CLOSE),
    _broken("reset in the head", b"HTTP/1.1 200 OK\r\ncontent-le", Then.RESET),
    _broken("reset after the head", head("content-length: 99"), Then.RESET),
    _broken("reset in the body", head("content-length: 99") + b'{"took":1,', Then.RESET),
    _broken("closed in the body", head("content-length: 99") + b'{"took":1,', Then.CLOSE),
    _broken("closed in a chunk", _CHUNKED_HEAD + b'63\r\n{"took":1,', Then.CLOSE),
    _broken("switched to another protocol", head("upgrade: x", status="HTTP/1.1 101 Go"), Then.CLOSE),
    _broken("closed between chunks", _CHUNKED_HEAD + b"a\r\n" + b"x" * 10 + b"\r\n", Then.CLOSE),
)

# What is not HTTP, or not any more.
GARBAGE = (
    _nonsense("garbage", b"\x15\x03\x03\x00\x02\x02\x50", Then.CLOSE),
    _nonsense("garbage and no end", b"\xff" * 64 + b"\r\n\r\n", Then.HANG),
    _nonsense("status without digits", head(status="HTTP/1.1 abc OK"), Then.HANG),
    _nonsense("status of two digits", head("content-length: 0", status="HTTP/1.1 99 x"), Then.HANG),
    _nonsense("HTTP/2 unasked", head("content-length: 0", status="HTTP/2 200"), Then.HANG),
    _nonsense("HTTP/9.9", head("content-length: 0", status="HTTP/9.9 200"), Then.HANG),
    _nonsense("headers without end", head()[:-2], Flood(b"x-more: " + b"y" * 1000 + b"\r\n", 600), Then.HANG),
    _nonsense("one header without end", head()[:-2] + b"x: ", Flood(b"y" * 1000, 600), Then.HANG),
    _nonsense("NUL in a header", head(b"x: a\0b", "content-length: 2") + b"{}", Then.HANG),
    _nonsense("header without colon", head(b"nothing", "content-length: 2") + b"{}", Then.HANG),
    _nonsense("length of letters", head("content-length: abc") + b"{}", Then.HANG),
    _nonsense("negative length", head("content-length: -5") + b"{}", Then.HANG),
    _nonsense("two lengths", head("content-length: 2", "content-length: 3") + b"{}x", Then.HANG),
    _nonsense("bad chunk size", _CHUNKED_HEAD + b"zz\r\n{}\r\n", Then.HANG),
    _nonsense("chunk size beyond int64", _CHUNKED_HEAD + b"f" * 40 + b"\r\n{}\r\n", Then.HANG),
    _nonsense("chunk without its end", _CHUNKED_HEAD + b"2\r\n{}{}{}{}", Then.HANG),
    _nonsense("a length beyond int64", head("content-length: 99999999999999999999") + b"{}", Then.HANG),
    _nonsense("compressed on the way", head("transfer-encoding: gzip, chunked") + b"0\r\n\r\n", Then.HANG),
)

_STALLED = (
    ("no answer", ()),
    ("half a head", (b"HTTP/1.1 200 OK\r\ncontent-le",)),
    ("a head and no more", (head("content-length: 99"),)),
    ("half a body", (head("content-length: 99"), b'{"took":1,')),
    ("half a chunk", (_CHUNKED_HEAD, b'63\r\n{"took":1,')),
    ("an unknown encoding", (head(b"transfer-encoding: \xff\xfe"), b"{}")),
    ("100 and no more", (head(status="HTTP/1.1 100 Continue"),)),
)
STALLED = (
    *(_said(name, *steps, Then.HANG, outcome=Outcome.TIMEOUT) for name, steps in _STALLED),
    _said("slow loris", head("content-length: 999"), Drip(b"x" * 999, 0.002), outcome=Outcome.TIMEOUT),
)

# Bytes that come as long as anybody listens, at full speed or one by one.
_FOREVER = 10**9
_MIB = 1 << 20
_CHUNK_MIB = b"%x\r\n%s\r\n" % (_MIB, b" " * _MIB)
_HEAD_JSON = head("content-type: application/json", "transfer-encoding: chunked")
LARGE = (
    _nonsense("a body without end", _HEAD_JSON, Flood(_CHUNK_MIB, _FOREVER)),
    _nonsense(
        "4 GiB",
        head("content-type: application/json", "content-length: 4294967296"),
        Flood(b" " * _MIB, 4096),
    ),
    _nonsense("chunks of a byte", _HEAD_JSON, Flood(b"1\r\nx\r\n" * 10_000, _FOREVER)),
)
BOMB = _nonsense(
    "a gzip bomb",
    head("content-type: application/json", "content-encoding: gzip", "transfer-encoding: chunked"),
    b"%x\r\n%s\r\n" % (len(_BOMB), _BOMB),
    b"0\r\n\r\n",
)
SLOW = (
    _said("a head byte by byte", Drip(head("x: " + "y" * 10_000), 0.01), outcome=Outcome.TIMEOUT),
    _said(
        "a body byte by byte",
        head("content-length: 10000"),
        Drip(b" " * 10_000, 0.01),
        outcome=Outcome.TIMEOUT,
    ),
    _said("an answer that never begins", Then.HANG, outcome=Outcome.TIMEOUT),
)
HEADS = (
    _nonsense("continue without end", Flood(head(status="HTTP/1.1 100 Continue"), _FOREVER)),
    *(act for act in GARBAGE if "without end" in act.name),
)

QUICK = (*GOOD, *FAILED, *BROKEN, *GARBAGE)
BUSY = FAILED[0]

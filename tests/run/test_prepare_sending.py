"""Documents on their way to a node that is prepared: where they go, how they are framed, how many a body."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.run.documents import Parcel
from benchctl.run.prepare import MOST_BODY_BYTES, MOST_DOCUMENTS_PER_BODY, bodies, send_parcels
from loopback import KeepingHandler, serving

LINES = b'{"n":1}\n{"n":2}\n{"n":3}\n'


def reader(start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Three documents."""
    yield b"".join(LINES.splitlines(keepends=True)[start:stop])


def actions(start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Three documents, each behind its own action."""
    pairs = enumerate(LINES.splitlines(keepends=True))
    yield b"".join([b'{"index":{"_id":"%d"}}\n%b' % pair for pair in pairs][start:stop])


def test_documents_of_an_index_are_indexed_those_of_a_stream_created():
    assert list(bodies(Parcel(reader, 3, 8.0, "a"))) == [
        (3, b'{"index":{}}\n{"n":1}\n{"index":{}}\n{"n":2}\n{"index":{}}\n{"n":3}\n')
    ]
    ((count, body),) = bodies(Parcel(reader, 3, 8.0, data_stream="s"))
    assert (count, body.count(b'{"create":{}}\n')) == (3, 3)


def test_documents_with_actions_of_their_own_go_as_they_are():
    ((count, body),) = bodies(Parcel(actions, 3, 8.0, has_actions=True))
    assert (count, body) == (3, b"".join(actions()))


@pytest.mark.parametrize(
    ("bytes_each", "expected"),
    [
        (0.0, MOST_DOCUMENTS_PER_BODY),
        (100.0, MOST_DOCUMENTS_PER_BODY),
        (MOST_BODY_BYTES / 10, 10),
        (2.0 * MOST_BODY_BYTES, 1),
    ],
)
def test_large_documents_come_fewer_to_a_body(bytes_each: float, expected: int):
    def many(start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        assert (start, stop) == (0, None)
        yield b'{"n":1}\n' * 5_000

    assert next(bodies(Parcel(many, 5_000, bytes_each, "a")))[0] == expected


@contextmanager
def taker(status: int = 200) -> Iterator[tuple[Endpoint, list[str]]]:
    """A server that takes everything, or nothing."""
    seen: list[str] = []

    class Taker(KeepingHandler):
        def respond(self) -> None:
            self.sent()
            seen.append(self.path.partition("?")[0])
            self.answer(status, json.dumps({"took": 1, "errors": status != 200}).encode())

    with serving(Taker) as port:
        yield Endpoint.of(f"http://127.0.0.1:{port}"), seen


def test_each_parcel_goes_to_its_place_and_all_are_counted_together():
    parcels = (
        Parcel(reader, 3, 8.0, "a"),
        Parcel(reader, 3, 8.0, data_stream="visits-x"),
        Parcel(actions, 3, 8.0, has_actions=True),
    )
    told: list[int] = []
    with taker() as (endpoint, seen):
        sent = send_parcels(parcels, endpoint=endpoint, clients=2, on_progress=told.append)
    assert sorted(seen) == ["/_bulk", "/a/_bulk", "/visits-x/_bulk"]
    assert (sent.documents, told) == (9, [3, 6, 9])
    assert sent.body_bytes == sum(len(body) for one in parcels for _, body in bodies(one))


def test_nothing_more_is_sent_after_a_refusal():
    parcels = (Parcel(reader, 3, 8.0, "a"), Parcel(reader, 3, 8.0, "b"))
    with taker(status=400) as (endpoint, seen), pytest.raises(BenchctlError, match="refused a bulk request"):
        send_parcels(parcels, endpoint=endpoint, clients=1, on_progress=lambda _: None)
    assert seen == ["/a/_bulk"]

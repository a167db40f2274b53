import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.bulk import batches, frame, frame_bodies, frame_with_ids

LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"x")), max_size=40)


def _unframe(body: bytes) -> list[bytes]:
    assert body.endswith(b"\n")
    lines = body[:-1].split(b"\n")
    assert set(lines[0::2]) == {b'{"index":{}}'}
    return lines[1::2]


def _cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[first:last] for first, last in pairwise(edges)]


@given(lines=LINES, per_body=st.integers(1, 12), cuts=st.lists(st.integers(0, 500), max_size=20))
def test_framing_keeps_every_document_whatever_the_blocks(lines: list[bytes], per_body: int, cuts: list[int]):
    stream = b"".join(line + b"\n" for line in lines)
    bodies = list(frame_bodies(_cut(stream, cuts), per_body))
    assert [line for _, body in bodies for line in _unframe(body)] == lines
    assert all(documents == len(_unframe(body)) for documents, body in bodies)
    assert [documents for documents, _ in bodies[:-1]] == [per_body] * (len(bodies) - 1)
    assert sum(documents for documents, _ in bodies) == len(lines)


def test_body_is_what_the_bulk_endpoint_takes():
    bodies = list(frame_bodies([b'{"a":1}\n{"a":2}\n{"a"', b":3}\n"], 2))
    assert bodies == [
        (2, b'{"index":{}}\n{"a":1}\n{"index":{}}\n{"a":2}\n'),
        (1, b'{"index":{}}\n{"a":3}\n'),
    ]
    assert [json.loads(line) for line in bodies[0][1].splitlines()][1::2] == [{"a": 1}, {"a": 2}]


def test_unfinished_last_line_is_a_document():
    assert list(frame_bodies([b"a\nb"], 5)) == [(2, b'{"index":{}}\na\n{"index":{}}\nb\n')]


def test_a_body_is_given_out_as_soon_as_it_is_full():
    def blocks() -> Iterator[bytes]:
        yield b"a\nb\n"
        raise AssertionError("read ahead")

    assert next(frame_bodies(blocks(), 2))[0] == 2


@pytest.mark.parametrize("blocks", [[], [b""], [b"", b""]])
def test_nothing_gives_no_body(blocks: list[bytes]):
    assert list(frame_bodies(blocks, 3)) == []


def test_a_body_needs_a_document():
    with pytest.raises(ValueError, match="at least one"):
        list(frame_bodies([b"a\n"], 0))


@given(lines=LINES, per_body=st.integers(1, 12))
def test_batches_are_the_documents_of_bodies(lines: list[bytes], per_body: int):
    stream = [line + b"\n" for line in lines]
    framed = [(len(documents), frame(documents)) for documents in batches(stream, per_body)]
    assert framed == list(frame_bodies(stream, per_body))


def test_documents_bring_their_ids():
    documents = [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    ids, repeated = [42, 42, 12_345_678_901], [False, True, False]
    assert frame_with_ids(documents, ids, repeated, "index").splitlines() == [
        b'{"index":{"_id":"0000000042"}}',
        b'{"a":1}',
        b'{"index":{"_id":"0000000042"}}',
        b'{"a":2}',
        b'{"index":{"_id":"12345678901"}}',
        b'{"a":3}',
    ]
    assert frame_with_ids(documents, ids, repeated, "update").splitlines()[2:4] == [
        b'{"update":{"_id":"0000000042"}}',
        b'{"doc":{"a":2}}',
    ]


def test_every_document_needs_an_id():
    with pytest.raises(ValueError, match="zip"):
        frame_with_ids([b"{}"], [], [], "index")

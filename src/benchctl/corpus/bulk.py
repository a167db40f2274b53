"""Bulk request bodies: an action line before every document line, a fixed number of documents a body."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

_ACTION = b'{"index":{}}\n'
_NEXT = b"\n" + _ACTION
_CREATE = b'{"create":{}}\n'
_NEXT_CREATED = b"\n" + _CREATE

Frame = Callable[[Sequence[bytes]], bytes]
"""Makes a body of its lines."""


def frame_bodies(
    blocks: Iterable[bytes], documents_per_body: int, *, framing: Frame | None = None, lines_each: int = 1
) -> Iterator[tuple[int, bytes]]:
    r"""Cut a stream of document lines into bodies for `POST /index/_bulk`.

    Args:
        blocks: bytes of documents, one a line; blocks may end anywhere, and an unfinished last line counts.
        documents_per_body: from 1 on.
        framing: of a body; `frame` when None.
        lines_each: of a document: 2 where its action line is there already.

    Yields:
        (documents, body): every document in order, with its action line and a final "\n"; each body has
        `documents_per_body` documents but the last one, which has the rest.

    Raises:
        ValueError: `documents_per_body` is less than 1.
    """
    make = framing or frame
    for lines in batches(blocks, documents_per_body * lines_each):
        yield len(lines) // lines_each, make(lines)


def batches(blocks: Iterable[bytes], documents_per_body: int) -> Iterator[list[bytes]]:
    """Cut a stream of document lines into the documents of one body each; arguments as of `frame_bodies`."""
    if documents_per_body < 1:
        raise ValueError(f"a body needs at least one document, not {documents_per_body}")
    waiting: list[bytes] = []
    for lines in _lines(blocks):
        waiting += lines
        whole = len(waiting) - len(waiting) % documents_per_body
        for first in range(0, whole, documents_per_body):
            yield waiting[first : first + documents_per_body]
        del waiting[:whole]
    if waiting:
        yield waiting


def _lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines that end in each block, without their ends; then an unfinished one."""
    unfinished: list[bytes] = []
    for block in blocks:
        lines = block.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join([*unfinished, lines[0]])
            unfinished.clear()
        unfinished.append(lines.pop())
        yield lines
    if rest := b"".join(unfinished):
        yield [rest]


def frame(documents: Sequence[bytes]) -> bytes:
    """One body, whose documents get their ids from the engine."""
    return b"".join([_ACTION, _NEXT.join(documents), b"\n"])


def frame_created(documents: Sequence[bytes]) -> bytes:
    """One body, whose documents are only ever created, as data streams want them."""
    return b"".join([_CREATE, _NEXT_CREATED.join(documents), b"\n"])


def frame_lines(lines: Sequence[bytes]) -> bytes:
    """One body, whose lines hold all that it has to have."""
    return b"".join([b"\n".join(lines), b"\n"])


def frame_with_ids(
    documents: Sequence[bytes],
    ids: Iterable[int],
    repeated: Iterable[bool],
    on_conflict: Literal["index", "update"],
) -> bytes:
    """One body, whose documents bring their ids.

    Args:
        documents: one line each.
        ids: one for each document; ten digits of it are written, or more.
        repeated: whether the id was given to an earlier document.
        on_conflict: what is done with a document whose id was.
    """
    lines = [
        b'{"update":{"_id":"%010d"}}\n{"doc":%b}\n' % (number, document)
        if again and on_conflict == "update"
        else b'{"index":{"_id":"%010d"}}\n%b\n' % (number, document)
        for document, number, again in zip(documents, ids, repeated, strict=True)
    ]
    return b"".join(lines)

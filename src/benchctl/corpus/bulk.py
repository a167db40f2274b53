"""Bulk request bodies: an action line before every document line, a fixed number of documents a body."""

from collections.abc import Iterable, Iterator

_ACTION = b'{"index":{}}\n'
_NEXT = b"\n" + _ACTION


def frame_bodies(blocks: Iterable[bytes], documents_per_body: int) -> Iterator[tuple[int, bytes]]:
    r"""Cut a stream of document lines into bodies for `POST /index/_bulk`.

    Args:
        blocks: bytes of documents, one a line; blocks may end anywhere, and an unfinished last line counts.
        documents_per_body: from 1 on.

    Yields:
        (documents, body): every document in order, with its action line and a final "\n"; each body has
        `documents_per_body` documents but the last one, which has the rest.

    Raises:
        ValueError: `documents_per_body` is less than 1.
    """
    if documents_per_body < 1:
        raise ValueError(f"a body needs at least one document, not {documents_per_body}")
    waiting: list[bytes] = []
    for lines in _lines(blocks):
        waiting += lines
        whole = len(waiting) - len(waiting) % documents_per_body
        for first in range(0, whole, documents_per_body):
            yield documents_per_body, _body(waiting[first : first + documents_per_body])
        del waiting[:whole]
    if waiting:
        yield len(waiting), _body(waiting)


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


def _body(documents: list[bytes]) -> bytes:
    return b"".join([_ACTION, _NEXT.join(documents), b"\n"])

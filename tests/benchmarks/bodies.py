"""The corpus as bulk bodies, for whoever sends them."""

from collections.abc import Iterator
from pathlib import Path

from jobs import Job

from benchctl.corpus.bulk import frame_bodies
from benchctl.corpus.generated import load_corpus, open_documents


def bodies(job: Job) -> Iterator[tuple[int, bytes]]:
    """(documents, body) pairs, read and framed while they are taken."""
    corpus = load_corpus(Path(job.corpus))
    return frame_bodies(open_documents(corpus, stop=job.documents), job.per_body)

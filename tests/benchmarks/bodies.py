"""The corpus as bulk bodies, for whoever sends them."""

from collections.abc import Iterator
from pathlib import Path

from jobs import Job

from benchctl.corpus.bulk import frame_bodies
from benchctl.corpus.generated.files import open_documents
from benchctl.corpus.generated.manifest import load_corpus


def bodies(job: Job) -> Iterator[tuple[int, bytes]]:
    """(documents, body) pairs, read and framed while they are taken."""
    corpus = load_corpus(Path(job.corpus))
    return frame_bodies(open_documents(corpus, stop=job.documents), job.per_body)

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchctl.home import Home
from corpus.file_server import FileServer, serving_files
from plain_search import Document, documents

SAMPLE_DOCUMENTS = 100_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture(scope="session")
def sample() -> list[Document]:
    """The smallest corpus on which every operation must match something, parsed and flattened."""
    found = documents(SAMPLE_DOCUMENTS)
    assert len(found) == SAMPLE_DOCUMENTS
    return found


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A web server to fetch files from."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_files() as server:
        yield server

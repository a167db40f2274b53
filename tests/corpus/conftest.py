from pathlib import Path

import pytest

from benchctl.home import Home
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

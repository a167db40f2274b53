"""What tests of experiments have in common."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="package", autouse=True)
def memory() -> Iterator[None]:
    """Memory for any plan: whether variants take turns depends on what is free when they are planned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2**38, total=2**38))
        yield

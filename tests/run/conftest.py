"""Records of runs that were planned and never started."""

from collections.abc import Callable

import pytest

from benchctl.results.model import RunRecord
from builders import make_record


@pytest.fixture
def record() -> Callable[..., RunRecord]:
    """A maker of records without forks: record('id')."""
    return make_record

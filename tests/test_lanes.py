"""Which tests keep together when processes share them."""

import pytest

from lanes import lane


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/integration/test_run.py::test_a", "tests/integration/test_run.py"),
        ("tests/integration/test_nodes.py::test_a[opensearch]", "tests/integration/test_nodes.py"),
        ("tests/run/test_lock.py::test_a", "tests/run/test_lock.py::test_a"),
        ("tests/run/test_run.py::test_a[tests/integration/test_run.py::x]", None),
    ],
)
def test_modules_with_nodes_are_kept_together_and_nothing_else(nodeid: str, expected: str | None):
    assert lane(nodeid) == (expected or nodeid)

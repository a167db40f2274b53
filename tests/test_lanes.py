"""Which tests keep together when processes share them."""

from pathlib import Path

import pytest

from lanes import INTEGRATION, WITHOUT_LOCK, lane


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/integration/test_run.py::test_a", "measuring"),
        ("tests/integration/test_nodes.py::test_a[opensearch]", "nodes"),
        ("tests/run/test_lock.py::test_a", "tests/run/test_lock.py::test_a"),
        ("tests/run/test_run.py::test_a[tests/integration/test_run.py::x]", None),
    ],
)
def test_nodes_are_kept_together_and_nothing_else(nodeid: str, expected: str | None):
    assert lane(nodeid) == (expected or nodeid)


@pytest.mark.parametrize("name", sorted(WITHOUT_LOCK))
def test_whatever_calls_benchctl_keeps_to_the_lane_of_the_lock(name: str):
    module = Path(__file__).parent / INTEGRATION.name / f"{name}.py"
    text = module.read_text(encoding="utf-8")
    assert "integration.calls" not in text
    assert "environ: dict" not in text

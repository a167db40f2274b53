"""Every benchmark in its smallest form: no figures, but a program that no longer fits what it measures fails.

What measures real nodes is among the tests of nodes.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
ROWS = ["one", "signed", "eight", "error", "stall", "fixed", "start", "warmup", "bulk", "memory"]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home where the nodes' user can enter, as commands want it: pytest's folders are private."""
    with tempfile.TemporaryDirectory(prefix="benchctl-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def check_runs(home: Path, program: str, *arguments: str) -> str:
    """Run it; whether it reaches its goals, which decides between 0 and 1, is luck beside other tests."""
    paths = [str(HERE.parent), str(HERE.parent / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environ = os.environ | {"BENCHCTL_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, str(HERE / program), *arguments],
        cwd=home,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode in {0, 1}, done.stderr) == (True, "")
    return done.stdout


def test_no_row_goes_without():
    declared = (HERE / "bench_load.py").read_text(encoding="utf-8").partition("ROWS: dict")[2]
    assert [line.split('"')[1] for line in declared.partition("}")[0].splitlines()[1:]] == ROWS


def test_every_row_of_the_load_generators_is_measured(home: Path):
    said = check_runs(home, "bench_load.py", "--smoke", "--format", "markdown", "--rows", ",".join(ROWS))
    lines = [line for line in said.splitlines() if line.startswith("| ")]
    assert len(lines) >= 2 + len(ROWS), said

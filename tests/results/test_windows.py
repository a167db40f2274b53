"""When tasks ran, from the samples of a fork."""

from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.results.reading import TaskWindow, task_windows
from benchctl.results.store import RunFolder
from builders import make_fork
from stored import samples


def test_a_window_begins_with_the_first_request_and_ends_with_the_last_answer(tmp_path: Path):
    folder = RunFolder(tmp_path)
    warm_up, unmeasured = samples(1000), samples(1000)
    warm_up["schedule"] -= 1
    measured = samples(10**6)
    measured["boot"][:] = 2
    unmeasured["task"] += 1
    unmeasured["warmup"][:] = True
    path = folder.write_samples([measured, warm_up, unmeasured], "es", 0)
    found = task_windows(folder, make_fork("es", 0, samples=path))
    assert found == {(0, 0): TaskWindow(0, 10**9, 3 * 10**9 + 10**6, boot=2)}
    assert found[0, 0].seconds == pytest.approx(2.001)


def test_without_samples_nobody_knows(tmp_path: Path):
    for path in (None, "forks/gone.parquet"):
        with pytest.raises(BenchctlError, match="the samples of fork 3 of es are not there"):
            task_windows(RunFolder(tmp_path), make_fork("es", 3, samples=path))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(BenchctlError, match="cannot read the samples"):
        task_windows(RunFolder(tmp_path), make_fork("es", 3, samples="broken.parquet"))

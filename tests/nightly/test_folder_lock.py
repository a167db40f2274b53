"""The lock of a suite; what holds of every lock is in tests/test_lock.py."""

import os
from pathlib import Path

import pytest

from benchctl.lock import measuring_pid
from benchctl.nightly.folder import SuiteBusy, SuiteFolder


def test_a_suite_is_locked_by_itself_and_says_who_is_at_work_on_it(tmp_path: Path):
    suite = SuiteFolder(tmp_path / "big5")
    with suite.lock(), SuiteFolder(tmp_path / "other").lock():
        assert measuring_pid(suite.lock_name) == os.getpid()
        message = (
            rf"the suite in {suite.root} is at work already \(process {os.getpid()} of user \S+, since 20"
        )
        with pytest.raises(SuiteBusy, match=message), suite.lock():
            pass
    with pytest.raises(ZeroDivisionError), suite.lock():
        1 / 0  # noqa: B018 - what happens in the block
    assert measuring_pid(suite.lock_name) is None
    told: list[str] = []

    def pause(seconds: float) -> None:
        assert seconds == 1.0
        held.__exit__(None, None, None)

    held = suite.lock()
    held.__enter__()
    with suite.lock(wait=True, on_wait=told.append, pause=pause):
        assert len(told) == 1

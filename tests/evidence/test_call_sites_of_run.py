"""Which logs a run has, and which one is meant."""

import re
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.evidence.call_sites import RunLog, choose, logs_of
from benchctl.results.model import BootRecord
from benchctl.results.store import RunFolder
from builders import make_fork, make_record

BOOT = BootRecord((0,), 5.0, 0.1, 1.0, 10, 10, ("java",), "")


def kept(folder: RunFolder, variant: str, block: int, number: int, name: str = "jvm.log") -> Path:
    path = folder.evidence_folder(variant, block, number) / name
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_logs_are_those_kept_as_evidence(tmp_path: Path):
    folder = RunFolder(tmp_path)
    plain = kept(folder, "es", 1, 0)
    packed = kept(folder, "es", 1, 1, "jvm.log.zst")
    forks = (make_fork("es", 1, boots=(BOOT, BOOT)), make_fork("es", 0, boots=(BOOT,)))
    assert logs_of(folder, make_record(forks=forks)) == [
        RunLog(plain, "es", 1, 0),
        RunLog(packed, "es", 1, 1),
    ]


LOGS = [
    RunLog(Path(f"{variant}{block}{boot}"), variant, block, boot)
    for block in (2, 3)
    for variant in ("es", "os")
    for boot in (0, 1)
]


def test_the_first_block_and_its_last_boot_are_meant():
    assert choose(LOGS, "os", None, None).path == Path("os21")
    assert choose(LOGS, "os", 3, None).path == Path("os31")
    assert choose(LOGS, "es", None, 0).path == Path("es20")
    assert choose(LOGS[:2], None, None, None).path == Path("es21")


@pytest.mark.parametrize(
    ("logs", "asked", "message", "hint"),
    [
        ([], (None, None, None), "has no inlining log", "--evidence inlining"),
        (LOGS, (None, None, None), "several variants have an inlining log: es, os", "--variant"),
        (LOGS, ("new", None, None), "no inlining log of that variant", "es, block 2, boot 0; "),
        (LOGS, ("es", 0, None), "no inlining log of that variant", "es, block 2, boot 0; "),
        (LOGS, ("es", None, 7), "no inlining log of that variant", "es, block 2, boot 0; "),
    ],
)
def test_what_is_not_there_is_said(logs: list[RunLog], asked: tuple[str, int, int], message: str, hint: str):
    with pytest.raises(UsageError, match=message) as caught:
        choose(logs, *asked)
    assert caught.value.hint is not None
    assert re.search(hint, caught.value.hint)

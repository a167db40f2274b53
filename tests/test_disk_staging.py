"""Half-done work: gone when it fails, swept when its process was killed, left alone while it goes on."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchctl.disk import settle, staging, sweep
from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import VariantSpec

WORKER = """
import signal, sys
from pathlib import Path
from benchctl.disk import staging
with staging(Path(sys.argv[1]), "work") as folder:
    (folder / "half").mkdir()
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@contextmanager
def working(parent: Path) -> Iterator[tuple[Path, "subprocess.Popen[str]"]]:
    """Another process at work below a folder: where, and the process."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, parent], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Path(process.stdout.readline().rstrip()), process
        finally:
            process.kill()


def killed(parent: Path) -> Path:
    """What a process leaves below a folder when it is killed at work."""
    with working(parent) as (folder, process):
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert (folder / "half").is_dir()
    return folder


def test_a_folder_settles_once(tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        settle(tmp_path / name, tmp_path / "final")
    assert (tmp_path / "final" / "file").read_text() == "first"
    with pytest.raises(FileNotFoundError):
        settle(tmp_path / "absent", tmp_path / "other")


def test_half_done_work_vanishes(tmp_path: Path):
    def give_up_half_way() -> None:
        with staging(tmp_path, "do it") as folder:
            (folder / "half").touch()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(BenchctlError, match="cannot do it: No space left"):
        give_up_half_way()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept(home: Home):
    left = [killed(parent) for parent in (home.artifacts, home.engines)]
    (home.engines / "whole").mkdir()
    sweep(home)
    assert not any(folder.exists() for folder in left)
    assert (home.engines / "whole").is_dir()


def test_what_others_are_working_on_is_left_alone_and_swept_later(home: Home):
    left = killed(home.jdks)
    with working(home.jdks) as (folder, process):
        sweep(home)
        assert folder.is_dir()
        assert left.is_dir()
        process.kill()
        process.wait()
        sweep(home)
    assert list(home.jdks.iterdir()) == []


def test_own_work_is_left_alone(home: Home):
    with staging(home.jdks, "work") as outer, staging(home.jdks, "work") as inner:
        sweep(home)
        assert outer.is_dir()
        assert inner.is_dir()


def test_a_home_that_is_not_there_yet_needs_no_sweeping(home: Home):
    sweep(home)
    assert not home.root.exists()


def test_without_locks_nothing_is_swept_and_work_goes_on(home: Home, monkeypatch: pytest.MonkeyPatch):
    left = killed(home.jdks)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with staging(home.jdks, "work") as folder:
        assert folder.is_dir()
    sweep(home)
    assert left.is_dir()


def test_every_installation_sweeps(home: Home, tmp_path: Path):
    left = killed(home.jdks)
    spec = VariantSpec("es", "elasticsearch", "8.11.0", distribution=str(tmp_path / "absent"))
    with pytest.raises(UsageError):
        install(home, spec, lambda *_: None)
    assert not left.exists()


def test_every_java_runtime_that_is_asked_for_sweeps(home: Home, tmp_path: Path):
    left = killed(home.engines)
    with pytest.raises(UsageError):
        provide_jdk(home, str(tmp_path / "absent"))
    assert not left.exists()

"""The page cache of real files, as the kernel tells of it."""

import os
from pathlib import Path

import pytest

from benchctl.engine.prepared_index import prepare_page_cache, resident_share
from benchctl.errors import BenchctlError


def test_an_index_is_evicted_and_read_in_again(tmp_path: Path):
    (tmp_path / "0" / "index").mkdir(parents=True)
    for name, size in {"_0.fdt": 3_000_001, "_0.dvd": 1, "empty": 0}.items():
        (tmp_path / "0" / "index" / name).write_bytes(os.urandom(size))
    try:
        assert prepare_page_cache(tmp_path, "cold") == 0.0
    except BenchctlError as err:
        pytest.skip(f"temporary files are where pages stay: {err.message}")
    assert prepare_page_cache(tmp_path, "warm") == 1.0
    assert prepare_page_cache(tmp_path, "as-is") is None
    assert prepare_page_cache(tmp_path, "cold") == 0.0
    (tmp_path / "0" / "index" / "_0.fdt").read_bytes()
    assert resident_share(tmp_path) > 0.9


def test_what_cannot_be_evicted_is_told():
    memory = Path("/dev/shm")  # noqa: S108 - for what it is, not to keep anything
    if not memory.is_dir():
        pytest.skip("no file system in memory")
    folder = memory / f"benchctl-{os.getpid()}"
    folder.mkdir()
    try:
        (folder / "_0.fdt").write_bytes(bytes(100_000))
        with pytest.raises(BenchctlError, match=r"100% of .* stays in the page cache"):
            prepare_page_cache(folder, "cold")
    finally:
        (folder / "_0.fdt").unlink()
        folder.rmdir()

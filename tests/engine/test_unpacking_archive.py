"""Archives, honest and hostile."""

import contextlib
import errno
import gzip
import io
import os
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.disk import RESERVE_BYTES, disk_errors
from benchctl.engine import distribution as unpacking
from benchctl.engine.distribution import unpack
from benchctl.errors import BenchctlError

Pack = Callable[[Path, list["Member"]], Path]
Member = tuple[str, int, bytes]
"""Name, mode with its file type, content; a link's content is where it points."""

FILE, SCRIPT = stat.S_IFREG | 0o640, stat.S_IFREG | 0o750
FOLDER, LINK, FIFO = stat.S_IFDIR | 0o700, stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644


def pack_zip(folder: Path, members: list[Member]) -> Path:
    path = folder / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, mode, content in members:
            info = zipfile.ZipInfo(name + "/" * stat.S_ISDIR(mode))
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            packed.writestr(info, content)
    return path


def pack_tar(folder: Path, members: list[Member]) -> Path:
    types = {FILE: tarfile.REGTYPE, SCRIPT: tarfile.REGTYPE, FOLDER: tarfile.DIRTYPE, FIFO: tarfile.FIFOTYPE}
    path = folder / "packed.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for name, mode, content in members:
            info = tarfile.TarInfo(name)
            info.mode = stat.S_IMODE(mode)
            if mode == LINK:
                info.type, info.linkname = tarfile.SYMTYPE, content.decode()
            else:
                info.type, info.size = types[mode], len(content)
            packed.addfile(info, io.BytesIO(content) if info.size else None)
    return path


def pack_hard_link(folder: Path, link: str) -> Path:
    path = folder / "packed.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        original = tarfile.TarInfo("top/original")
        original.size = 5
        packed.addfile(original, io.BytesIO(b"bytes"))
        info = tarfile.TarInfo("top/linked")
        info.type, info.linkname = tarfile.LNKTYPE, link
        packed.addfile(info)
    return path


pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")  # of zipfile, when packing

both = pytest.mark.parametrize("pack", [pack_zip, pack_tar])


def everything_in(folder: Path) -> set[str]:
    # os.walk neither follows links nor minds their targets; Python 3.11's rglob stumbles over long ones.
    return {
        Path(parent, name).relative_to(folder).as_posix()
        for parent, folders, files in os.walk(folder)
        for name in (*folders, *files)
    }


@both
def test_the_single_top_folder_comes_back_with_modes_for_everybody(pack: Pack, tmp_path: Path):
    members = [
        ("top", FOLDER, b""),
        ("top/bin/run", SCRIPT, b"#!/bin/sh\n"),
        ("top/lib/a.jar", FILE, b"jar"),
        ("top/legal/base/LICENSE", FILE, b"text"),
        ("top/legal/more", LINK, b"base/LICENSE"),
        ("top/legal/deep/up", LINK, b"../../lib"),
    ]
    previous = os.umask(0o077)
    try:
        top = unpack(pack(tmp_path, members), tmp_path / "out")
    finally:
        os.umask(previous)
    assert top == tmp_path / "out" / "top"
    modes = {path.relative_to(top).as_posix(): stat.S_IMODE(path.lstat().st_mode) for path in top.rglob("*")}
    assert {name: mode for name, mode in modes.items() if not (top / name).is_symlink()} == {
        "bin": 0o755,
        "bin/run": 0o755,
        "lib": 0o755,
        "lib/a.jar": 0o644,
        "legal": 0o755,
        "legal/base": 0o755,
        "legal/base/LICENSE": 0o644,
        "legal/deep": 0o755,
    }
    assert (top / "legal/more").read_text() == "text"
    assert (top / "legal/deep/up/a.jar").read_text() == "jar"


@both
def test_several_entries_at_the_top_give_the_target(pack: Pack, tmp_path: Path):
    archive = pack(tmp_path, [("./a/file", FILE, b"1"), ("b", FILE, b"2")])
    assert unpack(archive, tmp_path / "out") == tmp_path / "out"
    assert everything_in(tmp_path / "out") == {"a", "a/file", "b"}
    for target in (b"x" * 300, b"alone"):  # a single link is no top folder
        archive, out = pack(tmp_path, [("alone", LINK, target)]), tmp_path / str(len(target))
        assert unpack(archive, out) == out


def test_scripts_of_a_zip_without_modes_can_be_executed(tmp_path: Path):
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name in ("top/bin/run", "top/lib/binary"):
            info = zipfile.ZipInfo(name)
            info.create_system = 0
            packed.writestr(info, b"")
            info.external_attr = 0
    top = unpack(path, tmp_path / "out")
    assert os.access(top / "bin/run", os.X_OK)
    assert stat.S_IMODE((top / "lib/binary").stat().st_mode) == 0o644


@both
@pytest.mark.parametrize(
    "members",
    [
        [("../evil", FILE, b"x")],
        [("top/../../evil", FILE, b"x")],
        [("/evil", FILE, b"x")],
        [("..\\evil", FILE, b"x")],
        [("..", FOLDER, b"")],
        [("", FILE, b"x")],
        [(".", LINK, b"a")],
        [("top/out", LINK, b"/etc/passwd")],
        [("top/out", LINK, b"../evil")],
        [("top/out", LINK, b"../../evil")],
        [("top/deep/out", LINK, b"../..")],
        [("top/here", LINK, b".")],
        [("top/in/up", LINK, b".."), ("top/out", LINK, b"in/up/..")],
        [("top/in", FOLDER, b""), ("top/link", LINK, b"in"), ("top/link/file", FILE, b"x")],
        [("top/file", FILE, b"x"), ("top/link", LINK, b"file"), ("top/link", FILE, b"y")],
    ],
)
def test_nothing_leaves_the_target(pack: Pack, members: list[Member], tmp_path: Path):
    archive = pack(tmp_path, members)
    with pytest.raises(BenchctlError, match="is not safe to unpack"):
        unpack(archive, tmp_path / "folder" / "out")
    assert {path.name for path in tmp_path.iterdir()} <= {archive.name, "folder"}
    assert {path.name for path in (tmp_path / "folder").iterdir()} <= {"out"}


@both
def test_what_is_neither_file_folder_nor_link_is_refused(pack: Pack, tmp_path: Path):
    with pytest.raises(BenchctlError, match="'top/pipe' is neither file, directory nor link"):
        unpack(pack(tmp_path, [("top/pipe", FIFO, b"")]), tmp_path / "out")


@both
@pytest.mark.parametrize("second", [FILE, LINK])
def test_two_entries_of_one_name_are_refused(pack: Pack, second: int, tmp_path: Path):
    archive = pack(tmp_path, [("top/a", FILE, b"1"), ("top/a", second, b"b")])
    with pytest.raises(BenchctlError, match=r"two entries claim .*top/a"):
        unpack(archive, tmp_path / "out")


def test_a_hard_link_inside_becomes_a_copy(tmp_path: Path):
    top = unpack(pack_hard_link(tmp_path, "top/original"), tmp_path / "out")
    assert (top / "linked").read_bytes() == b"bytes"
    assert (top / "linked").stat().st_nlink == 1


@pytest.mark.parametrize("link", ["/etc/passwd", "../../etc/passwd", "top/absent", "top/linked"])
def test_a_hard_link_to_anything_but_a_file_inside_is_refused(link: str, tmp_path: Path):
    with pytest.raises(BenchctlError, match="is a hard link to"):
        unpack(pack_hard_link(tmp_path, link), tmp_path / "out")


@both
@pytest.mark.parametrize("damage", ["cut", "flipped", "text", "empty"])
def test_a_damaged_archive_is_told(pack: Pack, damage: str, tmp_path: Path):
    archive = pack(tmp_path, [("top/file", FILE, os.urandom(5000))])
    whole = archive.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :],
        "text": b"<html>Not found</html>",
        "empty": b"",
    }
    archive.write_bytes(damaged[damage])
    with pytest.raises(BenchctlError, match="is damaged, or no archive") as caught:
        unpack(archive, tmp_path / "out")
    assert caught.value.hint == "remove it and get it again"


@both
def test_a_bomb_stops_at_the_free_space(pack: Pack, tmp_path: Path):
    mebibyte = 1 << 20
    archive = pack(tmp_path, [("top/a", FILE, bytes(mebibyte)), ("top/b", FILE, bytes(3 * mebibyte))])
    with pytest.raises(BenchctlError, match=r"not enough space .* 68 MiB needed, 67 MiB free") as caught:
        unpack(archive, tmp_path / "out", free=lambda _: RESERVE_BYTES + 3 * mebibyte)
    assert "BENCHCTL_HOME" in caught.value.hint
    assert not (tmp_path / "out/top/b").exists()
    unpack(archive, tmp_path / "again", free=lambda _: RESERVE_BYTES + 4 * mebibyte)


@both
@pytest.mark.parametrize(("bound", "most"), [("_MOST_ENTRIES", 2), ("_MOST_BYTES", 2)])
def test_an_archive_of_too_many_entries_or_bytes_is_refused(
    pack: Pack, bound: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = pack(tmp_path, [(f"top/{number}", FILE, b"x") for number in range(3)])
    unpack(archive, tmp_path / "out")
    monkeypatch.setattr(unpacking, bound, most)
    with pytest.raises(BenchctlError, match="is not safe to unpack"):
        unpack(archive, tmp_path / "again")
    assert len(everything_in(tmp_path / "again")) == 3


def test_a_compressed_stream_that_goes_on_behind_the_archive_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    archive = pack_tar(tmp_path, [("top/a", FILE, b"x")])
    with archive.open("ab") as longer:
        longer.write(gzip.compress(bytes(1 << 22)))
    monkeypatch.setattr(unpacking, "_MOST_BYTES", 1 << 20)
    with pytest.raises(BenchctlError, match="does not end"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "check who owns"),
        (errno.EROFS, "check who owns"),
        (errno.EIO, ""),
    ],
)
def test_the_disks_refusals_are_told(number: int, hint: str):
    with pytest.raises(BenchctlError, match="cannot write there: ") as caught, disk_errors("write there"):
        raise OSError(number, os.strerror(number))
    assert caught.value.hint.startswith(hint)
    assert os.strerror(number) in caught.value.message


STEPS = st.sampled_from(["a", "b", "top", ".", "..", "", "\\", "c:", "\N{SNOWMAN}", "x" * 300])
NAMES = st.builds(
    lambda start, steps: start + "/".join(steps),
    st.sampled_from(["", "/", "./"]),
    st.lists(STEPS, min_size=1, max_size=4),
)
MEMBERS = st.lists(
    st.tuples(NAMES, st.sampled_from([FILE, FOLDER]), st.just(b"x"))
    | st.tuples(NAMES, st.just(LINK), NAMES.map(str.encode)),
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([pack_zip, pack_tar]), MEMBERS)
def test_whatever_an_archive_holds_all_of_it_stays_inside(pack: Pack, members: list[Member]):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        archive = pack(folder, [(n, mode, b"" if mode == FOLDER else data) for n, mode, data in members])
        target = folder / "jail" / "out"
        with contextlib.suppress(BenchctlError):
            unpack(archive, target)
        assert {path.name for path in folder.iterdir()} <= {archive.name, "jail"}
        assert everything_in(folder / "jail") <= {"out"} | {f"out/{inner}" for inner in everything_in(target)}
        for path in (target / inner for inner in everything_in(target)):
            if path.is_symlink():
                assert Path(os.path.normpath(path.parent / path.readlink())).is_relative_to(target)
            with contextlib.suppress(OSError, RuntimeError):  # links to nothing, and in circles
                assert path.resolve(strict=True).is_relative_to(target)

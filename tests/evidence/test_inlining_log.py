"""Logs: whose a tree is, what is found by a method's name, and that every line is accounted for."""

from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.evidence.inlining_log import (
    Account,
    Compilation,
    Entry,
    InliningLog,
    Tree,
    names,
    read_entries,
    simple,
)
from jvm_logs import head, in_file, plain, thread

CALL = "                              @ {bci}   {callee} (7 bytes)   {text}"


def call(bci: int, callee: str, text: str = "inline (hot)") -> str:
    return CALL.format(bci=bci, callee=callee, text=text)


def callees(log: InliningLog, number: int) -> list[str]:
    return [one.callee for one in tree(log, number).calls]


def entries(log: InliningLog) -> list[Entry]:
    return sorted(log, key=lambda entry: entry.number)


def compilations(log: InliningLog) -> list[Compilation]:
    return [entry.compilation for entry in entries(log)]


def tree(log: InliningLog, number: int) -> Tree:
    return entries(log)[number].tree()


def rooted(log: InliningLog, method: str) -> list[int]:
    found = log.mentions(method)
    return [entry.compilation.id for entry in found if names(entry.compilation.method, method)]


def calling(log: InliningLog, method: str) -> list[int]:
    found = log.mentions(method)
    return [
        entry.compilation.id for entry in found if any(names(callee, method) for callee in entry.callees())
    ]


def test_a_tree_belongs_to_the_last_compilation_of_its_thread():
    log = InliningLog(
        in_file(
            thread(4), head(10, 1, 4, "a.Big::m"),
            thread(3), head(11, 2, 3, "a.Small::m"), call(1, "b.C1::x", "inline"),
            thread(4), call(5, "b.C2::y"),
            thread(3), call(2, "b.C1::z", "callee is too large"),
            thread(4), head(12, 3, 4, "a.Next::m"), call(9, "b.C2::w"),
        )
    )  # fmt: skip
    assert [one.method for one in compilations(log)] == ["a.Big::m", "a.Small::m", "a.Next::m"]
    assert callees(log, 0) == ["b.C2::y"]
    assert callees(log, 1) == ["b.C1::x", "b.C1::z"]
    assert callees(log, 2) == ["b.C2::w"]
    assert tree(log, 0).calls[0].caller == "a.Big::m"
    assert calling(log, "Next::m") == []


def test_two_compilers_of_a_kind_are_told_apart():
    log = InliningLog(
        in_file(
            thread(4), head(10, 1, 4, "a.One::m"),
            thread(5), head(11, 2, 4, "a.Two::m"),
            thread(4), call(5, "b.OfOne::y"),
            thread(5), call(5, "b.OfTwo::y"),
        )
    )  # fmt: skip
    assert (callees(log, 0), callees(log, 1)) == (["b.OfOne::y"], ["b.OfTwo::y"])
    assert calling(log, "OfTwo::y") == [2]
    assert calling(log, "Two::y") == calling(log, "One::m") == []


def test_a_log_that_names_no_threads_is_refused_unless_it_is_one_compilation():
    heads = (head(10, 1, 4, "a.Big::m"), head(11, 2, 3, "a.Small::m"))
    with pytest.raises(BenchctlError, match="identify the threads"):
        entries(InliningLog(plain(*heads)))
    assert len(entries(InliningLog(plain(heads[0], "[INFO] started", call(1, "b.C1::x", "inline"))))) == 1


def test_a_line_in_two_writes_is_read_as_one():
    cut = call(1, "b.C1::x", "inline")
    log = InliningLog(
        in_file(
            thread(3), head(10, 1, 3, "a.Small::m"), cut[:40],
            thread(4), head(11, 2, 4, "a.Big::m"),
            thread(3), cut[40:], call(2, "b.C1::z", "inline"),
        )
    )  # fmt: skip
    assert callees(log, 0) == ["b.C1::x", "b.C1::z"]
    assert tree(log, 0).unread == ()


@pytest.mark.parametrize("before", [(), (call(1, "b.C1::a", "inline"),)])
def test_a_line_that_is_cut_in_its_indentation_keeps_its_depth(before: tuple[str, ...]):
    inner = "  " + call(2, "b.C1::x", "inline")
    log = InliningLog(
        in_file(
            thread(3), head(10, 1, 3, "a.Small::m"), *before, inner[:8],
            thread(4), head(11, 2, 4, "a.Big::m"),
            thread(3), inner[8:], call(3, "b.C1::z", "inline"),
        )
    )  # fmt: skip
    assert [one.depth for one in tree(log, 0).calls] == [*[0 for _ in before], len(before), 0]


def test_heads_say_what_was_compiled():
    log = InliningLog(
        plain(
            thread(1),
            "    216    1     n 0       jdk.internal.misc.Unsafe::getReferenceVolatile (native)   ",
            "217    2     n 0       java.lang.Object::hashCode (native)   (static)",
            "  16977 6403 % !b  4       a.Loop::run @ 12 (345 bytes)",
            "17000  103  s    3       a.Sync::m (20 bytes)",
            "17383 6403       2       a.Sync::m (20 bytes)   made not entrant",
            "17384 6404       2       a.Sync::m (20 bytes)   made not entrant: not used",
            "17385 6405   !   4       a.Huge::m (8001 bytes)   COMPILE SKIPPED: out of nodes (not retryable)",
        )
    )
    native, static, osr, sync = compilations(log)
    assert (native.level, native.flags, native.size) == (0, "n", None)
    assert static.method == "java.lang.Object::hashCode"
    assert (osr.method, osr.osr_bci, osr.size, osr.flags) == ("a.Loop::run", 12, 345, "%!b")
    assert (osr.stamp_ms, osr.id, osr.level) == (16977, 6403, 4)
    assert (sync.flags, sync.osr_bci) == ("s", None)
    assert log.account.others == 4


def test_when_a_compilation_was_given_up_is_known():
    log = InliningLog(
        plain(
            thread(1),
            head(10, 1, 3, "a.B::m"),
            head(20, 2, 4, "a.B::m"),
            "     30    1       3       a.B::m (98 bytes)   made not entrant",
            "     40   22       3       a.B::m (98 bytes)   made not entrant",
        )
    )
    assert [log.given_up_ms(one) for one in compilations(log)] == [30, None]


def test_a_compilation_that_was_tried_again_counts_once_with_its_last_tree():
    log = InliningLog(
        in_file(
            thread(4), head(10, 7, 4, "a.B::m"), call(1, "c.First::x"),
            head(10, 7, 4, "a.B::m"), call(1, "c.Last::x"),
            head(20, 7, 4, "a.B::m", flags="%    "), head(30, 8, 4, "a.B::m"),
        )
    )  # fmt: skip
    assert [callees(log, number) for number in range(3)] == [["c.Last::x"], [], []]
    assert rooted(log, "B::m") == [7, 7, 8]
    assert (log.account.compilations, log.account.heads) == (3, 4)


def test_the_file_of_hotspot_counts_its_markup_and_unescapes_names():
    log = InliningLog(
        in_file(thread(3), head(10, 1, 3, "a.B::<init>"), call(1, "c.D::<init>"), "<blob name='x'/>")
    )
    assert rooted(log, "B::<init>") == [1]
    assert calling(log, "c.D::<init>") == [1]
    assert (log.account.others, log.account.lines) == (10, 12)


def test_lines_before_any_compilation_belong_to_none():
    log = InliningLog(
        b"@ 76   a.B::addAll (98 bytes)   inline (hot)\n  @ 5   a.B::size (163 bytes)   too big\n"
    )
    assert (entries(log), log.account.others) == ([], 2)


@pytest.mark.parametrize("line_feed", ["", "\n"])
def test_the_last_line_counts_with_and_without_a_line_feed(line_feed: str):
    log = InliningLog(f"{head(1, 1, 4, 'a.B::m')}\n{call(1, 'c.D::m')}{line_feed}".encode())
    assert (log.account.lines, callees(log, 0)) == (2, ["c.D::m"])


def test_an_empty_log_has_nothing():
    log = InliningLog(b"")
    assert (entries(log), log.account.lines, rooted(log, "A::b")) == ([], 0, [])


def test_methods_are_found_by_the_end_of_their_names():
    log = InliningLog(
        plain(
            thread(1),
            head(1, 1, 4, "org.x.Outer$Inner::run"),
            head(2, 2, 4, "org.x.Other$Inner::run"),
            head(3, 3, 4, "org.x.Inner::runs"),
            head(4, 4, 4, "org.x.T$$Lambda/0x00007f3a::run"),
        )
    )
    assert rooted(log, "Outer$Inner::run") == [1]
    assert rooted(log, "Inner::run") == [1, 2]
    assert rooted(log, "org.x.Inner::runs") == [3]
    assert rooted(log, "T$$Lambda::run") == [4]
    assert rooted(log, "run") == [1, 2, 4]
    assert rooted(log, "nner::run") == []
    assert calling(log, "run") == []


def test_names_without_packages_and_addresses():
    assert simple("org.x.T$$Lambda$14/0x00007f3a::run") == "T$$Lambda::run"
    assert simple("a.b.C$1::m") == "C$1::m"
    assert names("a.b.C$1::m", "C$1::m")
    assert not names("a.b.XC$1::m", "C$1::m")


def test_a_packed_log_reads_like_a_plain_one(tmp_path: Path):
    data = in_file(thread(3), head(10, 1, 3, "a.B::m"), call(1, "c.D::m"))
    (tmp_path / "jvm.log").write_bytes(data)
    (tmp_path / "jvm.log.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
    (tmp_path / "empty.log").touch()
    for name in ("jvm.log", "jvm.log.zst"):
        assert callees(InliningLog(tmp_path / name), 0) == ["c.D::m"]
    assert entries(InliningLog(tmp_path / "empty.log")) == []


def test_frames_behind_one_another_are_one_log(tmp_path: Path):
    data = in_file(thread(3), head(10, 1, 3, "a.B::m"), call(1, "c.D::m"))
    frames = (zstandard.ZstdCompressor().compress(part) for part in (data[:40], b"", data[40:]))
    (tmp_path / "jvm.log.zst").write_bytes(b"".join(frames))
    assert callees(InliningLog(tmp_path / "jvm.log.zst"), 0) == ["c.D::m"]


@pytest.mark.parametrize("frames", [1, 2])
def test_a_packed_log_that_is_cut_off_is_damaged_wherever_it_ends(tmp_path: Path, frames: int):
    """A disk that was full, say: what is missing must not read as what was not compiled."""
    data = in_file(thread(3), head(10, 1, 3, "a.B::m"), call(1, "c.D::m"))
    packed = zstandard.ZstdCompressor().compress(data)
    path = tmp_path / "jvm.log.zst"
    for end in range(1, len(packed)):
        path.write_bytes((frames - 1) * packed + packed[:end])
        with pytest.raises(BenchctlError, match="cannot read"):
            entries(InliningLog(path))


def test_a_log_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path):
    (tmp_path / "broken.log.zst").write_bytes(b"no frame")
    (tmp_path / "empty.log.zst").touch()
    for name in ("missing.log", "broken.log.zst", "empty.log.zst"):
        with pytest.raises(BenchctlError, match=name):
            entries(InliningLog(tmp_path / name))


line = st.sampled_from(
    [
        head(1, 1, 4, "a.B::m"),
        head(2, 2, 3, "a.C::m"),
        call(1, "c.D::m"),
        call(7, "c.E::m", "inline"),
        thread(3),
        thread(4),
        "   inline",
        "<blob/>",
        "",
        "   ",
        "[INFO] a line of an engine",
        " \\-> TypeProfile (1/2 counts) = a/B",
    ]
)


def test_a_compilation_comes_when_its_thread_begins_another():
    log = InliningLog(
        in_file(
            thread(4), head(10, 1, 4, "a.Long::m"), thread(3), head(11, 2, 3, "a.Short::m"),
            head(12, 3, 3, "a.Next::m"), thread(4), call(1, "c.D::m"),
        )
    )  # fmt: skip
    assert [entry.number for entry in log] == [1, 0, 2]


@given(st.lists(line, max_size=40))
def test_every_line_is_in_exactly_one_account(lines: list[str]):
    account = Account()
    list(read_entries([plain(*lines)], account))
    blank = sum(not one or one.isspace() for one in lines)
    told = account.heads + account.others + account.of_trees
    assert told <= account.lines == len(lines) <= told + blank


@given(st.lists(line, max_size=40), st.integers(1, 50))
def test_where_the_stream_is_cut_makes_no_difference(lines: list[str], size: int):
    data = plain(*lines)
    whole, cut = Account(), Account()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(read_entries(chunks, cut)) == list(read_entries([data], whole))
    assert cut == whole


@given(st.binary(max_size=400))
def test_garbage_never_raises(data: bytes):
    for entry in read_entries([data], Account()):
        entry.tree()


@given(st.lists(line, max_size=30), st.binary(max_size=60), st.integers(0, 2000))
def test_garbage_within_a_log_never_raises(lines: list[str], garbage: bytes, at: int):
    data = plain(*lines)
    read = read_entries([data[:at] + garbage + data[at:]], Account())
    assert sum(len(entry.tree().calls) for entry in read) <= len(lines) + garbage.count(b"@")

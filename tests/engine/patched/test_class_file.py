"""What a class file holds, and what no longer links once another is replaced."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.class_file import ClassFile, breaks, member_text, read_class
from benchctl.errors import BenchctlError

STATIC, ABSTRACT, PRIVATE = 0x0008, 0x0400, 0x0002
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
TRIPLES = st.tuples(NAMES, NAMES, NAMES)


def written(one: ClassFile) -> bytes:
    """A class file, as little of it as there has to be, with an entry of every size among its constants."""
    pool: list[bytes | None] = [b"\x05" + bytes(8), None, b"\x0f" + bytes(3), b"\x03" + bytes(4)]

    def put(entry: bytes) -> int:
        pool.append(entry)
        return len(pool)

    def text(value: str) -> int:
        content = value.encode()
        return put(b"\x01" + struct.pack(">H", len(content)) + content)

    def named(value: str) -> int:
        return put(b"\x07" + struct.pack(">H", text(value)))

    this, *parents = (named(name) for name in (one.name, *one.parents))
    for owner, name, descriptor in one.references:
        pair = put(b"\x0c" + struct.pack(">HH", text(name), text(descriptor)))
        put(b"\x0a" + struct.pack(">HH", named(owner), pair))
    members = b"".join(
        struct.pack(">HHHH", flags, text(name), text(descriptor), 1)
        + struct.pack(">HI", text("Code"), 3)
        + b"abc"
        for (name, descriptor), flags in one.members.items()
    )
    parent, *interfaces = parents or [0]
    return b"".join(
        [
            b"\xca\xfe\xba\xbe\x00\x00\x00\x37",
            struct.pack(">H", len(pool) + 1),
            *(entry for entry in pool if entry is not None),
            struct.pack(f">HHHH{len(interfaces)}H", one.flags, this, parent, len(interfaces), *interfaces),
            struct.pack(">H", 0),
            struct.pack(">H", len(one.members)) + members,
            struct.pack(">H", 0),
        ]
    )


@given(
    name=NAMES,
    flags=st.integers(0, 0xFFFF),
    parents=st.lists(NAMES, max_size=3),
    members=st.dictionaries(st.tuples(NAMES, NAMES), st.integers(0, 0xFFFF), max_size=4),
    references=st.frozensets(TRIPLES, max_size=4),
)
def test_what_is_written_is_read(
    name: str,
    flags: int,
    parents: list[str],
    members: dict[tuple[str, str], int],
    references: frozenset[tuple[str, str, str]],
) -> None:
    one = ClassFile(name, flags, tuple(parents), members, references)
    assert read_class(written(one), "any") == one


@given(st.binary(max_size=60), st.integers(0, 300))
def test_what_is_none_is_refused(noise: bytes, cut: int) -> None:
    whole = written(ClassFile("a/B", 1, ("a/C",), {("x", "()V"): 1}, frozenset({("a/C", "y", "I")})))
    for content in (noise, b"\xca\xfe\xba\xbe" + noise, whole[: min(cut, len(whole) - 3)]):
        with pytest.raises(BenchctlError, match="any is not a class file"):
            read_class(content, "any")


RUN = ("run", "()V")
OBJECT = "java/lang/Object"


def of(
    name: str, *members: tuple[str, str], parent: str = OBJECT, flags: int = 0, uses: str = ""
) -> ClassFile:
    references = frozenset({(uses, *RUN)} if uses else set())
    return ClassFile(name, flags, (parent,), dict.fromkeys(members, flags), references)


def broken(before: list[ClassFile], after: list[ClassFile], *others: ClassFile) -> list[str]:
    known = {one.name: one for one in others}
    return breaks(
        {one.name: one for one in before},
        {one.name: one for one in after},
        [("any.jar", one) for one in others],
        known.get,
    )


def test_a_method_that_is_gone_breaks_its_callers_and_nobody_else():
    user, other = of("p/User", uses="p/A"), of("p/Other", uses="p/Unrelated")
    found = broken([of("p/A", RUN)], [of("p/A")], user, other)
    assert found == ["User of any.jar uses A.run()"]


def test_callers_by_a_subclass_break_too():
    found = broken([of("p/A", RUN)], [of("p/A")], of("p/B", parent="p/A"), of("p/User", uses="p/B"))
    assert found == ["User of any.jar uses B.run()"]


def test_a_subclass_with_a_method_of_its_own_is_no_caller():
    assert not broken([of("p/A", RUN)], [of("p/A")], of("p/B", RUN, parent="p/A"), of("p/User", uses="p/B"))


def test_a_method_that_moved_up_is_still_there():
    after = [of("p/A", parent="p/Base"), of("p/Base", RUN)]
    assert not broken([of("p/A", RUN, parent="p/Base"), of("p/Base")], after, of("p/User", uses="p/A"))


def test_what_becomes_private_or_static_is_as_good_as_gone():
    for flags in (PRIVATE, STATIC):
        assert broken([of("p/A", RUN)], [of("p/A", RUN, flags=flags)], of("p/User", uses="p/A"))


def test_a_class_that_is_gone_breaks_its_users():
    assert broken([of("p/A"), of("p/A$B", RUN)], [of("p/A")], of("p/User", uses="p/A$B"))


def test_a_new_abstract_method_breaks_those_that_lack_it():
    before, after = of("p/A", flags=ABSTRACT), of("p/A", RUN, flags=ABSTRACT)
    found = broken([before], [after], of("p/B", parent="p/A"), of("p/C", RUN, parent="p/A"))
    assert found == ["B of any.jar lacks A.run()"]
    assert not broken([after], [after], of("p/B", parent="p/A"))


def test_members_are_named_as_in_java():
    told = member_text("a/b/Outer$In", "<init>", "(I[[Ljava/lang/String;Z)V")
    assert told == "Outer.In.new(int, String[][], boolean)"
    assert member_text("a/B", "length", "J") == "B.length"

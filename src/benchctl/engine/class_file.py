"""Class files: their members, what they refer to, and what a change of some of them breaks in others."""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from benchctl.errors import BenchctlError

_MAGIC: Final = b"\xca\xfe\xba\xbe"
_PRIVATE, _STATIC, _ABSTRACT, _SYNTHETIC = 0x0002, 0x0008, 0x0400, 0x1000
# Of the constant pool, by tag: how many bytes follow. See the Java Virtual Machine Specification, 4.4.
_SIZES: Final = {
    3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2,
}  # fmt: skip
_UTF8, _CLASS, _NAME_AND_TYPE = 1, 7, 12
_WIDE: Final = (5, 6)
_REFERENCES: Final = (9, 10, 11)

Key = tuple[str, str]
"""Name and descriptor of a member, such as `("read", "(I)V")`; a field's descriptor has no parentheses."""


@dataclass(frozen=True)
class ClassFile:
    """What linking depends on.

    Attributes:
        name: internal, such as `org/apache/lucene/util/BytesRef`.
        flags: of the class.
        parents: its superclass and interfaces.
        members: flags of its fields and methods.
        references: (owner, name, descriptor) of members of this and of other classes that its code uses.
    """

    name: str
    flags: int
    parents: tuple[str, ...]
    members: Mapping[Key, int]
    references: frozenset[tuple[str, str, str]]

    @cached_property
    def offered(self) -> dict[Key, int]:
        """Members that other classes may use."""
        return {key: flags for key, flags in self.members.items() if not flags & (_PRIVATE | _SYNTHETIC)}


def read_class(content: bytes, what: str) -> ClassFile:
    """Parse a class file; `what` is its name in messages.

    Raises:
        BenchctlError: it is none.
    """
    try:
        return _Reader(content).read()
    except (struct.error, KeyError, IndexError, UnicodeDecodeError, ValueError) as err:
        raise BenchctlError(f"{what} is not a class file") from err


class _Reader:
    def __init__(self, content: bytes) -> None:
        if not content.startswith(_MAGIC):
            raise ValueError
        self._content = content
        self._at = 8
        self._pool: dict[int, tuple[int, bytes]] = {}

    def read(self) -> ClassFile:
        self._read_pool()
        flags, this, parent, count = self._take(">HHHH")
        parents = [*([parent] if parent else []), *(self._take(">H")[0] for _ in range(count))]
        members = {**dict(self._members()), **dict(self._members())}
        if self._at > len(self._content):
            raise ValueError
        references = frozenset(
            (self._class(owner), *self._name_and_type(pair))
            for tag, data in self._pool.values()
            if tag in _REFERENCES
            for owner, pair in [struct.unpack(">HH", data)]
        )
        return ClassFile(self._class(this), flags, tuple(map(self._class, parents)), members, references)

    def _read_pool(self) -> None:
        (count,) = self._take(">H")
        place = 1
        while place < count:
            tag = self._content[self._at]
            self._at += 1
            size = self._take(">H")[0] if tag == _UTF8 else _SIZES[tag]
            self._pool[place] = (tag, self._content[self._at : self._at + size])
            self._at += size
            place += 2 if tag in _WIDE else 1

    def _take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._content, self._at)
        self._at += struct.calcsize(form)
        return found

    def _members(self) -> Iterator[tuple[Key, int]]:
        """Fields or methods, whichever come next."""
        for _ in range(self._take(">H")[0]):
            flags, name, descriptor, attributes = self._take(">HHHH")
            for _ in range(attributes):
                _, size = self._take(">HI")
                self._at += size
            yield (self._text(name), self._text(descriptor)), flags

    def _text(self, place: int) -> str:
        # Java's own UTF-8 writes surrogates one by one; names are compared, not shown to be right.
        return self._pool[place][1].decode("utf-8", errors="surrogatepass")

    def _class(self, place: int) -> str:
        return self._text(int.from_bytes(self._pool[place][1]))

    def _name_and_type(self, place: int) -> tuple[str, str]:
        name, descriptor = struct.unpack(">HH", self._pool[place][1])
        return self._text(name), self._text(descriptor)


Find = Callable[[str], ClassFile | None]
"""A class by its internal name; None if it is not known."""


def breaks(
    before: Mapping[str, ClassFile],
    after: Mapping[str, ClassFile],
    others: Iterable[tuple[str, ClassFile]],
    find: Find,
) -> list[str]:
    """What no longer links once classes are replaced: members that are gone, or have to be implemented.

    Reflection is not seen, nor are methods with other exceptions or a narrower access.

    Args:
        before: the replaced classes by internal name.
        after: what replaces them.
        others: classes that may use them, each with the name of where it is.
        find: any other class.

    Returns:
        A line for every class that breaks and what of, `CLASS of WHERE uses MEMBER of CLASS`.
    """

    def known(name: str) -> ClassFile | None:
        return after.get(name) or (None if name in before else find(name))

    gone = {
        (name, *key)
        for name, old in before.items()
        for key, flags in old.offered.items()
        if not _resolves(name, key, known, offered=True)
        or (flags ^ _flags(after.get(name), key, flags)) & _STATIC
    }
    duties = {
        name: {key for key, flags in new.members.items() if flags & _ABSTRACT}
        - {key for key, flags in before[name].members.items() if flags & _ABSTRACT}
        for name, new in after.items()
        if name in before
    }
    keys = {(name, descriptor) for _, name, descriptor in gone}
    found = []
    for where, one in others:
        used = sorted(one.references & gone) + sorted(
            reference
            for reference in one.references - gone
            if (reference[1], reference[2]) in keys
            and reference[0] not in before
            and any((parent, *reference[1:]) in gone for parent in _ancestors(reference[0], known))
            and not _resolves(reference[0], reference[1:], known)
        )
        found += [f"{_named(one.name)} of {where} uses {member_text(*reference)}" for reference in used]
        if not one.flags & _ABSTRACT:
            lacking = (
                (parent, *key)
                for parent in one.parents
                for key in sorted(duties.get(parent, ()))
                if key not in one.members
            )
            found += [f"{_named(one.name)} of {where} lacks {member_text(*duty)}" for duty in lacking]
    return found


def _flags(one: ClassFile | None, key: Key, otherwise: int) -> int:
    return otherwise if one is None else one.members.get(key, otherwise)


def _resolves(name: str, key: Key, known: Find, *, offered: bool = False) -> bool:
    """Whether a class has a member, or inherits it."""
    one = known(name)
    if one is None:
        return False
    return key in (one.offered if offered else one.members) or any(
        _resolves(parent, key, known, offered=offered) for parent in one.parents
    )


def _ancestors(name: str, known: Find) -> Iterator[str]:
    one = known(name)
    for parent in () if one is None else one.parents:
        yield parent
        yield from _ancestors(parent, known)


def member_text(owner: str, name: str, descriptor: str) -> str:
    """As in Java: `BytesRef.compareTo(BytesRef)`, `BytesRef.offset`."""
    kind = f"({', '.join(_types(descriptor[1:].partition(')')[0]))})" if descriptor.startswith("(") else ""
    return f"{_named(owner)}.{name.replace('<init>', 'new')}{kind}"


_PRIMITIVES: Final = {
    "B": "byte", "C": "char", "D": "double", "F": "float",
    "I": "int", "J": "long", "S": "short", "Z": "boolean",
}  # fmt: skip


def _types(descriptor: str) -> Iterator[str]:
    arrays = ""
    while descriptor:
        if descriptor[0] == "[":
            arrays, descriptor = f"{arrays}[]", descriptor[1:]
            continue
        if descriptor[0] == "L":
            name, _, descriptor = descriptor[1:].partition(";")
            yield f"{_named(name)}{arrays}"
        else:
            yield f"{_PRIMITIVES[descriptor[0]]}{arrays}"
            descriptor = descriptor[1:]
        arrays = ""


def _named(name: str) -> str:
    """Without its package."""
    return name.rpartition("/")[2].replace("$", ".")

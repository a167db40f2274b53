"""Compilations, the calls in them, and what they were decided on."""

import functools
import re

import msgspec

from benchctl.jvm.inlining.fates import Fate

# Hidden classes get another address in every JVM: `Foo$$Lambda/0x00007f..::m`, `Foo$$Lambda$12/0x00..::m`.
_HIDDEN = re.compile(r"(?<=\$\$Lambda)(?:\$\d+)?/0x[0-9a-f]+|/0x[0-9a-f]+")
_LIBRARY = ("java.", "javax.", "jdk.", "sun.", "com.sun.")
C2_LEVEL = 4


# A log has as many calls as lines: structs are made in a tenth of the time that dataclasses take.


class Receiver(msgspec.Struct, frozen=True):
    """A class that a call site saw, of a type profile.

    Attributes:
        name: of the class, with dots.
        count: how often.
        total: calls that the site's profile counts, over all classes.
    """

    name: str
    count: int
    total: int


class Call(msgspec.Struct, frozen=True, gc=False):
    """A line of a compilation's tree: one callee at one call site.

    Attributes:
        depth: 0 for calls in the compiled method itself.
        caller: method that the call is in; empty where a fragment does not say.
        parent: position of the call that inlined the caller, in the same tree; -1 at depth 0.
        bci: of the call in the caller's bytecode.
        callee: `package.Class::method`.
        size: of the callee's bytecode, bytes; None where its class was not loaded.
        fate: what became of it.
        text: the same in HotSpot's words, everything that stood there.
        receivers: of the site's type profile, which HotSpot prints once a site, below its last callee.
    """

    depth: int
    caller: str
    parent: int
    bci: int
    callee: str
    size: int | None
    fate: Fate
    text: str
    receivers: tuple[Receiver, ...] = ()


class Tree(msgspec.Struct, frozen=True):
    """What was inlined into a compilation.

    Attributes:
        calls: in HotSpot's order, callers before the calls in them.
        unread: lines that should have been part of it and could not be understood.
    """

    calls: tuple[Call, ...]
    unread: tuple[str, ...] = ()


class Compilation(msgspec.Struct, frozen=True, gc=False):
    """One compilation, as its head says; all None or empty for a fragment, which has no head.

    Attributes:
        id: HotSpot's; one of an on-stack replacement may be the same as one of a method.
        stamp_ms: when it began, milliseconds since the JVM started.
        level: 1 to 3 are C1, 4 is C2; 0 for wrappers of native methods.
        method: that was compiled: the root of the tree.
        size: of its bytecode, bytes.
        osr_bci: where a loop was entered, of an on-stack replacement.
        flags: as printed: % on-stack replacement, s synchronized, ! exception handlers, b blocking, n native.
    """

    id: int | None = None
    stamp_ms: int | None = None
    level: int | None = None
    method: str = ""
    size: int | None = None
    osr_bci: int | None = None
    flags: str = ""

    @property
    def key(self) -> "CompilationKey | None":
        """What HotSpot itself knows it by; None for a fragment."""
        return None if self.id is None else (self.id, "%" in self.flags)


CompilationKey = tuple[int, bool]
"""The id, and whether it is one of on-stack replacements, which some JVMs count by themselves."""


def simple(method: str) -> str:
    """`Class::method` without the package and without addresses."""
    holder, colons, name = stable(method).partition("::")
    return f"{holder.rpartition('.')[2]}{colons}{name}"


@functools.lru_cache(maxsize=1 << 15)  # every call of a log names a method, most of them one of a few
def stable(method: str) -> str:
    """The same name in every JVM: without the addresses of hidden classes."""
    return _HIDDEN.sub("", method)


def own_name(method: str) -> str:
    """The method's name without its class."""
    return method.partition("::")[2]


def names(method: str, asked: str) -> bool:
    """Whether somebody who asked for a method like this means that one.

    Args:
        method: `package.Outer$Inner::method`.
        asked: the same, or an end of it that begins with a class: `Outer$Inner::method`, `Inner::method`; or
            `method`, or `::method`, alone.
    """
    name = stable(method)
    asked = asked.removeprefix("::")
    return name == asked or (name.endswith(asked) and name[-len(asked) - 1] in ".$:/")


def in_library(method: str) -> bool:
    """Whether it is the Java library's own."""
    return method.startswith(_LIBRARY)

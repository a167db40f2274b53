"""Compilations as trees of calls, each with its fate, and their reduction to what matters."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import msgspec

Outcome = Literal["inlined", "virtual", "refused", "unknown"]


class Fate(Enum):
    """The fate of a call site; the values are benchctl's names, close to HotSpot's words."""

    HOT = "inline (hot)"
    PLAIN = "inline"
    FORCED = "force inline"
    ACCESSOR = "accessor"
    INTRINSIC = "intrinsic"
    LATE = "late inline"
    VIRTUAL = "virtual call"
    NO_STATIC_BINDING = "no static binding"
    TOO_BIG = "too big"
    HOT_TOO_BIG = "hot method too big"
    IN_BIG = "already compiled into a big method"
    IN_MEDIUM = "already compiled into a medium method"
    CALLEE_TOO_LARGE = "callee is too large"
    CALLEE_STACK = "callee uses too much stack"
    RARE = "low call site frequency"
    NOT_REACHED = "call site not reached"
    NEVER_EXECUTED = "never executed"
    FEW_EXECUTIONS = "executed too few times"
    RECURSIVE_TOO_DEEP = "recursive inlining too deep"
    TOO_DEEP = "inlining too deep"
    DESIRED_LIMIT = "size > DesiredMethodLimit"
    NODE_COUNT = "NodeCountInliningCutoff"
    OUT_OF_NODES = "too many nodes"
    NATIVE = "native method"
    NOT_INLINEABLE = "not inlineable"
    NOT_LINKED = "class not linked"
    UNLOADED_SIGNATURE = "unloaded signature classes"
    EXCEPTION = "exception method"
    THROWABLE = "Throwable constructor"
    PROHIBITED = "prohibited"
    NOT_CONSTANT = "not constant"
    OTHER = "other"

    __hash__ = object.__hash__  # Enum's is slow Python, and every call of a log has a fate

    @functools.cached_property
    def outcome(self) -> Outcome:
        """The way the callee's code is reached: at the call site, by dispatch, or by a direct call."""
        if self in _INLINED:
            return "inlined"
        if self in {Fate.VIRTUAL, Fate.NO_STATIC_BINDING}:
            return "virtual"
        return "unknown" if self is Fate.OTHER else "refused"


_INLINED = frozenset({Fate.HOT, Fate.PLAIN, Fate.FORCED, Fate.ACCESSOR, Fate.INTRINSIC, Fate.LATE})

HOT_REFUSALS = frozenset(
    {
        Fate.HOT_TOO_BIG, Fate.IN_BIG, Fate.IN_MEDIUM, Fate.RECURSIVE_TOO_DEEP, Fate.TOO_DEEP,
        Fate.DESIRED_LIMIT, Fate.NODE_COUNT, Fate.OUT_OF_NODES,
    }
)  # fmt: skip
"""Refusals of calls that HotSpot itself considers worth inlining: they hit a limit."""
# Prefixes of messages, specific before general. From the logs of JDK 17, 21 and 25, and from HotSpot's
# sources: bytecodeInfo.cpp, doCall.cpp (C2) and c1_GraphBuilder.cpp (C1).
_BEGINNINGS: tuple[tuple[str, Fate], ...] = (
    ("inline (hot)", Fate.HOT),
    ("force inline", Fate.FORCED),
    ("accessor", Fate.ACCESSOR),
    ("(intrinsic", Fate.INTRINSIC),
    ("intrinsic", Fate.INTRINSIC),
    ("late inline succeeded", Fate.LATE),
    ("virtual call", Fate.VIRTUAL),
    ("no static binding", Fate.NO_STATIC_BINDING),
    ("hot method too big", Fate.HOT_TOO_BIG),
    ("too big", Fate.TOO_BIG),
    ("already compiled into a big method", Fate.IN_BIG),
    ("already compiled into a medium method", Fate.IN_MEDIUM),
    ("callee is too large", Fate.CALLEE_TOO_LARGE),
    ("callee uses too much stack", Fate.CALLEE_STACK),
    ("low call site frequency", Fate.RARE),
    ("call site not reached", Fate.NOT_REACHED),
    ("never executed", Fate.NEVER_EXECUTED),
    ("executed <", Fate.FEW_EXECUTIONS),
    ("recursive inlining", Fate.RECURSIVE_TOO_DEEP),
    ("recursively inlining too deep", Fate.RECURSIVE_TOO_DEEP),
    ("inlining too deep", Fate.TOO_DEEP),
    ("MaxForceInlineLevel", Fate.TOO_DEEP),
    ("size > DesiredMethodLimit", Fate.DESIRED_LIMIT),
    ("NodeCountInliningCutoff", Fate.NODE_COUNT),
    ("NodeCountInliningStep", Fate.NODE_COUNT),
    ("total inlining greater than DesiredMethodLimit", Fate.DESIRED_LIMIT),
    ("live nodes", Fate.OUT_OF_NODES),
    ("out of nodes", Fate.OUT_OF_NODES),
    ("native method", Fate.NATIVE),
    ("not inlineable", Fate.NOT_INLINEABLE),
    ("callee's klass not", Fate.NOT_LINKED),
    ("callee holder not initialized", Fate.NOT_LINKED),
    ("method holder not initialized", Fate.NOT_LINKED),
    ("unloaded signature classes", Fate.UNLOADED_SIGNATURE),
    ("exception method", Fate.EXCEPTION),
    ("don't inline Throwable constructors", Fate.THROWABLE),
    ("don't inline", Fate.PROHIBITED),
    ("inlining prohibited", Fate.PROHIBITED),
    ("disallowed by", Fate.PROHIBITED),
    ("receiver not constant", Fate.NOT_CONSTANT),
    ("receiver is always null", Fate.NOT_REACHED),
    ("MemberName not constant", Fate.NOT_CONSTANT),
    ("member_name not constant", Fate.NOT_CONSTANT),
    ("callee not monomorphic", Fate.NO_STATIC_BINDING),
)

_REFUSED = "failed to inline: "


@functools.lru_cache(maxsize=4096)  # logs have a few dozen texts, hundreds of thousands of times
def fate_of(text: str) -> Fate:
    """Return the fate in HotSpot's words, without the type profile; `OTHER` for unknown words."""
    words = text.removeprefix(_REFUSED)  # JDK 25
    if words == "inline":
        return Fate.PLAIN
    return next((fate for beginning, fate in _BEGINNINGS if words.startswith(beginning)), Fate.OTHER)


# Addresses of hidden classes differ between JVMs: `Foo$$Lambda/0x00007f..::m`, `Foo$$Lambda$12/0x00..::m`.
_HIDDEN = re.compile(r"(?<=\$\$Lambda)(?:\$\d+)?/0x[0-9a-f]+|/0x[0-9a-f]+")
_LIBRARY = ("java.", "javax.", "jdk.", "sun.", "com.sun.")


# A log has as many calls as lines, and structs are created ten times as fast as dataclasses.
class Receiver(msgspec.Struct, frozen=True, rename={"name": "class"}):
    """A class in a call site's type profile."""

    name: str  # of the class, with dots
    count: int  # its calls
    total: int  # calls in the profile, over all classes


class Call(msgspec.Struct, frozen=True, gc=False):
    """A line of a compilation's tree: one callee at one call site."""

    depth: int  # 0 for calls in the compiled method itself
    caller: str  # method that has the call; empty if a fragment does not tell
    parent: int  # position of the call that inlined the caller, in the same tree; -1 at depth 0
    bci: int  # of the call in the caller's bytecode
    callee: str  # `package.Class::method`
    size: int | None  # of the callee's bytecode, bytes; None if its class was not loaded
    fate: Fate  # what became of it
    text: str  # HotSpot's complete words about it
    # of the site's type profile, which HotSpot prints once per site, after its last callee
    receivers: tuple[Receiver, ...] = ()


class Tree(msgspec.Struct, frozen=True):
    """The calls that were inlined into a compilation."""

    calls: tuple[Call, ...]  # in HotSpot's order, callers before the calls in them
    unread: tuple[str, ...] = ()  # lines that should have been part of it and could not be parsed


class Compilation(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={"size": "bytecodes", "stamp_ms": "stamp-ms", "osr_bci": "osr-bci"},
):
    """The head of a compilation; all None or empty for a fragment, which has none."""

    id: int | None = None  # HotSpot's; on-stack replacements may share ids with methods
    stamp_ms: int | None = None  # when it began, milliseconds since the JVM started
    level: int | None = None  # 1 to 3 are C1, 4 is C2; 0 for wrappers of native methods
    method: str = ""  # the compiled one, root of the tree
    size: int | None = None  # of its bytecode, bytes
    osr_bci: int | None = None  # where a loop is entered by on-stack replacement
    # as printed: % on-stack replacement, s synchronized, ! exception handlers, b blocking, n native
    flags: str = ""

    @property
    def key(self) -> "CompilationKey | None":
        """HotSpot's own identification; None for a fragment."""
        return None if self.id is None else (self.id, "%" in self.flags)


CompilationKey = tuple[int, bool]
"""The id, and whether it is an on-stack replacement, which some JVMs count separately."""


def simple(method: str) -> str:
    """Return `Class::method` without the package and without addresses."""
    holder, colons, name = stable(method).partition("::")
    return f"{holder.rpartition('.')[2]}{colons}{name}"


@functools.lru_cache(maxsize=1 << 15)  # every call of a log names a method, usually one of a few
def stable(method: str) -> str:
    """Return the name without the addresses of hidden classes: the same in every JVM."""
    return _HIDDEN.sub("", method)


def own_name(method: str) -> str:
    """Return the method's name without its class."""
    return method.partition("::")[2]


def names(method: str, asked: str) -> bool:
    """Return whether a user's `asked` names the method `package.Outer$Inner::method`.

    Accepts the same, or a suffix that begins with a class: `Outer$Inner::method`, `Inner::method`; or
    `method` or `::method` alone.
    """
    name = stable(method)
    asked = asked.removeprefix("::")
    return name == asked or (name.endswith(asked) and name[-len(asked) - 1] in ".$:/")


def in_library(method: str) -> bool:
    """Return whether it is part of the Java library."""
    return method.startswith(_LIBRARY)


_SILENT = frozenset({Fate.FORCED, Fate.INTRINSIC, Fate.ACCESSOR})


@dataclass(frozen=True)
class CutTree:
    """The rest of a tree: (position in the whole tree, call), in order, and how many were cut."""

    calls: tuple[tuple[int, Call], ...]
    cut: int


def cut_tree(
    calls: Sequence[Call], *, asked: str = "", depth: int | None = None, everything: bool = False
) -> CutTree:
    """Remove what happens only within the Java library, and the obvious.

    Kept are all calls of methods outside the Java library except accessors, intrinsics and forced inlining;
    virtual calls; sites with several receivers; calls refused because of a compiler limit; what was asked
    for; and the path to each of them.

    Args:
        calls: a whole tree.
        asked: a method that is always kept, as `names` takes it; empty for none.
        depth: deeper calls are left out; None for no limit.
        everything: leave out only what is too deep.
    """
    many = _sites_with_many(calls)
    kept: set[int] = set()
    for at in range(len(calls) - 1, -1, -1):
        call = calls[at]
        if everything or at in kept or _matters(call, asked) or (call.parent, call.bci) in many:
            kept.add(at)
            kept.add(call.parent)
    left = [(at, calls[at]) for at in sorted(kept) if at >= 0 and (depth is None or calls[at].depth <= depth)]
    return CutTree(tuple(left), len(calls) - len(left))


def _matters(call: Call, asked: str) -> bool:
    if (asked and names(call.callee, asked)) or call.fate.outcome == "virtual" or call.fate in HOT_REFUSALS:
        return True
    return not in_library(call.callee) and call.fate not in _SILENT


def _sites_with_many(calls: Sequence[Call]) -> set[tuple[int, int]]:
    """(parent, bci) of sites where several classes were seen, or several callees are inlined."""
    callees: dict[tuple[int, int], set[str]] = {}
    for call in calls:
        seen = callees.setdefault((call.parent, call.bci), set())
        seen.add(call.callee)
        seen.update(receiver.name for receiver in call.receivers if receiver.count < receiver.total)
    return {site for site, seen in callees.items() if len(seen) > 1}

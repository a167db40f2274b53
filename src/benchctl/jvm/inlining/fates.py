"""What HotSpot did with a call, from its own words."""

import functools
from enum import Enum
from typing import Literal

Outcome = Literal["inlined", "virtual", "refused", "unknown"]


class Fate(Enum):
    """What became of a call site; the value is how benchctl calls it, close to HotSpot's words."""

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

    __hash__ = object.__hash__  # Enum's own is a function in Python, and every call of a log has a fate

    @functools.cached_property
    def outcome(self) -> Outcome:
        """Whether the callee's code is at the call site, is reached by dispatch, or is called directly."""
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
"""Refusals of calls that HotSpot itself holds for worth inlining: it was a limit that they ran into."""

# How messages begin, the more particular before the more general. Read off the logs of JDK 17, 21 and 25, and
# off the sources of HotSpot: bytecodeInfo.cpp, doCall.cpp (C2) and c1_GraphBuilder.cpp (C1).
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
    """The fate that HotSpot's words stand for; `OTHER` for words that are not known.

    Args:
        text: without the type profile. JDK 25 puts `failed to inline: ` before refusals.
    """
    words = text.removeprefix(_REFUSED)
    if words == "inline":
        return Fate.PLAIN
    return next((fate for beginning, fate in _BEGINNINGS if words.startswith(beginning)), Fate.OTHER)

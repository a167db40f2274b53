"""What the JVM did at a call site of interest, fork by fork, as its inlining logs say it."""

from typing import Literal

import msgspec

Found = Literal["inlined", "partly", "virtual", "refused", "absent"]
"""All of its calls go to inlined code; those of its most frequent receiver do, the others are dispatched; all
are dispatched; neither (too big, say); or no compilation by C2 has the site."""


class SeenReceiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A class that a call site saw: its name with the package, and how many profiled calls went to it."""

    name: str
    calls: int


class SeenCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A call site in one fork, in the newest compilation by C2.

    Attributes:
        site: name of the call site.
        variant, block: of the fork.
        found: what became of it; None where there is no log that can be read.
        words: HotSpot's own, by callee; without a log, why there is none.
        receivers: of its type profile, the most frequent first; HotSpot prints none of a virtual call.
        calls: that the profile counts, over all receivers; 0 where none is printed.
        given_up: whether the JVM stopped using that compilation.
    """

    site: str
    variant: str
    block: int
    found: Found | None
    words: str = ""
    receivers: tuple[SeenReceiver, ...] = ()
    calls: int = 0
    given_up: bool = False

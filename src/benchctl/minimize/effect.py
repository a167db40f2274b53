"""The sentence that says which effect is to stay: `range slower than fresh`, `... on os than on es`."""

import re
from collections.abc import Sequence

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.results.minimize import Direction, Effect

_SENTENCE = re.compile(
    r"(?P<task>\S.*?)\s+(?P<direction>slower|faster)\s+"
    r"(?:than\s+(?P<fresh>fresh)|on\s+(?P<variant>\S+)\s+than\s+on\s+(?P<against>\S+))"
)
_FORMS = "write 'TASK slower than fresh', or 'TASK slower on VARIANT than on VARIANT' (or faster)"


def compares_variants(sentence: str) -> bool:
    """Whether it holds two variants against each other.

    Raises:
        UsageError: it is no such sentence.
    """
    return _match(sentence)["fresh"] is None


def parse_effect(sentence: str, variants: Sequence[str]) -> Effect:
    """Read the sentence.

    Args:
        sentence: as given.
        variants: names of those that are measured.

    Raises:
        UsageError: it is no such sentence, or the variants are not the ones that it takes.
    """
    match = _match(sentence)
    direction: Direction = "slower" if match["direction"] == "slower" else "faster"
    if match["fresh"]:
        if len(variants) != 1:
            raise UsageError(
                f"--effect '{sentence}' is about one variant, and {len(variants)} are given",
                hint="name one with --variant",
            )
        return Effect(match["task"], direction, variants[0])
    named = (match["variant"], match["against"])
    for name in named:
        if name not in variants:
            raise UsageError(
                f"--effect names variant '{name}', which is not among {', '.join(variants)}",
                hint=f"{suggestion(name, variants)}; or name it with --variant".lstrip("; "),
            )
    if sorted(named) != sorted(variants):
        raise UsageError(
            f"--effect is about {named[0]} and {named[1]}; measured would be {', '.join(variants)}",
            hint="name these two with --variant",
        )
    return Effect(match["task"], direction, *named)


def _match(sentence: str) -> re.Match[str]:
    match = _SENTENCE.fullmatch(sentence.strip())
    if match is None:
        raise UsageError(f"--effect: cannot read '{sentence}'", hint=_FORMS)
    return match

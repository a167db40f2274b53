"""Text that is shown and not obeyed: names and reasons come from engines, files and hosts."""

import re

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Unicode's categories Cc but for tabs and line ends, Cf, Cs, Zl and Zp: what moves the cursor, turns the
# direction of the text around, or has no width.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with a mark in place of every character that a terminal or a browser would obey."""
    return _OBEYED.sub(_REPLACEMENT, text)

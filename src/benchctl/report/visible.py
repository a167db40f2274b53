"""Text that a terminal shows and does not obey: names and reasons come from engines, files and hosts."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL = {code: _REPLACEMENT for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}


def visible(text: str) -> str:
    """The text with a mark in place of every control character but tabs and line ends."""
    return text.translate(_CONTROL)

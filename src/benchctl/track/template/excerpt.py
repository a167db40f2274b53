"""Texts of a file as messages quote them: names and values may be as long as the file."""

_LONGEST = 500


def cut(text: str) -> str:
    """A text with its first characters only, where it has more than a message can hold."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"

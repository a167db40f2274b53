"""JSON as benchctl prints it: for programs, and for eyes."""

import msgspec


def json_text(value: object) -> str:
    """Anything that msgspec can encode, indented, with a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"

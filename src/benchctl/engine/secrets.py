"""What among a JVM's flags and a node's variables is a secret: what its name says."""

import re

# A tokenizer is none.
_TELLING = re.compile(
    r"secret|pass(?:w|phrase)|[._-]pass$|pwd|token(?!i[sz])|credential|(?:api|access|private)[._-]?key",
    re.IGNORECASE,
)
# A JVM is told passwords of key stores as system properties, and may hand them on in what it runs at its end.
_PROPERTY = re.compile(r"-D(?P<name>[^=\s]+)=")


def seems_secret(name: str) -> bool:
    """Whether what is called so seems to be a secret."""
    return _TELLING.search(name) is not None


def secret_property(flag: str) -> str | None:
    """The name of the system property that a JVM's flag sets, if that seems to be a secret."""
    found = _secret_in(flag)
    return None if found is None else found["name"]


def without_secrets(flag: str) -> str:
    """A JVM's flag, its value left out where that seems to be a secret."""
    found = _secret_in(flag)
    return flag if found is None else f"{flag[: found.end()]}{{secret}}"


def _secret_in(flag: str) -> re.Match[str] | None:
    return next((found for found in _PROPERTY.finditer(flag) if seems_secret(found["name"])), None)

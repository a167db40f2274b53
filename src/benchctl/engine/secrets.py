"""What among a JVM's flags and a node's variables is a secret: what its name says."""

import re

_TELLING = re.compile(
    r"secret|pass(?:w|phrase)|token|credential|(?:api|access|private)[._-]?key", re.IGNORECASE
)
# A JVM is told passwords of key stores as system properties.
_PROPERTY = re.compile(r"-D(?P<name>[^=]+)=.*", re.DOTALL)


def seems_secret(name: str) -> bool:
    """Whether what is called so seems to be a secret."""
    return _TELLING.search(name) is not None


def secret_property(flag: str) -> str | None:
    """The name of the system property that a JVM's flag sets, if that seems to be a secret."""
    found = _PROPERTY.fullmatch(flag)
    return found["name"] if found and seems_secret(found["name"]) else None


def without_secrets(flag: str) -> str:
    """A JVM's flag, its value left out where that seems to be a secret."""
    name = secret_property(flag)
    return flag if name is None else f"-D{name}={{secret}}"

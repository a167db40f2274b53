"""Small functions of Rally's `utils` that plug-ins call."""

import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Self

from benchctl.plugin.rally.exceptions import DataError, InvalidSyntax
from benchctl.track.parameters import parse_rally_params

_TRUE = frozenset({"true", "yes", "t", "y", "1"})
_FALSE = frozenset({"false", "no", "f", "n", "0"})


def to_bool(value: object) -> bool:
    """A truth from a text.

    Raises:
        ValueError: it says neither.
    """
    text = str(value).lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f"Cannot convert [{value}] to bool.")


def basename(path: str) -> str:
    """The last part of a path."""
    return os.path.basename(path)  # noqa: PTH119 - plug-ins give texts and want texts


def dirname(path: str) -> str:
    """All but the last part of a path."""
    return os.path.dirname(path)  # noqa: PTH120 - plug-ins give texts and want texts


def ensure_dir(directory: str, mode: int = 0o777) -> None:
    """Make a folder where there is none."""
    os.makedirs(directory, mode, exist_ok=True)  # noqa: PTH103 - plug-ins give texts


def splitext(file_name: str) -> tuple[str, str]:
    """A path without its last ending, and that."""
    return os.path.splitext(file_name)  # noqa: PTH122 - plug-ins give texts and want texts


class FileSource:
    """A file that gives several lines at a time, as bytes.

    Args:
        file_name: its path.
        mode: taken from Rally's signature; lines are bytes in any case.
    """

    def __init__(self, file_name: str, mode: str = "rb") -> None:
        del mode
        self.file_name = file_name
        self._file: BinaryIO | None = None

    def open(self) -> "FileSource":
        """Open it."""
        self._file = open(self.file_name, "rb")  # noqa: PTH123, SIM115 - closed by its `close`
        return self

    def close(self) -> None:
        """Close it; harmless when repeated."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def seek(self, offset: int) -> None:
        """Go to a byte."""
        self._opened.seek(offset)

    def read(self) -> bytes:
        """All that is left."""
        return self._opened.read()

    def readline(self) -> bytes:
        """The next line; empty at the end."""
        return self._opened.readline()

    def readlines(self, num_lines: int) -> list[bytes]:
        """The next lines, fewer at the end."""
        lines = (self._opened.readline() for _ in range(num_lines))
        return [line for line in lines if line]

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise DataError(f"{self.file_name} is not open")
        return self._file


def to_dict(text: str) -> dict[str, Any]:
    """Parameters from JSON, from the path of a JSON file, or from `name:value` with commas in between."""
    return parse_rally_params(text)


def confdir(name: str) -> Callable[[], str]:
    """Where a driver keeps its settings and data: a hidden folder at home, or where a variable says."""

    def found() -> str:
        home = os.environ.get(f"{name.upper()}_HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text
        return os.path.join(home, f".{name}")  # noqa: PTH118 - plug-ins want texts

    return found


def parse_int_parameter(key: str, params: Mapping[str, Any], default: int | None = None) -> int:
    """A parameter that is a whole number."""
    found: int = _parsed(key, params, default, int)
    return found


def parse_float_parameter(key: str, params: Mapping[str, Any], default: float | None = None) -> float:
    """A parameter that is a number."""
    found: float = _parsed(key, params, default, float)
    return found


def parse_string_parameter(key: str, params: Mapping[str, Any], default: str | None = None) -> str:
    """A parameter that is a text."""
    found: str = _parsed(key, params, default, str)
    return found


def parse_bool_parameter(key: str, params: Mapping[str, Any], default: bool | None = None) -> bool:  # noqa: FBT001 - theirs
    """A parameter that is a truth."""
    found: bool = _parsed(key, params, default, bool)
    return found


def _parsed(key: str, params: Mapping[str, Any], default: Any, kind: type) -> Any:  # noqa: ANN401 - of that kind
    value = params.get(key, default)
    if value is None:
        raise InvalidSyntax(f"Value cannot be None for param {key}")
    if not isinstance(value, (int, float) if kind is float else kind):
        raise InvalidSyntax(f"Value must be a {kind.__name__} for param {key}")
    return value

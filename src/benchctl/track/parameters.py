"""Template parameters: from files, and on the command line in benchctl's and Rally's syntax."""

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchctl.errors import UsageError
from benchctl.track.template_source import read_text
from benchctl.yaml_file import Document

_TRUTHS = {
    **dict.fromkeys(("True", "true", "Yes", "yes", "t", "y"), True),
    **dict.fromkeys(("False", "false", "No", "no", "f", "n"), False),
}


def read_parameter_files(paths: Iterable[Path]) -> dict[str, Any]:
    """Read parameters from JSON or YAML files; later files override earlier ones.

    Raises:
        UsageError: If a file cannot be read, or is not an object of names and values.
    """
    params: dict[str, Any] = {}
    for path in paths:
        params.update(_read(path))
    return params


def parse_params(texts: Iterable[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` or `CHALLENGE.NAME=VALUE`; values are JSON if possible, else text.

    Raises:
        UsageError: If no `=`, or a name is duplicated.
    """
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(
                f"--param {text}: expected NAME=VALUE", hint="for example --param iterations=300"
            )
        if name in params:
            raise UsageError(f"--param {name} is duplicated")
        params[name] = _param_value(name, value)
    return params


def _param_value(name: str, text: str) -> Any:
    try:
        return _read_json(text, f"--param {name}")
    except (ValueError, RecursionError):
        return text


def parse_rally_params(text: str) -> dict[str, Any]:
    """Parse parameters in the syntax of Rally's `--track-params`.

    Args:
        text: comma-separated `NAME:VALUE`, a JSON object, or the path of a JSON or YAML file.

    Raises:
        UsageError: If the text is none of these, a name is duplicated, or the file cannot be read.
    """
    if text.lstrip().startswith("{"):
        return _checked(text, "--track-params")
    path = Path(text)
    # The last of several values may look like a file, too.
    if text.endswith((".json", ".yml", ".yaml")) and (":" not in text or path.is_file()):
        return _read(path)
    params: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, value = pair.partition(":")
        if not colon or not name.strip():
            raise UsageError(
                f"--track-params '{pair}': expected NAME:VALUE",
                hint="for example --track-params clients:4,bulk_size:1000, or the path of a .json file",
            )
        if name.strip() in params:
            raise UsageError(f"--track-params {name.strip()} is duplicated")
        word = _word(value.strip())
        where = f"--track-params {name.strip()}"
        params[name.strip()] = _finite(word, where) if isinstance(word, float) else word
    return params


def _word(text: str) -> str | int | float | bool:
    """A value as Rally reads it: quoted it is text, else what it looks like."""
    if text.startswith("'"):
        return text.strip("'")
    if text in _TRUTHS:
        return _TRUTHS[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _read(path: Path) -> dict[str, Any]:
    return _checked(read_text(path), str(path))


def _checked(text: str, name: str) -> dict[str, Any]:
    """The object in JSON or YAML text; `name` is its origin."""
    try:
        values = _read_json(text, name)
    except json.JSONDecodeError:
        values = Document(text, name).value
    except RecursionError as err:
        raise UsageError(f"{name}: a value is nested too deeply") from err
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(f"{name} is not an object of parameter names and values")
    return values


def _read_json(text: str, where: str) -> Any:
    """JSON without the numbers beyond it that Python accepts, and without duplicate keys."""

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        if repeated:
            raise UsageError(
                f"{where}: the key '{repeated[0]}' is duplicated",
                hint="remove one of them: only the last would count",
            )
        return dict(pairs)

    def number(text: str) -> float:
        return _finite(float(text), where)

    return json.loads(text, object_pairs_hook=mapping, parse_float=number, parse_constant=number)


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{where}: {value} is not a finite number")
    return value

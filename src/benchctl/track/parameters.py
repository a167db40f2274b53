"""Template parameters: from files, and on the command line in benchctl's and Rally's syntax."""

import contextlib
import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from benchctl.errors import UsageError
from benchctl.track.template_source import read_text

_MOST_VALUES = 100_000
_TRUTHS = {
    **dict.fromkeys(("True", "true", "Yes", "yes", "t", "y"), True),
    **dict.fromkeys(("False", "false", "No", "no", "f", "n"), False),
}


def read_parameter_files(paths: Iterable[Path]) -> dict[str, Any]:
    """Read parameters from JSON or YAML files; later files override earlier ones.

    Raises:
        UsageError: If a file cannot be read, or is not an object of names and values.
    """
    found: dict[str, Any] = {}
    for path in paths:
        found.update(_read(path))
    return found


def parse_params(texts: Iterable[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` or `CHALLENGE.NAME=VALUE`; values are JSON if possible, else text.

    Raises:
        UsageError: If no `=`, or a name is given twice.
    """
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(
                f"--param {text}: expected NAME=VALUE", hint="for example --param iterations=300"
            )
        if name in params:
            raise UsageError(f"--param {name} is given twice")
        params[name] = _param_value(name, value)
    return params


def _param_value(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    # Python accepts NaN, Infinity and 1e999, which JSON cannot express.
    return plain_value(value, f"--param {name}")


def parse_rally_params(text: str) -> dict[str, Any]:
    """Parse parameters in the syntax of Rally's `--track-params`.

    Args:
        text: comma-separated `NAME:VALUE`, a JSON object, or the path of a JSON or YAML file.

    Raises:
        UsageError: If the text is none of these, or the file cannot be read.
    """
    if text.lstrip().startswith("{"):
        return _checked(text, "--track-params")
    path = Path(text)
    # The last of several values may look like a file, too.
    if text.endswith((".json", ".yml", ".yaml")) and (":" not in text or path.is_file()):
        return _read(path)
    found: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, value = pair.partition(":")
        if not colon or not name.strip():
            raise UsageError(
                f"--track-params '{pair}': expected NAME:VALUE",
                hint="for example --track-params clients:4,bulk_size:1000, or the path of a .json file",
            )
        found[name.strip()] = plain_value(_word(value.strip()), f"--track-params {name.strip()}")
    return found


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
        values = _parsed(text)
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        raise UsageError(f"{name} is neither JSON nor YAML: {' '.join(str(err).split())}") from err
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise UsageError(f"{name} is not an object of parameter names and values")
    try:
        return {key: plain_value(value, f"{name}: {key}") for key, value in values.items()}
    except RecursionError as err:
        raise UsageError(f"{name}: a value is nested in itself, or too deeply") from err


def _parsed(text: str) -> Any:
    """JSON first: YAML 1.1 covers most of it, but not its tabs and exponents."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return yaml.safe_load(text)


def plain_value(value: Any, where: str) -> Any:
    """Return a JSON or YAML value as JSON could express it; dates become text. `where` is for messages.

    Raises:
        UsageError: If JSON cannot express it, or it has too many values.
        RecursionError: If it is nested too deeply, or in itself.
    """
    return _plain(value, where, iter(range(_MOST_VALUES)))


def _plain(value: Any, where: str, budget: Iterator[int]) -> Any:
    if next(budget, None) is None:
        # A few lines of YAML with nested aliases would exhaust memory.
        raise UsageError(f"{where}: more than {_MOST_VALUES:,} values")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(inner, where, budget) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, where, budget) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where}: {value} is not a finite number")
    if value is None or isinstance(value, str | int | float):
        return value
    raise UsageError(f"{where}: a {type(value).__name__} cannot be written in JSON")

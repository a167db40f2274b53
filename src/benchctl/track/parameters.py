"""Template parameters from files."""

import datetime as dt
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from benchctl.errors import UsageError
from benchctl.track.assemble import read_text


def read_parameter_files(paths: Iterable[Path]) -> dict[str, Any]:
    """Parameters from JSON or YAML files; a later file replaces what an earlier one says.

    Raises:
        UsageError: a file cannot be read, or is no object of names and values.
    """
    found: dict[str, Any] = {}
    for path in paths:
        found.update(_read(path))
    return found


def _read(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        values = _parsed(text)
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        raise UsageError(f"{path} is neither JSON nor YAML: {' '.join(str(err).split())}") from err
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise UsageError(f"{path} is no object of parameter names and values")
    try:
        return {name: _plain(value, f"{path}: {name}") for name, value in values.items()}
    except RecursionError as err:
        raise UsageError(f"{path}: a value is nested in itself, or too deeply") from err


def _parsed(text: str) -> Any:  # noqa: ANN401 - any YAML
    """JSON first: YAML 1.1 would read most of it, too, but not its tabs and exponents."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return yaml.safe_load(text)


def _plain(value: Any, where: str) -> Any:  # noqa: ANN401 - any YAML
    """A value as JSON could hold it; templates write dates as YAML does."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(inner, where) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, where) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where}: {value} is not a finite number")
    if value is None or isinstance(value, str | int | float):
        return value
    raise UsageError(f"{where}: a {type(value).__name__} cannot be written in JSON")

"""The single values of a variant, each in the one form in which it is kept, or refused."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from benchctl.disk import disk_errors, expanded
from benchctl.errors import UsageError
from benchctl.results.plan import VariantSpec
from benchctl.track.library import challenge_names
from benchctl.yaml_file import HeapSize, mebibytes

LATEST: Final = "latest"
"""Stands for the newest version; whoever asked resolves it before anything is fetched."""

PATCHED: Final = "patched:"
"""Before the name of a jar that benchctl builds from Maven's sources."""

# How many shards there are decides how answers are compared, and over what searches are counted.
_OF_THE_TRACK: Final = frozenset({"index.number_of_shards", "index.number_of_replicas"})

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9][A-Za-z0-9.-]*)?", re.ASCII)
_COORDINATES: Final = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+", re.ASCII)
_PATCH: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
_URL: Final = ("http://", "https://")

PartKind = Literal["file", "url", "maven", "patched"]


def check_version(text: str) -> str:
    """Give a version back when it is one.

    Raises:
        UsageError: it has not three numbers.
    """
    if text != LATEST and not _VERSION.fullmatch(text):
        raise UsageError(
            f"'{text}' is not a version", hint=f"write three numbers, such as 8.11.0, or {LATEST}"
        )
    return text


def heap_mb(text: str) -> int:
    """A heap such as `512m` or `4g`, MiB.

    Raises:
        UsageError: it is none.
    """
    try:
        size = mebibytes(msgspec.convert(text, HeapSize))
    except msgspec.ValidationError as err:
        raise UsageError(f"'{text}' is not a heap size", hint="write 512m or 4g") from err
    if not size:
        raise UsageError("a heap of nothing cannot be had", hint="write 512m or 4g")
    return size


def flat(name: str, value: object) -> dict[str, object]:
    """A setting by its whole name; several when its value is a mapping.

    Raises:
        UsageError: a name stands twice.
    """
    if not isinstance(value, dict):
        return {name: value}
    found: dict[str, object] = {}
    for key, inner in value.items():
        more = flat(f"{name}.{key}", inner)
        twice = next((one for one in more if one in found), None)
        if twice is not None:
            raise UsageError(f"'{twice}' is said twice", hint="leave one out")
        found |= more
    return found


def as_texts(value: object) -> Any:  # noqa: ANN401 - a text, or a list of them
    """A setting as a node reads it: in words, so that a file says the same as the command line.

    Raises:
        UsageError: it is a list of something else.
    """
    if isinstance(value, list):
        if any(isinstance(one, dict | list | None) for one in value):
            raise UsageError("the list holds more than words", hint="write [one, two]")
        return [as_texts(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def whole_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Index settings by names that begin with `index.`, which may be left out where they are written."""
    return {name if name.startswith("index.") else f"index.{name}": one for name, one in settings.items()}


def check_index_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Index settings by their whole names, which begin with `index.`.

    Raises:
        UsageError: a name is empty, or the track's business.
    """
    whole = whole_names(settings)
    for name in whole:
        if name in _OF_THE_TRACK:
            raise UsageError(
                f"the index setting {name} is the track's and cannot differ between variants",
                hint="set it in the track's index body",
            )
        if name.endswith(".") or ".." in name:
            raise UsageError(f"'{name}' is not the name of an index setting")
    return whole


def part_kind(text: str) -> PartKind:
    """What a jar or plug-in is named by."""
    if text.startswith(_URL):
        return "url"
    if text.startswith(PATCHED):
        return "patched"
    return "maven" if _COORDINATES.fullmatch(text) else "file"


def check_source(text: str) -> str:
    """Give a path, URL or coordinates back when nothing in it has to be kept from others.

    Raises:
        UsageError: it is no URL that can be read, or one with a user or password in it.
    """
    if text.startswith(_URL):
        try:
            url = urlsplit(text)
        except ValueError as err:
            raise UsageError(f"'{text}' is not a URL", hint="write https://HOST/PATH") from err
        if "@" in url.netloc:
            raise UsageError(
                f"the URL of {url.netloc.rpartition('@')[2]}{url.path} holds a user or a password",
                hint="put them into ~/.netrc: what a variant says is recorded with its runs",
            )
    return text


def placed(text: str, folder: Path) -> str:
    """A path as an absolute one; a URL as it is.

    Raises:
        UsageError: a URL holds what is a secret.
    """
    return check_source(text) if text.startswith(_URL) else str((folder / expanded(text)).absolute())


def placed_jar(text: str, folder: Path) -> str:
    """A jar with its path made absolute.

    Raises:
        UsageError: it is named by something else than a path, coordinates or a patch.
    """
    kind = part_kind(check_source(text))
    if kind == "url":
        raise UsageError(
            f"jar '{text}' is a URL", hint="give a path, group:artifact:version, or patched:NAME"
        )
    if kind == "patched" and not _PATCH.fullmatch(text.removeprefix(PATCHED)):
        raise UsageError(f"jar '{text}' names no patch", hint="write patched:NAME")
    if kind == "file" and not text.endswith(".jar"):
        raise UsageError(
            f"'{text}' is no jar",
            hint="give a path that ends in .jar, group:artifact:version, or patched:NAME",
        )
    return placed(text, folder) if kind == "file" else text


def placed_plugin(text: str, folder: Path) -> str:
    """A plug-in with its path made absolute.

    Raises:
        UsageError: it is named by something else than a zip file or coordinates.
    """
    kind = part_kind(check_source(text))
    if kind == "patched" or (kind != "maven" and not text.partition("?")[0].endswith(".zip")):
        raise UsageError(
            f"'{text}' is no plug-in", hint="give a path or URL that ends in .zip, or group:artifact:version"
        )
    return placed(text, folder) if kind == "file" else text


def placed_challenge(text: str, folder: Path) -> str:
    """A challenge's name as it is, and the path of its file made absolute."""
    is_file = "/" in text or text.endswith(".json")
    return placed(text, folder) if is_file and text not in challenge_names() else text


def check_parts(spec: VariantSpec) -> None:
    """Refuse a variant whose jars or plug-ins are not where it says, or that says how one gets at them.

    Raises:
        UsageError: a file is missing, or a URL holds what is a secret.
        BenchctlError: one cannot be looked for.
    """
    for text in (spec.distribution or "", *spec.plugins, *spec.jars):
        check_source(text)
    for what, texts in (("jar", spec.jars), ("plug-in", spec.plugins)):
        for text in texts:
            with disk_errors(f"look for the {what} {text} of variant '{spec.name}'"):
                missing = part_kind(text) == "file" and not Path(text).is_file()
            if missing:
                raise UsageError(f"variant '{spec.name}': there is no {what} {text}", hint="check the path")

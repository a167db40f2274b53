"""Plug-ins of an engine, unpacked where its own installer would put them."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchctl.disk import disk_errors
from benchctl.engine.provision.archive import unpack
from benchctl.engine.provision.artifacts import Archive
from benchctl.engine.provision.derived import derived
from benchctl.engine.provision.install import Installation, PluginFacts
from benchctl.errors import UsageError
from benchctl.home import Home

_DESCRIPTOR: Final = "plugin-descriptor.properties"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_PROPERTY: Final = re.compile(r"^\s*(?P<key>[^#!\s=:]+)\s*[=:]\s*(?P<value>.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class _Unpacked:
    """A plug-in that is about to be installed."""

    facts: PluginFacts
    top: Path


def with_plugins(home: Home, original: Installation, plugins: Sequence[tuple[str, Archive]]) -> Installation:
    """An installation with plug-ins.

    Args:
        home: where it is kept.
        original: the plain one.
        plugins: (what the user called it, its zip file) of each.

    Raises:
        UsageError: a file is no plug-in, is one for another engine or version, or is there already.
    """
    if not plugins:
        return original
    with tempfile.TemporaryDirectory(dir=home.scratch, prefix="plugins-") as name:
        found = [
            _unpacked(original, asked, archive, Path(name, str(number)))
            for number, (asked, archive) in enumerate(plugins)
        ]
        names = [one.facts.name for one in found]
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise UsageError(f"plug-in {twice} is given twice", hint="leave one out")

        def change(root: Path) -> None:
            for one in found:
                _place(one, root)

        facts = tuple(one.facts for one in found)
        parts = ("plugins", sorted(one.sha256 for one in facts))
        root = derived(home, original, parts, change)
    return replace(original, root=root, plugins=facts)


def _unpacked(original: Installation, asked: str, archive: Archive, folder: Path) -> _Unpacked:
    top = unpack(archive.path, folder)
    said = _properties(top, asked)
    name, version = said.get("name", ""), said.get("version", "unknown")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{asked} has no usable name in its {_DESCRIPTOR}: {name!r}")
    _check_version(original, asked, said)
    for kind in ("plugins", "modules"):
        if (original.root / kind / name).exists():
            raise UsageError(
                f"{asked} is plug-in {name}, which {original.engine} {original.version} has already",
                hint="leave it out",
            )
    return _Unpacked(PluginFacts(name, version, archive.sha256), top)


def _properties(top: Path, asked: str) -> dict[str, str]:
    with disk_errors(f"read the {_DESCRIPTOR} of {asked}"):
        try:
            text = (top / _DESCRIPTOR).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as err:
            raise UsageError(
                f"{asked} is no plug-in: it has no {_DESCRIPTOR}",
                hint="give the zip file that its makers publish",
            ) from err
    return {found["key"]: found["value"] for found in _PROPERTY.finditer(text)}


def _check_version(original: Installation, asked: str, said: dict[str, str]) -> None:
    """A plug-in is for one engine, and nearly always for one version of it; a range is left to the node."""
    wanted = said.get(f"{original.engine}.version")
    if wanted == original.version or (wanted is None and original.engine in said.get("dependencies", "")):
        return
    made_for = next(
        (f"{engine} {version}" for engine in ("elasticsearch", "opensearch")
         if (version := said.get(f"{engine}.version"))),
        "an engine that it does not name",
    )  # fmt: skip
    raise UsageError(
        f"{asked} was made for {made_for}, not for {original.engine} {original.version}",
        hint=f"get the one for {original.engine} {original.version}",
    )


def _place(one: _Unpacked, root: Path) -> None:
    """Its configuration and its programs go where the engine looks for them."""
    target = root / "plugins" / one.facts.name
    (root / "plugins").mkdir(exist_ok=True)
    (root / "plugins").chmod(0o755)
    shutil.copytree(one.top, target)
    target.chmod(0o755)
    for kind in ("config", "bin"):
        if (target / kind).is_dir():
            place = root / kind / one.facts.name
            shutil.copytree(target / kind, place, dirs_exist_ok=True, copy_function=_replace)
            shutil.rmtree(target / kind)


def _replace(source: str, target: str) -> str:
    """Copy a file; what is there already may be a link to the original's, which is not written into."""
    Path(target).unlink(missing_ok=True)
    return shutil.copy2(source, target)

"""A jar with some of its classes replaced, the same bytes whenever and wherever it is written."""

import copy
import lzma
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from benchctl.errors import BenchctlError

_MANIFEST = "META-INF/MANIFEST.MF"
_FIRST_SECTION = re.compile(rb"\A(?P<attributes>.*?)(?P<end>\r?\n)(?=\r?\n|\Z)", re.DOTALL)


def read_entry(path: Path, name: str) -> bytes:
    """One file of a zip or jar.

    Raises:
        BenchctlError: it is no archive, or has no such file.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            return opened.read(name)
    except KeyError as err:
        raise BenchctlError(f"{path} has no {name}") from err
    except (EOFError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as err:
        # A RuntimeError where it is encrypted, or packed in a way that Python does not know.
        raise BenchctlError(
            f"{path} is damaged, or no jar: {err}", hint="remove it, and get it again"
        ) from err


def replace_entries(original: Path, target: Path, classes: Mapping[str, bytes], marker: str) -> None:
    """Write a jar with other classes and one more line in its manifest; all else stays.

    Entries are stored, not compressed: compressed bytes depend on zlib's version.

    Args:
        original: the jar.
        target: the new one.
        classes: entry -> bytes; an entry that is new comes behind the others, and is as old as the manifest.
        marker: line of the manifest, such as `Name: value`.

    Raises:
        BenchctlError: the jar has no manifest, or other versions of those classes for newer Javas.
    """
    manifest = read_entry(original, _MANIFEST)
    contents = {**classes, _MANIFEST: marked(manifest, marker, str(original))}
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(target, "w") as packed:
        names = source.namelist()
        for name in classes:
            others = [
                known for known in names if re.fullmatch(rf"META-INF/versions/\d+/{re.escape(name)}", known)
            ]
            if others:
                raise BenchctlError(
                    f"{original} has {others[0]}, which newer Javas use instead of the change"
                )
        for entry in source.infolist():
            content = contents.pop(entry.filename) if entry.filename in contents else source.read(entry)
            _store(packed, entry, content)
        template = source.getinfo(_MANIFEST)
        for name, content in sorted(contents.items()):
            entry = copy.copy(template)
            entry.filename = name
            _store(packed, entry, content)


def marked(manifest: bytes, marker: str, where: str) -> bytes:
    """A manifest with one more line in its first section, which is about the jar itself.

    Args:
        manifest: its bytes.
        marker: the line.
        where: what messages call the jar.

    Raises:
        BenchctlError: it does not begin as a manifest does.
    """
    section = _FIRST_SECTION.match(manifest)
    if section is None or not manifest.startswith(b"Manifest-Version:"):
        raise BenchctlError(f"the manifest of {where} is none")
    line = marker.encode() + section["end"]
    return manifest[: section.end()] + line + manifest[section.end() :]


def _store(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, content: bytes) -> None:
    written = zipfile.ZipInfo(entry.filename, entry.date_time)
    written.external_attr = entry.external_attr
    written.create_system = entry.create_system
    packed.writestr(written, content)

"""Adaptation of an installation to a Java runtime that lacks some of what it requires, before it boots."""

import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchctl.disk import disk_errors
from benchctl.engine.derived import derived
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.home import Home

_DECLARATION: Final = "module-info.class"
_OF_THE_RUNTIME: Final = ("java.", "jdk.")
_OPTIONAL: Final = 0x40  # `requires static` of a module descriptor
# Module -> the language whose locale data it requires without declaring that: "Thai segmentation".
_LANGUAGES: Final = {"analysis-common": "th"}
# Tag of a constant of a class file -> its size in bytes, without the tag; a text's follows its length.
_CONSTANTS: Final = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    15: 3,
}
_LONG: Final = (5, 6)
_TEXT: Final = 1


def fitted(home: Home, original: Installation, jdk: Jdk) -> Installation:
    """Return an installation without what a runtime cannot carry; `lacking` of it has what that is.

    A module of the engine is left out. A jar of its library stays, and what it requires becomes optional.

    Raises:
        BenchctlError: If the disk refuses.
    """
    left_out, optional = {}, {}
    for module in original.modules:
        folder = original.root / "modules" / module
        language = _LANGUAGES.get(module)
        required = {name for jar in _jars(folder) for name in _lacking(jar, jdk)}
        if language is not None and jdk.languages is not None and language not in jdk.languages:
            left_out[module] = f"the Java runtime has no locale data of '{language}'"
        elif required:
            left_out[module] = f"the Java runtime lacks {', '.join(sorted(required))}"
    for jar in _jars(original.root / "lib"):
        if required := set(_lacking(jar, jdk)):
            optional[jar.name] = tuple(sorted(required))
    if not left_out and not optional:
        return original

    def change(root: Path) -> None:
        for module in left_out:
            shutil.rmtree(root / "modules" / module)
        for name in optional:
            _make_optional(root / "lib" / name, jdk)

    parts = ("without", sorted(left_out), sorted(optional.items()))
    return replace(
        original,
        root=derived(home, original, parts, change),
        modules=tuple(module for module in original.modules if module not in left_out),
        lacking=(
            *(f"module {module} is left out: {reason}" for module, reason in left_out.items()),
            *(
                f"{name} runs without {', '.join(names)}, which the Java runtime lacks"
                for name, names in optional.items()
            ),
        ),
    )


def _jars(folder: Path) -> list[Path]:
    with disk_errors(f"read {folder}"):
        return sorted(folder.glob("*.jar"))


def _declaration(jar: Path) -> bytes:
    """The descriptor of a modular jar; empty if it has none, or is damaged, which its node will tell."""
    with (
        disk_errors(f"read {jar}"),
        suppress(zipfile.BadZipFile, zlib.error),
        zipfile.ZipFile(jar) as archive,
    ):
        return archive.read(_DECLARATION) if _DECLARATION in archive.namelist() else b""
    return b""


def _lacking(jar: Path, jdk: Jdk) -> Iterator[str]:
    for name, _, flags in _requirements(_declaration(jar)):
        if name.startswith(_OF_THE_RUNTIME) and name not in jdk.modules and not flags & _OPTIONAL:
            yield name


def _make_optional(jar: Path, jdk: Jdk) -> None:
    declaration = bytearray(_declaration(jar))
    for name, place, flags in list(_requirements(bytes(declaration))):
        if name.startswith(_OF_THE_RUNTIME) and name not in jdk.modules:
            declaration[place : place + 2] = (flags | _OPTIONAL).to_bytes(2)
    # A link to the original's file: must not be written into.
    made = jar.with_suffix(".new")
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(made, "w") as target:
        for entry in source.infolist():
            target.writestr(
                entry, bytes(declaration) if entry.filename == _DECLARATION else source.read(entry)
            )
    made.replace(jar)
    jar.chmod(0o644)


def _requirements(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Each required module of a descriptor, where its flags are, and the flags.

    https://docs.oracle.com/javase/specs/jvms/se21/html/jvms-4.html#jvms-4.7.25
    """
    if not data:
        return

    def number(place: int, size: int = 2) -> int:
        return int.from_bytes(data[place : place + size])

    constants: dict[int, bytes | int] = {}
    place, index, count = 10, 1, number(8)
    while index < count:
        tag = data[place]
        if tag == _TEXT:
            size = 2 + number(place + 1)
            constants[index] = data[place + 3 : place + 1 + size]
        else:
            size = 8 if tag in _LONG else _CONSTANTS[tag]
            constants[index] = number(place + 1)
        place += 1 + size
        index += 2 if tag in _LONG else 1
    place += 12  # access, names of the class and its superclass; no interfaces, fields and methods
    for _ in range(number(place)):
        name, place = constants[number(place + 2)], place + 8
        if name == b"Module":
            first = place + 8
            for entry in range(first, first + 6 * number(place + 6), 6):
                required = constants[number(entry)]
                text = constants[required] if isinstance(required, int) else b""
                if isinstance(text, bytes):
                    yield text.decode(), entry + 2, number(entry + 2)
            return
        place += number(place - 4, 4) - 2

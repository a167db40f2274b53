"""An installation on a runtime that lacks some of what it requires."""

import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import _requirements, fitted
from benchctl.engine.jdk import Jdk
from benchctl.errors import UsageError
from benchctl.home import Home

JDK = Jdk(Path("/jdk"), "21.0.8", "someone", 21, frozenset({"java.base", "jdk.net"}), frozenset({"en"}))


def descriptor(requires: Mapping[str, int]) -> bytes:
    """The bytes of a `module-info.class` that requires modules, with flags."""
    pool: list[bytes] = []

    def constant(tag: int, content: bytes) -> int:
        pool.append(bytes([tag]) + content)
        return len(pool)

    def text(value: str) -> int:
        return constant(1, struct.pack(">H", len(value)) + value.encode())

    constant(5, bytes(8))
    pool.append(b"")  # a long takes two places
    this = constant(7, struct.pack(">H", text("module-info")))
    own = constant(19, struct.pack(">H", text("org.example")))
    entries = b"".join(
        struct.pack(">HHH", constant(19, struct.pack(">H", text(name))), flags, 0)
        for name, flags in requires.items()
    )
    source = struct.pack(">HIH", text("SourceFile"), 2, text("module-info.java"))
    body = struct.pack(">HHHH", own, 0, 0, len(requires)) + entries + bytes(8)
    module = struct.pack(">HI", text("Module"), len(body)) + body
    head = b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, 65, len(pool) + 1)
    return head + b"".join(pool) + struct.pack(">HHHHHHH", 0x8000, this, 0, 0, 0, 0, 2) + source + module


def jar(path: Path, requires: Mapping[str, int] | None = None, code: bytes = b"class") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("org/example/A.class", code)
        if requires is not None:
            archive.writestr("module-info.class", descriptor(requires))


def required(path: Path) -> dict[str, int]:
    with zipfile.ZipFile(path) as archive:
        return {name: flags for name, _, flags in _requirements(archive.read("module-info.class"))}


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    root = tmp_path / "es"
    jar(root / "lib/core.jar", {"java.base": 0x8000, "jdk.jlink": 0x20, "jdk.net": 0, "org.other": 0})
    jar(root / "lib/plain.jar")
    jar(root / "modules/analysis-common/a.jar")
    jar(root / "modules/debugger/a.jar", {"jdk.jdi": 0}, b"com/sun/jdi/Type")
    jar(root / "modules/network/a.jar", {"jdk.other": 0})
    jar(root / "modules/optional/a.jar", {"jdk.jdi": 0x40})
    modules = ("analysis-common", "debugger", "network", "optional")
    return Installation("elasticsearch", "9.4.3", root, "0" * 64, modules, "10.4.0")


def test_what_the_runtime_cannot_carry_is_left_out_or_optional(home: Home, installation: Installation):
    found = fitted(home, installation, JDK)
    assert found.modules == ("network", "optional")
    assert sorted(path.name for path in (found.root / "modules").iterdir()) == ["network", "optional"]
    assert required(found.root / "modules/network/a.jar") == {"jdk.other": 0x40}
    assert required(found.root / "lib/core.jar") == {
        "java.base": 0x8000,
        "jdk.jlink": 0x60,
        "jdk.net": 0,
        "org.other": 0,
    }
    with zipfile.ZipFile(found.root / "lib/core.jar") as archive:
        assert archive.read("org/example/A.class") == b"class"
    assert [text.partition(":")[0] for text in found.lacking[:2]] == [
        "module analysis-common is not installed",
        "module debugger is not installed",
    ]
    assert "jdk.jlink" in found.lacking[2]
    # The user's own distribution stays as it was, and what was made of it is found again.
    assert required(installation.root / "lib/core.jar")["jdk.jlink"] == 0x20
    assert (installation.root / "modules/debugger/a.jar").is_file()
    assert fitted(home, installation, JDK) == found


def test_a_whole_runtime_carries_everything(home: Home, installation: Installation):
    whole = replace(
        JDK, modules=JDK.modules | {"jdk.jlink", "jdk.jdi", "jdk.other"}, languages=frozenset({"en", "th"})
    )
    assert fitted(home, installation, whole) is installation
    assert fitted(home, installation, replace(whole, languages=None)) is installation


@pytest.mark.parametrize(
    ("module", "named"),
    [("jdk.jlink", "jdk/tools/jlink/Main"), ("jdk.jdi", "com/sun/jdi/Type"), ("jdk.other", "jdk/other/A")],
)
def test_a_library_whose_code_needs_what_is_missing_is_refused(
    home: Home, installation: Installation, module: str, named: str
):
    path = installation.root / "lib/core.jar"
    jar(path, {module: 0})
    lacking = fitted(home, installation, JDK).lacking
    assert any(module in text for text in lacking if text.startswith("core.jar "))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("org/example/B.class", named)
    with pytest.raises(UsageError, match=rf"elasticsearch 9\.4\.3 requires {module}"):
        fitted(home, installation, JDK)


def test_a_transport_whose_code_needs_what_is_missing_is_refused(home: Home, installation: Installation):
    jar(installation.root / "modules/transport-netty4/a.jar", {"jdk.jdi": 0}, b"com/sun/jdi/Type")
    modules = (*installation.modules, "transport-netty4")
    with pytest.raises(UsageError, match=r"elasticsearch 9\.4\.3 requires jdk\.jdi"):
        fitted(home, replace(installation, modules=modules), JDK)

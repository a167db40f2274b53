"""Distribution archives from a Maven repository, a URL or the user's disk: verified, and cached."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchctl.disk import FreeBytes, disk_errors, free_bytes, read_file
from benchctl.download import Advice, Download, Piece
from benchctl.engine.provision.checksum import Checksum, compare, digest, published_sha512
from benchctl.engine.provision.maven import Coordinates, MavenSource, engine_coordinates
from benchctl.engine.provision.staging import staging
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.network import Progress, network_errors, shown
from benchctl.results.plan import EngineName

_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_NETWORK_HINT = "check the network and its proxy settings, or give a distribution that is on this machine"
_ADVICE = Advice(unreachable=_NETWORK_HINT, refused="check the URL", unfinished=_NETWORK_HINT)


@dataclass(frozen=True)
class Archive:
    """A distribution's archive on this machine.

    Attributes:
        path: where it is.
        sha256: of its bytes, hexadecimal.
        verified_by: the checksum of its source that it was compared with; `none` when the source has none.
    """

    path: Path
    sha256: str
    verified_by: Checksum = "none"


def fetch_archive(
    home: Home,
    engine: EngineName,
    version: str,
    progress: Progress,
    *,
    environ: Mapping[str, str] | None = None,
    free: FreeBytes = free_bytes,
) -> Archive:
    """Get one version of an engine from the Maven repository; at once when it is cached.

    Args:
        home: where the cache is.
        engine: which engine.
        version: a full version, such as `8.11.0`.
        progress: told about the download.
        environ: `BENCHCTL_MAVEN_REPOSITORY` is read from it; None for the process's own.
        free: how much can be written to a folder, bytes.

    Raises:
        BenchctlError: there is no such version, the repository cannot be reached, what came is truncated
            or does not match its checksum, or the disk refuses. The cache holds none of it then.
    """
    source = partial(MavenSource, engine_coordinates(engine), environ=environ, progress=progress, free=free)
    return _from_maven(_engine_path(home, engine, version), version, source)


def check_published(home: Home, engine: EngineName, version: str) -> None:
    """Ask whether a version of an engine can be had, and get nothing.

    Raises:
        UsageError: there is none.
        BenchctlError: it is not cached, and the repository cannot be reached.
    """
    if _cached(_engine_path(home, engine, version)) is None:
        with tempfile.TemporaryDirectory(prefix="benchctl-") as folder:
            source = MavenSource(engine_coordinates(engine), Path(folder), None, lambda *_: None, free_bytes)
            source.require(version)


def fetch_published(
    home: Home,
    coordinates: Coordinates,
    version: str,
    progress: Progress,
    *,
    environ: Mapping[str, str] | None = None,
    free: FreeBytes = free_bytes,
) -> Archive:
    """Get one version of any zip or jar from the Maven repository; at once when it is cached.

    Args:
        home: where the cache is.
        coordinates: which file.
        version: its version.
        progress: told about the download.
        environ: `BENCHCTL_MAVEN_REPOSITORY` is read from it; None for the process's own.
        free: how much can be written to a folder, bytes.

    Raises:
        BenchctlError: as for `fetch_archive`.
    """
    source = partial(MavenSource, coordinates, environ=environ, progress=progress, free=free)
    parts = (coordinates.group, coordinates.artifact, version, coordinates.classifier)
    name = f"{'-'.join(filter(None, parts))}.{coordinates.packaging}"
    return _from_maven(_cache_path(home, name), version, source)


def _from_maven(target: Path, version: str, source: Callable[[Path], MavenSource]) -> Archive:
    """What is cached as `target`; else fetched from a source, which works in the folder that it is given."""
    cached = _cached(target)
    if cached is not None:
        return cached
    with staging(target.parent, f"download into {target.parent}") as folder:
        opened = source(folder)
        fetched = opened.fetch(version)
        return _keep(fetched, target, opened.verify(version, fetched))


def download_archive(
    home: Home,
    url: str,
    progress: Progress,
    *,
    free: FreeBytes = free_bytes,
    pause: Callable[[float], None] = time.sleep,
) -> Archive:
    """Get an archive from an http(s) URL, once; a `.sha512` beside it is honoured where served.

    Args:
        home: where the cache is.
        url: of the archive.
        progress: told about the download.
        free: how much can be written to a folder, bytes.
        pause: waits for some seconds before a download that broke off is taken up.

    Raises:
        BenchctlError: the server or the disk refuses, or what came is truncated or does not match.
    """
    parts = urlsplit(url)
    name = Path(parts.path).name
    if not name.endswith(_SUFFIXES):
        raise UsageError(
            f"{shown(parts)} is no archive that benchctl can unpack",
            hint=f"the URL's path has to end in one of {', '.join(_SUFFIXES)}",
        )
    target = _cache_path(home, f"url-{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name}")
    cached = _cached(target)
    if cached is not None:
        return cached
    with staging(target.parent, f"download into {target.parent}") as folder:
        fetched = Download(
            [Piece(url)], folder / name, progress, _ADVICE, counted=name, free=free, pause=pause
        ).run()
        with network_errors(f"download {shown(parts)}", hint=_NETWORK_HINT):
            expected = published_sha512(parts)
        if expected:
            compare(fetched, "sha512", expected, shown(parts))
        return _keep(fetched, target, "sha512" if expected else "none")


def local_archive(path: Path) -> Archive:
    """An archive on the user's disk; used where it is.

    Raises:
        BenchctlError: it is of an unknown kind or cannot be read.
    """
    check_kind(path)
    with disk_errors(f"read {path}"):
        return Archive(path, digest(path, "sha256"))


def check_kind(path: Path) -> None:
    """Refuse an archive by its name.

    Raises:
        UsageError: it is of an unknown kind.
    """
    if not path.name.endswith(_SUFFIXES):
        raise UsageError(
            f"{path} is no archive that benchctl can unpack",
            hint=f"give a folder, or a file ending in one of {', '.join(_SUFFIXES)}",
        )


class _Record(msgspec.Struct, frozen=True):
    """What is known about a cached archive; written last, so that its presence means all is there."""

    sha256: str
    size_bytes: int
    verified_by: Checksum


def _record_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _cached(target: Path) -> Archive | None:
    with disk_errors(f"read the cached {target}"):
        try:
            record = msgspec.json.decode(read_file(_record_path(target)), type=_Record)
            size = target.stat().st_size
        except (FileNotFoundError, msgspec.DecodeError):
            return None
    return Archive(target, record.sha256, record.verified_by) if size == record.size_bytes else None


def forgotten_if_damaged(archive: Archive) -> bool:
    """Whether a cached archive is not what was once verified; it is then fetched anew when it is next wanted.

    Only for who is about to unpack it: it is read as a whole.
    """
    with disk_errors(f"read the cached {archive.path}"):
        damaged = digest(archive.path, "sha256") != archive.sha256
        if damaged:
            _record_path(archive.path).unlink(missing_ok=True)
    return damaged


def _keep(fetched: Path, target: Path, verified_by: Checksum) -> Archive:
    """Move a verified archive into the cache."""
    record = _Record(digest(fetched, "sha256"), fetched.stat().st_size, verified_by)
    described = fetched.with_name(f"{fetched.name}.json")
    described.write_bytes(msgspec.json.encode(record))
    fetched.replace(target)
    described.replace(_record_path(target))
    return Archive(target, record.sha256, verified_by)


def _engine_path(home: Home, engine: EngineName, version: str) -> Path:
    return _cache_path(home, f"{engine}-{version}.zip")


def _cache_path(home: Home, name: str) -> Path:
    with disk_errors(f"use the cache {home.root / 'artifacts'}"):
        return home.artifacts / name

"""Distributions of engines: from a repository, a URL or disk; verified, cached, unpacked once."""

import hashlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchctl.disk import FreeBytes, disk_errors, expanded, free_bytes, settle, staging, stored, sweep
from benchctl.download import Advice, Download, Piece
from benchctl.engine.maven import (
    Checksum,
    Coordinates,
    MavenSource,
    compare,
    digest,
    engine_coordinates,
    published_sha512,
)
from benchctl.engine.unpacking import unpack
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, Owner
from benchctl.network import Progress, network_errors, shown
from benchctl.results.plan import EngineName, VariantSpec

_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_NETWORK_HINT = "check the network and its proxy settings, or give a distribution that is on this machine"
_ADVICE = Advice(unreachable=_NETWORK_HINT, refused="check the URL", unfinished=_NETWORK_HINT)


@dataclass(frozen=True)
class Archive:
    """A distribution's archive on this machine."""

    path: Path
    sha256: str  # of its bytes, hexadecimal
    verified_by: Checksum = "none"  # the published checksum it was compared with; `none` when there is none


def fetch_published(
    home: Home,
    coordinates: Coordinates,
    version: str,
    progress: Progress,
    *,
    environ: Mapping[str, str] | None = None,
    free: FreeBytes = free_bytes,
) -> Archive:
    """Fetch a version of a zip or jar, such as `8.11.0`, from the Maven repository or the cache in `home`.

    The repository is `BENCHCTL_MAVEN_REPOSITORY` in `environ`, by default the process's own environment.

    Raises:
        BenchctlError: If there is no such version, the repository cannot be reached, the download is
            truncated or does not match its checksum, or the disk refuses. The cache then holds none of it.
    """
    target = _published_path(home, coordinates, version)
    cached = _cached(target)
    if cached is not None:
        return cached
    with staging(target.parent, f"download into {target.parent}") as folder:
        maven = MavenSource(coordinates, folder, environ, progress, free)
        fetched = maven.fetch(version)
        return _keep(fetched, target, maven.verify(version, fetched))


def download_archive(
    home: Home,
    url: str,
    progress: Progress,
    *,
    free: FreeBytes = free_bytes,
    pause: Callable[[float], None] = time.sleep,
) -> Archive:
    """Download an archive once from an http(s) URL, and verify it if a `.sha512` is served there.

    `pause` waits for so many seconds before an interrupted download is resumed.

    Raises:
        BenchctlError: If the server or the disk refuses, or the download is truncated or does not match.
    """
    parts = urlsplit(url)
    name = Path(parts.path).name
    if not name.endswith(_SUFFIXES):
        raise UsageError(
            f"{shown(parts)} is not an archive that benchctl can unpack",
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
    """Return an archive on the user's disk, used in place.

    Raises:
        BenchctlError: If the file is of an unknown kind or cannot be read.
    """
    _check_kind(path)
    with disk_errors(f"read {path}"):
        return Archive(path, digest(path, "sha256"))


def _check_kind(path: Path) -> None:
    if not path.name.endswith(_SUFFIXES):
        raise UsageError(
            f"{path} is not an archive that benchctl can unpack",
            hint=f"give a directory, or a file ending in one of {', '.join(_SUFFIXES)}",
        )


class _Record(msgspec.Struct, frozen=True):
    """Facts about a cached archive; written last, so that its presence means the archive is complete."""

    sha256: str
    size_bytes: int
    verified_by: Checksum


def _record_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _cached(target: Path) -> Archive | None:
    with disk_errors(f"read the cached {target}"):
        record = stored(_record_path(target), _Record)
        if record is None or not target.exists() or target.stat().st_size != record.size_bytes:
            return None
    return Archive(target, record.sha256, record.verified_by)


def _forgotten_if_damaged(archive: Archive) -> bool:
    """Drop a cached archive that no longer is what was verified, so that it is fetched again; return whether.

    Reads all of it, so only worth it before unpacking.
    """
    with disk_errors(f"read the cached {archive.path}"):
        damaged = digest(archive.path, "sha256") != archive.sha256
        if damaged:
            _record_path(archive.path).unlink(missing_ok=True)
    return damaged


def _keep(fetched: Path, target: Path, verified_by: Checksum) -> Archive:
    record = _Record(digest(fetched, "sha256"), fetched.stat().st_size, verified_by)
    described = fetched.with_name(f"{fetched.name}.json")
    described.write_bytes(msgspec.json.encode(record))
    fetched.replace(target)
    described.replace(_record_path(target))
    return Archive(target, record.sha256, verified_by)


def _published_path(home: Home, coordinates: Coordinates, version: str) -> Path:
    is_engine = coordinates.group.endswith(".integ-test-zip")
    group = "" if is_engine else coordinates.group
    parts = (group, coordinates.artifact, version, coordinates.classifier)
    return _cache_path(home, f"{'-'.join(filter(None, parts))}.{coordinates.packaging}")


def _cache_path(home: Home, name: str) -> Path:
    with disk_errors(f"use the cache {home.root / 'artifacts'}"):
        return home.artifacts / name


_MANIFEST_NAME = "manifest.json"
_ROOT_NAME = "distribution"
OF_NODES = ("data", "logs")
"""Folders of a distribution that nodes write to."""
_INCOMPLETE = "the distribution is incomplete or a mixture: get it afresh"
_OTHER: dict[EngineName, EngineName] = {"elasticsearch": "opensearch", "opensearch": "elasticsearch"}


@dataclass(frozen=True)
class PluginFacts:
    """A plug-in installed in addition to what the distribution carries."""

    name: str  # from its descriptor, and of its folder in `plugins`
    version: str  # its own
    sha256: str  # of its zip file


@dataclass(frozen=True)
class Installation:
    """An unpacked distribution; nodes never write to it."""

    engine: EngineName
    version: str  # according to the engine's own core library
    root: Path  # the folder with `bin`, `config`, `lib` and `modules`
    archive_sha256: str  # of the archive; of the file listing for a distribution given as a folder
    modules: tuple[str, ...]  # what the distribution carries, sorted
    lucene: str  # Lucene's version
    # the published checksum the archive was compared with; `none` when there is none
    verified_by: Checksum = "none"
    plugins: tuple[PluginFacts, ...] = ()  # installed in addition
    # (file name in `lib`, SHA-256 of its replacement) of replaced jars, sorted
    jars: tuple[tuple[str, str], ...] = ()
    lacking: tuple[str, ...] = ()  # what it does without because the runtime cannot carry it, in words


class _Manifest(msgspec.Struct, frozen=True):
    """Facts about an unpacked distribution; its presence means that all of it is there."""

    engine: EngineName
    version: str
    archive_sha256: str
    modules: tuple[str, ...]
    lucene: str


def install(
    home: Home, spec: VariantSpec, progress: Progress, *, free: FreeBytes = free_bytes
) -> Installation:
    """Prepare a variant's distribution; immediate when it was prepared before.

    A folder is used in place, with the version of its library; an archive, given or from the Maven
    repository, is unpacked into the home. Half-finished work of killed processes there is removed first.

    Raises:
        BenchctlError: If the distribution cannot be had, is damaged, is not that engine or version, or cannot
            be read by the user that nodes run as.
    """
    sweep(home)
    given = spec.distribution
    if given is not None and not given.startswith(("http://", "https://")):
        path = _existing(given, spec.name)
        if path.is_dir():
            return _use_folder(path, spec.engine, home.node_owner)
        archive = local_archive(path)
    else:

        def obtain() -> Archive:
            if given is None:
                return fetch_published(
                    home, engine_coordinates(spec.engine), spec.version, progress, free=free
                )
            return download_archive(home, given, progress, free=free)

        archive = obtain()
        if _installed(home, spec.engine, archive) is None and _forgotten_if_damaged(archive):
            archive = obtain()
    installation = _installed(home, spec.engine, archive) or _unpack(home, spec.engine, archive, free)
    if given is None and installation.version != spec.version:
        raise BenchctlError(
            f"{archive.path} should be {spec.engine} {spec.version}, but is {installation.version}",
            hint="remove it, and check the repository it came from",
        )
    return installation


def check_distribution(home: Home, spec: VariantSpec) -> None:
    """Check that what `install` would use exists, without installing it; URLs are not checked.

    Raises:
        UsageError: If there is no such version, file or folder, or it is something else.
        BenchctlError: If the Maven repository cannot be reached.
    """
    given = spec.distribution
    if given is None:
        if _cached(_published_path(home, engine_coordinates(spec.engine), spec.version)) is None:
            coordinates = engine_coordinates(spec.engine)
            with tempfile.TemporaryDirectory(prefix="benchctl-") as folder:
                source = MavenSource(coordinates, Path(folder), None, lambda *_: None, free_bytes)
                source.require(spec.version)
    elif not given.startswith(("http://", "https://")):
        path = _existing(given, spec.name)
        if path.is_dir():
            _identify(path, spec.engine, "", str(path))
        else:
            _check_kind(path)


def _existing(given: str, variant: str) -> Path:
    path = expanded(given).absolute()
    with disk_errors(f"look for the distribution {path}"):
        if not path.exists():
            raise UsageError(
                f"variant '{variant}': no such distribution: {path}",
                hint="give a directory, a .zip or .tar.gz file, or an http(s) URL",
            )
    return path


def installed(home: Home, spec: VariantSpec) -> Installation | None:
    """Return what `install` would find unpacked; None if it would have to unpack, or uses a given one."""
    if spec.distribution is not None:
        return None
    archive = _cached(_published_path(home, engine_coordinates(spec.engine), spec.version))
    return None if archive is None else _installed(home, spec.engine, archive)


def _installed(home: Home, engine: EngineName, archive: Archive) -> Installation | None:
    """Return what was unpacked from the same archive before."""
    with disk_errors(f"use what is unpacked in {home.root / 'engines'}"):
        for folder in home.engines.glob(f"{engine}-*-{archive.sha256[:12]}"):
            manifest = stored(folder / _MANIFEST_NAME, _Manifest)
            if manifest is not None and manifest.archive_sha256 == archive.sha256:
                return _installation(manifest, folder / _ROOT_NAME, archive.verified_by)
    return None


def _unpack(home: Home, engine: EngineName, archive: Archive, free: FreeBytes) -> Installation:
    """Unpack beside the final place, and move there when complete."""
    with staging(home.engines, f"unpack {archive.path} into {home.engines}") as partial:
        top = unpack(archive.path, partial / "unpacked", free=free)
        manifest = _identify(top, engine, archive.sha256, str(archive.path))
        ready = partial / "ready"
        ready.mkdir()
        ready.chmod(0o755)
        top.replace(ready / _ROOT_NAME)
        (ready / _MANIFEST_NAME).write_bytes(msgspec.json.encode(manifest))
        final = home.engines / f"{engine}-{manifest.version}-{archive.sha256[:12]}"
        settle(ready, final, lambda: _installed(home, engine, archive))
    return _installation(manifest, final / _ROOT_NAME, archive.verified_by)


def _use_folder(root: Path, engine: EngineName, owner: Owner | None) -> Installation:
    with disk_errors(f"read {root}"):
        manifest = _identify(root, engine, tree_digest(root), str(root))
    if owner is not None:
        _check_readable(root, owner, f"{engine}-{manifest.version}.jar")
    return _installation(manifest, root, "none")


def _identify(root: Path, engine: EngineName, sha256: str, source: str) -> _Manifest:
    if not (root / "bin" / engine).is_file():
        other = _OTHER[engine]
        found = f"it is {other}" if (root / "bin" / other).is_file() else f"it has no bin/{engine}"
        raise UsageError(
            f"{source} is not a distribution of {engine}: {found}",
            hint="give the archive that its makers publish, or the directory with its bin, config and lib",
        )
    version = _library_version(root, engine, source)
    lucene = _library_version(root, "lucene-core", source)
    modules = sorted(path.name for path in root.glob("modules/*") if path.is_dir())
    if not modules:
        raise UsageError(f"{source} has nothing in modules", hint=_INCOMPLETE)
    return _Manifest(engine, version, sha256, tuple(modules), lucene)


def _library_version(root: Path, library: str, source: str) -> str:
    """The version in the one file name `lib/<library>-<version>.jar`."""
    names = [re.fullmatch(rf"{library}-(\d.*)\.jar", path.name) for path in root.glob("lib/*.jar")]
    versions = [found[1] for found in names if found]
    if len(versions) != 1:
        count = f"{len(versions)} of them" if versions else "none"
        raise UsageError(
            f"{source} should have one lib/{library}-VERSION.jar, but has {count}",
            hint=_INCOMPLETE,
        )
    return versions[0]


def tree_digest(root: Path, *, times: bool = False) -> str:
    """Return a SHA-256 over all files' sizes, and modification times, without what nodes write.

    Raises:
        BenchctlError: If a folder cannot be read.
    """
    lines = []
    with disk_errors(f"read {root}"):
        for folder, names, files in os.walk(root):
            names[:] = [name for name in names if Path(folder) != root or name not in OF_NODES]
            for path in (Path(folder, name) for name in files):
                found = path.lstat()
                time_ns = f"\0{found.st_mtime_ns}" if times else ""
                lines.append(f"{path.relative_to(root)}\0{found.st_size}{time_ns}")
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()


def _check_readable(root: Path, owner: Owner, core_library: str) -> None:
    """Try it as the user that nodes run as: only the system knows all of its rules."""
    tried = subprocess.run(
        ["/usr/bin/env", "test", "-r", str(root / "lib" / core_library)],
        user=owner.uid,
        group=owner.gid,
        extra_groups=[],
        cwd="/",
        check=False,
    )
    if tried.returncode != 0:
        raise BenchctlError(
            f"nodes run as user '{owner.name}', who cannot read {root}",
            hint="move it to a directory that all users can enter, or give its archive instead",
        )


def _installation(manifest: _Manifest, root: Path, verified_by: Checksum) -> Installation:
    return Installation(**msgspec.structs.asdict(manifest), root=root, verified_by=verified_by)

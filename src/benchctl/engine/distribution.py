"""Distributions of engines: from a repository, their makers, a URL or disk; verified, unpacked once."""

import gzip
import hashlib
import itertools
import lzma
import os
import platform
import re
import shutil
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final, Literal
from urllib.parse import urlsplit

import msgspec

from benchctl.disk import (
    FreeBytes,
    disk_errors,
    expanded,
    free_bytes,
    read_file,
    replacing,
    require_space,
    settle,
    staging,
    stored,
    sweep,
)
from benchctl.download import Advice, Download, Piece
from benchctl.engine.maven import (
    ABSENT,
    Checksum,
    Coordinates,
    MavenSource,
    ask,
    compare,
    digest,
    engine_coordinates,
    mirror,
    published_sha512,
    resolve_poms,
)
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.network import Progress, network_errors, shown
from benchctl.results.plan import EngineName, VariantSpec

_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_URL = ("http://", "https://")
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
        maven = MavenSource(coordinates, environ)
        fetched = maven.fetch(version, folder, progress, free)
        return _keep(fetched, target, maven.verify(version, fetched))


def needed_jars(home: Home, jars: Sequence[str]) -> tuple[str, ...]:
    """Return coordinates of jars and of those that their POMs need at run time, resolved once.

    Raises:
        UsageError: If there is no such version.
        BenchctlError: If a POM cannot be downloaded.
    """
    if not jars:
        return ()
    key = hashlib.sha256("\0".join(jars).encode()).hexdigest()[:16]
    target = _cache_path(home, f"needed-{key}.txt")
    with disk_errors(f"write {target}"):
        if not target.is_file():
            with replacing(target) as partial:
                partial.write_text("\n".join(resolve_poms(jars)), encoding="utf-8")
        return tuple(read_file(target).decode().splitlines())


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
    with network_errors(f"download {shown(parts)}", hint=_NETWORK_HINT):
        expected = published_sha512(parts)
    return _downloaded(url, target, expected, progress, free, pause)


def _downloaded(
    url: str,
    target: Path,
    sha512: str,
    progress: Progress,
    free: FreeBytes,
    pause: Callable[[float], None] = time.sleep,
) -> Archive:
    """Download into the cache, and compare with a checksum unless it is empty."""
    parts = urlsplit(url)
    name = Path(parts.path).name
    with staging(target.parent, f"download into {target.parent}") as folder:
        fetched = Download([Piece(url)], folder / name, progress, _ADVICE, free=free, pause=pause).run()
        if sha512:
            compare(fetched, "sha512", sha512, shown(parts))
        return _keep(fetched, target, "sha512" if sha512 else "none")


@dataclass(frozen=True)
class _Site:
    """The download site of an engine's makers."""

    variable: str  # environment variable with the URL of a mirror
    url: str
    paths: Mapping[str, str]  # name of a distribution -> path of its archive
    machines: Mapping[str, str]  # machine, as the kernel calls it -> as archives do


_SITES: Final[Mapping[EngineName, _Site]] = {
    "elasticsearch": _Site(
        "BENCHCTL_ELASTICSEARCH_DOWNLOADS",
        "https://artifacts.elastic.co",
        {"official": "downloads/elasticsearch/elasticsearch-{version}-linux-{machine}.tar.gz"},
        {"x86_64": "x86_64", "aarch64": "aarch64"},
    ),
    "opensearch": _Site(
        "BENCHCTL_OPENSEARCH_DOWNLOADS",
        "https://artifacts.opensearch.org",
        {
            "official": "releases/bundle/opensearch/{version}/opensearch-{version}-linux-{machine}.tar.gz",
            "min": "releases/core/opensearch/{version}/opensearch-min-{version}-linux-{machine}.tar.gz",
        },
        {"x86_64": "x64", "aarch64": "arm64"},
    ),
}


def check_named(name: str, engine: EngineName) -> str:
    """Return the name of a distribution that an engine's makers publish.

    Raises:
        UsageError: If that engine has no such distribution.
    """
    if name not in _SITES[engine].paths:
        raise UsageError(f"{engine} has no distribution '{name}'", hint="write distribution:official")
    return name


def _named_url(spec: VariantSpec, version: str) -> str:
    site, machine = _SITES[spec.engine], platform.machine()
    if machine not in site.machines:
        raise UsageError(
            f"variant '{spec.name}': {spec.engine} has no '{spec.distribution}' archive for {machine}",
            hint=f"available for {' and '.join(site.machines)}; give another as distribution:PATH",
        )
    path = site.paths[check_named(spec.distribution or "", spec.engine)]
    return (
        f"{mirror(site.variable) or site.url}/{path.format(version=version, machine=site.machines[machine])}"
    )


def _named_sha512(spec: VariantSpec) -> str:
    """Return the published checksum of a named distribution, which has to exist."""
    parts = urlsplit(_named_url(spec, spec.version))
    variable = _SITES[spec.engine].variable
    advice = f"check the network and its proxy settings, or name a mirror in {variable}"
    with network_errors(f"download {shown(parts)}", hint=advice):
        status = ask("HEAD", parts.geturl()).status
        sha512 = published_sha512(parts) if status == HTTPStatus.OK else ""
    if status in ABSENT:
        raise UsageError(
            f"variant '{spec.name}': no such version: {shown(parts)}: HTTP {status}",
            hint="see the versions that its publisher lists",
        )
    if status != HTTPStatus.OK:
        raise BenchctlError(f"cannot download {shown(parts)}: HTTP {status}", hint=f"try later, or {advice}")
    if not sha512:
        raise BenchctlError(
            f"{shown(parts)}.sha512 is missing: the archive cannot be verified",
            hint=f"name another mirror in {variable}, or give an archive that you trust as distribution:PATH",
        )
    return sha512


def _named_path(home: Home, spec: VariantSpec) -> Path:
    return _cache_path(home, Path(urlsplit(_named_url(spec, spec.version)).path).name)


def _fetch_named(home: Home, spec: VariantSpec, progress: Progress, free: FreeBytes) -> Archive:
    """Fetch a distribution of the engine's makers, or return it from the cache."""
    target = _named_path(home, spec)
    url = _named_url(spec, spec.version)
    return _cached(target) or _downloaded(url, target, _named_sha512(spec), progress, free)


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
RUNTIME = "jdk"
"""Folder of a distribution with its own Java runtime, if it brings one."""
_INCOMPLETE = "the distribution is incomplete or mixed up: download it again"
_OTHER: dict[EngineName, EngineName] = {"elasticsearch": "opensearch", "opensearch": "elasticsearch"}


@dataclass(frozen=True)
class PluginFacts:
    """A plug-in installed in addition to what the distribution carries."""

    name: str  # from its descriptor, and of its folder in `plugins`
    version: str  # its own
    sha256: str  # of its zip file


@dataclass(frozen=True)
class ModuleFacts:
    """A module in addition to those that the distribution carries."""

    name: str
    jars: tuple[tuple[str, str], ...]  # (coordinates, SHA-256)


@dataclass(frozen=True)
class Installation:
    """An unpacked distribution; nodes never write to it."""

    engine: EngineName
    version: str  # according to the engine's own core library
    root: Path  # the folder with `bin`, `config`, `lib` and `modules`
    archive_sha256: str  # of the archive; of the file listing for a distribution given as a folder
    modules: tuple[str, ...]  # modules, and plug-ins that the distribution carries, sorted
    lucene: str  # Lucene's version
    # the published checksum the archive was compared with; `none` when there is none
    verified_by: Checksum = "none"
    plugins: tuple[PluginFacts, ...] = ()  # installed in addition
    added: tuple[ModuleFacts, ...] = ()  # modules installed in addition
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

    A folder is used in place, with the version of its library; an archive, given, of the engine's makers or
    from the Maven repository, is unpacked into the home. Half-finished work of killed processes there is
    removed first.

    Raises:
        BenchctlError: If the distribution cannot be had, is damaged, or is not that engine or version.
    """
    sweep(home)
    given = spec.place
    if given is not None and not given.startswith(_URL):
        path = _existing(given, spec.name)
        if path.is_dir():
            manifest = _identify(path, spec.engine, tree_digest(path), str(path))
            return _installation(manifest, path, "none")
        archive = local_archive(path)
    else:

        def obtain() -> Archive:
            if given is not None:
                return download_archive(home, given, progress, free=free)
            if spec.distribution is not None:
                return _fetch_named(home, spec, progress, free)
            return fetch_published(home, engine_coordinates(spec.engine), spec.version, progress, free=free)

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
        BenchctlError: If the Maven repository or the makers' site cannot be reached.
    """
    given = spec.place
    if given is None:
        if cached_archive(home, spec) is not None:
            return
        if spec.distribution is not None:
            _named_sha512(spec)
            return
        MavenSource(engine_coordinates(spec.engine)).require(spec.version)
    elif not given.startswith(_URL):
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


def cached_archive(home: Home, spec: VariantSpec) -> Archive | None:
    """Return the cached archive of a version; None if `install` has to download it."""
    if not (home.root / "artifacts").is_dir():  # looking makes no folder
        return None
    if spec.distribution is None:
        return _cached(_published_path(home, engine_coordinates(spec.engine), spec.version))
    return _cached(_named_path(home, spec))


def installed(home: Home, spec: VariantSpec) -> Installation | None:
    """Return what `install` would find unpacked; None if it would have to unpack, or uses a given one."""
    if spec.place is not None:
        return None
    archive = cached_archive(home, spec)
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


def _identify(root: Path, engine: EngineName, sha256: str, source: str) -> _Manifest:
    if not (root / "bin" / engine).is_file():
        other = _OTHER[engine]
        contents = f"it is {other}" if (root / "bin" / other).is_file() else f"it has no bin/{engine}"
        raise UsageError(
            f"{source} is not a distribution of {engine}: {contents}",
            hint="give the published archive, or the directory with its bin, config and lib",
        )
    version = _library_version(root, engine, source)
    lucene = _library_version(root, "lucene-core", source)
    modules, plugins = (
        [path.name for path in root.glob(f"{kind}/*") if path.is_dir()] for kind in ("modules", "plugins")
    )
    if not modules:
        raise UsageError(f"{source} has nothing in modules", hint=_INCOMPLETE)
    return _Manifest(engine, version, sha256, tuple(sorted(modules + plugins)), lucene)


def _library_version(root: Path, library: str, source: str) -> str:
    """The version in the one file name `lib/<library>-<version>.jar`."""
    names = [re.fullmatch(rf"{library}-(\d.*)\.jar", path.name) for path in root.glob("lib/*.jar")]
    versions = [match[1] for match in names if match]
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
                status = path.lstat()
                time_ns = f"\0{status.st_mtime_ns}" if times else ""
                lines.append(f"{path.relative_to(root)}\0{status.st_size}{time_ns}")
    return hashlib.sha256("\n".join(sorted(lines)).encode(errors="surrogateescape")).hexdigest()


def _installation(manifest: _Manifest, root: Path, verified_by: Checksum) -> Installation:
    return Installation(**msgspec.structs.asdict(manifest), root=root, verified_by=verified_by)


# Jars.

_MOST_ENTRY_BYTES: Final = 1 << 28


@contextmanager
def jar_errors(path: Path) -> Iterator[None]:
    """Report a jar or other zip file that cannot be read.

    Raises:
        BenchctlError: If the disk refuses, or the file is damaged.
    """
    try:
        with disk_errors(f"read {path}"):
            yield
    except (EOFError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as err:
        # RuntimeError: it is encrypted, or compressed by an unknown method.
        raise BenchctlError(
            f"{path} is damaged, or no jar: {err}", hint="remove it, and get it again"
        ) from err


def jar_entries(path: Path) -> list[str]:
    """Return the names of what is in a jar or other zip file.

    Raises:
        BenchctlError: If the file cannot be read.
    """
    with jar_errors(path), zipfile.ZipFile(path) as archive:
        return archive.namelist()


def read_entry(path: Path, name: str) -> bytes:
    """Return one file of a jar or other zip file.

    Raises:
        BenchctlError: If the file cannot be read, or has no such entry.
    """
    with jar_errors(path), zipfile.ZipFile(path) as archive:
        if name not in archive.NameToInfo:
            raise BenchctlError(f"{path} has no {name}")
        with archive.open(name) as entry:
            return entry.read(_MOST_ENTRY_BYTES)


# Safe unpacking of archives.

_COPY_BYTES: Final = 1024 * 1024
_MOST_ENTRIES: Final = 100_000  # full distributions have less than 10,000
_MOST_BYTES: Final = 16 * 1024**3
_MOST_LINK_BYTES: Final = 4096


def unpack(archive: Path, target: Path, *, free: FreeBytes = free_bytes) -> Path:
    """Unpack a `.zip`, `.whl`, `.tar.gz` or `.tgz` into a directory of its own: files, directories and links.

    Files become readable by everybody and writable by their owner alone; executable bits are kept. Hard links
    become copies. After an error the caller removes `target`, which holds what had been unpacked until then.

    zipfile checks neither links nor modes, and tarfile's filters exist since Python 3.11.4 only: one place
    checks the entries of both.

    Args:
        archive: what to unpack.
        target: a directory that is missing or empty.
        free: bytes that can be written to a directory.

    Returns:
        The archive's single top directory; `target` when there are several entries at the top.

    Raises:
        BenchctlError: If the archive is corrupt or too large, would write outside `target` or does not fit on
            the disk, or if the disk refuses.
    """
    with disk_errors(f"unpack {archive} into {target}"):
        target.mkdir(mode=0o755, parents=True, exist_ok=True)
        available = free(target)
        purpose = f"unpack {archive.name}"
        require_space(target, archive.stat().st_size, purpose, available=available)
        unpacked = 0
        links: set[tuple[str, ...]] = set()
        with _damage(archive):
            for number, entry in enumerate(_entries(archive)):
                unpacked += entry.size
                require_space(target, unpacked, purpose, available=available)
                if number >= _MOST_ENTRIES or unpacked > _MOST_BYTES:
                    raise _UnsafeError("it is larger than any distribution")
                _place(entry, target, links)
        top = list(target.iterdir())
    return top[0] if len(top) == 1 and not top[0].is_symlink() and top[0].is_dir() else target


class _UnsafeError(Exception):
    """The harm that an entry would do."""


@contextmanager
def _damage(archive: Path) -> Iterator[None]:
    again = "remove it and get it again"
    try:
        yield
    except _UnsafeError as err:
        raise BenchctlError(
            f"{archive} is not safe to unpack: {err}", hint="get it from a source that you trust"
        ) from err
    except FileExistsError as err:
        raise BenchctlError(
            f"{archive} is damaged: two entries claim {err.filename2 or err.filename}", hint=again
        ) from err
    except (
        EOFError,
        NotImplementedError,  # a compression method that zipfile lacks
        UnicodeError,
        gzip.BadGzipFile,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ) as err:
        raise BenchctlError(f"{archive} is damaged, or no archive: {err}", hint=again) from err


@dataclass(frozen=True)
class _Entry:
    """A member of either kind of archive."""

    name: str
    kind: Literal["file", "directory", "link"]
    size: int
    executable: bool
    link: str
    """Target of a link."""
    content: Callable[[], IO[bytes] | None]


def _entries(archive: Path) -> Iterator[_Entry]:
    """Every member in stored order; the format is detected from the content, not the name."""
    with archive.open("rb") as raw:
        is_zip = raw.read(2) == b"PK"
        raw.seek(0)
        if is_zip:
            with zipfile.ZipFile(raw) as zipped:
                for info in zipped.infolist():
                    yield _zip_entry(zipped, info)
        else:
            with gzip.open(raw) as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as tar:
                for member in tar:
                    yield _tar_entry(tar, member)
                # The checksum follows the padding, which tarfile does not read.
                while unzipped.read(_COPY_BYTES):
                    if unzipped.tell() > 2 * _MOST_BYTES:
                        raise _UnsafeError("it does not end")


def _zip_entry(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    mode = info.external_attr >> 16
    kind: Literal["file", "directory", "link"] = "directory" if info.filename.endswith("/") else "file"
    link = ""
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile(f"'{info.filename}' is encrypted")
    if stat.S_ISLNK(mode):
        with zipped.open(info) as content:
            kind, link = "link", content.read(_MOST_LINK_BYTES).decode()
    elif kind == "file" and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise zipfile.BadZipFile(f"'{info.filename}' is neither file, directory nor link")
    # Non-Unix archivers store no mode, but scripts must be executable.
    executable = bool(mode & 0o111) if mode else "bin" in info.filename.split("/")[:-1]
    return _Entry(info.filename, kind, info.file_size, executable, link, lambda: zipped.open(info))


def _tar_entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Entry:
    source = member
    if member.islnk():
        # A copy of the bytes in the archive is safe, whatever is on the disk.
        source = next((linked for linked in tar.getmembers() if linked.name == member.linkname), member)
        if not source.isreg():
            raise tarfile.ReadError(
                f"'{member.name}' is a hard link to '{member.linkname}', which is not a file in the archive"
            )
    elif not (member.issym() or member.isdir() or member.isreg()):
        raise tarfile.ReadError(f"'{member.name}' is neither file, directory nor link")
    return _Entry(
        member.name,
        "link" if member.issym() else "directory" if member.isdir() else "file",
        source.size,
        bool(source.mode & 0o111),
        member.linkname,
        lambda: tar.extractfile(source),
    )


def _place(entry: _Entry, target: Path, links: set[tuple[str, ...]]) -> None:
    """Put an entry below the target; nothing is written through one of the links before it."""
    name = entry.name
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise _UnsafeError(f"'{name}' would be written outside of the target directory")
    if any(parts[:depth] in links for depth in range(1, len(parts) + 1)):
        raise _UnsafeError(f"'{name}' would be written through a link")
    if not parts and entry.kind != "directory":
        raise _UnsafeError(f"'{name}' would replace the target directory")
    path = target
    for part in parts if entry.kind == "directory" else parts[:-1]:
        path /= part
        if not path.is_dir():
            path.mkdir()
            path.chmod(0o755)  # whatever the umask
    if entry.kind == "directory":
        return
    path = target.joinpath(*parts)
    if entry.kind == "link":
        _check_link(entry, len(parts))
        path.symlink_to(entry.link)
        links.add(parts)
        return
    source = entry.content()
    if source is None:
        raise tarfile.ReadError(f"'{name}' has no content")
    with source, path.open("xb") as sink:
        shutil.copyfileobj(source, sink, _COPY_BYTES)
    path.chmod(0o755 if entry.executable else 0o644)


def _check_link(entry: _Entry, depth: int) -> None:
    """Refuse a link that leaves its top directory.

    `..` is allowed at the start only, where it leaves a real directory: after another name it could climb
    from wherever a second link leads.
    """
    steps = [step for step in entry.link.split("/") if step not in ("", ".")]
    climbs = len(list(itertools.takewhile(lambda step: step == "..", steps)))
    leaves = climbs > max(0, depth - 2) or ".." in steps[climbs:] or entry.link.startswith("/")
    if leaves or not steps or "\0" in entry.link:
        raise _UnsafeError(f"the link '{entry.name}' points to '{entry.link}', outside of the archive")

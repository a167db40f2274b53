"""Distribution archives from a Maven repository, a URL or the user's disk: verified, and cached."""

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

import msgspec
import requests
from jgo.maven import MavenContext, PythonResolver

from benchctl.engine.archive import FreeBytes, disk_errors, free_bytes, require_space, staging
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.model import EngineName

REPOSITORY_VARIABLE = "BENCHCTL_MAVEN_REPOSITORY"
"""Environment variable with the URL of the Maven repository to use instead of Maven Central."""

Progress = Callable[[str, int, int], None]
"""Told (what, bytes done, bytes in total) while something long goes on; the total is 0 when unknown."""

Checksum = Literal["sha512", "sha1", "none"]

_TIMEOUT_S = 30
_CHUNK_BYTES = 1024 * 1024
_SUFFIXES = (".zip", ".tar.gz", ".tgz")
_SHA512_HEX_DIGITS = 128
_ABSENT = (requests.codes.not_found, requests.codes.forbidden)  # object stores forbid what is not there
_NEAREST_SHOWN = 5
_DAMAGED = "the download or the source is damaged: try again, or use another source"
_MOST_PROBE_STEPS = 50  # a server that answers "yes" to everything must not keep us for ever

_Version = tuple[int, int, int]


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
    target = _cache_path(home, f"{engine}-{version}.zip")
    cached = _cached(target)
    if cached is not None:
        return cached
    with staging(target.parent, f"download into {target.parent}") as partial:
        source = _MavenSource(engine, partial, environ, progress, free)
        fetched = source.fetch(version)
        verified_by = source.verify(version, fetched)
        return _keep(fetched, target, verified_by)


def latest_version(engine: EngineName, *, environ: Mapping[str, str] | None = None) -> str:
    """The newest release that the Maven repository serves.

    Its listing can lack versions that it does serve, so the listing's newest is where probing starts: the
    next majors, minors and patches, one HEAD request each.

    Raises:
        BenchctlError: the repository cannot be reached or lists no release.
    """
    with tempfile.TemporaryDirectory(prefix="benchctl-") as folder:
        source = _MavenSource(engine, Path(folder), environ, lambda *_: None, free_bytes)
        listed = source.listed()
        if not listed:
            raise BenchctlError(
                f"{source.repository} lists no release of {engine}",
                hint=f"name a version, or check {REPOSITORY_VARIABLE}",
            )
        return _text(_newest(listed[-1], source.serves))


def download_archive(home: Home, url: str, progress: Progress, *, free: FreeBytes = free_bytes) -> Archive:
    """Get an archive from an http(s) URL, once; a `.sha512` beside it is honoured where served.

    Raises:
        BenchctlError: the server or the disk refuses, or what came is truncated or does not match.
    """
    parts = urlsplit(url)
    name = Path(parts.path).name
    if not name.endswith(_SUFFIXES):
        raise UsageError(
            f"{_shown(parts)} is no archive that benchctl can unpack",
            hint=f"the URL's path has to end in one of {', '.join(_SUFFIXES)}",
        )
    target = _cache_path(home, f"url-{hashlib.sha256(url.encode()).hexdigest()[:12]}-{name}")
    cached = _cached(target)
    if cached is not None:
        return cached
    with staging(target.parent, f"download into {target.parent}") as partial:
        with _network_errors(f"download {_shown(parts)}"):
            fetched = _download(parts, partial / name, progress, free)
            expected = _published_sha512(parts)
        if expected:
            _compare(fetched, "sha512", expected, _shown(parts))
        return _keep(fetched, target, "sha512" if expected else "none")


def local_archive(path: Path) -> Archive:
    """An archive on the user's disk; used where it is.

    Raises:
        BenchctlError: it is of an unknown kind or cannot be read.
    """
    if not path.name.endswith(_SUFFIXES):
        raise UsageError(
            f"{path} is no archive that benchctl can unpack",
            hint=f"give a folder, or a file ending in one of {', '.join(_SUFFIXES)}",
        )
    with disk_errors(f"read {path}"):
        return Archive(path, _digest(path, "sha256"))


class _MavenSource:
    """One engine in one Maven repository, seen through jgo with a private cache.

    jgo keeps what a broken download left behind and only warns about a wrong checksum: hence a cache that
    is thrown away, and checks of our own.
    """

    def __init__(
        self,
        engine: EngineName,
        folder: Path,
        environ: Mapping[str, str] | None,
        progress: Progress,
        free: FreeBytes,
    ) -> None:
        configured = (os.environ if environ is None else environ).get(REPOSITORY_VARIABLE, "").rstrip("/")
        # jgo's warnings would reach the terminal beside the error that says the same.
        logging.getLogger("jgo").addHandler(logging.NullHandler())
        self._engine = engine
        self._context = MavenContext(
            resolver=PythonResolver(progress_callback=_jgo_progress(folder, progress, free)),
            repo_cache=folder / "maven",
            remote_repos={"configured": configured} if configured else None,
            timeout=_TIMEOUT_S,
        )
        self._project = self._context.project(f"org.{engine}.distribution.integ-test-zip", engine)
        (self._url,) = self._context.remote_repos.values()
        self.repository = _shown(urlsplit(self._url)) if configured else "Maven Central"

    def fetch(self, version: str) -> Path:
        """Download one version's zip into the private cache."""
        with self._network_errors():
            if self._head(version, "zip") == requests.codes.not_found:
                raise BenchctlError(
                    f"{self.repository} has no {self._engine} {version}", hint=self._suggestion(version)
                )
            return self._resolve(version, "zip")

    def verify(self, version: str, fetched: Path) -> Checksum:
        """Compare a downloaded zip with the strongest checksum that the repository serves beside it."""
        what = f"{self._engine} {version} from {self.repository}"
        kinds: tuple[Checksum, ...] = ("sha512", "sha1")
        for kind in kinds:
            with self._network_errors():
                if self._head(version, f"zip.{kind}") in _ABSENT:
                    continue
                published = self._resolve(version, f"zip.{kind}")
            _compare(fetched, kind, published.read_text(errors="replace"), what)
            return kind
        _check_zip(fetched, what)
        return "none"

    def listed(self) -> list[_Version]:
        """Releases in the repository's listing, ascending; pre-releases left out."""
        self._project.update()
        if not any(self._context.repo_cache.rglob("maven-metadata-*.xml")):
            with self._network_errors():
                requests.head(self._url, timeout=_TIMEOUT_S)
            return []
        found = {_numbers(component.version) for component in self._project.versions()}
        return sorted(version for version in found if version is not None)

    def serves(self, version: _Version) -> bool:
        """Whether one version can be downloaded, listed or not."""
        with self._network_errors():
            return self._head(_text(version), "zip") == requests.codes.ok

    def _resolve(self, version: str, packaging: str) -> Path:
        artifact = self._project.at_version(version).artifact(packaging=packaging)
        try:
            return Path(artifact.resolve())
        except RuntimeError as err:
            raise BenchctlError(
                f"{self.repository} refuses {artifact.filename}: HTTP {self._head(version, packaging)}",
                hint=f"try later, or check {REPOSITORY_VARIABLE}",
            ) from err
        except IndexError as err:  # what jgo makes of a checksum without text
            raise BenchctlError(
                f"the sha1 of {artifact.filename} from {self.repository} is empty", hint=_DAMAGED
            ) from err

    def _head(self, version: str, packaging: str) -> int:
        """The HTTP status of a file, asked first: jgo leaves the socket open when there is none."""
        artifact = self._project.at_version(version).artifact(packaging=packaging)
        url = f"{self._url}/{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
        return requests.head(url, timeout=_TIMEOUT_S, allow_redirects=True).status_code

    def _suggestion(self, version: str) -> str:
        listed = self.listed()
        wanted = _numbers(version)
        if wanted is not None:
            listed.sort(
                key=lambda known: [abs(ours - theirs) for ours, theirs in zip(known, wanted, strict=True)]
            )
            listed = sorted(listed[:_NEAREST_SHOWN])
        names = ", ".join(_text(known) for known in listed[-_NEAREST_SHOWN:])
        return f"versions near it: {names}" if names else "it lists no version at all"

    def _network_errors(self) -> AbstractContextManager[None]:
        return _network_errors(f"download {self._engine} from {self.repository}")


def _jgo_progress(
    folder: Path, progress: Progress, free: FreeBytes
) -> Callable[[str, int], AbstractContextManager[Callable[[int], None]]]:
    """What jgo calls before the first byte is written, and after each piece."""

    @contextlib.contextmanager
    def track(name: str, total: int) -> Iterator[Callable[[int], None]]:
        require_space(folder, total, f"download {name}", available=free(folder))
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if name.endswith(".zip"):
                progress(name, done, total)

        yield advance

    return track


def _download(parts: SplitResult, target: Path, progress: Progress, free: FreeBytes) -> Path:
    headers = {"Accept-Encoding": "identity"}  # a transfer encoding would hide the archive's own bytes
    with requests.get(parts.geturl(), headers=headers, stream=True, timeout=_TIMEOUT_S) as response:
        if response.status_code != requests.codes.ok:
            raise BenchctlError(
                f"cannot download {_shown(parts)}: HTTP {response.status_code}", hint="check the URL"
            )
        total = int(response.headers.get("Content-Length", 0))
        require_space(target.parent, total, f"download {target.name}", available=free(target.parent))
        done = 0
        with target.open("wb") as sink:
            for chunk in response.iter_content(_CHUNK_BYTES):
                sink.write(chunk)
                done += len(chunk)
                progress(target.name, done, total)
    return target


def _published_sha512(parts: SplitResult) -> str:
    """The checksum beside a URL; empty when none is served there."""
    beside = parts._replace(path=f"{parts.path}.sha512").geturl()
    response = requests.get(beside, timeout=_TIMEOUT_S)
    first = response.text.split(maxsplit=1)[:1] if response.status_code == requests.codes.ok else []
    return first[0] if first and len(first[0]) == _SHA512_HEX_DIGITS else ""


@contextlib.contextmanager
def _network_errors(doing: str) -> Iterator[None]:
    """Turn what the network does inside the block into a BenchctlError."""
    try:
        yield
    except requests.RequestException as err:
        if isinstance(err, requests.Timeout) or "timed out" in str(err):
            reason = f"no answer within {_TIMEOUT_S} s"
        elif isinstance(err, requests.exceptions.ChunkedEncodingError):
            reason = "the connection ended before everything had come"
        elif isinstance(err, requests.ConnectionError):
            reason = "no connection"
        else:
            reason = str(err)
        raise BenchctlError(
            f"cannot {doing}: {reason}",
            hint=f"check the network and its proxy settings, name a mirror in {REPOSITORY_VARIABLE}, "
            "or give a distribution that is on this machine",
        ) from err


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
            record = msgspec.json.decode(_record_path(target).read_bytes(), type=_Record)
            size = target.stat().st_size
        except (FileNotFoundError, msgspec.DecodeError):
            return None
    return Archive(target, record.sha256, record.verified_by) if size == record.size_bytes else None


def _keep(fetched: Path, target: Path, verified_by: Checksum) -> Archive:
    """Move a verified archive into the cache."""
    record = _Record(_digest(fetched, "sha256"), fetched.stat().st_size, verified_by)
    partial = fetched.with_name(f"{fetched.name}.json")
    partial.write_bytes(msgspec.json.encode(record))
    fetched.replace(target)
    partial.replace(_record_path(target))
    return Archive(target, record.sha256, verified_by)


def _cache_path(home: Home, name: str) -> Path:
    with disk_errors(f"use the cache {home.root / 'artifacts'}"):
        return home.artifacts / name


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, kind).hexdigest()


def _compare(fetched: Path, kind: Checksum, published: str, what: str) -> None:
    expected = (published.split(maxsplit=1) or [""])[0].lower()
    actual = _digest(fetched, kind)
    if actual != expected:
        raise BenchctlError(
            f"{what} does not match its {kind}: {actual}, published is '{expected}'",
            hint=_DAMAGED,
        )


def _check_zip(fetched: Path, what: str) -> None:
    """The next best thing to a checksum: every entry's own."""
    try:
        with zipfile.ZipFile(fetched) as opened:
            broken = opened.testzip()
    except zipfile.BadZipFile as err:
        raise BenchctlError(f"{what} is truncated, or no archive: {err}", hint="try again") from err
    if broken:
        raise BenchctlError(f"{what} is damaged at '{broken}'", hint="try again")


def _newest(listed: _Version, serves: Callable[[_Version], bool]) -> _Version:
    """Step upwards from a version that is served to one without a successor."""
    newest = listed
    for _ in range(_MOST_PROBE_STEPS):
        further = next(filter(serves, _successors(newest)), None)
        if further is None:
            break
        newest = further
    return newest


def _successors(version: _Version) -> Iterator[_Version]:
    """What may come next, the greatest step first; single releases are sometimes left out."""
    major, minor, patch = version
    yield major + 1, 0, 0
    for gap in (1, 2):
        yield major, minor + gap, 0
    for gap in (1, 2):
        yield major, minor, patch + gap


def _numbers(version: str) -> _Version | None:
    found = re.fullmatch(r"([0-9]+)\.([0-9]+)\.([0-9]+)", version)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _text(version: _Version) -> str:
    return ".".join(map(str, version))


def _shown(parts: SplitResult) -> str:
    """A URL for messages: without credentials and query."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()

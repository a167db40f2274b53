"""Maven repositories: which versions of the engines and other files exist, and verified downloads."""

import contextlib
import hashlib
import itertools
import logging
import os
import re
import tempfile
import time
import zipfile
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit
from xml.etree import ElementTree as ET

from jgo.maven import Artifact, Dependency, MavenContext, PythonResolver

from benchctl.disk import FreeBytes, free_bytes
from benchctl.download import Advice, Download, Piece
from benchctl.errors import BenchctlError, UsageError
from benchctl.network import TIMEOUT_S, Answer, Progress, network_errors, outside, shown
from benchctl.results.plan import EngineName

Checksum = Literal["sha512", "sha1", "none"]
"""The published checksum that a file was compared with; `none` when there is none."""

DAMAGED = "the download or the source is damaged: try again, or use another source"
_SHA512_HEX_DIGITS = 128
_MAX_CHECKSUM_BYTES = 1 << 16
ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)
"""Statuses of files that do not exist: object stores forbid what they lack."""


def ask(method: str, url: str, max_bytes: int = _MAX_CHECKSUM_BYTES) -> Answer:
    """Send a request for something small."""
    with outside() as courier:
        return courier.ask(method, url, deadline_s=TIMEOUT_S, max_bytes=max_bytes)


def published_sha512(parts: SplitResult) -> str:
    """Return the checksum beside a URL; empty when none is served there.

    Raises:
        BenchctlError: If the server cannot tell now.
    """
    answer = ask("GET", parts._replace(path=f"{parts.path}.sha512").geturl())
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise BenchctlError(
            f"cannot download {shown(parts._replace(path=f'{parts.path}.sha512'))}: HTTP {answer.status}",
            hint="try later",
        )
    text = answer.body.decode(errors="replace") if answer.status == HTTPStatus.OK else ""
    first = text.split(maxsplit=1)[:1]
    return first[0] if first and len(first[0]) == _SHA512_HEX_DIGITS else ""


def digest(path: Path, kind: str) -> str:
    """Return the hexadecimal digest of a file; `kind` is a name that hashlib knows."""
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, kind).hexdigest()


def compare(fetched: Path, kind: Checksum, published: str, what: str) -> None:
    """Compare a file with the first word of its published checksum; `what` is its name in the message.

    Raises:
        BenchctlError: If the checksums differ.
    """
    expected = (published.split(maxsplit=1) or [""])[0].lower()
    actual = digest(fetched, kind)
    if actual != expected:
        raise BenchctlError(
            f"{what} does not match its {kind}: {actual}, published is '{expected}'",
            hint=DAMAGED,
        )


# Repositories.

REPOSITORY_VARIABLE = "BENCHCTL_MAVEN_REPOSITORY"
"""Environment variable with the URL of the Maven repository to use instead of Maven Central."""

_CENTRAL = "https://repo.maven.apache.org/maven2"
_NEAREST_SHOWN = 5
_MAX_LISTING_BYTES = 4 << 20
_MOST_PROBE_STEPS = 50  # for a server that answers "yes" to everything
_PROBES_AT_ONCE = 8

Version = tuple[int, int, int]
"""Major, minor and patch of a release."""


@dataclass(frozen=True)
class Coordinates:
    """Maven coordinates of a file, without the version."""

    group: str  # such as `org.apache.lucene`
    artifact: str  # such as `lucene-core`
    packaging: str = "jar"
    classifier: str = ""  # which of the artifact's files, such as `sources`; empty for the main one

    @property
    def title(self) -> str:
        """Name in messages."""
        return f"{self.artifact} {self.classifier}".rstrip()


def mirror(variable: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the URL of a mirror in an environment variable, without a slash at its end; empty if unset.

    `environ` is the process's own environment by default.

    Raises:
        UsageError: If paths cannot be added to it.
    """
    url = (os.environ if environ is None else environ).get(variable, "").rstrip("/")
    # No part of it is shown: it may hold credentials.
    try:
        parts = urlsplit(url)
    except ValueError as err:
        raise UsageError(f"{variable}: invalid URL", hint="write https://HOST/PATH") from err
    if parts.query or parts.fragment:
        raise UsageError(
            f"{variable}: the URL of a mirror cannot have a query or fragment",
            hint="write https://HOST/PATH; credentials belong in ~/.netrc",
        )
    return url


def engine_coordinates(engine: EngineName) -> Coordinates:
    """Return where an engine's own distribution is."""
    return Coordinates(f"org.{engine}.distribution.integ-test-zip", engine, "zip")


def latest_version(engine: EngineName, *, environ: Mapping[str, str] | None = None) -> str:
    """Return the newest release that the Maven repository serves.

    Its listing can lack versions that it does serve, so probing starts at the newest listed one: the next
    majors, minors and patches, a HEAD request each.

    Raises:
        UsageError: If the repository has no release.
        BenchctlError: If it cannot be reached.
    """
    source = MavenSource(engine_coordinates(engine), environ)
    listed = source.listed()
    if not listed:
        raise UsageError(
            f"{source.repository} has no release of {engine}",
            hint=f"name a version, or check {REPOSITORY_VARIABLE}",
        )
    return _text([*listed, *_beyond(listed[-1], source.serves)][-1])


class MavenSource:
    """A file, in all its versions, in one Maven repository.

    Args:
        coordinates: which file.
        environ: has `BENCHCTL_MAVEN_REPOSITORY`; None for the process's own.
    """

    def __init__(self, coordinates: Coordinates, environ: Mapping[str, str] | None = None) -> None:
        configured = mirror(REPOSITORY_VARIABLE, environ)
        self.repository = shown(urlsplit(configured)) if configured else "Maven Central"  # for messages
        self._file = coordinates
        group = coordinates.group.replace(".", "/")
        self._url = f"{configured or _CENTRAL}/{group}/{coordinates.artifact}"

    def fetch(
        self,
        version: str,
        folder: Path,
        progress: Progress,
        free: FreeBytes,
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> Path:
        """Download one version into a folder, and return its path.

        `pause` waits for some seconds before an interrupted download is resumed.

        Raises:
            UsageError: If there is no such version.
            BenchctlError: If the repository cannot be reached or refuses, or the disk is too small.
        """
        self.require(version)
        url = self._url_of(version)
        return _download(url, folder / url.rpartition("/")[2], progress, free, pause)

    def require(self, version: str) -> None:
        """Check that a version exists, without downloading it.

        Raises:
            UsageError: If the version does not exist.
            BenchctlError: If the repository cannot be reached.
        """
        if self._head(version) == HTTPStatus.NOT_FOUND:
            raise UsageError(
                f"{self._file.title} {version} not found in {self.repository}", hint=self._suggestion(version)
            )

    def verify(self, version: str, fetched: Path) -> Checksum:
        """Compare a downloaded zip or jar with the strongest checksum served beside it; return its kind.

        Without one, the checksums inside the zip have to do.

        Raises:
            BenchctlError: If the zip is damaged, or an existing checksum cannot be downloaded.
        """
        what = f"{self._file.title} {version} from {self.repository}"
        kinds: tuple[Checksum, ...] = ("sha512", "sha1")
        for kind in kinds:
            with self._network_errors():
                answer = ask("GET", f"{self._url_of(version)}.{kind}")
            if answer.status in ABSENT:
                continue
            if answer.status != HTTPStatus.OK:
                raise BenchctlError(
                    f"{self.repository} refuses {fetched.name}.{kind}: HTTP {answer.status}",
                    hint=_ADVICE.refused,
                )
            compare(fetched, kind, answer.body.decode(errors="replace"), what)
            return kind
        _check_zip(fetched, what)
        return "none"

    def listed(self) -> list[Version]:
        """Return the releases in the repository's listing, ascending, without pre-releases."""
        with self._network_errors():
            answer = ask("GET", f"{self._url}/maven-metadata.xml", _MAX_LISTING_BYTES)
        text = answer.body.decode(errors="replace") if answer.status == HTTPStatus.OK else ""
        versions = map(_numbers, re.findall(r"<version>\s*([^<\s]+)\s*</version>", text))
        return sorted({version for version in versions if version is not None})

    def serves(self, version: Version) -> bool:
        """Return whether a version can be downloaded, listed or not."""
        return self._head(_text(version)) == HTTPStatus.OK

    def _head(self, version: str) -> int:
        with self._network_errors():
            return ask("HEAD", self._url_of(version)).status

    def _url_of(self, version: str) -> str:
        parts = filter(None, (self._file.artifact, version, self._file.classifier))
        return f"{self._url}/{version}/{'-'.join(parts)}.{self._file.packaging}"

    def _suggestion(self, version: str) -> str:
        listed, wanted = self.listed(), _numbers(version)
        if listed and wanted is not None and wanted > listed[-1]:
            listed += _beyond(listed[-1], self.serves)
        names = ", ".join(map(_text, _nearest(version, listed)))
        if names:
            return f"nearest versions: {names}"
        return f"the repository lists no versions: check {REPOSITORY_VARIABLE}"

    def _network_errors(self) -> contextlib.AbstractContextManager[None]:
        doing = f"download {self._file.title} from {self.repository}"
        return network_errors(doing, hint=_ADVICE.unreachable)


_ADVICE = Advice(
    unreachable=f"check the network and its proxy settings, name a mirror in {REPOSITORY_VARIABLE}, "
    "or give a distribution that is on this machine",
    refused=f"check the coordinates and {REPOSITORY_VARIABLE}, or try later",
    unfinished="check the network, or try later",
)


def _download(
    url: str, target: Path, progress: Progress, free: FreeBytes, pause: Callable[[float], None] = time.sleep
) -> Path:
    return Download([Piece(url)], target, progress, _ADVICE, free=free, pause=pause).run()


_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)


class _Resolver(PythonResolver):
    """jgo's resolver of POMs, whose files are downloaded as all others: in bounded time, and resumed."""

    def download(self, artifact: Artifact) -> Path:
        # They are from other POMs, and become paths.
        names = (artifact.groupId, artifact.artifactId, artifact.version, artifact.filename)
        if not all(_NAME.fullmatch(name) for name in names):
            raise BenchctlError(f"invalid Maven coordinates {':'.join(names[:3])!r}", hint=DAMAGED)
        (repository,) = artifact.context.remote_repos.values()
        place = f"{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
        return _download(
            f"{repository}/{place}", artifact.context.repo_cache / place, lambda *_: None, free_bytes
        )


def resolve_poms(jars: Sequence[str], *, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return coordinates of jars, `group:artifact:version`, and of those that their POMs need at run time.

    As in Maven, the version nearest to the root wins: first of all what is named.

    Raises:
        UsageError: If there is no such version.
        BenchctlError: If the repository cannot be reached, or lacks a POM, or one is damaged.
    """
    # jgo's warnings would only duplicate our errors on the terminal.
    logging.getLogger("jgo").addHandler(logging.NullHandler())
    names = ", ".join(jar.split(":")[1] for jar in jars)
    with tempfile.TemporaryDirectory(prefix="benchctl-") as folder:
        repository = mirror(REPOSITORY_VARIABLE, environ) or _CENTRAL
        context = MavenContext(
            resolver=_Resolver(), repo_cache=Path(folder), remote_repos={"configured": repository}
        )
        dependencies = []
        for jar in jars:
            group, artifact, version = jar.split(":")
            MavenSource(Coordinates(group, artifact), environ).require(version)
            component = context.project(group, artifact).at_version(version)
            dependencies.append(Dependency(component.artifact(packaging="jar")))
        try:
            with network_errors(f"download the POMs of {names}", hint=_ADVICE.unreachable):
                _, needed = context.resolver.resolve(dependencies)
        except (ET.ParseError, ValueError, RecursionError) as err:
            raise BenchctlError(f"cannot read the POMs that {names} needs: {err}", hint=DAMAGED) from err
    used = (
        dependency
        for dependency in needed
        if dependency.scope in _AT_RUN_TIME and dependency.type == "jar" and not dependency.classifier
    )
    return (
        *jars,
        *(f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}" for dependency in used),
    )


_AT_RUN_TIME = ("compile", "runtime")


def _check_zip(fetched: Path, what: str) -> None:
    """Verify every entry's own checksum."""
    try:
        with zipfile.ZipFile(fetched) as archive:
            broken = archive.testzip()
    except zipfile.BadZipFile as err:
        raise BenchctlError(f"{what} is truncated, or no archive: {err}", hint="try again") from err
    if broken:
        raise BenchctlError(f"{what} is damaged at '{broken}'", hint="try again")


def _beyond(newest: Version, serves: Callable[[Version], bool]) -> list[Version]:
    """Step up from a version until none of its successors is served; return those found, ascending."""
    found: set[Version] = set()
    with ThreadPoolExecutor(_PROBES_AT_ONCE) as pool:
        for _ in range(_MOST_PROBE_STEPS):
            candidates = list(_successors(newest))
            further = [*itertools.compress(candidates, pool.map(serves, candidates))]
            if not further:
                break
            found.update(further)
            newest = max(further)
    return sorted(found)


def _successors(version: Version) -> Iterator[Version]:
    """Return candidates; a repository may have only later patches of a minor, and skip whole minors."""
    major, minor, patch = version
    yield from itertools.product([major + 1], range(3), range(4))
    yield from itertools.product([major], range(minor + 1, minor + 4), range(6))
    yield from itertools.product([major], [minor], range(patch + 1, patch + 5))


def _nearest(wanted: str, releases: Sequence[Version]) -> Sequence[Version]:
    """Return the few releases nearest to a version, both ascending."""
    numbers = _numbers(wanted)
    first = len(releases) if numbers is None else bisect(releases, numbers) - _NEAREST_SHOWN // 2
    first = max(0, min(first, len(releases) - _NEAREST_SHOWN))
    return releases[first : first + _NEAREST_SHOWN]


def _numbers(version: str) -> Version | None:
    match = re.fullmatch(r"([0-9]+)\.([0-9]+)\.([0-9]+)", version)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _text(version: Version) -> str:
    return ".".join(map(str, version))

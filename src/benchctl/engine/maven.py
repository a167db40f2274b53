"""Maven repositories: which versions of the engines and other files exist, and verified downloads."""

import contextlib
import hashlib
import logging
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

import requests
from jgo.maven import POM, Artifact, Dependency, MavenContext, PythonResolver

from benchctl.disk import FreeBytes, free_bytes, require_space
from benchctl.errors import BenchctlError, UsageError
from benchctl.network import TIMEOUT_S, Progress, Trouble, Unanswered, network_errors, outside, shown
from benchctl.results.plan import EngineName

Checksum = Literal["sha512", "sha1", "none"]
"""The published checksum that a file was compared with; `none` when there is none."""

DAMAGED = "the download or the source is damaged: try again, or use another source"
_SHA512_HEX_DIGITS = 128
_MOST_BYTES = 1 << 16
_OK = 200


def published_sha512(parts: SplitResult) -> str:
    """The checksum beside a URL; empty when none is served there."""
    beside = parts._replace(path=f"{parts.path}.sha512").geturl()
    with outside() as courier:
        answer = courier.ask("GET", beside, deadline_s=TIMEOUT_S, max_bytes=_MOST_BYTES)
    text = answer.body.decode(errors="replace") if answer.status == _OK else ""
    first = text.split(maxsplit=1)[:1]
    return first[0] if first and len(first[0]) == _SHA512_HEX_DIGITS else ""


def digest(path: Path, kind: str) -> str:
    """The hexadecimal digest of a file; `kind` is a name that hashlib knows."""
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, kind).hexdigest()


def compare(fetched: Path, kind: Checksum, published: str, what: str) -> None:
    """Compare a file with the first word of its published checksum; `what` is its name in the message.

    Raises:
        BenchctlError: they differ.
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

_ABSENT = (requests.codes.not_found, requests.codes.forbidden)  # object stores forbid what is not there
_NEAREST_SHOWN = 5
_MOST_PROBE_STEPS = 50  # for a server that answers "yes" to everything

Version = tuple[int, int, int]
"""Major, minor and patch of a release."""


@dataclass(frozen=True)
class Coordinates:
    """Maven coordinates of a file, without the version.

    Attributes:
        group: such as `org.apache.lucene`.
        artifact: such as `lucene-core`.
        packaging: file name extension.
        classifier: which of the artifact's files, such as `sources`; empty for the main one.
    """

    group: str
    artifact: str
    packaging: str = "jar"
    classifier: str = ""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"{self.artifact} {self.classifier}".rstrip()


def engine_coordinates(engine: EngineName) -> Coordinates:
    """Where an engine's own distribution is."""
    return Coordinates(f"org.{engine}.distribution.integ-test-zip", engine, "zip")


def latest_version(engine: EngineName, *, environ: Mapping[str, str] | None = None) -> str:
    """The newest release that the Maven repository serves.

    Its listing can lack versions that it does serve, so probing starts at the newest listed one: the next
    majors,
    minors and patches, one HEAD request each.

    Raises:
        BenchctlError: the repository cannot be reached or lists no release.
    """
    with tempfile.TemporaryDirectory(prefix="benchctl-") as folder:
        source = MavenSource(engine_coordinates(engine), Path(folder), environ, lambda *_: None, free_bytes)
        listed = source.listed()
        if not listed:
            raise BenchctlError(
                f"{source.repository} lists no release of {engine}",
                hint=f"name a version, or check {REPOSITORY_VARIABLE}",
            )
        return _text(_newest(listed[-1], source.serves))


class MavenSource:
    """One file, in all its versions, in one Maven repository, through jgo with a private cache.

    jgo keeps what an interrupted download left behind and only warns about a wrong checksum: hence a
    temporary cache,
    and our own checks.

    Args:
        coordinates: which file.
        folder: for the cache; the caller removes it.
        environ: has `BENCHCTL_MAVEN_REPOSITORY`; None for the process's own.
        progress: of the file's download, not of its checksums.
        free: bytes that can be written to a folder.

    Attributes:
        repository: its name in messages.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        folder: Path,
        environ: Mapping[str, str] | None,
        progress: Progress,
        free: FreeBytes,
    ) -> None:
        configured = (os.environ if environ is None else environ).get(REPOSITORY_VARIABLE, "").rstrip("/")
        # jgo's warnings would only duplicate our errors on the terminal.
        logging.getLogger("jgo").addHandler(logging.NullHandler())
        self._file = coordinates
        self._context = MavenContext(
            resolver=PythonResolver(
                progress_callback=_jgo_progress(folder, progress, free, f".{coordinates.packaging}")
            ),
            repo_cache=folder / "maven",
            remote_repos={"configured": configured} if configured else None,
            timeout=TIMEOUT_S,
        )
        self._project = self._context.project(coordinates.group, coordinates.artifact)
        (self._url,) = self._context.remote_repos.values()
        self.repository = shown(urlsplit(self._url)) if configured else "Maven Central"

    def fetch(self, version: str) -> Path:
        """Download one version into the private cache.

        Raises:
            UsageError: there is no such version.
            BenchctlError: it cannot be had or does not fit on the disk.
        """
        self.require(version)
        with self.network_errors():
            return self._resolve(version)

    def require(self, version: str) -> None:
        """Check that a version exists, without downloading it.

        Raises:
            UsageError: it does not.
            BenchctlError: the repository cannot be reached.
        """
        with self.network_errors():
            if self._head(version) == requests.codes.not_found:
                raise UsageError(
                    f"{self.repository} has no {self._file.title} {version}", hint=self._suggestion(version)
                )

    def verify(self, version: str, fetched: Path) -> Checksum:
        """Compare a downloaded zip or jar with the strongest checksum served beside it; returns its kind.

        Without one, the checksums inside the zip have to do.

        Raises:
            BenchctlError: the zip is damaged, or an existing checksum cannot be downloaded.
        """
        what = f"{self._file.title} {version} from {self.repository}"
        kinds: tuple[Checksum, ...] = ("sha512", "sha1")
        for kind in kinds:
            with self.network_errors():
                if self._head(version, kind) in _ABSENT:
                    continue
                published = self._resolve(version, kind)
            compare(fetched, kind, published.read_text(errors="replace"), what)
            return kind
        _check_zip(fetched, what)
        return "none"

    def listed(self) -> list[Version]:
        """Releases in the repository's listing, ascending, without pre-releases."""
        self._project.update()
        if not any(self._context.repo_cache.rglob("maven-metadata-*.xml")):
            with self.network_errors():
                _status(self._url)
            return []
        found = {_numbers(component.version) for component in self._project.versions()}
        return sorted(version for version in found if version is not None)

    def serves(self, version: Version) -> bool:
        """Whether a version can be downloaded, listed or not."""
        with self.network_errors():
            return self._head(_text(version)) == requests.codes.ok

    def dependency(self, version: str) -> Dependency:
        """One version, for jgo's resolver of POMs."""
        return Dependency(self._artifact(version, ""))

    def _resolve(self, version: str, checksum: str = "") -> Path:
        """Download the file itself, or one of its checksums."""
        artifact = self._artifact(version, checksum)
        try:
            return Path(artifact.resolve())
        except RuntimeError as err:
            raise BenchctlError(
                f"{self.repository} refuses {artifact.filename}: HTTP {self._head(version, checksum)}",
                hint=f"try later, or check {REPOSITORY_VARIABLE}",
            ) from err
        except IndexError as err:  # how jgo fails on an empty checksum
            raise BenchctlError(
                f"the sha1 of {artifact.filename} from {self.repository} is empty", hint=DAMAGED
            ) from err

    def _head(self, version: str, checksum: str = "") -> int:
        """The HTTP status of a file; checked first, since jgo leaks the socket when there is none."""
        artifact = self._artifact(version, checksum)
        return _status(f"{self._url}/{artifact.component.path_prefix.as_posix()}/{artifact.filename}")

    def _artifact(self, version: str, checksum: str) -> Artifact:
        packaging = f"{self._file.packaging}.{checksum}" if checksum else self._file.packaging
        component = self._project.at_version(version)
        return component.artifact(classifier=self._file.classifier, packaging=packaging)

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

    @contextlib.contextmanager
    def network_errors(self) -> Iterator[None]:
        """What goes wrong on the network, told as such."""
        doing = f"download {self._file.title} from {self.repository}"
        hint = (
            f"check the network and its proxy settings, name a mirror in {REPOSITORY_VARIABLE}, "
            "or give a distribution that is on this machine"
        )
        with network_errors(doing, hint=hint):
            try:
                yield
            except requests.RequestException as err:  # jgo's
                raise _unanswered(err) from err


def resolve_poms(jars: Sequence[str], *, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Coordinates of jars, `group:artifact:version`, and of those that their POMs need at run time.

    As in Maven, the version nearest to the root wins: first of all what is named.

    Raises:
        UsageError: there is no such version.
        BenchctlError: the repository cannot be reached, or lacks a POM.
    """
    with tempfile.TemporaryDirectory(prefix="benchctl-") as folder:
        sources = []
        for jar in jars:
            group, artifact, version = jar.split(":")
            source = MavenSource(
                Coordinates(group, artifact), Path(folder), environ, lambda *_: None, free_bytes
            )
            source.require(version)
            sources.append(source.dependency(version))
        with source.network_errors():
            try:
                context = sources[0].context
                _, further = context.resolver.resolve(sources)
                for one in further:
                    # What a POM that cannot be had needs would be missing without a word.
                    pom: POM | None = one.artifact.component.pom()
                    while pom is not None:
                        pom = context.pom_parent(pom)
            except RuntimeError as err:
                raise BenchctlError(
                    f"{source.repository} lacks what {', '.join(jars)} need: {err}",
                    hint=f"check the coordinates, or {REPOSITORY_VARIABLE}",
                ) from err
    used = (one for one in further if one.scope in _AT_RUN_TIME and one.type == "jar" and not one.classifier)
    return (*jars, *(f"{one.groupId}:{one.artifactId}:{one.version}" for one in used))


_AT_RUN_TIME = ("compile", "runtime")


def _status(url: str) -> int:
    """The HTTP status of a URL, redirects followed, without its content."""
    with outside() as courier:
        return courier.ask("HEAD", url, deadline_s=TIMEOUT_S).status


def _unanswered(err: requests.RequestException) -> Unanswered:
    if isinstance(err, requests.Timeout) or "timed out" in str(err):
        return Unanswered(Trouble.TIMEOUT, f"no answer within {TIMEOUT_S} s")
    kinds = {
        requests.exceptions.ChunkedEncodingError: Trouble.BROKEN,
        requests.exceptions.SSLError: Trouble.UNTRUSTED,
        requests.ConnectionError: Trouble.REFUSED,
    }
    trouble = next((kinds[kind] for kind in kinds if isinstance(err, kind)), Trouble.OTHER)
    return Unanswered(trouble, str(err))


def _jgo_progress(
    folder: Path, progress: Progress, free: FreeBytes, ending: str
) -> Callable[[str, int], AbstractContextManager[Callable[[int], None]]]:
    """What jgo calls before the first byte is written, and after each piece."""

    @contextlib.contextmanager
    def track(name: str, total: int) -> Iterator[Callable[[int], None]]:
        require_space(folder, total, f"download {name}", available=free(folder))
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            require_space(
                folder, 0, f"download {name}", available=free(folder)
            )  # it may send more than it said
            if name.endswith(ending):
                progress(name, done, total)

        yield advance

    return track


def _check_zip(fetched: Path, what: str) -> None:
    """Verify every entry's own checksum."""
    try:
        with zipfile.ZipFile(fetched) as archive:
            broken = archive.testzip()
    except zipfile.BadZipFile as err:
        raise BenchctlError(f"{what} is truncated, or no archive: {err}", hint="try again") from err
    if broken:
        raise BenchctlError(f"{what} is damaged at '{broken}'", hint="try again")


def _newest(listed: Version, serves: Callable[[Version], bool]) -> Version:
    """Step up from a served version until none of its successors is served."""
    newest = listed
    for _ in range(_MOST_PROBE_STEPS):
        further = next(filter(serves, _successors(newest)), None)
        if further is None:
            break
        newest = further
    return newest


def _successors(version: Version) -> Iterator[Version]:
    """Candidates, largest step first; single releases are sometimes skipped."""
    major, minor, patch = version
    yield major + 1, 0, 0
    for gap in (1, 2):
        yield major, minor + gap, 0
    for gap in (1, 2):
        yield major, minor, patch + gap


def _numbers(version: str) -> Version | None:
    found = re.fullmatch(r"([0-9]+)\.([0-9]+)\.([0-9]+)", version)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _text(version: Version) -> str:
    return ".".join(map(str, version))

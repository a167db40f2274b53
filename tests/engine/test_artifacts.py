"""Archives from a Maven repository and from URLs, served well and badly on loopback."""

import contextlib
import errno
import hashlib
import io
import socket
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchctl.engine import artifacts
from benchctl.engine.archive import RESERVE_BYTES
from benchctl.engine.artifacts import (
    REPOSITORY_VARIABLE,
    download_archive,
    fetch_archive,
    latest_version,
    local_archive,
)
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home

VERSION = "8.11.0"


@dataclass
class Reply:
    """What the server answers: `length` overrides the honest Content-Length, `stall` never answers."""

    body: bytes = b""
    status: int = 200
    length: int | None = None
    stall: bool = False


@dataclass
class Server:
    """A web server on loopback with a folder of replies; what is not in it is 404."""

    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def serve(self, engine: str, version: str, body: bytes, **checksums: str) -> str:
        """Put a version into the Maven layout, and say where its zip is."""
        path = f"/org/{engine}/distribution/integ-test-zip/{engine}/{version}/{engine}-{version}.zip"
        self.replies[path] = Reply(body)
        for kind, text in checksums.items():
            self.replies[f"{path}.{kind}"] = Reply(text.encode())
        return path

    def list_versions(self, engine: str, *versions: str) -> None:
        """Put the listing into the Maven layout."""
        listed = "".join(f"<version>{version}</version>" for version in versions)
        text = f"<metadata><versioning><versions>{listed}</versions></versioning></metadata>"
        path = f"/org/{engine}/distribution/integ-test-zip/{engine}/maven-metadata.xml"
        self.replies[path] = Reply(text.encode())

    @property
    def environ(self) -> dict[str, str]:
        """The configuration that points to this server."""
        return {REPOSITORY_VARIABLE: self.url}


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(f"{self.command} {self.path}")
            reply = server.replies.get(self.path, Reply(b"<html>not here</html>", 404))
            if reply.stall:
                server.released.wait()
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(reply.body)

        do_HEAD = do_GET  # noqa: N815 - the base class looks it up by this name

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(server)) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            http.shutdown()
            thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as started:
        yield started


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def zipped(content: bytes = b"content" * 5000) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("elasticsearch/lib/file", content)
    return buffer.getvalue()


def sha(kind: str, body: bytes) -> str:
    return hashlib.new(kind, body).hexdigest()


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


def kept(home: Home) -> list[str]:
    return sorted(path.name for path in home.artifacts.iterdir())


def fetch(home: Home, server: Server, version: str = VERSION) -> artifacts.Archive:
    return fetch_archive(home, "elasticsearch", version, ignore, environ=server.environ)


@pytest.mark.parametrize("kinds", [("sha512", "sha1"), ("sha1",), ()])
def test_the_strongest_served_checksum_is_used(kinds: tuple[str, ...], server: Server, home: Home):
    body = zipped()
    server.serve("elasticsearch", VERSION, body, **{kind: sha(kind, body) for kind in kinds})
    archive = fetch(home, server)
    assert archive.path.read_bytes() == body
    assert archive.sha256 == sha("sha256", body)
    assert archive.verified_by == (kinds[0] if kinds else "none")
    assert kept(home) == ["elasticsearch-8.11.0.zip", "elasticsearch-8.11.0.zip.json"]


def test_a_cached_archive_needs_no_network(server: Server, home: Home):
    server.serve("elasticsearch", VERSION, zipped())
    first = fetch(home, server)
    server.requests.clear()
    assert fetch(home, server) == first
    assert server.requests == []


@pytest.mark.parametrize("harm", ["no record", "broken record", "other size"])
def test_a_cache_entry_in_doubt_is_fetched_again(harm: str, server: Server, home: Home):
    body = zipped()
    server.serve("elasticsearch", VERSION, body)
    archive = fetch(home, server)
    record = archive.path.with_name(f"{archive.path.name}.json")
    if harm == "no record":
        record.unlink()
    elif harm == "broken record":
        record.write_text("{")
    else:
        archive.path.write_bytes(body[:-1])
    assert fetch(home, server) == archive
    assert archive.path.read_bytes() == body


def test_progress_counts_to_the_total(server: Server, home: Home):
    body = zipped()
    server.serve("opensearch", "2.11.0", body, sha1=sha("sha1", body))
    told: list[tuple[str, int, int]] = []
    fetch_archive(home, "opensearch", "2.11.0", lambda *args: told.append(args), environ=server.environ)
    assert told[-1] == ("opensearch-2.11.0.zip", len(body), len(body))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


@pytest.mark.parametrize("kind", ["sha512", "sha1"])
@pytest.mark.parametrize("published", ["0" * 40, ""])
def test_a_wrong_checksum_is_told(kind: str, published: str, server: Server, home: Home):
    server.serve("elasticsearch", VERSION, zipped(), **{kind: published})
    with pytest.raises(
        BenchctlError, match=rf"elasticsearch.8\.11\.0.* from .* (does not match its {kind}|is empty)"
    ) as caught:
        fetch(home, server)
    assert "try again" in caught.value.hint
    assert kept(home) == []


def test_a_checksum_that_cannot_be_had_just_now_is_not_left_out(server: Server, home: Home):
    path = server.serve("elasticsearch", VERSION, zipped())
    server.replies[f"{path}.sha512"] = Reply(status=503)
    with pytest.raises(BenchctlError, match=r"refuses elasticsearch-8\.11\.0\.zip\.sha512: HTTP 503"):
        fetch(home, server)
    assert kept(home) == []


def test_a_truncated_download_is_told(server: Server, home: Home):
    body = zipped()
    path = server.serve("elasticsearch", VERSION, body)
    server.replies[path] = Reply(body[:1000], length=len(body))
    with pytest.raises(BenchctlError, match="the connection ended before everything had come"):
        fetch(home, server)
    assert kept(home) == []


@pytest.mark.parametrize("body", [zipped()[:1000], b"<html>welcome</html>"])
def test_without_a_checksum_the_zip_itself_is_checked(body: bytes, server: Server, home: Home):
    server.serve("elasticsearch", VERSION, body)
    with pytest.raises(BenchctlError, match="is truncated, or no archive"):
        fetch(home, server)
    assert kept(home) == []


def test_without_a_checksum_every_entry_is_checked(server: Server, home: Home):
    body = bytearray(zipped())
    body[1000] ^= 0xFF
    server.serve("elasticsearch", VERSION, bytes(body))
    with pytest.raises(BenchctlError, match="is damaged at 'elasticsearch/lib/file'"):
        fetch(home, server)
    assert kept(home) == []


def test_a_missing_version_is_told_with_its_neighbours(server: Server, home: Home):
    listed = ["7.17.28", "8.0.0-alpha1", "8.0.0", "8.10.2", "8.11.0", "8.11.1", "8.11.3", "8.13.0", "8.19.0"]
    server.list_versions("elasticsearch", *listed)
    with pytest.raises(BenchctlError, match=r"has no elasticsearch 8\.11\.2\n") as caught:
        fetch(home, server, "8.11.2")
    assert caught.value.hint == "versions near it: 8.10.2, 8.11.0, 8.11.1, 8.11.3, 8.13.0"
    assert kept(home) == []


def test_a_missing_version_without_any_listing_is_told(server: Server, home: Home):
    with pytest.raises(BenchctlError, match=r"has no elasticsearch 8\.11\.0\n") as caught:
        fetch(home, server)
    assert caught.value.hint == "it lists no version at all"


def test_a_refusing_repository_is_not_a_missing_version(server: Server, home: Home):
    path = server.serve("elasticsearch", VERSION, b"")
    server.replies[path] = Reply(status=503)
    with pytest.raises(BenchctlError, match=r"refuses elasticsearch-8\.11\.0\.zip: HTTP 503"):
        fetch(home, server)


def test_no_network_is_told(home: Home):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        environ = {REPOSITORY_VARIABLE: f"http://127.0.0.1:{unused.getsockname()[1]}"}
        with pytest.raises(BenchctlError, match="no connection") as caught:
            fetch_archive(home, "elasticsearch", VERSION, ignore, environ=environ)
        with pytest.raises(BenchctlError, match="no connection"):
            latest_version("elasticsearch", environ=environ)
    assert REPOSITORY_VARIABLE in caught.value.hint
    assert kept(home) == []


def test_a_repository_that_is_no_url_is_told(home: Home):
    with pytest.raises(BenchctlError, match="Invalid URL"):
        fetch_archive(home, "elasticsearch", VERSION, ignore, environ={REPOSITORY_VARIABLE: "nonsense"})


def test_a_silent_server_is_told(server: Server, home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(artifacts, "_TIMEOUT_S", 1)
    path = server.serve("elasticsearch", VERSION, b"")
    server.replies[path] = Reply(stall=True)
    with pytest.raises(BenchctlError, match="no answer within 1 s"):
        fetch(home, server)
    assert kept(home) == []


def test_space_is_checked_before_the_download(server: Server, home: Home):
    server.serve("elasticsearch", VERSION, zipped())
    with pytest.raises(BenchctlError, match="not enough space"):
        fetch_archive(
            home, "elasticsearch", VERSION, ignore, environ=server.environ, free=lambda _: RESERVE_BYTES
        )
    assert kept(home) == []


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_download_leaves_nothing(failure: BaseException, server: Server, home: Home):
    server.serve("elasticsearch", VERSION, zipped())

    def fail(*_: object) -> None:
        raise failure

    with pytest.raises((KeyboardInterrupt, BenchctlError)) as caught:
        fetch_archive(home, "elasticsearch", VERSION, fail, environ=server.environ)
    if isinstance(caught.value, BenchctlError):
        assert "No space left" in caught.value.message
        assert "free some space" in caught.value.hint
    assert kept(home) == []


def test_the_newest_version_is_found_beyond_the_listing(server: Server):
    server.list_versions("elasticsearch", "8.18.0", "9.0.0-beta1", "8.19.4", "8.19.2")
    for version in ("9.0.0", "9.2.0", "9.2.2", "8.20.0"):
        server.serve("elasticsearch", version, b"")
    assert latest_version("elasticsearch", environ=server.environ) == "9.2.2"


def test_the_newest_listed_version_stands_when_nothing_follows(server: Server):
    server.list_versions("opensearch", "2.9.0", "2.11.0", "2.10.0")
    assert latest_version("opensearch", environ=server.environ) == "2.11.0"


def test_a_repository_without_a_listing_is_told(server: Server):
    with pytest.raises(BenchctlError, match="lists no release of opensearch"):
        latest_version("opensearch", environ=server.environ)


@pytest.mark.parametrize("published", [True, False])
def test_a_url_is_downloaded_once(published: bool, server: Server, home: Home):  # noqa: FBT001 - a parameter
    body = zipped()
    server.replies["/some/dist.tar.gz"] = Reply(body)
    if published:
        server.replies["/some/dist.tar.gz.sha512"] = Reply(f"{sha('sha512', body)}  dist.tar.gz\n".encode())
    url = f"{server.url}/some/dist.tar.gz"
    archive = download_archive(home, url, ignore)
    assert archive.path.read_bytes() == body
    assert archive.path.name.endswith("-dist.tar.gz")
    assert archive.verified_by == ("sha512" if published else "none")
    server.requests.clear()
    assert download_archive(home, url, ignore) == archive
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "checksum", "said"),
    [
        (Reply(zipped()), "0" * 128, "does not match its sha512"),
        (Reply(zipped()[:500], length=5000), None, "the connection ended before everything had come"),
        (Reply(status=403), None, "HTTP 403"),
    ],
)
def test_a_bad_url_leaves_nothing(reply: Reply, checksum: str | None, said: str, server: Server, home: Home):
    server.replies["/dist.zip"] = reply
    if checksum is not None:
        server.replies["/dist.zip.sha512"] = Reply(checksum.encode())
    with pytest.raises(BenchctlError, match=said):
        download_archive(home, f"{server.url}/dist.zip", ignore)
    assert kept(home) == []


def test_a_page_in_place_of_a_checksum_is_no_checksum(server: Server, home: Home):
    server.replies["/dist.zip"] = Reply(zipped())
    server.replies["/dist.zip.sha512"] = Reply(b"<html>log in first</html>")
    assert download_archive(home, f"{server.url}/dist.zip", ignore).verified_by == "none"


def test_messages_hide_credentials(server: Server, home: Home):
    url = server.url.replace("//", "//user:secret@") + "/dist.zip?token=secret"
    with pytest.raises(BenchctlError, match="HTTP 404") as caught:
        download_archive(home, url, ignore)
    assert "secret" not in str(caught.value)


def test_space_is_checked_before_a_url_is_written(server: Server, home: Home):
    server.replies["/dist.zip"] = Reply(zipped())
    with pytest.raises(BenchctlError, match="not enough space"):
        download_archive(home, f"{server.url}/dist.zip", ignore, free=lambda _: RESERVE_BYTES)
    assert kept(home) == []


def test_a_local_archive_is_used_where_it_is(tmp_path: Path):
    path = tmp_path / "mine.zip"
    path.write_bytes(zipped())
    assert local_archive(path) == artifacts.Archive(path, sha("sha256", zipped()), "none")
    with pytest.raises(BenchctlError, match=r"cannot read .*absent\.zip: No such file"):
        local_archive(tmp_path / "absent.zip")


def test_only_known_kinds_are_taken(tmp_path: Path, home: Home):
    with pytest.raises(UsageError, match="no archive that benchctl can unpack"):
        local_archive(tmp_path / "mine.rar")
    with pytest.raises(UsageError, match="no archive that benchctl can unpack"):
        download_archive(home, "http://127.0.0.1/mine.rar", ignore)

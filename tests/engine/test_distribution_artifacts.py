"""Archives from a repository, a URL and the disk: kept once whole, and no trace of a failed download."""

import errno
from pathlib import Path

import pytest

from benchctl.disk import RESERVE_BYTES
from benchctl.engine.distribution import Archive, download_archive, fetch_published, local_archive
from benchctl.engine.maven import engine_coordinates
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from engine.archive_server import Reply, Server, sha, zipped
from file_server import FileServer, Served

VERSION = "8.11.0"


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


def kept(home: Home) -> list[str]:
    return sorted(path.name for path in home.artifacts.iterdir())


def fetch(home: Home, server: Server) -> Archive:
    return fetch_published(home, engine_coordinates("elasticsearch"), VERSION, ignore, environ=server.environ)


@pytest.mark.parametrize("kind", ["sha512", "sha1"])
def test_an_archive_is_kept_with_what_is_known_of_it(kind: str, server: Server, home: Home):
    body = zipped()
    server.serve("elasticsearch", VERSION, body, **{kind: sha(kind, body)})
    assert fetch(home, server) == Archive(
        home.artifacts / "elasticsearch-8.11.0.zip", sha("sha256", body), kind
    )
    assert kept(home) == ["elasticsearch-8.11.0.zip", "elasticsearch-8.11.0.zip.json"]


@pytest.mark.parametrize(
    ("body", "checksum", "said"),
    [
        (zipped(), {"sha512": "0" * 128}, "does not match its sha512"),
        (zipped()[:1000], {}, "is truncated, or no archive"),
    ],
)
def test_a_bad_archive_is_not_kept(
    body: bytes, checksum: dict[str, str], said: str, server: Server, home: Home
):
    server.serve("elasticsearch", VERSION, body, **checksum)
    with pytest.raises(BenchctlError, match=said):
        fetch(home, server)
    assert kept(home) == []


def test_no_space_for_a_version_leaves_nothing(server: Server, home: Home):
    server.serve("elasticsearch", VERSION, zipped())
    with pytest.raises(BenchctlError, match="not enough space"):
        fetch_published(
            home,
            engine_coordinates("elasticsearch"),
            VERSION,
            ignore,
            environ=server.environ,
            free=lambda _: RESERVE_BYTES,
        )
    assert kept(home) == []


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


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_download_leaves_nothing(failure: BaseException, server: Server, home: Home):
    server.serve("elasticsearch", VERSION, zipped())

    def fail(*_: object) -> None:
        raise failure

    with pytest.raises((KeyboardInterrupt, BenchctlError)) as caught:
        fetch_published(home, engine_coordinates("elasticsearch"), VERSION, fail, environ=server.environ)
    if isinstance(caught.value, BenchctlError):
        assert "No space left" in caught.value.message
        assert "free some space" in caught.value.hint
    assert kept(home) == []


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
        (Reply(zipped()[:500], length=5000), None, "the connection ended before the download was complete"),
        (Reply(status=403), None, "HTTP 403"),
    ],
)
def test_a_bad_url_leaves_nothing(reply: Reply, checksum: str | None, said: str, server: Server, home: Home):
    server.replies["/dist.zip"] = reply
    if checksum is not None:
        server.replies["/dist.zip.sha512"] = Reply(checksum.encode())
    with pytest.raises(BenchctlError, match=said):
        download_archive(home, f"{server.url}/dist.zip", ignore, pause=lambda _: None)
    assert kept(home) == []


def test_a_download_that_breaks_off_is_taken_up(files: FileServer, home: Home):
    body = zipped()
    files.files["/dist.zip"] = Served(body, cuts=[500], statuses=[503])
    archive = download_archive(home, f"{files.url}/dist.zip", ignore, pause=lambda _: None)
    assert archive.path.read_bytes() == body
    assert ("/dist.zip", "bytes=500-") in files.requests
    assert kept(home) == [archive.path.name, f"{archive.path.name}.json"]


def test_progress_of_a_url_names_the_file(server: Server, home: Home):
    body = zipped()
    server.replies["/dist.zip"] = Reply(body)
    told: list[tuple[str, int, int]] = []
    download_archive(home, f"{server.url}/dist.zip", lambda *args: told.append(args))
    assert told[-1] == ("bytes of dist.zip", len(body), len(body))


@pytest.mark.parametrize("status", [429, 503])
def test_a_checksum_that_cannot_be_had_now_is_no_missing_one(status: int, server: Server, home: Home):
    server.replies["/dist.zip"] = Reply(zipped())
    server.replies["/dist.zip.sha512"] = Reply(b"", status)
    with pytest.raises(BenchctlError, match=rf"dist\.zip\.sha512: HTTP {status}"):
        download_archive(home, f"{server.url}/dist.zip", lambda *_: None)
    assert list(home.artifacts.iterdir()) == []


def test_a_page_in_place_of_a_checksum_is_no_checksum(server: Server, home: Home):
    server.replies["/dist.zip"] = Reply(zipped())
    server.replies["/dist.zip.sha512"] = Reply(b"<html>log in first</html>")
    assert download_archive(home, f"{server.url}/dist.zip", ignore).verified_by == "none"


def test_messages_hide_credentials(server: Server, home: Home):
    url = server.url.replace("//", "//user:secret@") + "/dist.zip?token=secret"
    with pytest.raises(BenchctlError, match="HTTP 404") as caught:
        download_archive(home, url, ignore)
    assert "secret" not in str(caught.value)


def test_a_local_archive_is_used_where_it_is(tmp_path: Path):
    path = tmp_path / "mine.zip"
    path.write_bytes(zipped())
    assert local_archive(path) == Archive(path, sha("sha256", zipped()), "none")
    with pytest.raises(BenchctlError, match=r"cannot read .*absent\.zip: No such file"):
        local_archive(tmp_path / "absent.zip")


def test_only_known_kinds_are_taken(tmp_path: Path, home: Home):
    with pytest.raises(UsageError, match="not an archive that benchctl can unpack"):
        local_archive(tmp_path / "mine.rar")
    with pytest.raises(UsageError, match="not an archive that benchctl can unpack"):
        download_archive(home, "http://127.0.0.1/mine.rar", ignore)

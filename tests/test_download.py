"""Downloads that go on where they ended, from servers good and bad."""

from pathlib import Path

import pytest

from authority import certificate_file, server_context
from benchctl import network
from benchctl.disk import RESERVE_BYTES
from benchctl.download import Advice, Download, Piece
from benchctl.errors import BenchctlError, ExitCode
from file_server import FileServer, Served, serving_files
from load.hostile_acts import HEADS, SLOW
from load.hostile_server import Act, HostileServer

BODY = bytes(range(256)) * 400
HALF = len(BODY) // 2
TRUST_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


ADVICE = Advice("look at the network", "look at the address", "try again", "look at the size")


class Patience:
    """Counts pauses instead of making them."""

    def __init__(self) -> None:
        self.paused: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.paused.append(seconds)


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


def download(server: FileServer, folder: Path, *pieces: Piece, free: int = 1 << 40) -> Download:
    given = pieces or (Piece(f"{server.url}/file", len(BODY)),)
    return Download(given, folder / "file", ignore, ADVICE, free=lambda _: free, pause=Patience())


def test_a_file_comes_whole_and_nothing_else_stays(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY)
    told: list[tuple[str, int, int]] = []
    Download(
        [Piece(f"{files.url}/file")],
        tmp_path / "file",
        lambda *args: told.append(args),
        ADVICE,
    ).run()
    assert (tmp_path / "file").read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert told[-1] == ("bytes of file", len(BODY), len(BODY))


def test_a_dropped_connection_is_taken_up_where_it_ended(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, cuts=[1000, 5000])
    assert download(files, tmp_path).run().read_bytes() == BODY
    assert files.requests == [("/file", ""), ("/file", "bytes=1000-"), ("/file", "bytes=6000-")]


def test_a_server_that_sends_more_than_the_disk_holds_is_left(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, length=False)
    free = iter([1 << 40] + [RESERVE_BYTES - 1] * 10)
    endless = Download(
        [Piece(f"{files.url}/file")], tmp_path / "file", ignore, ADVICE, free=lambda _: next(free)
    )
    with pytest.raises(BenchctlError, match="not enough space"):
        endless.run()


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (302, {"Location": "http://[::1/"}, "the one that its server redirects to, is not a URL"),
        (206, {"Content-Range": "bytes \u00b2-4/\u00b2"}, "it changed on the server"),
    ],
)
def test_answers_that_make_no_sense_are_one_line(
    files: FileServer, tmp_path: Path, status: int, headers: dict[str, str], said: str
):
    files.files["/file"] = Served(BODY, odd=(status, headers))
    with pytest.raises(BenchctlError, match=said):
        download(files, tmp_path).run()


def test_what_an_earlier_process_got_is_not_fetched_again(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, cuts=[HALF], statuses=[])
    first = download(files, tmp_path)
    files.files["/file"].cuts += [0] * 10
    with pytest.raises(BenchctlError, match=rf"connection ended .*; {HALF:,} bytes received") as caught:
        first.run()
    assert caught.value.hint == ADVICE.unfinished
    files.files["/file"].cuts.clear()
    files.requests.clear()
    assert download(files, tmp_path).run().read_bytes() == BODY
    assert files.requests == [("/file", f"bytes={HALF}-")]


@pytest.mark.parametrize("ranges", ["ignored", "wrong"])
def test_a_server_that_cannot_send_ranges_sends_it_all_again(ranges: str, files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, ranges=ranges, cuts=[HALF])  # type: ignore[arg-type]
    assert download(files, tmp_path).run().read_bytes() == BODY


def test_without_ranges_and_always_cut_short_it_ends(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, ranges="ignored", cuts=[HALF] * 50)
    wanted = download(files, tmp_path)
    with pytest.raises(BenchctlError, match="connection ended before the download was complete"):
        wanted.run()
    assert len(files.requests) < 10
    assert not wanted.target.exists()


@pytest.mark.parametrize(
    ("body", "versions"),
    [
        (BODY[::-1], ('"1"', '"2"')),
        (BODY + b"more", ('"1"', '"2"')),
        (BODY[::-1] + b"x", ("", "")),  # the size alone shows that it changed
    ],
)
def test_another_version_on_the_server_begins_anew(
    body: bytes, versions: tuple[str, str], files: FileServer, tmp_path: Path
):
    files.files["/file"] = Served(BODY, cuts=[HALF, *[0] * 10], version=versions[0])
    wanted = Piece(f"{files.url}/file")
    with pytest.raises(BenchctlError):
        download(files, tmp_path, wanted).run()
    files.files["/file"] = Served(body, version=versions[1])
    assert download(files, tmp_path, wanted).run().read_bytes() == body


def test_pieces_are_joined_and_taken_up_in_the_middle_of_one(files: FileServer, tmp_path: Path):
    parts = [BODY[:1000], BODY[1000:HALF], BODY[HALF:]]
    for number, part in enumerate(parts):
        files.files[f"/{number}"] = Served(part)
    files.files["/1"].cuts = [500, *[0] * 10]
    pieces = [Piece(f"{files.url}/{number}", len(part)) for number, part in enumerate(parts)]
    with pytest.raises(BenchctlError):
        download(files, tmp_path, *pieces).run()
    files.files["/1"].cuts.clear()
    files.requests.clear()
    assert download(files, tmp_path, *pieces).run().read_bytes() == BODY
    assert files.requests == [("/1", "bytes=500-"), ("/2", "")]


def test_another_source_begins_anew(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, cuts=[HALF, *[0] * 10])
    files.files["/mirror"] = Served(BODY[::-1])
    with pytest.raises(BenchctlError):
        download(files, tmp_path).run()
    mirror = Piece(f"{files.url}/mirror", len(BODY))
    assert download(files, tmp_path, mirror).run().read_bytes() == BODY[::-1]


@pytest.mark.parametrize("length", [True, False])
def test_a_wrong_size_is_told(length: bool, files: FileServer, tmp_path: Path):  # noqa: FBT001 - both cases
    files.files["/file"] = Served(BODY + b"more", length=length)
    wanted = download(files, tmp_path)
    with pytest.raises(BenchctlError, match=r"/file has 102,404 bytes, and 102,400 are expected"):
        wanted.run()
    assert not wanted.target.exists()
    files.files["/file"] = Served(BODY)
    assert download(files, tmp_path).run().read_bytes() == BODY


def test_a_wrong_size_is_told_before_anything_is_fetched(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY)
    piece = Piece(f"{files.url}/file", 7)
    with pytest.raises(BenchctlError, match=r"/file has 102,400 bytes, and 7 are expected") as caught:
        download(files, tmp_path, piece).run()
    assert caught.value.hint == ADVICE.other_size
    assert sum(path.stat().st_size for path in tmp_path.glob(".file.partial")) == 0


def test_a_missing_file_is_told_at_once(files: FileServer, tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"cannot download .*/file: HTTP 404") as caught:
        download(files, tmp_path).run()
    assert caught.value.hint == ADVICE.refused
    assert len(files.requests) == 1


def test_a_server_that_is_busy_is_asked_again(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, statuses=[503, 429])
    wanted = download(files, tmp_path)
    assert wanted.run().read_bytes() == BODY
    assert isinstance(wanted.pause, Patience)
    assert wanted.pause.paused == sorted(wanted.pause.paused)
    assert len(wanted.pause.paused) == 2


def test_an_address_that_nobody_answers_at_is_told_at_once(tmp_path: Path, files: FileServer):
    wanted = download(files, tmp_path, Piece("http://127.0.0.1:1/file"))
    with pytest.raises(BenchctlError, match="no connection") as caught:
        wanted.run()
    assert caught.value.hint == ADVICE.unreachable
    assert isinstance(wanted.pause, Patience)
    assert not wanted.pause.paused


@pytest.mark.parametrize("count", [1, 2])
def test_space_is_checked_for_all_pieces_together(count: int, files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY)
    pieces = [Piece(f"{files.url}/file", len(BODY))] * count
    with pytest.raises(BenchctlError, match=r"not enough space .* to download file"):
        download(files, tmp_path, *pieces, free=RESERVE_BYTES + count * len(BODY) - 1).run()
    enough = download(files, tmp_path, *pieces, free=RESERVE_BYTES + count * len(BODY))
    assert enough.run().read_bytes() == BODY * count


def test_a_damaged_note_of_the_last_attempt_begins_anew(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY)
    (tmp_path / ".file.partial").write_bytes(b"something else")
    (tmp_path / ".file.partial.json").write_bytes(b"{")
    assert download(files, tmp_path).run().read_bytes() == BODY


def test_a_server_that_sends_a_few_bytes_an_attempt_is_given_up(files: FileServer, tmp_path: Path):
    files.files["/file"] = Served(BODY, cuts=[10] * 100)
    with pytest.raises(BenchctlError, match="connection ended before the download was complete; 50 bytes"):
        download(files, tmp_path).run()
    assert len(files.requests) == 5


def test_an_address_as_people_write_it_is_encoded_once(files: FileServer, tmp_path: Path):
    files.files["/a%20b/%C3%A4%25"] = Served(BODY)
    for path in ("/a b/\u00e4%25", "/a%20b/%C3%A4%25"):
        (tmp_path / "file").unlink(missing_ok=True)
        assert download(files, tmp_path, Piece(files.url + path)).run().read_bytes() == BODY


def moved(location: str) -> Served:
    return Served(b"", odd=(302, {"Location": location}))


def test_redirections_without_end_are_given_up(files: FileServer, tmp_path: Path):
    files.files["/file"] = moved("/file")
    with pytest.raises(BenchctlError, match="redirects more than 10 times"):
        download(files, tmp_path).run()
    assert len(files.requests) == 11


def test_ranges_are_also_asked_for_where_a_redirection_leads(files: FileServer, tmp_path: Path):
    with serving_files() as other:
        files.files["/file"] = moved(f"{other.url}/file")
        other.files["/file"] = Served(BODY, cuts=[HALF])
        assert download(files, tmp_path).run().read_bytes() == BODY
        assert other.requests == [("/file", ""), ("/file", f"bytes={HALF}-")]


def test_files_of_the_web_come_through_the_proxy_that_the_environment_names(
    files: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", files.url)
    files.files["http://elsewhere.invalid/file"] = Served(BODY)
    wanted = download(files, tmp_path, Piece("http://elsewhere.invalid/file"))
    assert wanted.run().read_bytes() == BODY


def test_credentials_of_an_address_stay_with_its_host(files: FileServer, tmp_path: Path):
    address = files.url.replace("://", "://me:hunter2@")
    with serving_files() as other:
        files.files["/file"], files.files["/there"] = moved("/there"), moved(f"{other.url}/file")
        other.files["/file"] = Served(BODY)
        assert download(files, tmp_path, Piece(f"{address}/file")).run().read_bytes() == BODY
        assert [bool(one) for one in files.credentials] == [True, True]
        assert other.credentials == [None]


def test_credentials_of_netrc_stay_with_their_host(
    files: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving_files() as other:
        files.files["/file"] = moved(f"{other.url.replace('127.0.0.1', 'localhost')}/file")
        other.files["/file"] = Served(BODY)
        assert download(files, tmp_path).run().read_bytes() == BODY
        assert [bool(one) for one in files.credentials] == [True]
        assert other.credentials == [None]


def trust(monkeypatch: pytest.MonkeyPatch, variable: str, path: Path) -> None:
    """Trust a bundle by one environment variable alone."""
    for name in TRUST_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(path))


@pytest.mark.parametrize("variable", TRUST_VARIABLES)
def test_the_environment_can_name_the_certificates_to_trust(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with serving_files(server_context()) as shielded:
        shielded.files["/file"] = Served(BODY)
        with pytest.raises(BenchctlError, match="the certificate of its host is not trusted"):
            download(shielded, tmp_path).run()
        trust(monkeypatch, variable, certificate_file(tmp_path))
        assert download(shielded, tmp_path).run().read_bytes() == BODY


def test_certificates_that_cannot_be_read_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trust(monkeypatch, "REQUESTS_CA_BUNDLE", tmp_path / "nowhere.pem")
    with serving_files() as server, pytest.raises(BenchctlError, match="is not trusted") as caught:
        download(server, tmp_path).run()
    assert "REQUESTS_CA_BUNDLE" in caught.value.hint


def test_what_was_asked_over_tls_is_not_asked_in_clear(
    files: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trust(monkeypatch, "REQUESTS_CA_BUNDLE", certificate_file(tmp_path))
    files.files["/file"] = Served(BODY)
    with serving_files(server_context()) as shielded:
        shielded.files["/file"] = moved(f"{files.url}/file")
        wanted = download(shielded, tmp_path, Piece(f"{shielded.url.replace('://', '://me:hunter2@')}/file"))
        with pytest.raises(BenchctlError, match="its server redirects from https to http") as caught:
            wanted.run()
        assert "hunter2" not in str(caught.value)
        assert shielded.credentials != [None]
    assert files.requests == []


def test_a_certificate_for_another_host_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trust(monkeypatch, "REQUESTS_CA_BUNDLE", certificate_file(tmp_path))
    with serving_files(server_context("elsewhere.example")) as other:
        with pytest.raises(BenchctlError, match="the certificate of its host is for another name") as caught:
            download(other, tmp_path).run()
        assert caught.value.exit_code is ExitCode.FAILED
        assert other.requests == []


@pytest.mark.parametrize("act", [*SLOW, *HEADS], ids=lambda act: act.name)
def test_a_server_that_drips_or_never_begins_is_given_up(
    act: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(network, "TIMEOUT_S", 1)
    with HostileServer(default=act) as server:
        wanted = Download([Piece(f"{server.url}/file")], tmp_path / "file", ignore, ADVICE, pause=Patience())
        with pytest.raises(BenchctlError, match="cannot download"):
            wanted.run()
    assert not wanted.target.exists()

"""Dry runs look for the documents, and leave nothing behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.errors import ExitCode

pytestmark = pytest.mark.usefixtures("maven")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "docs.json").write_bytes(lines(7))
    return folder


def lines(count: int) -> bytes:
    return b"".join(b'{"id":%d}\n' % number for number in range(count))


def write_track(folder: Path, *files: dict[str, Any], **task: Any) -> None:
    track = {
        "indices": [{"name": "shop"}],
        "corpora": [{"name": "shop", "documents": list(files)}],
        "schedule": [
            {"operation": {"name": "q", "operation-type": "search", "body": {"size": 0}}, **task},
        ],
    }
    (folder / "track.json").write_text(json.dumps(track))


def dry(folder: Path, *arguments: str) -> int:
    words = ["run", "-n", "--track-path", str(folder), "--variant", "es", "--heap", "256m", *arguments]
    return guarded(root, words)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ({"source-file": "gone.json", "document-count": 7}, "gone.json"),
        ({"source-file": "docs.json", "document-count": 7, "uncompressed-bytes": 9}, "63 bytes"),
        ({"source-file": "../shop/docs.json", "document-count": 7}, "../shop/docs.json"),
    ],
)
def test_documents_that_are_not_there_end_a_dry_run(
    file: dict[str, Any], said: str, shop: Path, capsys: pytest.CaptureFixture[str]
):
    write_track(shop, file)
    assert dry(shop) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_documents_are_those_that_the_track_declares_and_nothing_is_kept(
    shop: Path, home: Path, capsys: pytest.CaptureFixture[str]
):
    write_track(shop, {"source-file": "docs.json", "document-count": 7})
    assert dry(shop) == ExitCode.OK
    assert "docs.json: 7 documents by the track\n" in capsys.readouterr().out
    assert dry(shop, "--corpus", str(shop / "docs.json"), "--test-mode") == ExitCode.OK
    assert "docs.json: documents not counted\n" in capsys.readouterr().out
    assert not list(home.rglob(".files/*"))


def test_a_track_without_documents_says_which_it_gets(shop: Path, capsys: pytest.CaptureFixture[str]):
    write_track(shop)
    track = json.loads((shop / "track.json").read_text())
    del track["corpora"]
    (shop / "track.json").write_text(json.dumps(track))
    (shop / "one.json").write_bytes(lines(1))
    assert dry(shop, "--docs", "1000") == ExitCode.OK
    assert "those of big5 are generated" in capsys.readouterr().out
    assert dry(shop, "--corpus", str(shop / "one.json")) == ExitCode.OK
    said = capsys.readouterr().out
    assert "one.json: documents not counted\n" in said
    assert "big5" not in said


def test_a_length_by_time_says_how_many_forks_there_are_at_most(
    shop: Path, capsys: pytest.CaptureFixture[str]
):
    write_track(shop, {"source-file": "docs.json", "document-count": 7})
    for words, said in (
        ((), "forks for 3m, at least 6 and at most 50 per variant"),
        (("--forks", "4", "--budget", "30m"), "forks for 30m, at most 4 per variant"),
    ):
        assert dry(shop, *words) == ExitCode.OK
        assert said in capsys.readouterr().out


def test_what_is_to_be_fetched_is_told(shop: Path, capsys: pytest.CaptureFixture[str]):
    file = {"source-file": "far.json.bz2", "document-count": 9, "compressed-bytes": 3 * 10**9}
    write_track(shop, {**file, "base-url": "https://me:pw@example.org/c/"})
    assert dry(shop) == ExitCode.OK
    said = capsys.readouterr().out
    assert (
        "far.json.bz2: 9 documents by the track, to be fetched from https://example.org/c/ (3.0 GB)" in said
    )
    assert "fetch far.json.bz2" in said
    assert "3.1 GB to download" in said


def test_the_index_of_a_file_is_named_where_there_are_several(shop: Path, capsys: pytest.CaptureFixture[str]):
    write_track(shop, {"source-file": "docs.json", "document-count": 7, "target-index": "other"})
    track = json.loads((shop / "track.json").read_text())
    track["indices"].append({"name": "other"})
    track["schedule"][0]["operation"]["index"] = "shop"
    (shop / "track.json").write_text(json.dumps(track))
    (shop / "mine.json").write_bytes(lines(3))
    assert dry(shop, "--corpus", f"shop={shop / 'mine.json'}") == ExitCode.OK
    said = set(capsys.readouterr().out.splitlines())
    assert {"mine.json: documents not counted", "docs.json: 7 documents by the track"} <= said

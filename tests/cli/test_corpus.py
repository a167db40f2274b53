"""`benchctl corpus fetch`: which files, from where, and what it says when it cannot know."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchctl.cli.track import corpus_group
from benchctl.corpus.generated import ensure_corpus
from benchctl.errors import UsageError
from benchctl.home import Home
from file_server import FileServer, Served

TRACK = """{
  "indices": [{"name": "logs"}],
  "corpora": [
    {"name": "logs", "documents": [
      {"source-file": "logs-{{ corpus_size | default(1) }}.json.bz2", "document-count": 1}
    ]},
    {"name": "more", "documents": [
      {"source-file": "more.json.bz2", "document-count": 1, "target-index": "logs"}
    ]}
  ]
}"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where another user may look, too: pytest's own folders are private."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        monkeypatch.setenv("BENCHCTL_HOME", f"{name}/home")
        yield Path(name) / "home"


@pytest.fixture
def track(tmp_path: Path) -> Path:
    (tmp_path / "track").mkdir()
    (tmp_path / "track" / "track.json").write_text(TRACK)
    return tmp_path / "track"


@pytest.fixture
def source(files: FileServer) -> str:
    for name in ("logs-1.json.bz2", "logs-2.json.bz2", "more.json.bz2"):
        files.files[f"/data/{name}"] = Served(name.encode())
    return f"{files.url}/data"


def fetch(*arguments: str | Path) -> Result:
    words = ["fetch", *map(str, arguments), "--quiet"]
    return CliRunner().invoke(corpus_group, words, catch_exceptions=False)


def test_all_corpora_of_a_track_are_fetched(home: Path, track: Path, source: str):
    output = fetch("--track", track, "--from", source).output
    assert (home / "corpora" / "logs" / "logs-1.json.bz2").read_text() == "logs-1.json.bz2"
    assert (home / "corpora" / "more" / "more.json.bz2").is_file()
    assert output.splitlines() == [
        f"                15 bytes  {home}/corpora/logs/logs-1.json.bz2",
        f"                13 bytes  {home}/corpora/more/more.json.bz2",
    ]


@pytest.mark.usefixtures("home")
def test_a_track_is_read_as_strictly_as_elsewhere(track: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="korpus_size"):
        fetch("--track", track, "--param", "korpus_size=2")
    with pytest.raises(UsageError, match="has no corpus 'log'") as caught:
        fetch("log", "--track", track)
    assert "logs" in caught.value.hint
    with pytest.raises(UsageError, match="corpus 'logs' has no download URL"):
        fetch("logs", "--track", track)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "track.json").write_text(json.dumps({"indices": [{"name": "logs"}]}))
    with pytest.raises(UsageError, match="declares no files of documents"):
        fetch("--track", tmp_path / "empty")


def test_fetched_files_are_listed_behind_generated_corpora(home: Path, track: Path, source: str):
    ensure_corpus(Home(home), 10)
    fetch("more", "--track", track, "--from", source)
    (home / "corpora" / "more" / ".more.json.zst.partial").touch()
    lines = CliRunner().invoke(corpus_group, ["list"], catch_exceptions=False).output.splitlines()
    assert [line.split()[:2] for line in lines] == [["10", "documents"], ["13", "bytes"]]
    assert lines[1].endswith("/corpora/more/more.json.bz2")

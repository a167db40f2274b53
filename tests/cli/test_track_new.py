"""`benchctl track new` before it reaches any cluster."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchctl.cli.track import track_group
from benchctl.errors import BenchctlError


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nothing listens: a port that is taken, and not served."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def failure(*arguments: str) -> BenchctlError:
    found = CliRunner().invoke(track_group, ["new", *arguments]).exception
    assert isinstance(found, BenchctlError)
    return found


def test_a_folder_that_is_there_is_refused_before_the_cluster_is_asked(tmp_path: Path, nobody: str):
    error = failure("--from-index", nobody, "things", "-o", str(tmp_path))
    assert error.exit_code == 2
    assert "already exists" in error.message


def test_a_cluster_that_is_not_there_is_said_so(tmp_path: Path, nobody: str):
    error = failure("--from-index", nobody, "things", "-o", str(tmp_path / "t"))
    assert "refuses the connection" in error.message
    assert not (tmp_path / "t").exists()


def test_credentials_come_from_the_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    output = ("-o", str(tmp_path / "t"))
    error = failure("--from-index", "https://me:hunter2@search-1:9200", "things", *output)
    assert "hunter2" not in str(error)
    assert "see --auth" in error.hint
    monkeypatch.setenv("BENCHCTL_SOURCE_API_KEY", "aWQ6a2V5")
    error = failure("--from-index", "http://search-1:9200", "things", *output)
    assert "refusing to send credentials" in error.message
    assert "add --insecure on a trusted network" in error.hint


def test_certificates_are_looked_at_first(tmp_path: Path):
    error = failure("--from-index", "https://search-1:9200", "t", "--ca", str(tmp_path / "ca.pem"))
    assert error.message.startswith("--ca: cannot read")

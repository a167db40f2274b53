"""`benchctl runs export` to a store; Parquet is among the stored."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import BenchctlError, UsageError
from fake_store import fake_store
from stored import stored

RUN, LATER = "20260101-000000-c-0000", "20260102-000000-c-0000"
FORKS = 4


@pytest.fixture(autouse=True)
def stored_runs(home: Path) -> None:
    for run in (RUN, LATER):
        stored(home / "runs", run)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, ["runs", "export", *map(str, arguments)])


def waiting(home: Path) -> list[str]:
    return sorted(path.parent.name for path in (home / "runs").glob("*/export-waiting.json"))


def test_what_a_store_missed_is_sent_with_the_next_export_to_it(home: Path):
    with fake_store() as store:
        port = urlsplit(store.url).port or 0
    to = ("--to", f"http://127.0.0.1:{port}")
    down = call(RUN, *to)
    assert isinstance(down.exception, BenchctlError)
    assert waiting(home) == [RUN]
    with fake_store(port) as store:
        other = call(LATER, *to, "--streams")  # what waits has another layout
        assert other.exit_code == 0, other.output
        assert waiting(home) == [RUN]
        done = call(LATER, *to)
        assert done.exit_code == 0, done.output
        assert done.stdout == (
            f"{RUN}: {FORKS} races sent (24 records), 0 there already\n"
            f"{LATER}: {FORKS} races sent (24 records), 0 there already\n"
        )
        assert len(store.documents["rally-races-2026-01"]) == 2 * FORKS
    assert waiting(home) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((RUN,), "--to or --parquet"),
        (("--to", "http://127.0.0.1:1"), "requires a RUN"),
        ((RUN, "--to", "http://me:secret@host"), "an address holds credentials"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    home: Path, arguments: tuple[str, ...], message: str
):
    refused = call(*arguments)
    assert isinstance(refused.exception, UsageError)
    assert message in refused.exception.message
    assert waiting(home) == []


def test_credentials_do_not_travel_in_the_open(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHCTL_STORE_API_KEY", "aaaa:bbbb")
    refused = call(RUN, "--to", "http://metrics.example.org:9200")
    assert isinstance(refused.exception, UsageError)
    assert "refusing to send credentials" in refused.exception.message
    assert refused.exception.hint.endswith("add --insecure on a trusted network")

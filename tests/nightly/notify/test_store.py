"""A store as a notifier: it gets the runs of nights, those included that it missed."""

from datetime import datetime
from pathlib import Path

import pytest

from benchctl.nightly.notify import CommandSpec, NotifierSpec, StoreSpec, destination
from benchctl.nightly.outbox import Undelivered, deliver
from fake_store import FakeStore, fake_store
from nightly.notify.letters import message
from stored import stored

NOW = datetime.fromisoformat("2026-11-21T03:40:00+01:00")
FORKS = 4


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for run in ("night-1", "night-2"):
        stored(tmp_path / "runs", run)
    return tmp_path


def tell(
    suite: Path, spec: NotifierSpec, number: int, run: str, environ: dict[str, str] | None = None
) -> list[Undelivered]:
    return deliver(
        suite / "outbox",
        message(number, run=run),
        [spec],
        environ=environ or {},
        folder=suite,
        runs=suite / "runs",
        now=NOW,
    )


def races(store: FakeStore) -> set[str]:
    return {str(one["meta"]["run"]) for one in store.documents.get("rally-races-2026-01", {}).values()}


def test_nights_that_a_store_missed_are_sent_with_the_next(suite: Path):
    with fake_store() as gone:
        spec = StoreSpec(gone.url)
    (failed,) = tell(suite, spec, 1, "night-1")
    assert failed.text.startswith(f"store {spec.to} was not told about night ")
    assert "refuses the connection" in failed.reason
    assert not failed.given_up
    with fake_store(int(spec.to.rpartition(":")[2])) as store:
        assert tell(suite, spec, 2, "night-2") == []
        assert races(store) == {"night-1", "night-2"}
        assert len(store.documents["rally-races-2026-01"]) == 2 * FORKS
    assert list((suite / "outbox").iterdir()) == []


def test_a_night_without_a_run_and_one_whose_run_is_gone(suite: Path):
    with fake_store() as store:
        assert tell(suite, StoreSpec(store.url), 1, "") == []
        (failed,) = tell(suite, StoreSpec(store.url), 2, "night-9")
        assert (failed.given_up, failed.reason) == (True, "its run night-9 is gone")
        assert store.documents == {}


@pytest.mark.parametrize(
    ("names", "header"),
    [
        ({"user_env": "U", "password_env": "P"}, "Basic bWU6aHVudGVyMjI="),
        ({"api_key_env": "K"}, "ApiKey Zmlyc3Q6c2Vjb25k"),
    ],
)
def test_secrets_come_from_the_environment(suite: Path, names: dict[str, str], header: str):
    environ = {"U": "me", "P": "hunter22", "K": "first:second"}
    with fake_store() as store:
        spec = StoreSpec(store.url, **names)
        assert tell(suite, spec, 1, "night-1", environ) == []
        assert store.authorization == header
        (failed,) = tell(suite, spec, 2, "night-2")
    assert failed.reason.startswith("the environment variable ")


def test_a_refusal_is_told_without_secrets(suite: Path):
    with fake_store() as store:
        store.refuses = "who is hunter22?"
        spec = StoreSpec(store.url, samples=True, user_env="U", password_env="P")  # noqa: S106 - a variable
        (failed,) = tell(suite, spec, 1, "night-1", {"U": "someone", "P": "hunter22"})
    assert "refuses a record: mapping: who is [secret]?" in failed.reason


def test_a_store_is_the_same_however_it_is_filled():
    """Or what waits for it would be given up when the suite's file is changed."""
    one = StoreSpec("https://metrics:9200")
    assert destination(one) == destination(StoreSpec("https://metrics:9200", samples=True, api_key_env="K"))
    # As they were before there were stores: letters wait under these.
    assert destination(CommandSpec(("./tell",))) == "6a05111b35bc"

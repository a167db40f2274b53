"""Exports: every record once, on with what is missing, and a store that is busy, refuses, or is not there."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchctl.endpoint import Auth, Endpoint
from benchctl.errors import BenchctlError
from benchctl.results.races import Layout
from benchctl.results.sql import StoredRun
from benchctl.run.export import Exported, StoreDownError, export
from fake_store import FakeStore, fake_store
from stored import ROWS, stored

FORKS = 4
RESULTS_OF_A_TASK = 4
RECORDS = FORKS * (RESULTS_OF_A_TASK + 2)  # a throughput among the metrics, and the race


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with fake_store() as made:
        yield made


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    return stored(tmp_path, "r1")


class Sent:
    """Exports a run, and notes the pauses instead of making them."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def __call__(
        self, run: StoredRun, url: str, layout: Layout | None = None, *, samples: bool = False
    ) -> Exported:
        endpoint = Endpoint.of(url)
        (done,) = export([run], endpoint, layout or Layout(), samples=samples, pause=self.pauses.append)
        return done


@pytest.fixture
def send() -> Sent:
    return Sent()


def kept(store: FakeStore) -> dict[str, int]:
    return {index: len(held) for index, held in store.documents.items()}


@pytest.mark.parametrize("streams", [False, True])
def test_twice_is_once(run: StoredRun, store: FakeStore, send: Sent, *, streams: bool):
    layout = Layout(streams=streams)
    first = send(run, store.url, layout, samples=True)
    assert (first.sent, first.there, first.notes) == (FORKS, 0, [])
    assert first.records == RECORDS + FORKS * (3 * ROWS + 1) == sum(kept(store).values())
    before, bulks = kept(store), store.bulks
    again = send(run, store.url, layout, samples=True)
    assert (again.sent, again.there, again.records) == (0, FORKS, 0)
    assert (kept(store), store.bulks) == (before, bulks)


def test_an_export_that_was_cut_off_goes_on(run: StoredRun, store: FakeStore, send: Sent):
    store.statuses = {3 * 2 + 2: 403}  # within the third race: results, metrics, race
    with pytest.raises(BenchctlError):
        send(run, store.url)
    assert kept(store)["rally-races-2026-01"] == 2
    store.statuses.clear()
    done = send(run, store.url)
    assert (done.sent, done.there, done.records) == (2, 2, RECORDS // 2)
    assert sum(kept(store).values()) == RECORDS


def test_samples_follow_later_without_the_rest(run: StoredRun, store: FakeStore, send: Sent):
    send(run, store.url)
    done = send(run, store.url, samples=True)
    assert (done.sent, done.records) == (FORKS, FORKS * (3 * ROWS + 1))
    metrics = store.documents["rally-metrics-2026-01"].values()
    assert [one["value"] for one in metrics if one["name"] == "samples"] == [float(ROWS)] * FORKS


def test_a_busy_store_is_asked_again_after_longer_and_longer_pauses(
    run: StoredRun, store: FakeStore, send: Sent
):
    store.statuses = {1: 429, 2: 503}
    assert send(run, store.url).sent == FORKS
    assert send.pauses == [2.0, 4.0]
    assert sum(kept(store).values()) == RECORDS


def test_a_store_that_stays_busy_is_left(run: StoredRun, store: FakeStore, send: Sent):
    store.statuses = dict.fromkeys(range(1, 100), 429)
    with pytest.raises(StoreDownError) as caught:
        send(run, store.url)
    assert "status 429" in caught.value.message
    assert "sent with the next export" in caught.value.hint


def test_a_store_that_is_down_is_told_at_once(run: StoredRun, send: Sent):
    with fake_store() as gone:
        url = gone.url
    with pytest.raises(StoreDownError, match=r"store at .* refuses the connection"):
        send(run, url)
    assert send.pauses == []


def test_a_record_that_is_refused_is_told_in_the_stores_words(run: StoredRun, store: FakeStore, send: Sent):
    store.refuses = "value must be a number"
    with pytest.raises(BenchctlError, match="refuses a record: mapping: value must be a number") as caught:
        send(run, store.url)
    assert not isinstance(caught.value, StoreDownError)


def test_who_may_not_write_learns_what_it_takes(run: StoredRun, store: FakeStore, send: Sent):
    store.statuses = {1: 403}
    with pytest.raises(BenchctlError, match="does not allow this user to export") as caught:
        send(run, store.url)
    assert "'write'" in caught.value.hint


def test_templates_are_made_once_and_those_of_others_stay(run: StoredRun, store: FakeStore, send: Sent):
    theirs = {"index_patterns": ["rally-metrics-*"]}
    store.templates["/_index_template/rally-metrics"] = theirs
    send(run, store.url)
    assert store.templates.keys() == {
        f"/_index_template/rally-{kind}" for kind in ("metrics", "races", "results")
    }
    assert store.templates["/_index_template/rally-metrics"] == theirs


def test_credentials_go_with_every_request(run: StoredRun, store: FakeStore):
    auth = Auth.api_key("a:b")
    list(export([run], Endpoint((store.url,), auth), Layout()))
    assert f"Authorization: {store.authorization}" == auth.header


def test_samples_that_are_gone_are_told_and_their_figures_sent(run: StoredRun, store: FakeStore, send: Sent):
    (run.folder.path / "forks" / "000-es.parquet").unlink()
    done = send(run, store.url, samples=True)
    assert done.notes == ["r1: forks/000-es.parquet is gone"]
    assert (done.sent, done.records) == (FORKS, RECORDS + (FORKS - 1) * (3 * ROWS + 1))


def test_forks_that_are_not_compared_stay_here(run: StoredRun, store: FakeStore, send: Sent):
    first, *others = run.record.forks
    failed = msgspec.structs.replace(first, status="failed", reason="x")
    record = msgspec.structs.replace(run.record, forks=(failed, *others))
    assert send(StoredRun(run.folder, record), store.url).sent == FORKS - 1


def test_what_is_kept_is_json_that_says_where_it_comes_from(run: StoredRun, store: FakeStore, send: Sent):
    send(run, store.url, samples=True)
    for held in store.documents.values():
        for record in held.values():
            assert record["race-id"].startswith("r1.")
            assert json.dumps(record)

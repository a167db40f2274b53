"""Exports of runs to a store of Rally's records: every race once, even after an interruption."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient, node_reason
from benchctl.engine.target import explained
from benchctl.errors import BenchctlError
from benchctl.network import Trouble
from benchctl.report.numbers import counted
from benchctl.results.races import (
    RECORDS_A_SAMPLE,
    Body,
    Kind,
    Layout,
    Race,
    bulk_of,
    races_of,
    sample_bodies,
)
from benchctl.results.sql import StoredRun

STORE_NAME = "store"
"""Name in messages: its credentials are in BENCHCTL_STORE_USER and so on."""

_SENDERS = 2  # one body is indexed while the next one is made
_ATTEMPTS = 4
_TIMEOUT_S = 120.0
_MOST_IDS = 1_000
_BUSY = frozenset({429, 502, 503, 504})
_PASSING = (Trouble.BROKEN, Trouble.TIMEOUT)
_ANSWERED = {"filter_path": "errors,items.*.status,items.*.error"}
_NEEDED = (
    "it takes the cluster privilege 'manage_index_templates', and 'auto_configure', 'write', 'read' and "
    "'maintenance' on the indices"
)


class StoreDownError(BenchctlError):
    """A store does not answer, or has no time: what it lacks can be sent later."""


@dataclass
class Exported:
    """Outcome of the export of one run."""

    sent: int = 0  # races that were not complete in the store
    there: int = 0  # races that were
    records: int = 0
    notes: list[str] = field(default_factory=list)  # what was left out, and why


def export(
    runs: Iterable[StoredRun],
    endpoint: Endpoint,
    layout: Layout,
    *,
    samples: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Exported]:
    """Send runs to a store, and yield what became of each.

    The store itself says what it has: a race is written when all of its summaries are, and a record of their
    number when all of its samples are. So an export that was cut off goes on where it ended.

    Args:
        runs: what is sent.
        endpoint: of the store.
        layout: of the records.
        samples: whether all requests are sent beside the summaries.
        pause: waits for so many seconds, for a store that is busy.

    Raises:
        StoreDownError: If the store does not answer, or is busy for too long.
        BenchctlError: If the store refuses, or samples cannot be read.
    """
    # Both engines understand either's client, as far as it is used here.
    with SearchClient("elasticsearch", endpoint) as client:
        store = _Store(client, endpoint, pause)
        for number, run in enumerate(runs):
            if number == 0:
                store.prepare(layout)
            yield _export_run(store, run, layout, samples=samples)


def _export_run(store: "_Store", run: StoredRun, layout: Layout, *, samples: bool) -> Exported:
    record, done = run.record, Exported()
    forks = [fork for spec in record.plan.variants for fork in record.compared(spec.name)]
    if left := sum(len(record.done(spec.name)) for spec in record.plan.variants) - len(forks):
        done.notes.append(f"{record.id}: {counted(left, 'fork')} for evidence left out")
    every = [race for fork in forks for race in races_of(record, fork, layout)]
    stored = store.has("races", {race.id: race for race in every})
    sampled = store.has("metrics", {race.sampled: race for race in every}) if samples else set()
    for race in every:
        count = done.records
        if race.id not in stored:
            done.records += store.send((bulk_of(race, "results", race.results()),))
            done.records += store.send((bulk_of(race, "metrics", race.metrics()),))
        if samples and race.sampled not in sampled and not _unsampled(run, race, done):
            requests = store.send(sample_bodies(run.folder, race)) // RECORDS_A_SAMPLE
            metrics = (race.sampled, race.metric("samples", float(requests), "requests"))
            done.records += RECORDS_A_SAMPLE * requests + store.send((bulk_of(race, "metrics", [metrics]),))
        if race.id not in stored:
            done.records += store.send((bulk_of(race, "races", [(race.id, race.document())]),))
        done.sent += done.records > count
    done.there = len(every) - done.sent
    return done


def _unsampled(run: StoredRun, race: Race, done: Exported) -> bool:
    """Return whether there are no samples to be sent of it, which is noted once."""
    fork = race.fork
    if run.record.plan.redline is not None:
        text = f"{run.record.id}: the samples of a red-line search are left out"
    elif fork.samples is None:
        text = f"{run.record.id}: no samples of {fork.variant} were kept"
    elif damage := run.folder.damage(fork, fork.samples, content=False):
        text = f"{run.record.id}: {damage}"
    else:
        return False
    if text not in done.notes:
        done.notes.append(text)
    return True


@dataclass(frozen=True)
class _Store:
    """A store of records."""

    _client: SearchClient
    _endpoint: Endpoint
    _pause: Callable[[float], None]

    def prepare(self, layout: Layout) -> None:
        """Make the templates that are not there; those of the tools themselves stay as they are."""
        for path, name, body in layout.templates():
            if not self._exists(path) and not (layout.streams and self._exists(f"/{name}")):
                self._ask("PUT", path, body)

    def has(self, kind: Kind, wanted: dict[str, Race]) -> set[str]:
        """Return the ids that exist in the store."""
        existing: set[str] = set()
        names = list(wanted)
        for ids in (names[start : start + _MOST_IDS] for start in range(0, len(names), _MOST_IDS)):
            indices = ",".join(dict.fromkeys(wanted[name].index(kind) for name in ids))
            lenient = {"ignore_unavailable": "true", "allow_no_indices": "true"}
            self._ask("POST", f"/{indices}/_refresh", None, params=lenient)
            body = {"query": {"ids": {"values": ids}}, "size": len(ids), "_source": False}
            answer = self._ask("POST", f"/{indices}/_search", body, params=lenient)
            existing |= {hit["_id"] for hit in answer["hits"]["hits"]}
        return existing

    def send(self, bodies: Iterable[Body]) -> int:
        """Send bodies, some at a time, and return how many records that were."""
        records = 0
        with ThreadPoolExecutor(_SENDERS, thread_name_prefix="export") as pool:
            sending: deque[Future[int]] = deque()
            for body in bodies:
                if not body.records:
                    continue
                if len(sending) == _SENDERS:
                    records += sending.popleft().result()
                sending.append(pool.submit(self._send, body))
            return records + sum(future.result() for future in sending)

    def _send(self, body: Body) -> int:
        answer = self._ask("POST", "/_bulk", body.content, params=_ANSWERED, busy=_is_busy)
        for item in answer.get("items", []) if answer.get("errors") else []:
            for verb, told in item.items():
                # In a stream it is there already.
                if "error" in told and (verb, told["status"]) != ("create", HTTPStatus.CONFLICT):
                    raise BenchctlError(
                        f"{STORE_NAME} at {self._endpoint.title} refuses a record: {node_reason(told)}",
                        hint="see the template of its index: benchctl leaves those of others as they are",
                    )
        return body.records

    def _exists(self, path: str) -> bool:
        return self._ask("GET", path, None, absent_ok=True) is not None

    def _ask(
        self,
        method: str,
        path: str,
        body: object,
        *,
        params: dict[str, str] | None = None,
        busy: Callable[[Any], bool] = lambda _: False,
        absent_ok: bool = False,
    ) -> Any:
        """Ask, and again while the store is busy; None for what does not exist, with `absent_ok`."""
        last = BenchctlError("")
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._pause(2.0**attempt)
            try:
                answer = self._client.request(method, path, params=params, body=body, timeout_s=_TIMEOUT_S)
            except NodeRequestError as err:
                if absent_ok and err.status == HTTPStatus.NOT_FOUND:
                    return None
                last = self._trouble(err)
                if err.status not in _BUSY and err.trouble not in _PASSING:
                    raise (last if err.status else _down(last)) from err
                continue
            if not busy(answer):
                return answer
            last = BenchctlError(f"{STORE_NAME} at {self._endpoint.title} rejects records: it is busy")
        raise _down(last)

    def _trouble(self, err: NodeRequestError) -> BenchctlError:
        if err.status == HTTPStatus.FORBIDDEN:
            return BenchctlError(
                f"{STORE_NAME} at {self._endpoint.title} does not allow this user to export: {err.reason}",
                hint=_NEEDED,
            )
        try:
            with explained(STORE_NAME, self._endpoint):
                raise err
        except BenchctlError as error:
            return error


def _down(err: BenchctlError) -> StoreDownError:
    later = "what it lacks is sent with the next export to it"
    return StoreDownError(err.message, hint=f"{err.hint}; {later}" if err.hint else later)


def _is_busy(answer: dict[str, Any]) -> bool:
    """Return whether it rejected records for lack of time: ids make it harmless to send all of them again."""
    return bool(answer.get("errors")) and any(
        result.get("status") == HTTPStatus.TOO_MANY_REQUESTS
        for item in answer.get("items", [])
        for result in item.values()
    )

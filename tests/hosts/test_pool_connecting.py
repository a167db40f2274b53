"""What is said of hosts that are not fit."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchctl.errors import BenchctlError
from benchctl.hosts.file import Hosts

pytest.importorskip("distributed")

from benchctl.hosts.pool import HostSession
from benchctl.hosts.remote import versions


class FakeLink:
    """The way to a host whose worker is there, whatever becomes of it."""

    def __init__(self, name: str, _client: object, actor: Any) -> None:
        self.name, self.facts = name, SimpleNamespace(versions=versions() | actor)


class FakeClient:
    """Knows some Dask workers; what their actors are, or what they raise."""

    def __init__(self, **actors: object) -> None:
        self.actors = actors

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {name: {"name": name, "nanny": name == "watched"} for name in self.actors}}

    def submit(self, _kind: object, *, workers: list[str], **_: object) -> SimpleNamespace:
        def result(timeout: float) -> object:
            assert timeout
            actor = self.actors[workers[0]]
            if isinstance(actor, Exception):
                raise actor
            return actor

        return SimpleNamespace(result=result)


def test_only_where_no_worker_runs_is_one_to_be_started(monkeypatch: pytest.MonkeyPatch):
    client = FakeClient(
        well={}, watched={}, old={"numpy": "1.0"}, bare=ImportError("no benchctl"), held=BenchctlError("held")
    )
    monkeypatch.setattr("benchctl.hosts.pool._client", lambda _: nullcontext(client))
    names = ("well", "watched", "old", "bare", "held", "absent")
    hosts = Hosts(path=Path("hosts.yml"), load=names, scheduler="tls://10.0.0.1:8786")
    monkeypatch.setattr("benchctl.hosts.pool.Link", FakeLink)
    with HostSession(hosts) as session:
        assert list(session.links) == ["well"]
        hints = {name: error.hint for name, error in session.missing.items()}
        with pytest.raises(
            BenchctlError, match=r"host old cannot be used: it has numpy 1\.0, here"
        ) as caught:
            session.link("old")
    start = "start there: dask worker tls://10.0.0.1:8786 --name HOST"
    assert {name for name, hint in hints.items() if hint.startswith(start)} == {"watched", "absent"}
    assert {name for name, hint in hints.items() if hint.startswith("install ")} == {"old", "bare"}
    assert hints["held"] == ""
    assert caught.value.hint == hints["old"]

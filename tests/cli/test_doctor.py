"""`benchctl doctor` on hosts made by hand; hosts of a file are in tests/hosts."""

import json
from typing import Self

import pytest
from click.testing import CliRunner

from benchctl.cli import doctor, root
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.network import Trouble, Unanswered
from benchctl.results.figures import Calibration
from benchctl.results.model import OtherLoad
from benchctl.run.fitness import Snapshot
from builders import make_record

COST = Calibration(41_000, 95_000, 28_400, 14_800.5, 8, 30_120.0, (), 2.9)


class Unreachable:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, *_: object, **__: object) -> None:
        raise Unanswered(Trouble.REFUSED, "no route")


@pytest.fixture(autouse=True)
def host(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setattr(doctor, "describe_host", lambda: make_record().environment)
    monkeypatch.setattr(doctor, "calibrate", lambda *_: COST)
    monkeypatch.setattr(doctor, "outside", Unreachable)
    monkeypatch.setattr(doctor, "measuring_pid", lambda _: None)


def seen(
    monkeypatch: pytest.MonkeyPatch,
    *,
    busy: float = 0.0,
    memory: float = 1e11,
    others: float | None = None,
) -> None:
    used = None if others is None else OtherLoad(2, 2 * others, {"rsync": 2 * others})
    found = Snapshot(busy, used, None, 10**12, round(memory))
    monkeypatch.setattr(doctor, "snapshot", lambda _: found)


def states(*, unfit: bool = False) -> dict[str, str]:
    done = CliRunner().invoke(root, ["doctor", "--format", "json"])
    assert isinstance(done.exception, BenchctlError) == unfit, done.output
    if isinstance(done.exception, BenchctlError):
        assert done.exception.exit_code == ExitCode.FAILED
    return {row["check"]: row["state"] for row in json.loads(done.stdout)}


def test_a_quiet_host_is_fit_even_without_a_network(monkeypatch: pytest.MonkeyPatch):
    seen(monkeypatch)
    found = states()
    assert (found["busy"], found["downloads"], found["load driver"]) == ("ok", "warning", "ok")


@pytest.mark.parametrize(("wrong", "check"), [({"busy": 0.9}, "busy"), ({"memory": 1e6}, "memory and disk")])
def test_a_busy_or_full_host_is_not_fit(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, float], check: str):
    seen(monkeypatch, **wrong)
    found = states(unfit=True)
    assert [name for name, state in found.items() if state == "not fit"] == [check]


@pytest.mark.parametrize(
    ("found", "unfit"),
    [({"others": 0.15}, True), ({"others": 0.05, "busy": 0.9}, False)],
)
def test_busy_is_what_a_run_warns_of(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, float], *, unfit: bool
):
    """Busy CPUs may be benchctl's own doing."""
    seen(monkeypatch, **found)
    assert (states(unfit=unfit)["busy"] == "not fit") == unfit

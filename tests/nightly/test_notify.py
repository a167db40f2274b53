"""Notifiers: what a suite may ask for, what they get, and how secrets stay out of messages."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from authority import certificate_file
from benchctl.nightly.model import Alarm, Message, Raised, SeriesKey
from benchctl.nightly.notify import NIGHTS_TO_RETRY, Notifier, Notifying, undelivered
from golden import Cases
from night_records import night
from receivers import Web, web_server
from waiting import eventually


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def message(number: int = 42, **changes: Any) -> Message:
    content: dict[str, Any] = {
        "id": f"big5/{night(number).id}",
        "suite": "big5",
        "night": night(number).id,
        "number": number,
        "started": "2026-11-21T03:00:00+01:00",
        "status": "alarm",
        "subject": f"big5 night {number}: 1 alarm → range is 12% slower",
        "text": "range is 12% slower\n  since night 41\n",
    }
    return Message(**(content | changes))


def send(*notifiers: Notifier, folder: Path = Path(), **environ: str) -> list[str]:
    """Send tonight's message and return why it was not delivered."""
    notifying = Notifying(notifiers, {"PATH": os.defpath, **environ}, folder)
    missing = notifying.send(message())
    assert len(missing) == len(notifying.failures)
    return notifying.failures


def refusal(notifier: Notifier, folder: Path = Path(), **environ: str) -> str:
    """Why a notifier did not get the message, without its title and what comes next."""
    (failure,) = send(notifier, folder=folder, **environ)
    head, tail = (
        f"{notifier.title} did not get the message of night {night(42).id}: ",
        "; tried again with the next night",
    )
    assert failure.startswith(head)
    assert failure.endswith(tail)
    return failure.removeprefix(head).removesuffix(tail)


def read(**content: object) -> Notifier:
    return msgspec.convert({key.replace("_", "-"): value for key, value in content.items()}, Notifier)


# What a suite may ask for.


def test_what_cannot_work_is_refused(cases: Cases):
    cases("notify", lambda content: read(**json.loads(content)))


@pytest.mark.parametrize(
    "content",
    [
        {"webhook": "https://me:hunter2@example.org/"},
        {"webhook": "https://hunter2@example.org/"},
        {"webhook": "https://example.org/?token=hunter2"},
        {"webhook": "https://example.org/#hunter2"},
        {"webhook": "https://example.org/ hunter2"},
        {"webhook": "https://example.org/hunter2", "template": "slack"},
        {"webhook_env": "https://example.org/hunter2"},
        {"webhook": "https://example.org/", "headers_env": {"Authorization": "Bearer hunter2"}},
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(content: dict[str, object]):
    with pytest.raises(msgspec.ValidationError) as refused:
        read(**content)
    assert "hunter2" not in str(refused.value)


def test_an_id_is_that_of_the_target_whatever_the_occasion():
    first = Notifier(command=("a",))
    assert Notifier(command=("a",), when=("always",), timeout_s=1).id == first.id
    others = [
        Notifier(command=("a", "b")),
        Notifier(webhook="https://a/"),
        Notifier(webhook_env="A"),
        Notifier(webhook_env="A", headers_env={"X-Key": "K"}),
    ]
    assert len({first.id, *(one.id for one in others)}) == 5


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        (("alarm",), {"alarm"}),
        (("recovered",), {"recovered"}),
        (("broken",), {"broken"}),
        (("alarm", "recovered", "broken"), {"alarm", "recovered", "broken"}),
        (("always",), {"alarm", "recovered", "broken", "quiet"}),
    ],
)
def test_a_notifier_gets_the_messages_of_its_occasions(when: Any, wanted: set[str]):
    raised = Raised(1, "", night(41).id, "figure", "", SeriesKey("", "", "", ""))
    nights = {
        "alarm": message(1),
        "recovered": message(2, status="quiet", recovered=(Alarm(raised, "recovered"),)),
        "broken": message(3, status="broken"),
        "quiet": message(4, status="quiet"),
    }
    notifier = Notifier(webhook="https://a/", when=when)
    assert {name for name, found in nights.items() if notifier.wants(found)} == wanted


# Commands.


def command(code: str, *arguments: str, timeout_s: int = 20) -> Notifier:
    return Notifier(command=(sys.executable, "-c", code, *arguments), timeout_s=timeout_s)


def test_a_command_gets_the_message_as_json_on_its_standard_input(tmp_path: Path):
    script = tmp_path / "notify.sh"
    script.write_text('#!/bin/sh\ncat > got\nprintf "%s" "$1" > argument\n')
    script.chmod(0o755)
    assert send(Notifier(command=("./notify.sh", "$(date) *; true")), folder=tmp_path) == []
    got = msgspec.json.decode((tmp_path / "got").read_bytes(), type=Message)
    assert got == message()
    assert (tmp_path / "argument").read_text() == "$(date) *; true"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(7)", "it exited with 7"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9 ended it"),
    ],
)
def test_a_command_that_fails_is_reported(code: str, reason: str):
    assert refusal(command(code)) == reason


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("benchctl.nightly.notify._GRACE_S", 0.1)
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "open(f'pid{os.getpid()}', 'w').close()\n"
        "time.sleep(600)\n"
    )
    assert refusal(command(code, timeout_s=1), tmp_path) == "it took longer than 1 s"
    pids = [int(path.name.removeprefix("pid")) for path in tmp_path.glob("pid*")]
    assert len(pids) == 2
    assert eventually(lambda: not any(map(_runs, pids)))


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_us_up(tmp_path: Path):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); open('pid', 'w').write(str(os.getpid())); time.sleep(600)\n"
    )
    assert send(command(code), folder=tmp_path) == []
    path = tmp_path / "pid"
    assert eventually(lambda: path.is_file() and path.read_text() != "")
    pid = int(path.read_text())
    assert _runs(pid)
    os.kill(pid, 9)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# Webhooks.


def test_the_message_is_posted_as_json_with_its_id(web: Web):
    assert send(Notifier(webhook=f"{web.url}/hook")) == []
    (posted,) = web.posted
    assert posted.path == "/hook"
    assert posted.headers["Idempotency-Key"] == message().id
    assert posted.headers["Content-Type"] == "application/json; charset=utf-8"
    assert msgspec.json.decode(posted.body, type=Message) == message()


def test_chats_get_a_text(web: Web):
    assert send(Notifier(webhook_env="HOOK", template="slack"), HOOK=f"{web.url}/hook\n") == []
    content = json.loads(web.posted[0].body)
    assert list(content) == ["text"]
    assert content["text"].startswith(message().subject)
    assert message().text in content["text"]


def test_headers_come_from_the_environment(web: Web):
    notifier = Notifier(webhook=web.url, headers_env={"Authorization": "KEY"})
    assert send(notifier, KEY="Bearer hunter2000") == []
    assert web.posted[0].headers["Authorization"] == "Bearer hunter2000"


@pytest.mark.parametrize("variable", ["HOOK", "KEY"])
def test_a_variable_that_is_not_set_is_named(web: Web, variable: str):
    environ = {"HOOK": web.url, "KEY": "hunter2000"}
    del environ[variable]
    notifier = Notifier(webhook_env="HOOK", headers_env={"Authorization": "KEY"})
    assert refusal(notifier, **environ) == f"the environment variable {variable} is not set"


@pytest.mark.parametrize("status", [400, 410, 429, 503])
def test_another_status_than_2xx_is_reported_without_the_response(web: Web, status: int):
    web.status, web.answer = status, b"no such room: hunter2000" * 100_000
    assert refusal(Notifier(webhook=web.url)) == f"it responded with HTTP {status}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirections_are_not_followed(web: Web, status: int):
    with web_server() as other:
        web.status, web.headers = status, {"Location": f"{other.url}/there"}
        notifier = Notifier(webhook=web.url, headers_env={"Authorization": "KEY"})
        assert f"HTTP {status}" in refusal(notifier, KEY="hunter2000")
        assert not other.posted
    assert len(web.posted) == 1


@pytest.mark.parametrize("how", ["stalls", "trickles"])
def test_a_response_that_never_ends_is_waited_for_so_long(web: Web, how: str):
    web.status = 200
    setattr(web, how, True)
    assert refusal(Notifier(webhook=web.url, timeout_s=1)) == "no response within 1 s"


def test_a_certificate_has_to_be_trusted(tmp_path: Path):
    trusted = str(certificate_file(tmp_path))
    with web_server(tls=True) as web:
        notifier = Notifier(webhook=web.url)
        assert refusal(notifier) == "its certificate is not trusted"
        assert not web.posted
        assert send(notifier, REQUESTS_CA_BUNDLE=trusted) == []
        assert len(web.posted) == 1
    with web_server("elsewhere.example", tls=True) as web:
        notifier = Notifier(webhook=web.url, headers_env={"Authorization": "KEY"})
        reason = refusal(notifier, REQUESTS_CA_BUNDLE=trusted, KEY="hunter2000")
        assert reason == "its certificate is for another host"
        assert not web.posted


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("http://hooks.example.invalid/", {"Authorization": "KEY"}),
        ("http://me:hunter2000@hooks.example.invalid/", {}),
    ],
)
def test_secrets_are_not_sent_in_clear_to_other_hosts(address: str, headers: dict[str, str]):
    notifier = Notifier(webhook_env="HOOK", headers_env=headers)
    assert refusal(notifier, HOOK=address, KEY="hunter2000") == (
        "the address in HOOK is http, and secrets require https"
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    secret=st.text("abcdefghXYZ0123456789-_~", min_size=8, max_size=30),
    failure=st.sampled_from(["gone", "status", "redirect", "unresolved", "scheme", "port", "space"]),
)
def test_no_reason_holds_the_address(web: Web, secret: str, failure: str):
    secret = f"q{secret}Z"
    web.answer = f"https://x/{secret} is gone, {secret}".encode()
    web.status = {"status": 404, "redirect": 302}.get(failure, 204)
    web.headers = {"Location": f"/{secret}"}
    url = {
        "gone": f"http://127.0.0.1:1/{secret}",
        # Too long for a name: nobody is asked about it.
        "unresolved": f"https://{secret.replace('_', '').replace('~', '')}{'x' * 64}.invalid/",
        "scheme": f"gopher://{secret}/",
        "port": f"http://127.0.0.1:{secret}/",
        "space": f"http://127.0.0.1/ {secret}",
    }.get(failure, f"{web.url}/{secret}")
    reason = refusal(Notifier(webhook_env="HOOK", timeout_s=5), HOOK=url)
    assert secret.lower() not in reason.lower()


# Messages that wait for the next night.


def test_a_notifier_that_fails_does_not_keep_others_from_their_message(web: Web):
    down, up = Notifier(command=("/no/such/program",)), Notifier(webhook=web.url)
    notifying = Notifying([down, up, up], {}, Path())
    assert notifying.send(message()) == [down.id]
    assert len(web.posted) == 1


def test_a_notifier_that_failed_is_not_tried_again_in_this_night(web: Web):
    web.status = 503
    notifier = Notifier(webhook=web.url)
    notifying = Notifying([notifier], {}, Path())
    assert notifying.send(message(42)) == [notifier.id]
    assert notifying.send(message(41), only=[notifier.id]) == [notifier.id]
    assert (len(web.posted), len(notifying.failures)) == (1, 1)
    # But what is given up is reported, tried or not.
    assert notifying.send(message(28), only=[notifier.id], final=True) == [notifier.id]
    assert [one.endswith("given up") for one in notifying.failures] == [False, True]


def test_only_notifiers_that_lack_an_earlier_message_get_it(web: Web):
    lacking, other = Notifier(webhook=f"{web.url}/lacking"), Notifier(webhook=f"{web.url}/other")
    gone = Notifier(webhook=f"{web.url}/gone")
    notifying = Notifying([lacking, other], {}, Path())
    # Also a quiet one: when it was sent, somebody wanted it.
    assert notifying.send(message(41, status="quiet"), only=[lacking.id, gone.id]) == []
    assert [posted.path for posted in web.posted] == ["/lacking"]


def test_nights_that_somebody_lacks_or_that_were_never_sent_are_undelivered_for_a_while():
    nights = [
        night(20, unnotified=()),
        night(19, unnotified=("a",)),
        night(18),
        night(21),
        night(21 - NIGHTS_TO_RETRY - 1, unnotified=("a",)),
        night(21 - NIGHTS_TO_RETRY, unnotified=("a",)),
    ]
    assert [one.number for one in undelivered(nights, 21)] == [19, 18, 21 - NIGHTS_TO_RETRY]

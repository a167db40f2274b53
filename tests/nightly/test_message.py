"""A night and a suite in words; what gets the message, and how secrets stay out of it."""

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

import golden
from authority import certificate_file
from benchctl.nightly.message import Message, Notifier, message_of, status_text
from benchctl.nightly.records import Alarm
from golden import Cases
from nightly.made import HOST, alarm, finding, night, night_id, recovered
from receivers import Web, web_server
from waiting import eventually

COMMAND = "benchctl run --variant last-good=es@8.12.0 --variant tonight=es@8.13.0 --challenge short"
RAISED = alarm(
    1,
    40,
    42,
    finding=finding(40, run="confirming", command=COMMAND, reason="last-good against tonight: slower"),
    changes=("es: version 8.12.0 → 8.13.0", "kernel 6.1.0 → 6.1.7"),
)
ALARMS = (
    RAISED,
    msgspec.structs.replace(recovered(2, 30, 42), title="sort is slower"),
    alarm(3, 30, title="terms is slower"),
    alarm(4, 20, title="term is slower", acknowledged="bea: the new default"),
)


def text(alarms: tuple[Alarm, ...] = (), number: int = 42, **fields: Any) -> str:
    return message_of(night(number, **fields), alarms).text


SCENES: dict[str, str] = {
    "a quiet night": text(),
    "an alarm": text(ALARMS, caveats=("ended after 3 of at most 5 forks",)),
    "the status, with somebody at work": status_text("big5", night(41), ALARMS, "ann, pid 12, since 03:00"),
    "a suite that never ran": status_text("big5", None, ()),
    "a night that failed": text(status="failed", reason="no space left"),
    "the host moved": text(findings=(finding(42, "host", key=HOST), finding(42, "held"))),
    "a noisy host, and what could not be confirmed": text(
        noise=("load",), findings=(finding(42, "unconfirmed"),)
    ),
    "a change without an alarm": text(changes=("kernel 6.1 → 6.2",)),
    "a command too long for a screen": text(
        (
            msgspec.structs.replace(
                RAISED, finding=finding(40, command=f"benchctl run {'--variant es ' * 60}")
            ),
        )
    ),
    "more alarms than a screen holds": text(
        tuple(alarm(number, 42, title=f"alarm {number}") for number in range(1, 31))
    ),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = [f"# {name}\n{scene}" for name, scene in SCENES.items()]
    golden.agree(request.config, Path(__file__).parent / "golden" / "text.txt", "\n".join(texts))


@given(st.text(max_size=300), st.integers(0, 40))
def test_any_night_is_about_a_screen_without_control_characters(words: str, count: int):
    alarms = tuple(alarm(number, 42, title=words, end=words) for number in range(1, count + 1))
    lines = text(alarms, reason=words, noise=(words,) * count).split("\n")
    assert len(lines) <= 100
    assert all(char.isprintable() or ord(char) > 0x9F for line in lines for char in line)


@pytest.mark.parametrize(
    ("number", "fields", "status"),
    [
        (1, {}, "quiet"),
        (1, {"status": "failed"}, "broken"),
        (1, {"status": "interrupted"}, "broken"),
        (1, {"reason": "no fork of es was measured"}, "broken"),
        (42, {}, "alarm"),
        (42, {"status": "interrupted"}, "alarm"),
    ],
)
def test_the_status_is_that_of_the_night(number: int, fields: dict[str, Any], status: str):
    assert message_of(night(number, **fields), ALARMS).status == status


def test_a_message_has_what_scripts_rely_on():
    message = message_of(night(42), ALARMS)
    found = msgspec.json.decode(msgspec.json.encode(message))
    assert msgspec.convert(found, Message) == message
    assert list(found) == [
        "schema-version", "id", "suite", "night", "status", "subject", "text", "raised", "recovered", "open",
        "run", "warnings", "has-new-warnings",
    ]  # fmt: skip
    assert (found["id"], found["subject"]) == (
        f"big5/{night_id(42)}",
        "Suite big5, night 42: 1 new alarm, 1 recovered",
    )
    numbers = {key: [one["number"] for one in found[key]] for key in ("raised", "recovered", "open")}
    assert numbers == {"raised": [1], "recovered": [2], "open": [1, 3]}
    assert found["raised"][0]["finding"]["effect-percent"] == -20.0


def test_a_subject_is_one_line_and_nights_that_could_not_begin_are_news_each():
    record = night(3, id="", status="failed", reason="first\nBcc: x@example.org\r\x1b[2J")
    message = message_of(record, [])
    assert message.subject.isprintable()
    assert message.id == "big5/2026-11-01T030000+0000"


# The notifier.


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


MESSAGE = message_of(night(42), ALARMS)
HOOK = Notifier(webhook_env="HOOK")


def refusal(notifier: Notifier, folder: Path = Path(), **environ: str) -> str:
    """Why a notifier did not get tonight's message, without its title; empty if it did."""
    failure = notifier.send(MESSAGE, {"PATH": os.defpath, **environ}, folder)
    head = f"{notifier.title} did not get the message of night {night_id(42)}: "
    assert not failure or failure.startswith(head)
    return failure.removeprefix(head)


def test_what_cannot_work_is_refused_and_not_repeated(cases: Cases):
    def read(content: str) -> Notifier:
        return msgspec.convert(json.loads(content), Notifier)

    cases("notify", read)
    with pytest.raises(msgspec.ValidationError) as refused:
        read('{"webhook-env": "https://example.org/hunter2"}')
    assert "hunter2" not in str(refused.value)


def test_quiet_nights_are_told_where_that_is_asked_for():
    quiet = message_of(night(1), [])
    back = message_of(night(42), ALARMS[1:])
    assert (HOOK.wants(quiet), HOOK.wants(back), HOOK.wants(MESSAGE)) == (False, True, True)
    assert HOOK.wants(message_of(night(1, status="failed"), []))
    assert Notifier(webhook_env="HOOK", quiet_nights=True).wants(quiet)


def command(code: str, timeout_s: int = 20) -> Notifier:
    return Notifier(command=(sys.executable, "-c", code), timeout_s=timeout_s)


def test_a_command_gets_the_message_as_json_on_its_standard_input(tmp_path: Path):
    script = tmp_path / "notify.sh"
    script.write_text('#!/bin/sh\ncat > got\nprintf "%s" "$1" > argument\n')
    script.chmod(0o755)
    assert refusal(Notifier(command=("./notify.sh", "$(date) *; true")), tmp_path) == ""
    assert msgspec.json.decode((tmp_path / "got").read_bytes(), type=Message) == MESSAGE
    assert (tmp_path / "argument").read_text() == "$(date) *; true"


def test_a_command_that_fails_is_reported():
    assert refusal(command("raise SystemExit(7)")) == "it ended with 7"
    assert refusal(command("import os; os.kill(os.getpid(), 9)")) == "it ended with -9"
    assert refusal(Notifier(command=("/no/such/program",))).startswith("it cannot be started")


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("benchctl.nightly.message._GRACE_S", 0.1)
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


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_message_is_posted_as_json_with_its_id(web: Web):
    assert refusal(HOOK, HOOK=f"{web.url}/hook\n") == ""
    (posted,) = web.posted
    assert (posted.path, posted.headers["Idempotency-Key"]) == ("/hook", MESSAGE.id)
    assert posted.headers["Content-Type"] == "application/json; charset=utf-8"
    assert msgspec.json.decode(posted.body, type=Message) == MESSAGE


def test_chats_get_a_text(web: Web):
    assert refusal(Notifier(webhook_env="HOOK", template="slack"), HOOK=web.url) == ""
    content = json.loads(web.posted[0].body)
    assert list(content) == ["text"]
    assert MESSAGE.subject in content["text"]
    assert MESSAGE.text in content["text"]


def test_a_variable_that_is_not_set_is_named():
    assert "HOOK" in refusal(HOOK)


@pytest.mark.parametrize("status", [302, 400, 503])
def test_another_status_than_2xx_is_reported_without_the_response(web: Web, status: int):
    web.status, web.answer = status, b"no such room: hunter2000" * 100_000
    web.headers = {"Location": f"{web.url}/there"}
    assert refusal(HOOK, HOOK=web.url) == f"it responded with HTTP {status}"
    assert len(web.posted) == 1


@pytest.mark.parametrize("how", ["stalls", "trickles"])
def test_a_response_that_never_ends_is_waited_for_so_long(web: Web, how: str):
    web.status = 200
    setattr(web, how, True)
    assert refusal(Notifier(webhook_env="HOOK", timeout_s=1), HOOK=web.url) == "no response (timeout)"


def test_a_certificate_has_to_be_trusted(tmp_path: Path):
    trusted = str(certificate_file(tmp_path))
    with web_server(tls=True) as web:
        assert refusal(HOOK, HOOK=web.url) == "no response (untrusted)"
        assert not web.posted
        assert refusal(HOOK, HOOK=web.url, REQUESTS_CA_BUNDLE=trusted) == ""
        assert len(web.posted) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    secret=st.text("abcdefghXYZ0123456789-_~", min_size=8, max_size=30),
    failure=st.sampled_from(["gone", "status", "redirect", "unresolved", "scheme", "port", "space", "clear"]),
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
        # It would be sent in clear to another host.
        "clear": f"http://hooks.example.invalid/{secret}",
    }.get(failure, f"{web.url}/{secret}")
    reason = refusal(Notifier(webhook_env="HOOK", timeout_s=5), HOOK=url)
    assert secret.lower() not in reason.lower()
    assert reason

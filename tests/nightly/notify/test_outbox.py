import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.nightly.model import Alarm, Message, Raised, SeriesKey
from benchctl.nightly.notify import CommandSpec, Letter, NotifierSpec, SendError, SmtpSpec, WebhookSpec
from benchctl.nightly.outbox import (
    MOST_ATTEMPTS,
    MOST_DAYS,
    Undelivered,
    deliver,
)
from nightly.notify.letters import message
from receivers import mail_server, web_server

NOW = datetime.fromisoformat("2026-11-21T03:40:00+01:00")
ONE = WebhookSpec(url="https://one.example.org/")
OTHER = WebhookSpec(url="https://other.example.org/")

Sent = list[tuple[str, str, int]]


def waiting_letters(outbox: Path) -> list[Letter]:
    return [
        msgspec.json.decode(path.read_bytes(), type=Letter)
        for path in sorted(outbox.iterdir())
        if path.suffix == ".json"
    ]


class Post:
    """Keeps what is sent; fails as `fails` says."""

    def __init__(self, fails: Callable[[NotifierSpec, Letter], SendError | None] = lambda *_: None) -> None:
        self.fails = fails
        self.sent: Sent = []
        self.tried: Sent = []

    def __call__(self, spec: NotifierSpec, letter: Letter) -> None:
        entry = (spec.title, letter.key, letter.attempts)
        self.tried.append(entry)
        if failure := self.fails(spec, letter):
            raise failure
        self.sent.append(entry)


def tell(
    outbox: Path,
    what: Message,
    notifiers: list[NotifierSpec],
    post: Post | None = None,
    *,
    now: datetime = NOW,
    environ: dict[str, str] | None = None,
) -> list[Undelivered]:
    return deliver(
        outbox,
        what,
        notifiers,
        environ=dict(os.environ) if environ is None else environ,
        folder=outbox.parent,
        runs=outbox.parent / "runs",
        now=now,
        send=post,
    )


def always_failing(**how: Any) -> Post:
    return Post(lambda *_: SendError("no", **how))


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    return tmp_path / "suite" / "outbox"


def test_of_a_night_that_could_not_begin_a_letter_is_tried_again_too(outbox: Path):
    (failed,) = tell(outbox, message(night="", id="big5/now"), [ONE], always_failing())
    assert not failed.given_up
    post = Post()
    assert tell(outbox, message(43), [ONE], post) == []
    assert [key for _, key, _ in post.sent] == ["big5/now", message(43).id]


def test_what_arrives_leaves_nothing_behind(outbox: Path):
    post = Post()
    assert tell(outbox, message(), [ONE, OTHER], post) == []
    assert [title for title, _, _ in post.sent] == ["webhook one.example.org", "webhook other.example.org"]
    assert list(outbox.iterdir()) == []


def test_a_message_is_written_down_before_it_is_sent(outbox: Path):
    def look(*_: object) -> None:
        assert len(waiting_letters(outbox)) == 1

    tell(outbox, message(), [ONE], Post(look))


def test_one_that_fails_does_not_keep_others_from_being_told(outbox: Path):
    post = Post(lambda spec, _: SendError("no") if spec == ONE else None)
    (failed,) = tell(outbox, message(), [ONE, OTHER], post)
    assert [title for title, _, _ in post.sent] == ["webhook other.example.org"]
    assert failed.text == (
        "webhook one.example.org was not told about night 00042-20261121-0300: no; "
        "tried again with the next night"
    )


def test_what_failed_is_tried_again_with_the_next_night_older_first(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    post = Post()
    assert tell(outbox, message(42), [ONE], post) == []
    assert [(key, attempts) for _, key, attempts in post.sent] == [
        (message(41).id, 1),
        (message(42).id, 0),
    ]


def test_a_quiet_night_tries_again_what_failed(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    post = Post()
    tell(outbox, message(42, status="quiet"), [ONE], post)
    assert [key for _, key, _ in post.sent] == [message(41).id]


def test_who_does_not_answer_is_asked_once_a_night(outbox: Path):
    for number in (40, 41):
        tell(outbox, message(number), [ONE], always_failing())
    post = always_failing(silent=True)
    failed = tell(outbox, message(42), [ONE], post)
    assert [key for _, key, _ in post.tried] == [message(40).id]
    assert [(one.reason, one.attempts) for one in failed] == [
        ("no", 3),
        ("not tried: no", 1),
        ("not tried: no", 0),
    ]
    assert len(waiting_letters(outbox)) == 3


def test_a_refusal_of_one_message_does_not_keep_the_next_from_being_tried(outbox: Path):
    post = always_failing()
    tell(outbox, message(41), [ONE], post)
    tell(outbox, message(42), [ONE], post)
    assert [key for _, key, _ in post.tried] == [message(41).id, message(41).id, message(42).id]


def test_what_cannot_succeed_is_given_up_at_once(outbox: Path):
    (failed,) = tell(outbox, message(), [ONE], always_failing(final=True))
    assert failed.given_up
    assert failed.text.endswith("no; given up")
    assert waiting_letters(outbox) == []


def test_a_message_is_given_up_after_so_many_attempts(outbox: Path):
    post = always_failing()
    failed = tell(outbox, message(1), [ONE], post)
    for number in range(2, MOST_ATTEMPTS + 1):
        assert not failed[0].given_up
        failed = tell(outbox, message(number, status="quiet"), [ONE], post)
    assert [(one.given_up, one.reason) for one in failed] == [(True, f"no; tried {MOST_ATTEMPTS} times")]
    assert waiting_letters(outbox) == []


def test_a_message_is_given_up_after_so_many_days_though_it_was_hardly_tried(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    later = NOW + timedelta(days=MOST_DAYS + 1)
    failed = tell(outbox, message(42), [ONE], always_failing(silent=True), now=later)
    assert [(one.night[:5], one.given_up) for one in failed] == [("00041", True), ("00042", False)]


def test_an_old_message_is_delivered_when_somebody_takes_it_at_last(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    post = Post()
    assert tell(outbox, message(42), [ONE], post, now=NOW + timedelta(days=300)) == []
    assert len(post.sent) == 2


def test_a_clock_that_went_back_gives_nothing_up(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    failed = tell(outbox, message(42), [ONE], always_failing(), now=NOW - timedelta(days=3000))
    assert not any(one.given_up for one in failed)


def test_a_notifier_that_is_no_longer_named_is_given_up(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    (failed,) = tell(outbox, message(42), [OTHER], Post())
    assert (failed.reason, failed.given_up) == ("the suite does not name it any more", True)
    assert waiting_letters(outbox) == []


def test_a_night_that_was_cut_off_while_telling_tells_its_newer_message_only(outbox: Path):
    tell(outbox, message(subject="before"), [ONE], always_failing())
    subjects = []
    tell(outbox, message(subject="after"), [ONE], Post(lambda _, letter: subjects.append(letter.subject)))
    assert subjects == ["after"]
    assert waiting_letters(outbox) == []


def test_somebody_who_is_named_twice_is_told_once(outbox: Path):
    post = Post()
    tell(outbox, message(), [ONE, ONE], post)
    assert len(post.sent) == 1


def test_somebody_who_is_named_for_two_occasions_is_told_on_both(outbox: Path):
    rarely = WebhookSpec(url="https://a/", when=("broken",))
    always = WebhookSpec(url="https://a/", when=("always",))
    for number, notifiers in enumerate(([rarely, always], [always, rarely]), 1):
        post = Post()
        tell(outbox, message(number, status="quiet"), notifiers, post)
        assert len(post.sent) == 1


RAISED = Raised(
    alarm=1, at="", night="00041-20261120-0300", kind="figure", title="", key=SeriesKey("", "", "", "")
)


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
def test_everybody_is_told_on_the_occasions_that_they_named(outbox: Path, when: Any, wanted: set[str]):
    nights = {
        "alarm": message(1),
        "recovered": message(2, status="quiet", recovered=(Alarm(RAISED, "recovered"),)),
        "broken": message(3, status="broken"),
        "quiet": message(4, status="quiet"),
    }
    told = set()
    for name, night in nights.items():
        post = Post()
        tell(outbox, night, [WebhookSpec(url="https://a/", when=when)], post)
        told |= {name} if post.sent else set()
    assert told == wanted


def test_a_file_that_cannot_be_read_is_set_aside_and_told_of_once(outbox: Path):
    outbox.mkdir(parents=True)
    (outbox / "00001-20260101-0300.abc.json").write_text('{"letter-version": 1')
    (failed,) = tell(outbox, message(), [ONE], Post())
    assert failed.given_up
    assert failed.reason == "00001-20260101-0300.abc.json cannot be read"
    assert tell(outbox, message(43), [ONE], Post()) == []


def test_a_letter_of_another_version_is_not_guessed_at(outbox: Path):
    tell(outbox, message(41), [ONE], always_failing())
    (path,) = outbox.iterdir()
    path.write_text(path.read_text().replace('"letter-version":1', '"letter-version":2'))
    post = Post()
    assert [one.given_up for one in tell(outbox, message(42), [ONE], post)] == [True]
    assert [key for _, key, _ in post.sent] == [message(42).id]


def test_a_message_is_sent_though_it_cannot_be_written_down(outbox: Path):
    outbox.parent.mkdir(parents=True)
    outbox.write_text("in the way")
    post = Post()
    assert tell(outbox, message(), [ONE], post) == []
    assert len(post.sent) == 1
    (failed,) = tell(outbox, message(), [ONE], always_failing())
    assert failed.given_up
    assert failed.reason.startswith("no; and it could not be kept: ")


@settings(max_examples=25)
@given(
    nights=st.lists(
        st.dictionaries(st.sampled_from(["one", "other"]), st.sampled_from(["no", "silent", "final"])),
        min_size=1,
        max_size=20,
    )
)
def test_every_message_arrives_is_given_up_or_waits_and_older_ones_come_first(
    nights: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory
):
    outbox = tmp_path_factory.mktemp("suite") / "outbox"
    names = {ONE.title: "one", OTHER.title: "other"}
    sent: dict[str, list[str]] = {"one": [], "other": []}
    lost: dict[str, list[str]] = {"one": [], "other": []}
    for number, failures in enumerate(nights, 1):

        def send(spec: NotifierSpec, letter: Letter, failures: dict[str, str] = failures) -> None:
            how = failures.get(names[spec.title])
            if how:
                raise SendError("no", silent=how == "silent", final=how == "final")
            sent[names[spec.title]].append(letter.night)

        failed = deliver(
            outbox, message(number), [ONE, OTHER], environ={}, folder=outbox, runs=outbox, now=NOW, send=send
        )
        for one in failed:
            if one.given_up:
                lost["one" if "one" in one.notifier else "other"].append(one.night)
    waiting = waiting_letters(outbox)
    everything = [message(number).night for number in range(1, len(nights) + 1)]
    for title, name in names.items():
        left = [letter.night for letter in waiting if letter.title == title]
        assert sent[name] == sorted(sent[name])
        assert sorted([*sent[name], *lost[name], *left]) == everything


@settings(max_examples=15)
@given(secret=st.text("abcdefghXYZ0123456789-_", min_size=10, max_size=30))
def test_no_secret_is_in_the_outbox_or_in_what_is_told_of_failures(
    secret: str, tmp_path_factory: pytest.TempPathFactory
):
    secret = f"q{secret}Z"
    outbox = tmp_path_factory.mktemp("suite") / "outbox"
    environ = {"HOOK": f"http://127.0.0.1:1/{secret}", "KEY": secret, "MAIL": secret, "PATH": os.defpath}
    notifiers: list[NotifierSpec] = [
        WebhookSpec(url_env="HOOK", timeout_s=5),
        WebhookSpec(url="http://127.0.0.1:1/", headers_env={"X-Key": "KEY"}, timeout_s=5),
        msgspec.convert(
            {
                "kind": "smtp",
                "host": "localhost",
                "port": 1,
                "tls": "none",
                "from": "a@b.org",
                "to": ["c@d.org"],
                "user-env": "MAIL",
                "password-env": "KEY",
            },
            SmtpSpec,
        ),
        CommandSpec(run=("sh", "-c", "env; exit 1")),
    ]
    failed = tell(outbox, message(), notifiers, environ=environ)
    assert len(failed) == len(notifiers)
    assert not any(secret in repr(one) + one.text for one in failed)
    files = list(outbox.iterdir())
    assert len(files) == len(notifiers)
    assert not any(secret in path.read_text() + path.name for path in files)


def test_a_reason_that_holds_a_secret_is_cleaned_before_it_is_kept(outbox: Path):
    environ = {"KEY": "hunter2000"}
    spec = WebhookSpec(url="https://a/", headers_env={"X-Key": "KEY"})
    post = Post(lambda *_: SendError("hunter2000 is wrong", silent=True))
    tell(outbox, message(41), [spec], post, environ=environ)
    failed = tell(outbox, message(42), [spec], post, environ=environ)
    assert [one.reason for one in failed] == ["[secret] is wrong", "not tried: [secret] is wrong"]
    assert {letter.reason for letter in waiting_letters(outbox)} == {one.reason for one in failed}


def test_everybody_is_really_told(outbox: Path):
    with web_server() as web, mail_server() as box:
        notifiers: list[NotifierSpec] = [
            WebhookSpec(url=web.url),
            SmtpSpec(host="127.0.0.1", port=box.port, tls="none", sender="a@b.org", to=("c@d.org",)),
            CommandSpec(run=("sh", "-c", "cat > got")),
        ]
        assert tell(outbox, message(), notifiers) == []
    assert json.loads(web.posted[0].body) == json.loads((outbox.parent / "got").read_text())
    assert len(box.mails) == 1
    assert list(outbox.iterdir()) == []


def test_a_webhook_that_was_down_for_a_night_gets_both_messages_with_their_own_keys(outbox: Path):
    with web_server() as web:
        web.status = 503
        spec = WebhookSpec(url=web.url)
        assert [one.reason for one in tell(outbox, message(41), [spec])] == ["it refuses: HTTP 503"]
        web.status = 200
        assert tell(outbox, message(42), [spec]) == []
    keys = [posted.headers["Idempotency-Key"] for posted in web.posted]
    assert keys == [message(41).id, message(41).id, message(42).id]


def test_without_notifiers_nothing_is_written(outbox: Path):
    assert tell(outbox, message(), []) == []
    assert not outbox.exists()

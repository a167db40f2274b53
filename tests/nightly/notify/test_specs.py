from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.notify import (
    CommandSpec,
    NotifierSpec,
    SmtpSpec,
    WebhookSpec,
    destination,
)


def read(**content: object) -> NotifierSpec:
    return msgspec.convert(content, NotifierSpec)


MAIL = {"kind": "smtp", "host": "mail.example.org", "from": "bench@example.org", "to": ["me@example.org"]}


def test_a_suite_names_a_command_a_webhook_or_a_mail_server():
    assert read(kind="command", run=["./tell.sh", "-v"]) == CommandSpec(run=("./tell.sh", "-v"))
    hook = read(**{"kind": "webhook", "url-env": "HOOK", "template": "slack", "when": ["always"]})
    assert hook == WebhookSpec(url_env="HOOK", template="slack", when=("always",))
    mail = read(**MAIL, **{"tls": "tls", "user-env": "U", "password-env": "P"})
    assert isinstance(mail, SmtpSpec)
    assert mail.server_port == 465
    assert mail.variables == ("U", "P")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"kind": "pager"}, "Invalid value 'pager'"),
        ({"kind": "command", "run": []}, "length >= 1"),
        ({"kind": "command", "run": [""]}, "a program and its arguments"),
        ({"kind": "command", "run": ["a"], "shell": True}, "unknown field `shell`"),
        ({"kind": "command", "run": ["a"], "when": []}, "length >= 1"),
        ({"kind": "command", "run": ["a"], "when": ["sometimes"]}, "Invalid enum value 'sometimes'"),
        ({"kind": "command", "run": ["a"], "timeout-s": 0}, ">= 1"),
        ({"kind": "webhook"}, "`url` or `url-env`, one of them"),
        ({"kind": "webhook", "url": "https://a/", "url-env": "A"}, "`url` or `url-env`, one of them"),
        ({"kind": "webhook", "url": "ftp://a/"}, "not an http or https address"),
        ({"kind": "webhook", "url": "https://a:b/"}, "not an http or https address"),
        ({"kind": "webhook", "url": "https://a/", "template": "slack"}, "is a secret"),
        ({"kind": "webhook", "url": "http://a/", "headers-env": {"X-Key": "K"}}, "want https"),
        ({"kind": "webhook", "url": "https://a/", "headers-env": {"X Key": "K"}}, "cannot be set"),
        ({"kind": "webhook", "url": "https://a/", "headers-env": {"Host": "K"}}, "cannot be set"),
        (MAIL | {"user-env": "U"}, "both `user-env` and `password-env`"),
        (MAIL | {"user-env": "U", "password-env": "P", "tls": "none"}, "a password wants"),
        (MAIL | {"to": ["me"]}, "'me' is not a mail address"),
        (MAIL | {"to": ["me@example.org\nBcc: all@example.org"]}, "is not a mail address"),
        (MAIL | {"from": "Me <me@example.org>"}, "is not a mail address"),
        (MAIL | {"host": "mail.example.org:25/x"}, "name or address of a mail server"),
        (MAIL | {"host": "a" * 64}, "name or address of a mail server"),
        (MAIL | {"port": 0}, ">= 1"),
        ({"kind": "store", "to": "metrics:9200"}, "is not the address of a host"),
        ({"kind": "store", "to": "https://me:hunter2@metrics"}, "an address holds credentials"),
        ({"kind": "store", "to": "https://m", "user-env": "U"}, "or none of them"),
        (
            {"kind": "store", "to": "https://m", "user-env": "U", "password-env": "P", "api-key-env": "K"},
            "or none of them",
        ),
        ({"kind": "store", "to": "http://m:9200", "api-key-env": "K"}, "want https, or a host on loopback"),
    ],
)
def test_what_cannot_work_is_refused(content: dict[str, object], complaint: str):
    with pytest.raises(msgspec.ValidationError) as refused:
        read(**content)
    assert complaint in str(refused.value)


def test_a_password_may_go_to_a_mail_server_on_this_host_in_clear():
    for host in ("localhost", "127.0.0.1", "::1"):
        read(**MAIL | {"host": host, "user-env": "U", "password-env": "P", "tls": "none"})


@pytest.mark.parametrize(
    "content",
    [
        {"kind": "webhook", "url": "https://me:hunter2@example.org/"},
        {"kind": "webhook", "url": "https://hunter2@example.org/"},
        {"kind": "webhook", "url": "https://example.org/?token=hunter2"},
        {"kind": "webhook", "url": "https://example.org/#hunter2"},
        {"kind": "webhook", "url": "https://example.org/ hunter2"},
        {"kind": "webhook", "url": "https://example.org/hunter2", "template": "slack"},
        {"kind": "webhook", "url-env": "https://example.org/hunter2"},
        {
            "kind": "webhook",
            "url": "https://example.org/",
            "headers-env": {"Authorization": "Bearer hunter2"},
        },
        MAIL | {"user-env": "me", "password-env": "hunter2!"},
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(content: dict[str, object]):
    with pytest.raises(msgspec.ValidationError) as refused:
        read(**content)
    assert "hunter2" not in str(refused.value)


def test_titles_hold_no_arguments_and_no_paths_of_addresses():
    assert CommandSpec(run=("tell", "--token", "hunter2")).title == "command tell"
    assert WebhookSpec(url="https://example.org/hunter2").title == "webhook example.org"
    assert WebhookSpec(url_env="HOOK").title == "webhook $HOOK"


@given(timeout=st.integers(1, 3600), when=st.sampled_from(["alarm", "recovered", "broken", "always"]))
def test_a_destination_stays_the_same_whenever_and_however_patiently_it_is_told(timeout: int, when: Any):
    for spec in (CommandSpec(run=("a",)), WebhookSpec(url="https://a/"), WebhookSpec(url_env="A")):
        other = msgspec.structs.replace(spec, timeout_s=timeout, when=(when,))
        assert destination(other) == destination(spec)
    assert destination(CommandSpec(run=("a",))) != destination(CommandSpec(run=("a", "b")))
    assert destination(WebhookSpec(url="https://a/")) != destination(WebhookSpec(url="https://a/b"))

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from authority import certificate_file
from benchctl.nightly.notify import Redactor, SendError, WebhookSpec, post
from nightly.notify.letters import letter, message
from receivers import Web, web_server


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def tell(spec: WebhookSpec, environ: Mapping[str, str] | None = None) -> None:
    environ = environ or {}
    post(spec, letter(), environ=environ, redactor=Redactor([spec], environ))


def refusal(spec: WebhookSpec, environ: Mapping[str, str] | None = None) -> SendError:
    with pytest.raises(SendError) as failed:
        tell(spec, environ)
    # What libraries raise quotes what was sent, and would be in a traceback.
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__ or failed.value.__context__ is None
    return failed.value


def test_the_message_is_posted_as_json_with_its_key(web: Web):
    tell(WebhookSpec(url=f"{web.url}/hook"))
    (posted,) = web.posted
    assert posted.path == "/hook"
    assert posted.headers["Idempotency-Key"] == message().id
    assert posted.headers["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(posted.body)["text"] == message().text


def test_chats_get_a_text(web: Web):
    tell(WebhookSpec(url_env="HOOK", template="slack"), {"HOOK": f"{web.url}/hook"})
    content = json.loads(web.posted[0].body)
    assert list(content) == ["text"]
    assert content["text"].startswith(message().subject)
    assert message().text in content["text"]


def test_headers_come_from_the_environment(web: Web):
    spec = WebhookSpec(url=web.url, headers_env={"Authorization": "KEY"})
    tell(spec, {"KEY": "Bearer hunter2000"})
    assert web.posted[0].headers["Authorization"] == "Bearer hunter2000"


@pytest.mark.parametrize("variable", ["HOOK", "KEY"])
def test_a_variable_that_is_not_set_is_named(web: Web, variable: str):
    environ = {"HOOK": web.url, "KEY": "hunter2000"}
    del environ[variable]
    spec = WebhookSpec(url_env="HOOK", headers_env={"Authorization": "KEY"})
    assert refusal(spec, environ).reason == f"the environment variable {variable} is not set"


@pytest.mark.parametrize("value", ["hunter2\r\nX-Evil: 1", "hunter2\u00e9", "hunter2\0"])
def test_a_header_that_would_be_two_is_not_sent(web: Web, value: str):
    spec = WebhookSpec(url=web.url, headers_env={"Authorization": "KEY"})
    assert refusal(spec, {"KEY": value}).reason == "KEY holds characters that no header can carry"
    assert not web.posted


@pytest.mark.parametrize(
    ("status", "reason", "silent"),
    [
        (400, "it refuses: HTTP 400, no such room", False),
        (410, "it refuses: HTTP 410, no such room", False),
        (429, "it refuses: HTTP 429, no such room", True),
        (503, "it refuses: HTTP 503, no such room", True),
    ],
)
def test_what_is_answered_is_told(web: Web, status: int, reason: str, *, silent: bool):
    web.status, web.answer = status, b"no such\nroom"
    failed = refusal(WebhookSpec(url=web.url))
    assert (failed.reason, failed.silent) == (reason, silent)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_nothing_is_followed_elsewhere(web: Web, status: int):
    with web_server() as other:
        web.status, web.headers = status, {"Location": f"{other.url}/there"}
        spec = WebhookSpec(url=web.url, headers_env={"Authorization": "KEY"})
        failed = refusal(spec, {"KEY": "hunter2000"})
        assert failed.reason == f"it wants to be asked elsewhere, which is not followed: HTTP {status}"
        assert not other.posted
    assert len(web.posted) == 1


def test_nobody_there_is_told():
    with web_server() as gone:
        url = gone.url
    failed = refusal(WebhookSpec(url=url))
    assert (failed.reason, failed.silent) == ("no connection", True)


def test_an_answer_that_never_comes_is_waited_for_so_long(web: Web):
    web.stalls = True
    failed = refusal(WebhookSpec(url=web.url, timeout_s=1))
    assert (failed.reason, failed.silent) == ("no answer within 1 s", True)


def test_an_answer_that_never_ends_is_waited_for_so_long(web: Web):
    web.status, web.trickles = 200, True
    assert refusal(WebhookSpec(url=web.url, timeout_s=1)).reason == "no answer within 1 s"


def test_a_long_answer_is_cut(web: Web):
    web.status, web.answer = 500, b"x" * 1_000_000
    assert len(refusal(WebhookSpec(url=web.url)).reason) < 400


def test_a_certificate_has_to_be_trusted(tmp_path: Path):
    with web_server(tls=True) as web:
        spec = WebhookSpec(url=web.url)
        assert refusal(spec).reason.startswith("its certificate is not trusted")
        assert not web.posted
        tell(spec, {"REQUESTS_CA_BUNDLE": str(certificate_file(tmp_path))})
        assert len(web.posted) == 1
        missing = refusal(spec, {"REQUESTS_CA_BUNDLE": str(tmp_path / "none")})
        assert missing.reason == "the certificates in REQUESTS_CA_BUNDLE cannot be read"


def test_a_certificate_for_another_host_gets_no_secrets(tmp_path: Path):
    with web_server("elsewhere.example", tls=True) as web:
        spec = WebhookSpec(url=web.url, headers_env={"Authorization": "KEY"})
        environ = {"REQUESTS_CA_BUNDLE": str(certificate_file(tmp_path)), "KEY": "hunter2000"}
        assert refusal(spec, environ).reason == "its certificate is for another name"
        assert not web.posted


def test_secrets_are_not_sent_in_clear_to_other_hosts():
    spec = WebhookSpec(url_env="HOOK", headers_env={"Authorization": "KEY"})
    environ = {"HOOK": "http://hooks.example.invalid/", "KEY": "hunter2000"}
    assert refusal(spec, environ).reason == "the address in HOOK is http: its secrets want https"
    environ = {"HOOK": "http://me:hunter2000@hooks.example.invalid/"}
    assert "want https" in refusal(WebhookSpec(url_env="HOOK"), environ).reason


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
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
    failed = refusal(WebhookSpec(url_env="HOOK", timeout_s=5), {"HOOK": url})
    assert secret not in repr(failed)
    assert secret.lower() not in failed.reason.lower()

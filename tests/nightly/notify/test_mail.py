import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from authority import certificate_file, server_context
from benchctl.nightly.notify import Redactor, SendError, SmtpSpec, compose, send_mail
from nightly.notify.letters import letter, message
from receivers import Mailbox, mail_server

SECRETS = {"MAIL_USER": "bench", "MAIL_PW": "hunter2000"}


def spec_of(box: Mailbox, *, login: bool = False, **changes: object) -> SmtpSpec:
    spec = SmtpSpec(
        host="127.0.0.1",
        port=box.port,
        sender="bench@example.org",
        to=("me@example.org", "you@example.org"),
        tls=box.tls,
        timeout_s=20,
        user_env="MAIL_USER" if login else "",
        password_env="MAIL_PW" if login else "",
    )
    return msgspec.structs.replace(spec, **changes)


def tell(spec: SmtpSpec, environ: Mapping[str, str] | None = None) -> None:
    environ = environ or {}
    send_mail(spec, letter(), environ=environ, redactor=Redactor([spec], environ))


def refusal(spec: SmtpSpec, environ: Mapping[str, str] | None = None) -> SendError:
    with pytest.raises(SendError) as failed:
        tell(spec, environ)
    # What libraries raise quotes what was sent, and would be in a traceback.
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__ or failed.value.__context__ is None
    return failed.value


def test_mail_is_one_screen_of_text_with_a_key():
    with mail_server() as box:
        tell(spec_of(box))
    (text,) = box.mails
    mail = email.message_from_string(text, policy=email.policy.default)
    assert mail["Subject"] == message().subject
    assert mail["From"] == "bench@example.org"
    assert mail["To"] == "me@example.org, you@example.org"
    assert mail["Message-ID"] == f"<{message().id}@example.org>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"].datetime.isoformat() == "2026-11-21T03:40:00+01:00"
    assert mail.get_content().splitlines() == message().text.splitlines()
    assert box.recipients == ["me@example.org", "you@example.org"]


def test_a_subject_cannot_add_headers():
    mail = compose(
        SmtpSpec(host="h", sender="a@b.org", to=("c@d.org",)), letter(subject="quiet\r\nBcc: all@b.org")
    )
    assert mail["Bcc"] is None
    assert mail["Subject"] == "quiet  Bcc: all@b.org"


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_mail_and_password_go_encrypted_to_a_server_that_is_trusted(tls: str, tmp_path: Path):
    environ = SECRETS | {"SSL_CERT_FILE": str(certificate_file(tmp_path))}
    with mail_server(tls=tls) as box:
        box.user, box.password = "bench", "hunter2000"
        tell(spec_of(box, login=True), environ)
        assert box.encrypted == [True]


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_nothing_goes_to_a_server_that_is_not_trusted(tls: str):
    with mail_server(tls=tls) as box:
        failed = refusal(spec_of(box, login=True), SECRETS)
    assert failed.reason.startswith("its certificate is not trusted: ")
    assert failed.silent
    assert not box.mails


def test_a_server_that_cannot_encrypt_gets_nothing():
    with mail_server() as box:
        failed = refusal(spec_of(box, tls="starttls"))
    assert failed.reason == "it cannot do that: STARTTLS extension not supported by server."
    assert not box.mails


def test_a_wrong_password_is_refused_and_not_repeated():
    with mail_server() as box:
        box.user, box.password = "bench", "another"
        failed = refusal(spec_of(box, login=True), SECRETS)
    assert failed.reason.startswith("it refuses: 535 no such user or password: ")
    assert "hunter2000" not in failed.reason
    assert "AGJlbmNoAGh1bnRlcjIwMDA" not in failed.reason


@pytest.mark.parametrize("variable", ["MAIL_USER", "MAIL_PW"])
def test_a_variable_that_is_not_set_is_named(variable: str):
    environ = {name: value for name, value in SECRETS.items() if name != variable}
    with mail_server() as box:
        failed = refusal(spec_of(box, login=True), environ)
    assert failed.reason == f"the environment variable {variable} is not set"


def test_a_password_that_cannot_be_sent_is_refused_and_not_repeated():
    with mail_server() as box:
        failed = refusal(spec_of(box, login=True), SECRETS | {"MAIL_PW": "hünter2000"})
    assert failed.reason == "MAIL_PW holds characters that smtplib cannot send"


def test_mail_for_nobody_is_told():
    with mail_server() as box:
        box.refused = ("me@example.org", "you@example.org")
        failed = refusal(spec_of(box))
    assert failed.reason == "it takes no mail for me@example.org, you@example.org: 550"
    assert not failed.final


def test_mail_that_some_have_is_not_sent_again():
    with mail_server() as box:
        box.refused = ("me@example.org",)
        failed = refusal(spec_of(box))
    assert failed.final
    assert "it takes no mail for me@example.org" in failed.reason
    assert box.recipients == ["you@example.org"]


@pytest.mark.parametrize(
    ("answer", "reason", "silent"),
    [
        ("451 try later", "it refuses: 451 try later", True),
        ("550 not you", "it refuses: 550 not you", False),
    ],
)
def test_what_the_server_says_is_told(answer: str, reason: str, *, silent: bool):
    with mail_server() as box:
        box.answers["MAIL"] = answer
        failed = refusal(spec_of(box))
    assert (failed.reason, failed.silent) == (reason, silent)


def test_a_server_that_is_not_one_is_told():
    with mail_server() as box:
        box.greeting = "554 go away"
        assert refusal(spec_of(box)).reason == "it refuses: 554 go away"


def test_nobody_there_is_told():
    with mail_server() as box:
        pass
    failed = refusal(spec_of(box))
    assert (failed.reason, failed.silent) == ("no connection: Connection refused", True)


@contextmanager
def endless_server(*, tls: bool) -> Iterator[int]:
    """Greets for ever, line by line: no single read is late."""
    over = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while not over.wait(0.02):
                    self.wfile.write(b"220-one moment\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = server_context().wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        over.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("tls", ["none", "tls"])
def test_a_server_that_never_comes_to_an_end_is_left(tls: str, tmp_path: Path):
    environ = {"SSL_CERT_FILE": str(certificate_file(tmp_path))}
    with endless_server(tls=tls == "tls") as port:
        spec = SmtpSpec(host="127.0.0.1", port=port, sender="a@b.org", to=("c@d.org",), tls=tls, timeout_s=1)
        failed = refusal(spec, environ)
    assert (failed.reason, failed.silent) == ("it took longer than 1 s", True)


def test_certificates_that_are_not_there_are_told(tmp_path: Path):
    with mail_server() as box:
        failed = refusal(spec_of(box), {"SSL_CERT_FILE": str(tmp_path / "none")})
    assert failed.reason == "the certificates in SSL_CERT_FILE cannot be read"


@given(
    address=st.from_regex(r"[a-z!#$%&'*+/=?^_`{|}~.-]{1,12}@[a-z.-]{1,12}", fullmatch=True),
    subject=st.text(st.characters(codec="utf-8"), max_size=90),
    text=st.text(st.characters(codec="utf-8"), max_size=200),
)
def test_whatever_a_suite_may_name_becomes_mail(address: str, subject: str, text: str):
    try:
        spec = msgspec.convert({"kind": "smtp", "host": "h", "from": address, "to": [address]}, SmtpSpec)
    except msgspec.ValidationError:
        reject()
    mail = compose(spec, letter(subject=subject, text=text))
    read = email.message_from_bytes(mail.as_bytes(), policy=email.policy.default)
    assert read["To"].addresses[0].addr_spec == address
    assert read["Bcc"] is None

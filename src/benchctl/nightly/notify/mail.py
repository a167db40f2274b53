"""Telling people by mail: handed to one server, which sees to the rest."""

import contextlib
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime

from benchctl.endpoint import system_trust
from benchctl.nightly.notify.failure import SendError
from benchctl.nightly.notify.letter import Letter
from benchctl.nightly.notify.redaction import Redactor
from benchctl.nightly.notify.specs import SmtpSpec

_SHOWN_CHARACTERS = 300
_PERMANENT = 500
_BETWEEN_CUTS_S = 0.2


def send_mail(spec: SmtpSpec, letter: Letter, *, environ: Mapping[str, str], redactor: Redactor) -> None:
    """Hand a message to the mail server.

    Args:
        spec: the server, and whom it is for.
        letter: what; its key is in the header Message-ID, so that mail that comes twice is shown once.
        environ: holds the secrets, and in `SSL_CERT_FILE` whom to trust instead of the system's authorities.
        redactor: cleans what the server says.

    Raises:
        SendError: the server did not take it, or not for everybody.
    """
    mail = compose(spec, letter)
    login = tuple(_secret(environ, name) for name in spec.variables)
    context = _trusting(environ)
    deadline = _Deadline()
    try:
        with deadline.within(spec.timeout_s), _connected(spec, context, deadline) as server:
            if login:
                server.login(*login)
            refused = server.send_message(mail, from_addr=spec.sender, to_addrs=list(spec.to))
    except (smtplib.SMTPException, OSError) as err:
        # Without their causes: those quote what was sent.
        if deadline.passed:
            raise SendError(f"it took longer than {spec.timeout_s} s", silent=True) from None
        if isinstance(err, smtplib.SMTPException):
            raise _refusal(err, redactor) from None
        raise _unreachable(err, spec) from None
    if refused:
        # The others have it, and would get it again with every further attempt.
        raise SendError(f"everybody else has it, but it takes no mail for {', '.join(refused)}", final=True)


def compose(spec: SmtpSpec, letter: Letter) -> EmailMessage:
    """The mail: one screen of plain text, marked so that no holiday notice answers it."""
    mail = EmailMessage()
    mail["From"] = spec.sender
    mail["To"] = ", ".join(spec.to)
    mail["Subject"] = "".join(part if part.isprintable() else " " for part in letter.subject)
    mail["Date"] = format_datetime(datetime.fromisoformat(letter.created))
    mail["Message-ID"] = f"<{letter.key}@{spec.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(letter.text)
    return mail


def _trusting(environ: Mapping[str, str]) -> ssl.SSLContext:
    own = environ.get("SSL_CERT_FILE")
    trust = system_trust()
    try:
        return ssl.create_default_context(cafile=own or trust.file, capath=None if own else trust.folder)
    except OSError:
        raise SendError("the certificates in SSL_CERT_FILE cannot be read") from None


class _Deadline:
    """Cuts a connection when its time is over.

    The timeout of smtplib is that of a single read: a server that drips, a byte now and then, would keep the
    night for ever, and with it the lock of the suite.
    """

    def __init__(self) -> None:
        self.passed = False
        self.connection: smtplib.SMTP | None = None
        self._done = threading.Event()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """So long may the block take."""
        watch = threading.Thread(target=self._watch, args=(seconds,), name="mail-deadline", daemon=True)
        watch.start()
        try:
            yield
        finally:
            self._done.set()
            watch.join()

    def _watch(self, seconds: float) -> None:
        wait_s = seconds
        # Again and again: there may be no socket yet, or another one since encryption began.
        while not self._done.wait(wait_s):
            self.passed = True
            wait_s = _BETWEEN_CUTS_S
            connected = None if self.connection is None else self.connection.sock
            if connected is not None:
                with contextlib.suppress(OSError):
                    # As a plain socket: that of TLS is being read by the other thread.
                    socket.socket.shutdown(connected, socket.SHUT_RDWR)


class _Plain(smtplib.SMTP):
    def __init__(self, spec: SmtpSpec, deadline: _Deadline) -> None:
        deadline.connection = self
        super().__init__(spec.host, spec.server_port, timeout=spec.timeout_s)


class _Encrypted(smtplib.SMTP_SSL):
    def __init__(self, spec: SmtpSpec, deadline: _Deadline, context: ssl.SSLContext) -> None:
        deadline.connection = self
        super().__init__(spec.host, spec.server_port, timeout=spec.timeout_s, context=context)


def _connected(spec: SmtpSpec, context: ssl.SSLContext, deadline: _Deadline) -> smtplib.SMTP:
    if spec.tls == "tls":
        return _Encrypted(spec, deadline, context)
    server = _Plain(spec, deadline)
    if spec.tls == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def _secret(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable, "")
    if not value:
        raise SendError(f"the environment variable {variable} is not set")
    if not value.isascii():
        raise SendError(f"{variable} holds characters that smtplib cannot send")
    return value


def _refusal(err: smtplib.SMTPException, redactor: Redactor) -> SendError:
    """What the server answered, or would not do."""
    match err:
        case smtplib.SMTPRecipientsRefused():
            codes = ", ".join(sorted({str(code) for code, _ in err.recipients.values()}))
            return SendError(f"it takes no mail for {', '.join(err.recipients)}: {codes}")
        case smtplib.SMTPResponseException():
            said = err.smtp_error
            text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            return SendError(
                f"it refuses: {err.smtp_code} {_shortened(text, redactor)}",
                silent=int(err.smtp_code) < _PERMANENT,
            )
        case smtplib.SMTPServerDisconnected():
            return SendError("it closed the connection", silent=True)
        case _:
            return SendError(f"it cannot do that: {_shortened(str(err), redactor)}")


def _unreachable(err: OSError, spec: SmtpSpec) -> SendError:
    """What kept us from talking to the server."""
    match err:
        case ssl.SSLCertVerificationError():
            reason = f"its certificate is not trusted: {err.verify_message} (SSL_CERT_FILE names others)"
        case ssl.SSLError():
            reason = "it does not speak TLS as we do"
        case TimeoutError():
            reason = f"no answer within {spec.timeout_s} s"
        case _:
            reason = f"no connection: {err.strerror or 'it was refused'}"
    return SendError(reason, silent=True)


def _shortened(text: str, redactor: Redactor) -> str:
    return " ".join(redactor.clean(text).split())[:_SHOWN_CHARACTERS]

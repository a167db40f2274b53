"""Telling people by mail: handed to one server, which sees to the rest."""

import smtplib
import ssl
from collections.abc import Mapping
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
    try:
        with _connected(spec, context) as server:
            if login:
                server.login(*login)
            refused = server.send_message(mail, from_addr=spec.sender, to_addrs=list(spec.to))
    except smtplib.SMTPException as err:
        # Without their causes: those quote what was sent.
        raise _refusal(err, redactor) from None
    except OSError as err:
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


def _connected(spec: SmtpSpec, context: ssl.SSLContext) -> smtplib.SMTP:
    if spec.tls == "tls":
        return smtplib.SMTP_SSL(spec.host, spec.server_port, timeout=spec.timeout_s, context=context)
    server = smtplib.SMTP(spec.host, spec.server_port, timeout=spec.timeout_s)
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

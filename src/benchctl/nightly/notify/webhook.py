"""Telling an address on the web: one POST, nothing followed, certificates checked."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from benchctl.network import Courier, Trouble, Unanswered
from benchctl.nightly.notify.failure import SendError
from benchctl.nightly.notify.letter import Letter
from benchctl.nightly.notify.redaction import Redactor
from benchctl.nightly.notify.specs import WebhookSpec, is_postable, is_private

_ANSWER_BYTES = 64 * 1024
_SHOWN_CHARACTERS = 300
_OK, _REDIRECTS, _REFUSALS, _FAILURES = 200, 300, 400, 500
_TOO_MANY_REQUESTS = 429

# libcurl's own texts quote names and addresses, which may be secret.
_REASONS = {
    Trouble.UNRESOLVED: "its name cannot be resolved",
    Trouble.REFUSED: "no connection",
    Trouble.UNTRUSTED: "its certificate is not trusted (REQUESTS_CA_BUNDLE names others)",
    Trouble.OTHER_NAME: "its certificate is for another name",
    Trouble.UNREADABLE_TRUST: "the certificates in REQUESTS_CA_BUNDLE cannot be read",
    Trouble.NO_TLS: "it does not speak TLS as we do",
    Trouble.NO_HTTP: "it does not speak HTTP",
    Trouble.BROKEN: "the connection broke",
}


def post(spec: WebhookSpec, letter: Letter, *, environ: Mapping[str, str], redactor: Redactor) -> None:
    """Post a message.

    Args:
        spec: where to.
        letter: what; its key goes into the header `Idempotency-Key`.
        environ: holds the secrets, and in `REQUESTS_CA_BUNDLE` whom to trust instead of the system's
            authorities.
        redactor: cleans what is answered.

    Raises:
        SendError: there was no answer in time, or another one than 2xx.
    """
    url = spec.url or _secret(environ, spec.url_env)
    if not is_postable(url):
        raise SendError(f"{spec.url_env} holds no http or https address")
    if not is_private(url) and (spec.headers_env or "@" in urlsplit(url).netloc):
        raise SendError(f"the address in {spec.url_env} is http: its secrets want https")
    headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": letter.key}
    for name, variable in spec.headers_env.items():
        headers[name] = _header_value(environ, variable)
    body = bytes(letter.body)
    if spec.template == "slack":
        body = msgspec.json.encode({"text": f"{letter.subject}\n```\n{letter.text}\n```"})
    status, answer = _exchange(spec, url, headers, body, environ)
    if not _OK <= status < _REDIRECTS:
        said = " ".join(redactor.clean(answer.decode("utf-8", "replace")).split())[:_SHOWN_CHARACTERS]
        what = "wants to be asked elsewhere, which is not followed" if status < _REFUSALS else "refuses"
        raise SendError(
            f"it {what}: HTTP {status}" + (f", {said}" if said else ""),
            silent=status >= _FAILURES or status == _TOO_MANY_REQUESTS,
        )


def _exchange(
    spec: WebhookSpec, url: str, headers: Mapping[str, str], body: bytes, environ: Mapping[str, str]
) -> tuple[int, bytes]:
    """Send one request; status and the beginning of the answer."""
    lines = [f"{name}: {value}" for name, value in {"User-Agent": "benchctl", **headers}.items()]
    with Courier(ca=environ.get("REQUESTS_CA_BUNDLE") or None, outside=True) as courier:
        try:
            answer = courier.ask(
                "POST", url, headers=lines, body=body, deadline_s=spec.timeout_s, most_bytes=_ANSWER_BYTES
            )
        except Unanswered as err:
            if err.trouble is Trouble.TOO_LARGE and err.partial is not None:
                return err.partial.status, err.partial.body
            if err.trouble is Trouble.TIMEOUT:
                raise SendError(f"no answer within {spec.timeout_s} s", silent=True) from None
            # Without its cause: that quotes the address.
            reason = _REASONS.get(err.trouble, "it cannot be asked at this address")
            raise SendError(reason, silent=True) from None
    return answer.status, answer.body


def _header_value(environ: Mapping[str, str], variable: str) -> str:
    value = _secret(environ, variable)
    if not value.isascii() or not value.isprintable():
        raise SendError(f"{variable} holds characters that no header can carry")
    return value


def _secret(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable, "").strip()
    if not value:
        raise SendError(f"the environment variable {variable} is not set")
    return value

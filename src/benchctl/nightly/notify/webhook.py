"""Telling an address on the web: one POST, nothing followed, certificates checked."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
import pycurl

from benchctl.endpoint import system_trust
from benchctl.nightly.notify.failure import SendError
from benchctl.nightly.notify.letter import Letter
from benchctl.nightly.notify.redaction import Redactor
from benchctl.nightly.notify.specs import WebhookSpec, is_postable, is_private

_CONNECT_TIMEOUT_S = 15
_ANSWER_BYTES = 64 * 1024
_SHOWN_CHARACTERS = 300
_OK, _REDIRECTS, _REFUSALS, _FAILURES = 200, 300, 400, 500
_TOO_MANY_REQUESTS = 429

# libcurl's own texts quote names and addresses, which may be secret.
_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "its name cannot be resolved",
    pycurl.E_COULDNT_RESOLVE_PROXY: "the proxy's name cannot be resolved",
    pycurl.E_COULDNT_CONNECT: "no connection",
    pycurl.E_PEER_FAILED_VERIFICATION: "its certificate is not trusted (REQUESTS_CA_BUNDLE names others)",
    pycurl.E_SSL_CACERT_BADFILE: "the certificates in REQUESTS_CA_BUNDLE cannot be read",
    pycurl.E_SSL_CONNECT_ERROR: "it does not speak TLS as we do",
    pycurl.E_GOT_NOTHING: "it closed the connection without an answer",
    pycurl.E_SEND_ERROR: "the connection broke",
    pycurl.E_RECV_ERROR: "the connection broke",
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
    answer = bytearray()

    def keep(piece: bytes) -> None:
        answer.extend(piece[: _ANSWER_BYTES - len(answer)])

    curl = pycurl.Curl()
    try:
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in headers.items()])
        curl.setopt(pycurl.USERAGENT, "benchctl")
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.CONNECTTIMEOUT, min(_CONNECT_TIMEOUT_S, spec.timeout_s))
        curl.setopt(pycurl.TIMEOUT, spec.timeout_s)
        curl.setopt(pycurl.WRITEFUNCTION, keep)
        _trust(curl, environ)
        curl.perform()
        return curl.getinfo(pycurl.RESPONSE_CODE), bytes(answer)
    except pycurl.error as err:
        code = err.args[0]
        if code == pycurl.E_OPERATION_TIMEDOUT:
            raise SendError(f"no answer within {spec.timeout_s} s", silent=True) from None
        # Without its cause: that quotes the address.
        raise SendError(_REASONS.get(code, f"libcurl gives up with error {code}"), silent=True) from None
    finally:
        curl.close()


def _trust(curl: pycurl.Curl, environ: Mapping[str, str]) -> None:
    own = environ.get("REQUESTS_CA_BUNDLE")
    system = system_trust()
    if own or system.file:
        curl.setopt(pycurl.CAINFO, own or system.file)
    if not own and system.folder:
        curl.setopt(pycurl.CAPATH, system.folder)


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

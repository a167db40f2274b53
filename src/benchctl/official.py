"""An endpoint in the words of the engines' official Python clients, which share them."""

from typing import Any

from benchctl.endpoint import Endpoint, system_trust


def header_items(endpoint: Endpoint) -> dict[str, str]:
    """The endpoint's own header lines; secret."""
    pairs = (line.partition(": ") for line in endpoint.headers)
    return {name.lower(): value for name, _, value in pairs}


def tls_options(endpoint: Endpoint) -> dict[str, Any]:
    """Whose certificates to believe; nothing without TLS."""
    if not endpoint.is_encrypted:
        return {}
    if not endpoint.verify:
        return {"verify_certs": False, "ssl_show_warn": False}
    trust = system_trust()
    return {"ca_certs": str(endpoint.ca or trust.file or trust.folder)}

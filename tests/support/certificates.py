"""Certificates of an authority of one's own."""

from functools import cache
from pathlib import Path

import trustme


@cache
def authority(name: str = "ours") -> trustme.CA:
    return trustme.CA(organization_name=name)


@cache
def host_certificate(name: str) -> trustme.LeafCert:
    return authority(name).issue_cert("localhost")


def write_certificates(folder: Path, *, ca: str = "ours", key: str = "ours") -> None:
    """`ca.pem`, `me.pem` and `me.key`; of another authority, or another key, where one is named."""
    authority(ca).cert_pem.write_to_path(str(folder / "ca.pem"))
    mine = host_certificate("ours")
    (folder / "me.pem").write_bytes(b"".join(one.bytes() for one in mine.cert_chain_pems))
    host_certificate(key).private_key_pem.write_to_path(str(folder / "me.key"))

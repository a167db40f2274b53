"""`hosts.yml`: which hosts load comes from, and how they are reached."""

import errno
import ipaddress
import re
import socket
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError, suggestion
from benchctl.results.plan import VariantSpec
from benchctl.yaml_file import Document, read_typed

_SCHEDULER = re.compile(r"tls://[^/]*[^/:]:\d{1,5}", re.ASCII)


class TlsFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """TLS certificate, key and authority; paths are relative to the file that names them."""

    ca: str  # certificate of the authority that signed those of all hosts, PEM
    certificate: str  # certificate of this host, PEM
    key: str  # key of the certificate, PEM


class HostsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of hosts as written."""

    # hosts that load comes from; all but `local` have a Dask worker of that name
    load: Annotated[tuple[str, ...], Meta(min_length=1)]
    local: str = ""  # the one of them that benchctl runs on; empty if that is none of them
    # address of the host that benchctl runs on, at which the others reach its nodes
    address: str = ""
    scheduler: str = ""  # address of the Dask scheduler, `tls://HOST:PORT`; empty when all is local
    tls: TlsFiles | None = None  # certificates of the connection to the scheduler


class Hosts(HostsFile, frozen=True, kw_only=True):
    """The hosts of a file; `load` is empty where it comes from this one alone, named or not."""

    path: Path  # of the file

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Names of those that benchctl does not run on; they are reached by Dask."""
        return tuple(name for name in self.load if name != self.local)

    def check_nodes(self, variants: Iterable[VariantSpec]) -> None:
        """Check that nodes of this host can be reached from wherever load is.

        Args:
            variants: those that are measured; all but targets have a node here.

        Raises:
            UsageError: If they cannot.
        """
        if all(spec.target is not None for spec in variants):
            return
        if self.elsewhere and not self.address:
            raise UsageError(
                f"the node listens on loopback, where {', '.join(self.elsewhere)} would not reach it",
                hint=f"write into {self.path} the address of this host that they reach, address: ADDRESS",
            )
        self.check_address()

    def check_address(self) -> None:
        """Check that this host has the address of its nodes.

        Raises:
            UsageError: If it has not.
        """
        if not self.address:
            return
        with socket.socket(socket.AF_INET6 if ":" in self.address else socket.AF_INET) as probe:
            try:
                probe.bind((self.address, 0))
            except OSError as err:
                if err.errno != errno.EADDRNOTAVAIL:
                    raise
                raise UsageError(
                    f"{self.path}: the host has no interface with the address {self.address}",
                    hint="see: ip address",
                ) from err


def load_hosts(path: Path) -> Hosts:
    """Read a file of hosts.

    Raises:
        UsageError: If it cannot be read, or something in it is wrong: with file, line and column.
    """
    typed = read_typed(path, HostsFile)
    form, document = typed.value, typed.document
    tls, folder = form.tls, path.absolute().parent
    if tls is not None:
        tls = TlsFiles(*(str(folder / file) for file in (tls.ca, tls.certificate, tls.key)))
    _check_names(form, document)
    _check_address(form, document)
    load = form.load if any(name != form.local for name in form.load) else ()
    loaded = Hosts(**{**msgspec.structs.asdict(form), "load": load, "tls": tls, "path": path.absolute()})
    if loaded.load:
        _check_way(loaded, document)
        if find_spec("distributed") is None:
            raise UsageError(
                "other hosts are reached through Dask distributed, which is not installed",
                hint="pip install 'benchctl[hosts]', here and on all of them",
            )
    return loaded


def _check_names(form: HostsFile, document: Document) -> None:
    for place, name in enumerate(form.load):
        if name in form.load[:place]:
            raise document.refuse(("load", place), f"'{name}' is a duplicate", hint="remove it")
    if form.local and form.local not in form.load:
        raise document.refuse(
            ("local",), f"no load is generated on '{form.local}'", hint=suggestion(form.local, form.load)
        )


def _check_address(form: HostsFile, document: Document) -> None:
    if not form.address:
        return
    try:
        usable = not ipaddress.ip_address(form.address).is_unspecified
    except ValueError:
        usable = False
    if not usable:
        raise document.refuse(
            ("address",),
            f"'{form.address}' is not the IP address of one interface",
            hint="nodes have no password: take the address of a network that only these hosts are in",
        )


def _check_way(loaded: Hosts, document: Document) -> None:
    if not _SCHEDULER.fullmatch(loaded.scheduler):
        raise document.refuse(
            ("scheduler",) if loaded.scheduler else (),
            f"'{loaded.scheduler}' is not a tls:// address with a port: without TLS, whoever reaches it "
            "could run code on all hosts",
            hint="write tls://HOST:8786, and start it with --tls-ca-file, --tls-cert and --tls-key",
        )
    if loaded.tls is None:
        raise document.refuse(
            ("scheduler",),
            "its tls files are missing",
            hint="write tls: {ca: ca.pem, certificate: me.pem, key: me.key}",
        )
    for step in ("ca", "certificate", "key"):
        path: str = getattr(loaded.tls, step)
        if not Path(path).is_file():
            raise document.refuse(
                ("tls", step),
                f"no such file: {path}",
                hint=f"paths are relative to the directory of {loaded.path.name}",
            )

"""`hosts.yml`: which hosts there are, what each may carry, and how it is reached."""

import errno
import ipaddress
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError
from benchctl.yaml_file import Document, read_typed

Carried = Literal["nodes", "load"]
_TLS = "tls://"


class TlsFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What this host shows, and whom it believes; paths are relative to the file that names them.

    Attributes:
        ca: of the authority that signed all certificates of these hosts, PEM.
        certificate: of this host, PEM.
        key: of that certificate, PEM.
    """

    ca: str
    certificate: str
    key: str


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One host.

    Attributes:
        carries: what runs there.
        local: whether it is the one that benchctl itself runs on; all others have a Dask worker of their
            name.
        address: where other hosts reach its nodes; empty where all load comes from the same host.
    """

    carries: Annotated[tuple[Carried, ...], Meta(min_length=1)]
    local: bool = False
    address: str = ""


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hosts: Annotated[dict[str, Host], Meta(min_length=1)]
    scheduler: str = ""
    tls: TlsFiles | None = None


@dataclass(frozen=True)
class Hosts:
    """All hosts of a file.

    Attributes:
        path: of the file.
        hosts: by name, in its order.
        scheduler: address of the Dask scheduler; empty when all is local.
        tls: files of the connection to it.
    """

    path: Path
    hosts: dict[str, Host]
    scheduler: str
    tls: TlsFiles | None

    @property
    def load(self) -> tuple[str, ...]:
        """Names of those that load comes from."""
        return tuple(name for name, host in self.hosts.items() if "load" in host.carries)

    @property
    def remote(self) -> tuple[str, ...]:
        """Names of those that are reached by Dask."""
        return tuple(name for name, host in self.hosts.items() if not host.local)

    @property
    def nodes_at(self) -> str:
        """The address of nodes on this host for all others; empty where none is given."""
        return next((host.address for host in self.hosts.values() if host.address), "")

    def check_nodes(self) -> None:
        """Check that nodes of this host can be reached from wherever load comes from.

        Raises:
            UsageError: they cannot.
        """
        away = [name for name in self.load if name in self.remote]
        if away and not self.nodes_at:
            raise UsageError(
                f"nodes listen on loopback, where the load of {', '.join(away)} does not reach them",
                hint=f"name this host in {self.path}, with local: true, carries: [nodes], and an address "
                "that others reach",
            )
        if self.nodes_at:
            with socket.socket(socket.AF_INET6 if ":" in self.nodes_at else socket.AF_INET) as probe:
                try:
                    probe.bind((self.nodes_at, 0))
                except OSError as err:
                    if err.errno != errno.EADDRNOTAVAIL:
                        raise
                    raise UsageError(
                        f"{self.path}: no interface of this host has the address {self.nodes_at}",
                        hint="see: ip address",
                    ) from err


def load_hosts(path: Path) -> Hosts:
    """Read a file of hosts.

    Raises:
        UsageError: it cannot be read, or something in it is wrong: with file, line and column.
    """
    typed = read_typed(path, _Form)
    form, document = typed.value, typed.document
    found = Hosts(path.absolute(), form.hosts, form.scheduler, _found(form.tls, path.absolute().parent))
    for name, host in form.hosts.items():
        _check_host(name, host, document)
    if not found.load:
        raise document.refuse(("hosts",), "no host carries load", hint="give one of them carries: [load]")
    locals_ = [name for name, host in form.hosts.items() if host.local]
    if len(locals_) > 1:
        raise document.refuse(
            ("hosts", locals_[1]),
            f"'{locals_[1]}' and '{locals_[0]}' are both local, and there is one host that benchctl runs on",
            hint="leave one of them out",
        )
    if found.remote:
        _check_way(found, document)
        if find_spec("distributed") is None:
            raise UsageError(
                "other hosts are reached by Dask distributed, which is not installed",
                hint="pip install 'benchctl[hosts]', here and on all of them",
            )
    return found


def _found(tls: TlsFiles | None, folder: Path) -> TlsFiles | None:
    if tls is None:
        return None
    return TlsFiles(*(str(folder / path) for path in (tls.ca, tls.certificate, tls.key)))


def _check_host(name: str, host: Host, document: Document) -> None:
    if "nodes" in host.carries and not host.local:
        raise document.refuse(
            ("hosts", name, "carries"),
            f"'{name}' is to carry nodes and is not local: nodes are started on the host of benchctl only",
            hint="run benchctl there, or name a cluster that runs there with --target",
        )
    if not host.address:
        return
    if "nodes" not in host.carries:
        raise document.refuse(
            ("hosts", name, "address"),
            f"'{name}' has an address for its nodes and carries none",
            hint="leave it out; hosts of load are reached by their Dask workers",
        )
    try:
        usable = not ipaddress.ip_address(host.address).is_unspecified
    except ValueError:
        usable = False
    if not usable:
        raise document.refuse(
            ("hosts", name, "address"),
            f"'{host.address}' is not the IP address of one interface",
            hint="nodes have no password: take the address of a network that only these hosts are in",
        )


def _check_way(found: Hosts, document: Document) -> None:
    away = ", ".join(found.remote)
    if not found.scheduler:
        raise document.refuse(
            (), f"nothing says how {away} can be reached", hint="write scheduler: tls://HOST:8786"
        )
    if not found.scheduler.startswith(_TLS):
        raise document.refuse(
            ("scheduler",),
            f"'{found.scheduler}' is not a {_TLS} address: without TLS, whoever reaches the port could run "
            "code on all hosts",
            hint="start scheduler and workers with --tls-ca-file, --tls-cert and --tls-key",
        )
    if found.tls is None:
        raise document.refuse(
            ("scheduler",),
            "its tls files are missing",
            hint="write tls: {ca: ca.pem, certificate: me.pem, key: me.key}",
        )
    for step in ("ca", "certificate", "key"):
        path: str = getattr(found.tls, step)
        if not Path(path).is_file():
            raise document.refuse(("tls", step), f"there is no file {path}")

"""`hosts.yml`: which hosts there are, what each may carry, and how it is reached."""

import errno
import ipaddress
import itertools
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import LoadHostFacts
from benchctl.results.plan import NodeSpec
from benchctl.yaml_file import Document, read_typed

if TYPE_CHECKING:
    from benchctl.hosts.site import Kit

Carried = Literal["nodes", "load"]
_TLS = "tls://"
_PORT = re.compile(r"[^/:]:\d{1,5}$", re.ASCII)
# Messages of a handshake go to and fro twice.
_HANDSHAKE_ROUNDS = 4


class TlsFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """TLS certificate, key and authority; paths are relative to the file that names them."""

    ca: str  # certificate of the authority that signed those of all hosts, PEM
    certificate: str  # certificate of this host, PEM
    key: str  # key of the certificate, PEM


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host."""

    carries: Annotated[tuple[Carried, ...], Meta(min_length=1, description="a list such as [nodes, load]")]
    # True for the host that benchctl runs on; all others have a Dask worker with the host's name.
    local: bool = False
    address: str = ""  # address for other hosts; empty if all nodes and load are on this host


class HostsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of hosts as written."""

    hosts: Annotated[dict[str, Host], Meta(min_length=1)]  # hosts by name
    scheduler: str = ""  # address of the Dask scheduler, `tls://HOST:PORT`
    tls: TlsFiles | None = None  # certificates of the connection to the scheduler


@dataclass(frozen=True)
class Hosts:
    """The hosts of a file."""

    path: Path
    hosts: dict[str, Host]  # by name, in its order
    scheduler: str  # address of the Dask scheduler; empty when all is local
    tls: TlsFiles | None  # files of the connection to it

    @property
    def load(self) -> tuple[str, ...]:
        """Names of those that load comes from; empty where that is this one alone, named or not."""
        names = tuple(name for name, host in self.hosts.items() if "load" in host.carries)
        return names if any(not self.hosts[name].local for name in names) else ()

    @property
    def load_elsewhere(self) -> tuple[str, ...]:
        """Names of those that load comes from and benchctl does not run on."""
        return tuple(name for name in self.load if not self.hosts[name].local)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of those that carry nodes."""
        return tuple(name for name, host in self.hosts.items() if "nodes" in host.carries)

    @property
    def remote(self) -> tuple[str, ...]:
        """Names of those that are reached by Dask."""
        return tuple(name for name, host in self.hosts.items() if not host.local)

    @property
    def nodes_at(self) -> str:
        """The address of nodes on this host for all others; empty where none is given."""
        return next((host.address for host in self.hosts.values() if host.local), "")

    def placed(self, variant: str, nodes: Sequence[NodeSpec]) -> tuple[str, ...]:
        """Return the host of each node of a variant: as the node says, all others in turn.

        Empty for that of benchctl, which carries nodes if no other does.

        Raises:
            UsageError: If a node is to be on a host that carries none.
        """
        turns = itertools.cycle(self.nodes or ("",))
        chosen = []
        for node in nodes or (NodeSpec(""),):
            if node.host and node.host not in self.nodes:
                raise UsageError(
                    f"variant '{variant}': node '{node.name}' is to be on '{node.host}', and no host of "
                    f"that name carries nodes in {self.path}",
                    hint=f"those that do: {', '.join(self.nodes) or 'none'}",
                )
            chosen.append(node.host or next(turns))
        return tuple("" if not name or self.hosts[name].local else name for name in chosen)

    def check_nodes(self, spreads: Sequence[Sequence[str]] | None = None) -> None:
        """Check that nodes of this host can be reached from wherever load and their other nodes are.

        Args:
            spreads: of each variant, the hosts of its nodes, as `placed`; None for one with a node on each.

        Raises:
            UsageError: If they cannot.
        """
        if spreads is None:
            spreads = (self.placed("", [NodeSpec("", host=name) for name in self.nodes]),)
        here = [spread for spread in spreads if "" in spread]
        if not here:
            return
        away = self.load_elsewhere
        nodes = [name for name in self.remote if any(name in node_hosts for node_hosts in here)]
        if (away or nodes) and not self.nodes_at:
            who = f"the load of {', '.join(away)} does" if away else f"nodes on {', '.join(nodes)} do"
            raise UsageError(
                f"nodes listen on loopback, where {who} not reach them",
                hint=f"name this host in {self.path}, with local: true, carries: [nodes], and an address "
                "that others reach",
            )
        if self.nodes_at:
            try:
                require_address(self.nodes_at)
            except BenchctlError as err:
                raise UsageError(f"{self.path}: {err.message}", hint="see: ip address") from err


@dataclass(frozen=True)
class Spread:
    """The nodes of a variant that are on other hosts."""

    hosts: Hosts
    by_host: Mapping[str, tuple[str, ...]]  # host -> names of its nodes; of a single node, empty
    own: tuple[str, ...]  # names of the nodes that are on the host of benchctl
    # Host -> what nodes run there, once that is known.
    kits: "Mapping[str, Kit]" = field(default_factory=dict)
    facts: Mapping[str, LoadHostFacts] = field(default_factory=dict)  # host -> what it is, likewise
    # Of the hosts that nodes are on, those that are one machine; empty for that of benchctl.
    machines: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, hosts: Hosts, names: Sequence[str], placed: Sequence[str]) -> "Spread | None":
        """Return that of a variant's placed nodes; None if all are on benchctl's host."""
        by_host: dict[str, tuple[str, ...]] = {}
        for name, host in zip(names, placed, strict=True):
            by_host[host] = (*by_host.get(host, ()), name)
        own = by_host.pop("", ())
        return cls(hosts, by_host, own) if by_host else None


def require_address(address: str) -> None:
    """Check that this host has an address.

    Raises:
        BenchctlError: If none of its interfaces has.
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        try:
            probe.bind((address, 0))
        except OSError as err:
            if err.errno != errno.EADDRNOTAVAIL:
                raise
            raise BenchctlError(
                f"the host has no interface with the address {address}", hint="see there: ip address"
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
    loaded = Hosts(path.absolute(), form.hosts, form.scheduler, tls)
    by_address: dict[str, str] = {}
    for name, host in form.hosts.items():
        _check_host(name, host, document)
        if host.address and (other := by_address.setdefault(host.address, name)) != name:
            raise document.refuse(
                ("hosts", name, "address"),
                f"'{name}' and '{other}' have the same address",
                hint="give each host its own; nodes of one host find free ports",
            )
    locals_ = [name for name, host in form.hosts.items() if host.local]
    if len(locals_) > 1:
        raise document.refuse(
            ("hosts", locals_[1]),
            f"'{locals_[1]}' and '{locals_[0]}' are both local, and there is one host that benchctl runs on",
            hint="use only one of them",
        )
    if loaded.remote:
        _check_way(loaded, document)
        if find_spec("distributed") is None:
            raise UsageError(
                "other hosts are reached by Dask distributed, which is not installed",
                hint="pip install 'benchctl[hosts]', here and on all of them",
            )
    return loaded


def _check_host(name: str, host: Host, document: Document) -> None:
    if not host.address:
        if "nodes" in host.carries and not host.local:
            raise document.refuse(
                ("hosts", name, "carries"),
                f"'{name}' is to carry nodes, and has no address at which others reach them",
                hint="write one of a network that only these hosts are in: nodes have no password",
            )
        return
    if "nodes" not in host.carries:
        raise document.refuse(
            ("hosts", name, "address"),
            f"'{name}' has an address for its nodes and carries none",
            hint="remove it; hosts of load are reached by their Dask workers",
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


def _check_way(loaded: Hosts, document: Document) -> None:
    away = ", ".join(loaded.remote)
    if not loaded.scheduler:
        raise document.refuse(
            (), f"unknown how {away} can be reached", hint=f"write scheduler: {_TLS}HOST:8786"
        )
    if not loaded.scheduler.startswith(_TLS):
        raise document.refuse(
            ("scheduler",),
            f"'{loaded.scheduler}' is not a {_TLS} address: without TLS, whoever reaches the port could run "
            "code on all hosts",
            hint="start scheduler and workers with --tls-ca-file, --tls-cert and --tls-key",
        )
    if not _PORT.search(loaded.scheduler):
        raise document.refuse(
            ("scheduler",), f"'{loaded.scheduler}' has no port", hint=f"write scheduler: {_TLS}HOST:8786"
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
    _check_tls(loaded.tls, document)


def _check_tls(tls: TlsFiles, document: Document) -> None:
    """Refuse files with which no other host could be reached, before anything is blamed on one."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.check_hostname, ours.verify_mode = False, ssl.CERT_NONE
    theirs.verify_mode = ssl.CERT_REQUIRED
    try:
        theirs.load_verify_locations(tls.ca)
    except (ssl.SSLError, OSError) as err:
        raise document.refuse(
            ("tls", "ca"), f"{tls.ca} is not the certificate of an authority: {_tls_words(err)}"
        ) from err
    for side in (theirs, ours):
        try:
            side.load_cert_chain(tls.certificate, tls.key, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as err:
            raise document.refuse(
                ("tls", "key"),
                f"{tls.key} is not the key of {tls.certificate}, or one of them cannot be read: "
                f"{_tls_words(err)}",
                hint="both in PEM, the key without a password",
            ) from err
    try:
        _shake_hands(theirs, ours)
    except ssl.SSLError as err:
        raise document.refuse(
            ("tls", "certificate"),
            f"{tls.ca} does not vouch for {tls.certificate}: {_tls_words(err)}",
            hint="sign it with the key of that authority, for clients and servers",
        ) from err


def _no_password() -> str:
    raise ValueError("the key has a password")


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Have the one see the other's certificate, as a scheduler sees that of this host."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(_HANDSHAKE_ROUNDS):
        for side in sides:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()


def _tls_words(err: Exception) -> str:
    """Return OpenSSL's reason, in words, or whatever else was wrong."""
    message = getattr(err, "verify_message", "")
    return message or (getattr(err, "reason", None) or str(err)).replace("_", " ").lower()

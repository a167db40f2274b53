"""Hosts on one machine: network namespaces on a bridge, each with a loopback, a clock and a Dask worker."""

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import trustme

IP, UNSHARE = (shutil.which(tool) or "" for tool in ("ip", "unshare"))
PORT = 8786
READY_S = 60.0
# Addresses of the loopback range do not leave the machine, whatever becomes of a namespace.
_NET = "127.77.0"
_DASK = [sys.executable, "-P", "-m", "dask"]
# Tests share the machine: the scheduler's page and the workers' profiler take CPU.
_QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "warning",
}


def why_not() -> str:
    """Why there can be no namespaces here; empty when there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not (IP and UNSHARE):
        return "there is no ip, or no unshare"
    name = f"bc{uuid.uuid4().hex[:6]}"
    tried = subprocess.run([IP, "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"network namespaces are refused: {tried.stderr.strip()}"
    _ip("netns", "del", name)
    clock = subprocess.run(
        [UNSHARE, "--time", "--monotonic", "5", "true"], capture_output=True, text=True, check=False
    )
    return f"time namespaces are refused: {clock.stderr.strip()}" if clock.returncode else ""


@dataclass
class Lan:
    """Namespaces that reach each other, and nothing else.

    Attributes:
        tag: what the names of the namespaces begin with.
        addresses: name -> address.
        folder: of certificates and of what workers write.
        running: what was started, by name.
    """

    tag: str
    addresses: dict[str, str]
    folder: Path
    running: dict[str, Popen[Any]] = field(default_factory=dict)

    def within(self, name: str, command: Sequence[str], clock_s: int = 0) -> list[str]:
        """A command in a namespace, whose monotonic clock is so many seconds ahead."""
        ahead = str(clock_s)
        clock = [UNSHARE, "--time", "--monotonic", ahead, "--boottime", ahead] if clock_s else []
        return [IP, "netns", "exec", f"{self.tag}-{name}", *clock, *command]

    def start(self, name: str, command: Sequence[str], *, clock_s: int = 0, **variables: str) -> None:
        """Start a command there; it ends with the LAN."""
        if name in self.running:
            self.running[name].wait(READY_S)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = Popen(
                self.within(name, command, clock_s),
                stdout=log,
                stderr=log,
                env={**os.environ, **_QUIET, **variables},
                cwd=self.folder,
            )

    def vanish(self, name: str) -> None:
        """Take a host's cable away: nobody is told."""
        _ip("-n", f"{self.tag}-sw", "link", "set", f"p-{name}", "down")

    def come_back(self, name: str) -> None:
        """Put it back."""
        _ip("-n", f"{self.tag}-sw", "link", "set", f"p-{name}", "up")

    @property
    def tls(self) -> list[str]:
        """Options of Dask's own commands."""
        options = {"ca-file": "ca.pem", "cert": "host.pem", "key": "host.key"}
        return [word for name, file in options.items() for word in (f"--tls-{name}", str(self.folder / file))]

    @property
    def scheduler(self) -> str:
        """The address of its Dask scheduler, which runs on the first host."""
        return f"tls://{next(iter(self.addresses.values()))}:{PORT}"

    def dask_scheduler(self) -> None:
        """Start the scheduler."""
        first, address = next(iter(self.addresses.items()))
        command = [*_DASK, "scheduler", "--host", f"tls://{address}:{PORT}", "--no-dashboard", *self.tls]
        self.start(first, command)

    def dask_worker(self, name: str, clock_s: int = 0, *more: str, **variables: str) -> None:
        """Start a worker on a host, with more options of Dask's."""
        command = [
            *_DASK,
            "worker",
            self.scheduler,
            "--name",
            name,
            "--host",
            f"tls://{self.addresses[name]}",
        ]
        options = ["--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
        options += ["--local-directory", str(self.folder / f"work-{name}")]
        self.start(name, [*command, *options, *self.tls, *more], clock_s=clock_s, **variables)

    def pids(self, name: str) -> list[int]:
        """Processes in a namespace."""
        listed = subprocess.run(
            [IP, "netns", "pids", f"{self.tag}-{name}"], capture_output=True, text=True, check=True
        )
        return [int(word) for word in listed.stdout.split()]


@contextmanager
def lan(folder: Path, *names: str) -> Iterator[Lan]:
    """Hosts of these names, with certificates for Dask; all is gone afterwards."""
    tag = f"bc{uuid.uuid4().hex[:6]}"
    made = Lan(tag, {name: f"{_NET}.{number}" for number, name in enumerate(names, 1)}, folder)
    certify(folder)
    with ExitStack() as stack:
        switch = f"{tag}-sw"
        _ip("netns", "add", switch)
        stack.callback(_ip, "netns", "del", switch)
        _ip("-n", switch, "link", "add", "br0", "up", "type", "bridge")
        for name, address in made.addresses.items():
            space = f"{tag}-{name}"
            _ip("netns", "add", space)
            stack.callback(_ip, "netns", "del", space)
            # The usual loopback has all of its range, and would keep what is for the others.
            _ip("-n", space, "address", "add", "127.0.0.1/32", "dev", "lo")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "address", "del", "127.0.0.1/8", "dev", "lo", check=False)
            _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", f"p-{name}", "netns", switch)
            _ip("-n", switch, "link", "set", f"p-{name}", "master", "br0", "up")
            _ip("netns", "exec", space, "sysctl", "-qw", "net.ipv4.conf.all.route_localnet=1")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
        stack.callback(_end, made)
        yield made


def _end(made: Lan) -> None:
    for process in made.running.values():
        process.kill()
        process.wait()


def certify(folder: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    shown = authority.issue_cert("127.0.0.1")
    shown.private_key_pem.write_to_path(folder / "host.key")
    (folder / "host.pem").write_bytes(b"".join(blob.bytes() for blob in shown.cert_chain_pems))


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run([IP, *words], check=check, capture_output=True)

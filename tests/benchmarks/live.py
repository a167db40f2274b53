"""Rows that need more than the load generator: a real node, and benchctl's command line."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
from jobs import Job, run_job
from lines import Line
from setting import Setting, verdict

from benchctl.cli.run_options import specs_of
from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.node import Node
from benchctl.home import open_folder, resolve_home
from benchctl.lock import host_lock
from benchctl.spec import RunForm
from benchctl.track.load import load_track

_CHALLENGE = {"name": "one", "schedule": [{"operation": "range", "iterations": 1}]}
_COMMAND_TIMEOUT_S = 60.0
_LOOK_EVERY_S = 0.01
_REASON_LENGTH = 200


def without_node(_setting: Setting) -> list[Line]:
    """The line of `start` when no node is to be had."""
    return [_start_line(None, "takes --real")]


def real_node(setting: Setting) -> list[Line]:
    """Both rows on a fresh OpenSearch node: bulk by two clients, then a run on it as on any live cluster."""
    home = resolve_home()
    spec = specs_of(RunForm(), ("os",))[0]
    with (
        ExitStack() as host,
        tempfile.TemporaryDirectory(prefix="bench-real-", dir=home.scratch) as folder,
    ):
        host.enter_context(host_lock(wait=False, on_wait=lambda _: None))
        with Node(
            install(home, spec, _silent),
            provide_jdk(home, spec.jdk),
            data=open_folder(Path(folder)) / "data",
            folder=Path(folder) / "boot",
            owner=home.node_owner,
            heap_mb=1024,
        ) as node:
            bulk = _bulk_line(setting, node)
            # The run takes the host for itself.
            host.close()
            return [_start_line(*_seconds_to_first_search(node, Path(folder))), bulk]


def _bulk_line(setting: Setting, node: Node) -> Line:
    """Two bulk clients: the client's share of the CPU that both take."""
    corpus = setting.corpus()
    track, _ = load_track("big5", {})
    body = {"settings": track.indices[0].body.settings, "mappings": track.indices[0].body.mappings}
    node.client.create_index(track.indices[0].name, body)
    node_s = node.cpu_seconds()
    done = run_job(
        Job(
            contestant="benchctl",
            work="bulk",
            url=_url(node),
            clients=2,
            corpus=str(corpus.root),
            documents=min(setting.size.documents, corpus.documents),
            index=track.indices[0].name,
        )
    )
    node_s = node.cpu_seconds() - node_s
    node.client.refresh(track.indices[0].name)
    share = done.cpu_s / (done.cpu_s + node_s)
    return Line(
        what="real OpenSearch node, 2 bulk clients: client's share of the CPU",
        osb="9-10%",
        benchctl=f"{share:.2%}",
        against=f"{share:.2%} at {done.per_s:,.0f} docs/s",
        goal="2%",
        verdict=verdict(reached=share <= 0.02),
        figures={"client_s": done.cpu_s, "node_s": node_s, "docs_per_s": done.per_s},
    )


def _start_line(seconds: float | None, reason: str = "") -> Line:
    """From the command to the first search on a node that is up, the check of answers included."""
    return Line(
        what="start to first request, live node, s",
        rally="16.6",
        osb="2.3",
        benchctl="n/a" if seconds is None else f"{seconds:.2f}",
        against=reason or "-",
        goal="1 s",
        verdict="n/a" if seconds is None else verdict(reached=seconds <= 1),
        figures={} if seconds is None else {"seconds": seconds},
    )


def _seconds_to_first_search(node: Node, folder: Path) -> tuple[float | None, str]:
    """Seconds by the node's own count of searches, or why there are none."""
    challenge = folder / "one.json"
    challenge.write_bytes(msgspec.json.encode(_CHALLENGE))
    command = [sys.executable, "-P", "-m", "benchctl", "run", "--target", f"live={_url(node)}"]
    command += ["--challenge", str(challenge), "--forks", "1", "--quiet"]
    before = node.client.node_search_count()
    began = time.monotonic()
    environ = os.environ | {"BENCHCTL_HOME": str(folder / "home")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ) as run:
        while run.poll() is None:
            if node.client.node_search_count() > before:
                seconds = time.monotonic() - began
                run.communicate(timeout=_COMMAND_TIMEOUT_S)
                return seconds, ""
            time.sleep(_LOOK_EVERY_S)
        said = run.communicate()[0].decode(errors="replace").strip()
    return None, said[:_REASON_LENGTH] or "no search came"


def _url(node: Node) -> str:
    return f"http://127.0.0.1:{node.http_port}"


def _silent(_what: str, _done: int, _total: int) -> None:
    """Downloads are not what this row is about."""

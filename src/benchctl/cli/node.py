"""`benchctl node`: one node to play with."""

from pathlib import Path
from typing import Literal

import click
import psutil

from benchctl.cli.run_options import resolve_variants, setting_option, variants_option
from benchctl.cli.streams import complain, say
from benchctl.cli.watch import watching
from benchctl.engine.equipment import check_asked
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import resolve_home
from benchctl.lock import host_lock
from benchctl.quantities import SIZE
from benchctl.results.plan import VariantSpec
from benchctl.run.prepare import check_heap
from benchctl.run.standalone import (
    check_port,
    node_folder,
    only_node,
    remove,
    running_nodes,
    serve,
    start_in_background,
    stop_in_background,
)
from benchctl.spec import setting

_VARIANT = click.argument("variant", default="es")
_ONE = click.argument("variant", required=False)
_HEAP = setting_option("heap", "JVM heap per node, e.g. 512m or 4g.  [default: 1g]")
_PORT = click.option(
    "--port", type=click.IntRange(1, 65535), default=None, help="HTTP port.  [default: a free one]"
)
_JDK = click.option(
    "--jdk", default=None, metavar="PATH|MAJOR", help="Java home, or a major version to fetch."
)


@click.group("node")
def node_group() -> None:
    """Start, stop and inspect standalone nodes."""


@node_group.command("start")
@_VARIANT
@_HEAP
@_PORT
@_JDK
@variants_option
@click.option(
    "--on-busy",
    type=click.Choice(["wait", "fail"]),
    default="fail",
    show_default=True,
    help="While another benchctl is measuring: wait or fail.",
)
def start_command(
    variant: str,
    heap: str | None,
    port: int | None,
    jdk: str | None,
    variants_file: Path | None,
    *,
    on_busy: Literal["wait", "fail"],
) -> None:
    """Start a node in the background.

    Its index settings and warm-up challenges mean nothing here: there is no index, and nothing is run.
    """
    spec = resolve_variants((variant,), (jdk,) if jdk else (), variants_file)[0]
    home = resolve_home()
    check_heap(_heap(spec, heap), psutil.virtual_memory().total, spec.node_count)
    if port is not None and len(spec.nodes) > 1:
        raise UsageError(
            f"--port is one node's, and {spec.name} has {len(spec.nodes)}",
            hint="remove it; see the ports with: benchctl node status",
        )
    check_asked(home, spec)
    if port is not None and node_folder(home, spec.name).state() is None:
        check_port(port)
    arguments = [variant]
    for option, value in (("--heap", heap), ("--port", port), ("--jdk", jdk),
                          ("--variants", variants_file and variants_file.absolute())):  # fmt: skip
        arguments += [option, str(value)] if value else []
    # A node that starts in the middle of a measurement would be measured, too.
    with host_lock(wait=on_busy == "wait", on_wait=lambda who: complain(f"waiting for {who}")):
        state = start_in_background(home, spec.name, arguments)
    say(f"{state.variant} {state.version} listens on {state.url} (pid {state.node_pid})")


@node_group.command("serve", hidden=True)
@_VARIANT
@_HEAP
@_PORT
@_JDK
@variants_option
def serve_command(
    variant: str,
    heap: str | None,
    port: int | None,
    jdk: str | None,
    variants_file: Path | None,
) -> None:
    """Run a node in the foreground."""
    spec = resolve_variants((variant,), (jdk,) if jdk else (), variants_file)[0]
    with watching(quiet=False) as observer:
        serve(resolve_home(), spec, _heap(spec, heap), port, observer)


def _heap(spec: VariantSpec, heap: str | None) -> int:
    if heap is None and spec.heap_mb is not None:
        return spec.heap_mb
    return SIZE.parse(heap or setting("heap").default)


@node_group.command("stop")
@_ONE
@click.option("--remove", "delete", is_flag=True, help="Delete its data as well.")
def stop_command(variant: str | None, *, delete: bool) -> None:
    """Stop a node.

    VARIANT defaults to the only running node. Its data stays unless --remove is given.
    """
    home = resolve_home()
    variant = variant or only_node(home, "stop")
    if not delete or node_folder(home, variant).state() is not None:
        stop_in_background(home, variant)
    if delete:
        remove(home, variant)
    say(f"{variant} is stopped")


@node_group.command("status")
def status_command() -> None:
    """List running nodes."""
    states = list(running_nodes(resolve_home()))
    for state in states:
        say(f"{state.variant}  {state.version}  {state.url}  pid {state.node_pid}")
    if not states:
        say("no node is up")


@node_group.command("logs")
@_ONE
@click.option("-n", "--lines", type=click.IntRange(1), default=50, show_default=True, help="How many lines.")
def logs_command(variant: str | None, lines: int) -> None:
    """Print the last lines of a node's log.

    VARIANT defaults to the only running node.
    """
    home = resolve_home()
    variant = variant or only_node(home, "logs")
    folder = node_folder(home, variant)
    paths = folder.node_logs or [path for path in (folder.log,) if path.is_file()]
    if not paths:
        raise BenchctlError(f"no log of node {variant}", hint="see: benchctl node status")
    for path in paths:
        if len(paths) > 1:
            say(f"{path.parent.name}:")
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
            say(line)

"""Configuration of a node start: settings file, JVM options, environment, and folders."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import yaml

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Owner
from benchctl.results.plan import EngineName

# But not tokenizers.
_TELLING = re.compile(
    r"secret|pass(?:w|phrase)|[._-]pass$|pwd|token(?!i[sz])|credential|(?:api|access|private)[._-]?key",
    re.IGNORECASE,
)
# System properties may be key store passwords, also within commands that a JVM runs at its end.
_PROPERTY_NAME = re.compile(r"-D(?P<name>[^=\s]+)=")


def without_secrets(flag: str) -> str:
    """Return a JVM flag, without its value if that seems to be a secret."""
    secret = next((found for found in _PROPERTY_NAME.finditer(flag) if _TELLING.search(found["name"])), None)
    return flag if secret is None else f"{flag[: secret.end()]}{{secret}}"


JVM_OPTIONS_NAME = "benchctl.options"

# With other values, a node start would be lost, unreachable, open to the network, or alone.
OWN_SETTINGS = frozenset(
    {"path.data", "path.logs", "network.host", "node.portsfile", "discovery.type"}
    | {"discovery.seed_providers", "discovery.seed_hosts", "gateway.expected_data_nodes"}
    | {"cluster.initial_master_nodes", "cluster.initial_cluster_manager_nodes"}
)

# Everything else that determines where a node listens; `http.host.0` is the first of a list.
_LISTENS = re.compile(
    r"(.+\.(bind|publish)_host|(network|http|transport|remote_cluster|grpc|(arrow\.)?flight)\.host)(\.\d+)?"
)

# The folders of a node start; below, variables with JVM flags that no record would show.
_OWN_VARIABLES = frozenset(
    {"HOME", "TMPDIR", "JAVA_HOME"}
    | {
        f"{engine}_{name}"
        for engine in ("ES", "OPENSEARCH")
        for name in ("HOME", "PATH_CONF", "JAVA_HOME", "TMPDIR")
    }
)
_FLAG_VARIABLES = frozenset(
    {
        "ES_JAVA_OPTS",
        "OPENSEARCH_JAVA_OPTS",
        "JAVA_OPTS",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
    }
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_PROPERTY = re.compile(r"-D(?P<name>[^=]+)=(?P<value>.+)")
_DEBUGGER = re.compile(r"(?:-agentlib:jdwp=|-Xrunjdwp:)(?:.*,)?address=(?P<address>[^,]*)")
_HEAP = re.compile(r"-Xmx|-XX:MaxHeapSize=")
_JMX = "com.sun.management.jmxremote"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})

_ADDED_MODULES = re.compile(r"^(?:\d+(?:-\d*)?:)?--add-modules=(?P<modules>\S+)$")
_GC_LOG = re.compile(
    r"(?P<option>-Xlog:[^:]*:file=|-Xloggc:)(?P<path>[^:\s]+)(?P<decorations>:[a-z]+(?:,[a-z]+)*(?=:|$))?"
)


class BootFolders:
    """The folders of one node start, below a root that belongs to it alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config"  # settings file, JVM options, keystore
        self.logs = root / "logs"  # the engine's, GC log, crash files, heap dumps, and the file of ports
        self.temporary = root / "tmp"
        self.repository = root / "repository"  # of snapshots, which would outlive the start; removed with it
        self.stdout = root / "stdout.log"
        self.stderr = root / "stderr.log"
        self.http_ports = self.logs / "http.ports"  # the node's addresses once it is listening

    @classmethod
    def create(cls, root: Path) -> Self:
        """Create the folders.

        Raises:
            BenchctlError: If a folder exists, or the file system refuses.
        """
        folders = cls(root.absolute())
        try:
            for folder in (folders.logs, folders.temporary):
                folder.mkdir(parents=True)
        except FileExistsError as err:
            raise BenchctlError(
                f"{folders.root} holds an earlier node start", hint="give every start its own directory"
            ) from err
        except OSError as err:
            raise BenchctlError(f"cannot create {folders.root} for a node: {err.strerror}") from err
        return folders


def write_config(
    boot: BootFolders,
    installation: Installation,
    jdk: Jdk,
    *,
    heap_mb: int,
    jvm_flags: Sequence[str],
    settings: Mapping[str, Any],
    data: Path,
    listen: str = "",
) -> None:
    """Write a start's own configuration folder, based on a copy of the shipped one.

    `heap_mb` is both smallest and largest heap, MiB. The flags come after all others, and the settings
    override benchctl's own. Requests come in at the address `listen`, if there is one, else on loopback.

    Raises:
        UsageError: If benchctl cannot pass on a flag or setting.
        BenchctlError: If the file system refuses.
    """
    options = _own_jvm_options(boot, heap_mb, check_flags(installation.engine, jvm_flags))
    merged = {**_own_settings(boot, installation, data), **check_settings(settings)}
    if listen:
        # What binds nodes to each other stays on loopback: then there are no production checks to pass.
        merged["http.host"] = listen
    try:
        # Contents only: the modes of a read-only installation would carry over and lock the node out.
        shutil.copytree(installation.root / "config", boot.config, copy_function=shutil.copyfile)
        boot.config.chmod(0o755)
        shipped = boot.config / "jvm.options"
        shipped.write_text(adapt_jvm_options(shipped.read_text(), jdk.modules, boot.logs))
        extra = boot.config / "jvm.options.d"
        extra.mkdir(exist_ok=True)
        extra.chmod(0o755)
        (extra / JVM_OPTIONS_NAME).write_text("".join(f"{line}\n" for line in options))
        file = boot.config / f"{installation.engine}.yml"
        file.write_text(yaml.safe_dump(merged, sort_keys=True))
    except OSError as err:
        raise BenchctlError(
            f"cannot write the node's configuration to {boot.config}: {err.strerror} ({err.filename})"
        ) from err


def adapt_jvm_options(text: str, modules: frozenset[str], logs: Path) -> str:
    """Adapt the shipped JVM options; lines that need no change stay as shipped.

    Lines that add a module which the runtime lacks are dropped, since they stop the JVM, and the GC log,
    relative to a folder that is not writable, goes to the start's own logs.

    Args:
        text: content of the shipped jvm.options.
        modules: of the Java runtime.
        logs: the start's log folder.
    """
    kept = [line for line in text.splitlines() if _addable(line, modules)]
    return "".join(f"{_GC_LOG.sub(lambda found: _redirect(found, logs), line)}\n" for line in kept)


def _addable(line: str, modules: frozenset[str]) -> bool:
    added = _ADDED_MODULES.match(line.strip())
    return added is None or all(name in modules for name in added["modules"].split(","))


def _redirect(found: re.Match[str], logs: Path) -> str:
    # Shipped options log wall times only, and that clock may be set while a node runs.
    decorations = f"{found['decorations']},timenanos" if found["decorations"] else ""
    return f"{found['option']}{logs / Path(found['path']).name}{decorations}"


def _own_jvm_options(boot: BootFolders, heap_mb: int, flags: Sequence[str]) -> list[str]:
    """The lines after the shipped JVM options: heap, crash files, and the user's flags last."""
    return [
        f"-Xms{heap_mb}m",
        f"-Xmx{heap_mb}m",
        f"-XX:HeapDumpPath={boot.logs}",
        f"-XX:ErrorFile={boot.logs}/hs_err_pid%p.log",
        *flags,
    ]


def check_flag(engine: EngineName, flag: str) -> str:
    """Return a flag that a JVM options file can carry.

    Raises:
        UsageError: If the flag is not one, has white space, at which OpenSearch's start script would split
            it, or seems to contain a secret.
    """
    if not re.fullmatch(r"-\S+", flag):
        raise UsageError(
            f"{flag!r} is not a JVM flag",
            hint="flags start with '-' and have no white space, such as -XX:-Inline; one flag each",
        )
    # A microbenchmark's JVM has no heap but that of its flags.
    if engine != "jvm" and _HEAP.match(flag):
        raise UsageError(
            f"the JVM flag {flag} would set another heap than the one that is checked, recorded and printed",
            hint="give the variant its heap: heap:2g, or all of them: --heap 2g",
        )
    if (shown := without_secrets(flag)) != flag:
        raise UsageError(
            f"the JVM flag {shown} seems to contain a secret",
            hint="variants are recorded with their runs and printed in reports",
        )
    return flag


def check_flags(engine: EngineName, flags: Sequence[str]) -> Sequence[str]:
    """Return the flags if a node can have all of them together.

    Raises:
        UsageError: If `check_flag` raises it, or if a flag opens the node to the network.
    """
    for flag in flags:
        check_flag(engine, flag)
    if opening := _opening(flags):
        raise UsageError(
            f"the JVM flag {opening} would open the node to the network",
            hint=f"let it listen on 127.0.0.1: with address=127.0.0.1:PORT, or with -D{_JMX}.host=127.0.0.1",
        )
    return flags


def _opening(flags: Sequence[str]) -> str | None:
    """The first flag that opens the JVM to other hosts; a debugger's port alone listens locally."""
    properties = {match["name"]: match["value"] for match in map(_PROPERTY.fullmatch, flags) if match}
    for flag in flags:
        if debugger := _DEBUGGER.match(flag):
            host, colon, _ = debugger["address"].rpartition(":")
            if colon and host not in _LOOPBACK:
                return flag
        if flag.startswith(f"-D{_JMX}.port=") and properties.get(f"{_JMX}.host") not in _LOOPBACK:
            return flag
    return None


def check_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings if none of them is reserved.

    Raises:
        UsageError: If a setting is one of OWN_SETTINGS, or opens the node to the network.
    """
    for name in sorted(settings):
        if name in OWN_SETTINGS or _LISTENS.fullmatch(name):
            raise UsageError(
                f"the node setting {name} is benchctl's own and cannot be set",
                hint="every node start gets its data, logs and ports from benchctl, and listens on loopback",
            )
    return settings


def check_environment(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return a variant's variables if a node can have them.

    Raises:
        UsageError: If a variable names a node's folder, which is reserved; holds JVM flags, which would
            bypass the record of a run's flags; has no valid name; or seems to contain a secret.
    """
    for name in variables:
        if name in _OWN_VARIABLES:
            raise UsageError(
                f"the variable {name} is benchctl's own and cannot be set",
                hint="benchctl sets the directories of every node start; give a Java home as jdk:",
            )
        if name in _FLAG_VARIABLES:
            raise UsageError(
                f"the variable {name} would pass JVM flags that the run does not record",
                hint="give flags as jvm:, and the heap as heap:",
            )
        if not _VARIABLE.fullmatch(name):
            raise UsageError(
                f"'{name}' is not the name of an environment variable",
                hint="use letters, digits and underscores",
            )
        if _TELLING.search(name):
            raise UsageError(
                f"the variable {name} seems to contain a secret",
                hint="variants are recorded with their runs and printed in reports",
            )
    return variables


def _own_settings(boot: BootFolders, installation: Installation, data: Path) -> dict[str, Any]:
    """The settings of every node: loopback, free ports, own folders, no extras."""
    settings: dict[str, Any] = {
        "cluster.name": "benchctl",
        "node.name": "benchctl",
        "discovery.type": "single-node",
        "path.data": str(data.absolute()),
        "path.logs": str(boot.logs),
        "path.repo": [str(boot.repository)],
        "network.host": "127.0.0.1",
        # The kernel picks free ports, without races; the node writes them to a file once it is up.
        "http.port": 0,
        "transport.port": 0,
        "node.portsfile": True,
        # The default refuses shards on a disk that is 85% full; benchctl checks the space it needs itself.
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }
    return settings | switched_off(installation)


# Module or plug-in -> settings that switch off what it does by itself, beside requests: with security, every
# request would take credentials. One that nothing of the distribution defines would stop the boot.
_SWITCHES: Mapping[EngineName, Mapping[str, Mapping[str, bool | int]]] = {
    "elasticsearch": {
        "x-pack-security": {"xpack.security.enabled": False},
        "x-pack-ml": {"xpack.ml.enabled": False},
        "x-pack-watcher": {"xpack.watcher.enabled": False},
        # Histories are documents that a node indexes while it is measured; that of snapshots belongs to the
        # module of indices in old versions.
        "x-pack-ilm": {"indices.lifecycle.history_index_enabled": False, "slm.history_index_enabled": False},
        "x-pack-deprecation": {"cluster.deprecation_indexing.enabled": False},
        # It would download databases during the measurement.
        "ingest-geoip": {"ingest.geoip.downloader.enabled": False},
    },
    "opensearch": {
        "opensearch-security": {"plugins.security.disabled": True},
        "opensearch-performance-analyzer": {"cluster.metadata.perf_analyzer.state": 0},
        "opensearch-index-management": {"plugins.index_state_management.enabled": False},
        "opensearch-anomaly-detection": {"plugins.anomaly_detection.enabled": False},
        "opensearch-alerting": {"plugins.scheduled_jobs.enabled": False},
        "opensearch-ml": {"plugins.ml_commons.sync_up_job_interval_in_seconds": 0},
        # It listens to every search.
        "query-insights": {
            f"search.insights.top_queries.{kind}.enabled": False for kind in ("latency", "cpu", "memory")
        },
    },
}
# Setting -> first version, major and minor, that has it, where its module is older.
_SINCE: Mapping[str, tuple[int, int]] = {
    "cluster.deprecation_indexing.enabled": (7, 16),
    "ingest.geoip.downloader.enabled": (7, 14),
    "indices.lifecycle.history_index_enabled": (7, 6),
    "slm.history_index_enabled": (7, 5),
    "plugins.ml_commons.sync_up_job_interval_in_seconds": (2, 4),
}


def switched_off(installation: Installation) -> dict[str, bool | int]:
    """Return the settings by which nodes do without what a benchmark does not want.

    These are security and background services; only settings that the installation defines.
    """
    plugins = (path.name for path in (installation.root / "plugins").glob("*"))
    by_module = _SWITCHES[installation.engine]
    switches = (by_module.get(name, {}) for name in sorted({*installation.modules, *plugins}))
    release = tuple(int(number) for number in installation.version.split(".")[:2])
    return {
        setting: value
        for settings in switches
        for setting, value in settings.items()
        if release >= _SINCE.get(setting, (0, 0))
    }


def environment(
    boot: BootFolders,
    installation: Installation,
    jdk: Jdk,
    more: Mapping[str, str] = MappingProxyType({}),
    *,
    path: str = os.defpath,
) -> dict[str, str]:
    """Return the node's complete environment: nothing of benchctl's leaks in.

    `more` are the variant's variables; on `path` the start script finds its tools.

    Raises:
        UsageError: If a variable is reserved.
    """
    prefix = "ES" if installation.engine == "elasticsearch" else "OPENSEARCH"
    return {
        "PATH": path,
        "LANG": "C.UTF-8",
        **check_environment(more),
        "HOME": str(boot.root),
        "TMPDIR": str(boot.temporary),
        f"{prefix}_PATH_CONF": str(boot.config),
        f"{prefix}_JAVA_HOME": str(jdk.home.absolute()),
        f"{prefix}_TMPDIR": str(boot.temporary),
    }


def hand_over(root: Path, owner: Owner | None) -> None:
    """Give a folder tree to the node's user; nothing to do without one, or if it is theirs.

    Raises:
        BenchctlError: If the file system refuses.
    """
    if owner is None:
        return
    path = root
    try:
        # By descriptors: the owner may replace a folder by a link while it is walked.
        for folder, folders, files, descriptor in os.fwalk(root, topdown=False):
            for name in (*folders, *files):
                path = Path(folder, name)
                _own(name, owner, descriptor)
        path = root
        _own(str(root), owner, None)
    except OSError as err:
        raise BenchctlError(
            f"cannot give {path} to user '{owner.name}', whom nodes run as: {err.strerror}"
        ) from err


def _own(name: str, owner: Owner, folder: int | None) -> None:
    if os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid != owner.uid:
        os.chown(name, owner.uid, owner.gid, dir_fd=folder, follow_symlinks=False)

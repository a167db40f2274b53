"""What a node start is given: configuration, options, environment, and folders of its own."""

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.settings import (
    OWN_SETTINGS,
    BootFolders,
    adapt_jvm_options,
    check_environment,
    check_flag,
    check_flags,
    environment,
    hand_over,
    switched_off,
    without_secrets,
    write_config,
)
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Owner
from benchctl.results.plan import EngineName
from golden import Cases

LOGS = Path("/boot/logs")
# Another user, whoever runs the tests.
SOMEONE = Owner("someone", os.geteuid() + 1, os.getegid() + 1)
SHIPPED = """\
## comment
-Xms1g
8-13:-XX:+UseConcMarkSweepGC
20-:--add-modules=jdk.incubator.vector
-Djava.io.tmpdir=${ES_TMPDIR}
-XX:HeapDumpPath=data
8:-Xloggc:logs/gc.log
9-:-Xlog:gc*,gc+age=trace,safepoint:file=logs/gc.log:utctime,pid,tags:filecount=32,filesize=64m
"""

Installed = Callable[..., Installation]


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Make an installation with a read-only configuration, as unpacking leaves it."""

    def make(
        engine: EngineName, *modules: str, plugins: tuple[str, ...] = (), version: str = "1.2.3"
    ) -> Installation:
        root = tmp_path / engine
        config = root / "config"
        (config / "jvm.options.d").mkdir(parents=True)
        (config / "jvm.options").write_text(SHIPPED)
        (config / "log4j2.properties").write_text("status = error\n")
        (config / f"{engine}.yml").write_text("# nothing\n")
        for plugin in plugins:
            (root / "plugins" / plugin).mkdir(parents=True)
        for path in (*config.iterdir(), config):
            path.chmod(0o555 if path.is_dir() else 0o444)
        return Installation(engine, version, root, "0" * 64, modules, "9.8.0")

    return make


def runtime(*modules: str) -> Jdk:
    return Jdk(Path("/java"), "21.0.8", "someone", 21, frozenset(modules))


def configured(installation: Installation, boot: BootFolders, **changes: Any) -> dict[str, Any]:
    """Write a configuration and give the node settings that came out."""
    given_or_default = {
        "heap_mb": 512,
        "jvm_flags": (),
        "settings": {},
        "data": boot.root / "data",
        **changes,
    }
    write_config(boot, installation, runtime(), **given_or_default)
    settings: dict[str, Any] = yaml.safe_load((boot.config / f"{installation.engine}.yml").read_text())
    return settings


@pytest.fixture
def boot(tmp_path: Path) -> BootFolders:
    return BootFolders.create(tmp_path / "boot")


VECTOR = "20-:--add-modules=jdk.incubator.vector"


@pytest.mark.parametrize("modules", [{"java.base"}, {"java.base", "jdk.incubator.vector"}])
def test_a_module_is_added_as_shipped_where_the_runtime_has_it(modules: set[str]):
    adapted = adapt_jvm_options(SHIPPED, frozenset(modules), LOGS).splitlines()
    assert (VECTOR in adapted) == ("jdk.incubator.vector" in modules)
    assert len(adapted) == len(SHIPPED.splitlines()) - (VECTOR not in adapted)


@pytest.mark.parametrize(
    ("shipped", "adapted"),
    [
        ("8:-Xloggc:logs/gc.log", "8:-Xloggc:/boot/logs/gc.log"),
        (
            "-Xlog:gc*:file=gc.log:tags:filecount=2",
            "-Xlog:gc*:file=/boot/logs/gc.log:tags,timenanos:filecount=2",
        ),
        (
            "9-:-Xlog:gc*,gc+age=trace:file=logs/gc.log:utctime",
            "9-:-Xlog:gc*,gc+age=trace:file=/boot/logs/gc.log:utctime,timenanos",
        ),
    ],
)
def test_the_gc_log_goes_to_the_starts_own_folder(shipped: str, adapted: str):
    assert adapt_jvm_options(shipped, frozenset(), LOGS) == f"{adapted}\n"


@given(st.lists(st.sampled_from([*SHIPPED.splitlines(), "-XX:+UseG1GC", "21-:--add-modules=a,b", ""])))
def test_what_need_not_change_stays_and_keeps_its_order(lines: list[str]):
    changing = ("add-modules", "-Xlog")
    adapted = adapt_jvm_options("\n".join(lines), frozenset(), LOGS).splitlines()
    assert [line for line in adapted if not any(word in line for word in changing)] == [
        line for line in "\n".join(lines).splitlines() if not any(word in line for word in changing)
    ]


def test_heap_comes_behind_the_shipped_options_and_the_users_flags_last(
    installed: Installed, boot: BootFolders
):
    configured(installed("elasticsearch"), boot, heap_mb=700, jvm_flags=("-XX:-Inline", "-Xms1g"))
    lines = (boot.config / "jvm.options.d" / "benchctl.options").read_text().splitlines()
    assert lines[:2] == ["-Xms700m", "-Xmx700m"]
    assert lines[-2:] == ["-XX:-Inline", "-Xms1g"]
    assert f"-XX:HeapDumpPath={boot.logs}" in lines


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_a_core_node_listens_on_loopback_at_free_ports(
    installed: Installed, boot: BootFolders, engine: EngineName
):
    assert configured(installed(engine, "transport-netty4"), boot) == {
        "cluster.name": "benchctl",
        "node.name": "benchctl",
        "path.data": str(boot.root / "data"),
        "path.logs": str(boot.logs),
        "path.repo": [str(boot.repository)],
        "network.host": "127.0.0.1",
        "http.port": 0,
        "transport.port": 0,
        "node.portsfile": True,
        "discovery.type": "single-node",
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }


def test_requests_come_in_at_an_address_and_nodes_talk_on_loopback(installed: Installed, boot: BootFolders):
    installation = installed("opensearch")
    alone = configured(installation, boot, listen="10.0.0.1")
    assert (alone["network.host"], alone["http.host"]) == ("127.0.0.1", "10.0.0.1")
    assert "transport.host" not in alone


ES_EXTRAS = (
    "ingest-geoip",
    "x-pack-core",
    "x-pack-deprecation",
    "x-pack-ilm",
    "x-pack-ml",
    "x-pack-security",
)
OS_EXTRAS = ("opensearch-alerting", "opensearch-ml", "opensearch-security", "opensearch-sql")
OLD_ES_OFF = {
    "indices.lifecycle.history_index_enabled": False,
    "slm.history_index_enabled": False,
    "xpack.ml.enabled": False,
    "xpack.security.enabled": False,
}
ES_OFF = {
    "cluster.deprecation_indexing.enabled": False,
    "ingest.geoip.downloader.enabled": False,
    **OLD_ES_OFF,
}
OLD_OS_OFF = {"plugins.scheduled_jobs.enabled": False, "plugins.security.disabled": True}
OS_OFF = {"plugins.ml_commons.sync_up_job_interval_in_seconds": 0, **OLD_OS_OFF}


@pytest.mark.parametrize(
    ("engine", "version", "plugins", "off"),
    [
        ("elasticsearch", "8.11.0", (), ES_OFF),
        ("elasticsearch", "7.13.4", ("x-pack-watcher",), {"xpack.watcher.enabled": False, **OLD_ES_OFF}),
        # Its modules of these names know none of these settings.
        ("opensearch", "2.11.0", (), {}),
        ("opensearch", "2.11.0", OS_EXTRAS, OS_OFF),
        ("opensearch", "2.3.0", OS_EXTRAS, OLD_OS_OFF),
    ],
)
def test_what_a_distribution_brings_is_switched_off_where_it_knows_how(
    installed: Installed, engine: EngineName, version: str, plugins: tuple[str, ...], off: dict[str, bool]
):
    assert switched_off(installed(engine, *ES_EXTRAS, plugins=plugins, version=version)) == off


def test_services_are_off_unless_the_user_wants_them(installed: Installed, boot: BootFolders):
    # Those at the end only sound like what would open a node to the network.
    own = {"http.port": 9209, "a.b": [1, "x"], "http.hostess": "x", "reindex.remote.host": "x"}
    own["xpack.ml.enabled"] = True
    elastic = installed("elasticsearch", *ES_EXTRAS, version="8.11.0")
    assert configured(elastic, boot, settings=own).items() >= (ES_OFF | own).items()


@pytest.mark.parametrize(
    "name",
    [*sorted(OWN_SETTINGS), "http.host", "http.bind_host", "http.host.0", "network.bind_host",
     "network.publish_host.1", "transport.host", "transport.bind_host", "transport.profiles.x.bind_host",
     "remote_cluster.host", "grpc.bind_host"],
)  # fmt: skip
def test_what_is_benchctls_own_or_opens_a_node_to_the_network_cannot_be_set(
    installed: Installed, boot: BootFolders, name: str
):
    with pytest.raises(UsageError, match=f"the node setting {name} is benchctl's own"):
        configured(installed("opensearch"), boot, settings={name: "x"})
    assert not boot.config.exists()


@pytest.mark.parametrize(
    "flags",
    [
        ("-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=5005",),
        ("-agentlib:jdwp=transport=dt_socket,server=y,address=127.0.0.1:5005",),
        ("-agentlib:jdwp=transport=dt_socket,address=[::1]:5005,server=y",),
        ("-Dcom.sun.management.jmxremote.port=9010", "-Dcom.sun.management.jmxremote.host=127.0.0.1"),
        ("-Djdk.security.defaultKeySize=2048",),
    ],
)
def test_flags_that_keep_to_this_host_are_given_back(flags: tuple[str, ...]):
    assert check_flags("opensearch", flags) == flags


def test_flags_that_open_a_node_hold_a_secret_or_are_none_are_refused(cases: Cases):
    cases("flags", lambda flags: check_flags("elasticsearch", json.loads(flags)))


def test_the_shipped_configuration_is_copied_and_writable(installed: Installed, boot: BootFolders):
    installation = installed("elasticsearch")
    configured(installation, boot)
    assert (boot.config / "log4j2.properties").read_text() == "status = error\n"
    for path in (boot.config, *boot.config.rglob("*")):
        assert path.stat().st_mode & 0o200
    assert (installation.root / "config" / "jvm.options").read_text() == SHIPPED


def test_a_folder_serves_one_start_only(tmp_path: Path):
    BootFolders.create(tmp_path / "boot")
    with pytest.raises(BenchctlError, match="an earlier node start"):
        BootFolders.create(tmp_path / "boot")


@pytest.mark.parametrize(("engine", "prefix"), [("elasticsearch", "ES"), ("opensearch", "OPENSEARCH")])
def test_the_environment_is_the_nodes_own(
    installed: Installed,
    boot: BootFolders,
    monkeypatch: pytest.MonkeyPatch,
    engine: EngineName,
    prefix: str,
):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dsurprise=1")
    assert environment(boot, installed(engine), runtime(), path="/bin") == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "HOME": str(boot.root),
        "TMPDIR": str(boot.temporary),
        f"{prefix}_PATH_CONF": str(boot.config),
        f"{prefix}_JAVA_HOME": "/java",
        f"{prefix}_TMPDIR": str(boot.temporary),
    }


def test_a_variants_variables_are_in_the_environment_but_benchctls_own_are_not_changed(
    installed: Installed, boot: BootFolders
):
    installation = installed("elasticsearch")
    found = environment(boot, installation, runtime(), {"LANG": "C", "MALLOC_ARENA_MAX": "2"})
    assert (found["LANG"], found["MALLOC_ARENA_MAX"], found["TMPDIR"]) == ("C", "2", str(boot.temporary))
    for name in ("HOME", "TMPDIR", "ES_PATH_CONF", "OPENSEARCH_JAVA_HOME", "ES_JAVA_OPTS", "_JAVA_OPTIONS"):
        with pytest.raises(UsageError, match=name):
            environment(boot, installation, runtime(), {name: "x"})


@pytest.mark.parametrize(
    "name",
    ["AWS_SECRET_ACCESS_KEY", "ES_PASSWORD", "passwd", "GithubToken", "API_KEY", "APIKEY", "Private_Key"],
)
def test_a_variable_that_seems_to_hold_a_secret_is_refused_since_it_would_be_recorded(name: str):
    with pytest.raises(UsageError, match=f"{name} seems to contain a secret") as caught:
        check_environment({name: "hunter2"})
    assert "recorded" in caught.value.hint
    assert "hunter2" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "KEYBOARD", "PASS", "ACCESS_LOG"])
def test_other_variables_are_no_secrets(name: str):
    assert check_environment({name: "1"}) == {name: "1"}


def test_the_whole_tree_is_handed_over_and_nothing_else(
    boot: BootFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given_away: list[tuple[Path, int, int]] = []

    def chown(name: str, uid: int, gid: int, *, dir_fd: int | None, follow_symlinks: bool) -> None:
        assert not follow_symlinks
        folder = "" if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink()
        given_away.append((Path(folder, name), uid, gid))

    monkeypatch.setattr(os, "chown", chown)
    (boot.logs / "gc.log").touch()
    tree = [boot.root, *boot.root.rglob("*"), boot.logs / "link"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (boot.logs / "link").symlink_to(elsewhere)
    hand_over(boot.root, SOMEONE)
    assert sorted(given_away) == sorted((path, SOMEONE.uid, SOMEONE.gid) for path in tree)


def test_a_tree_that_cannot_be_handed_over_is_told(boot: BootFolders, monkeypatch: pytest.MonkeyPatch):
    def chown(name: str, *_: object, **__: object) -> None:
        if name == "logs":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), name)

    monkeypatch.setattr(os, "chown", chown)
    said = f"cannot give {boot.logs} to user 'someone', whom nodes run as: Operation not permitted"
    with pytest.raises(BenchctlError, match=f"^{re.escape(said)}$"):
        hand_over(boot.root, SOMEONE)


def test_flags_are_shown_without_secrets(cases: Cases):
    cases("shown_flags", without_secrets)


@pytest.mark.parametrize(
    "flag",
    ["-Da.passphrase=x", "-Da.api-key=x", "-Da.private_key=x", "-Da.accessKey=x", "-Dcredentials=x\ny"],
)
def test_what_would_be_masked_is_refused(flag: str):
    assert "{secret}" in without_secrets(flag)
    with pytest.raises(UsageError):
        check_flag("elasticsearch", flag)

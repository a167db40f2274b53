"""Clusters that run already, measured through the command line: plain, and behind TLS and credentials."""

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
import pytest

from authority import authority, certificate_file
from benchctl.endpoint import Auth, Endpoint
from benchctl.engine.client import SearchClient
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.node import Node
from benchctl.engine.patched_lucene import fetch_compiler
from benchctl.engine.process import Command, NodeProcess
from benchctl.engine.settings import BootFolders, environment, hand_over, write_config
from benchctl.engine.target import Address, identify
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.results.store import RunFolder, RunStore
from foreign_tracks import write_files
from integration.calls import Benchctl
from integration.conftest import Boots
from waiting import eventually

pytestmark = pytest.mark.timeout(600)

DOCUMENTS = 5_000
RUN = ("run", "--challenge", "range-only-short", "--docs", str(DOCUMENTS))
SPELL = "correct-horse-battery"
# What has nothing to do with what the engine is.
ON_ONE = pytest.mark.parametrize("engine", ["opensearch"], indirect=True)
QUICKLY_ON_ONE = pytest.mark.parametrize(
    "engine", [pytest.param("elasticsearch", marks=pytest.mark.full), "opensearch"], indirect=True
)


@pytest.fixture(scope="module")
def folder(home: Home) -> Iterator[Path]:
    """Where the nodes of this module live; they are nobody's to copy."""
    with tempfile.TemporaryDirectory(dir=home.scratch.parent) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def node(boots: Boots, folder: Path, engine: EngineName) -> Iterator[Node]:
    """A node that knows nothing of benchctl, without an index."""
    with boots(engine, folder / engine) as started:
        yield started


@pytest.fixture(scope="module")
def filled(node: Node, benchctl: Benchctl, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The option that names the node, once benchctl has filled it."""
    option = f"prod={node.endpoint.title}"
    refused = benchctl(*RUN, "--target", option)
    assert refused.returncode == 1
    assert "has no index 'big5'" in refused.stderr
    assert "`fill: true`" in refused.stderr
    targets = tmp_path_factory.mktemp("targets") / "targets.yml"
    targets.write_text(f"prod: {{url: '{node.endpoint.title}', fill: true}}")
    done = benchctl(*RUN, "--targets", str(targets), "--forks", "1")
    assert done.returncode == 0, done.stderr
    assert node.client.count("big5") == DOCUMENTS
    return option


@QUICKLY_ON_ONE
def test_a_running_cluster_is_measured_as_it_is(filled: str, node: Node, benchctl: Benchctl, store: RunStore):
    done = benchctl(*RUN, "--target", filled, "--forks", "2", "-v")
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert record.status == "complete"
    assert record.plan.corpus.documents == record.indices["prod"].documents == DOCUMENTS
    assert len(record.indices["prod"].segments) == 1
    assert record.engines[0].version == node.version
    assert record.engines[0].build == node.build
    assert record.engines[0].in_force.usual["merge policy"] == "tiered"
    for fork in record.done("prod"):
        (boot_record,) = fork.boots
        assert (boot_record.start_s, boot_record.idle_s, boot_record.logs) == (0.0, 0.0, "")
        assert boot_record.searches_sent == boot_record.searches_counted == 10
    for text in ("without a restart between forks", "not filled by this run", "every operation ran"):
        assert text in " ".join(done.stdout.split())
    assert "127.0.0.1" not in "".join(record.caveats)


@pytest.mark.full
@ON_ONE
def test_a_run_on_a_cluster_is_resumed(filled: str, benchctl: Benchctl, store: RunStore):
    done = benchctl(*RUN, "--target", filled, "--forks", "2", "--quiet")
    assert done.returncode == 0, done.stderr
    folder = store.find("latest", finished=False)
    record = folder.load()
    folder.save(msgspec.structs.replace(record, status="interrupted", forks=record.forks[:1]))
    resumed = benchctl("resume", record.id)
    assert resumed.returncode == 0, resumed.stderr
    after = folder.load()
    assert after.status == "complete"
    assert after.forks[0] == record.forks[0]
    assert len(after.forks) == 2


@contextmanager
def searching(node: Node) -> Iterator[None]:
    """Somebody else searches for as long as the block lasts."""
    over = threading.Event()

    def search() -> None:
        while not over.is_set():
            node.client.search("big5", {"size": 0})

    other = threading.Thread(target=search)
    other.start()
    try:
        yield
    finally:
        over.set()
        other.join()


@pytest.mark.full
@ON_ONE
def test_searches_of_others_are_noticed(filled: str, node: Node, benchctl: Benchctl, store: RunStore):
    with searching(node):
        done = benchctl(*RUN, "--target", filled, "--forks", "1", "--param", "iterations=50", "-v")
    assert done.returncode == 0, done.stderr
    (fork,) = store.find("latest", finished=False).load().forks
    assert (fork.boots[0].searches_counted or 0) > fork.boots[0].searches_sent == 50
    assert "where benchctl sent 50" in " ".join(done.stdout.split())


@ON_ONE
def test_a_challenge_that_writes_is_refused(filled: str, benchctl: Benchctl, tmp_path: Path):
    operation = {"name": "rub out", "operation-type": "delete-index", "index": "big5"}
    challenge = tmp_path / "destroy.json"
    challenge.write_text(json.dumps({"name": "destroy", "schedule": [{"operation": operation}]}))
    done = benchctl("run", "--challenge", str(challenge), "--target", filled)
    assert done.returncode == 2
    assert "challenge destroy would change the cluster prod: operation 'rub out'" in done.stderr


@pytest.fixture
def making(tmp_path: Path) -> tuple[str, ...]:
    """A run of a challenge that makes and fills its index."""
    tasks = [
        {"operation": {"name": "make", "operation-type": "create-index"}},
        {"operation": {"name": "fill", "operation-type": "bulk", "bulk-size": 500}},
        {"operation": {"name": "settle", "operation-type": "refresh"}},
        {"operation": "range", "iterations": 5},
    ]
    file = tmp_path / "making.json"
    file.write_text(json.dumps({"name": "making", "schedule": tasks}))
    return ("run", "--challenge", str(file), "--docs", "2000", "--allow-writes")


@pytest.fixture
def bare(boots: Boots, folder: Path, engine: EngineName, tmp_path: Path) -> Iterator[Node]:
    """A node of its own for every test, with somebody else's index."""
    with boots(engine, folder / f"bare-{engine}-{tmp_path.name}") as started:
        started.client.create_index("others", {"settings": {"number_of_replicas": 0}})
        yield started


@pytest.mark.full
def test_a_challenge_that_makes_its_index_may_where_there_is_none(
    bare: Node, benchctl: Benchctl, store: RunStore, making: tuple[str, ...]
):
    target = ("--target", f"prod={bare.endpoint.title}")

    def indices() -> set[str]:
        return set(bare.client.request("GET", "/_all/_settings", params={"expand_wildcards": "all"}))

    done = benchctl(*making, *target, "--forks", "2")
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert [fork.status for fork in record.forks] == ["done", "done"]
    assert not any(one.failures for fork in record.forks for one in fork.summaries)
    assert "made its own indices" in " ".join(record.caveats)
    assert indices() == {"others"}

    # What carries the mark was left behind by a run that was killed, and is replaced.
    bare.client.create_index("big5", {"mappings": {"_meta": {"benchctl": "left"}}})
    again = benchctl(*making, *target, "--forks", "1")
    assert again.returncode == 0, again.stderr
    assert indices() == {"others"}

    bare.client.create_index("big5", {"mappings": {"_meta": {"owner": "somebody"}}})
    refused = benchctl(*making, *target, "--forks", "1")
    assert refused.returncode == 1
    assert "it has 'big5' already, which does not carry benchctl's mark" in refused.stderr
    assert indices() == {"others", "big5"}

    bare.client.request("DELETE", "/big5")
    bare.client.request("PUT", "/others/_alias/big5")
    aliased = benchctl(*making, *target, "--forks", "1")
    assert aliased.returncode == 1
    assert indices() == {"others"}


@pytest.fixture
def joined(boots: Boots, folder: Path, engine: EngineName) -> Iterator[tuple[Node, Node]]:
    """Two nodes of one cluster, as users start them; the first is its master."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    cluster = {"discovery.type": "multi-node" if engine == "elasticsearch" else "zen"}
    first = cluster | {"node.name": "first", "transport.port": port}
    second = cluster | {"node.name": "second", "discovery.seed_hosts": [f"127.0.0.1:{port}"]}
    second["node.roles"] = ["data"]
    with pytest.MonkeyPatch.context() as patch:
        # Of benchctl's own nodes, none finds another.
        patch.setattr("benchctl.engine.settings.OWN_SETTINGS", frozenset())
        first[_INITIAL[engine]] = ["first"]
        with (
            boots(engine, folder / "first", settings=first) as one,
            boots(engine, folder / "second", settings=second) as two,
        ):
            yield one, two


_INITIAL = {
    "elasticsearch": "cluster.initial_master_nodes",
    "opensearch": "cluster.initial_cluster_manager_nodes",
}


def searches_by_node(node: Node) -> dict[str, int]:
    nodes = node.client.request("GET", "/_nodes/stats/indices/search")["nodes"].values()
    return {one["name"]: one["indices"]["search"]["query_total"] for one in nodes}


@pytest.mark.full
@ON_ONE
def test_a_data_stream_of_files_is_made_by_a_template_of_the_cluster_that_leads_nowhere_else(
    bare: Node, benchctl: Benchctl, store: RunStore, tmp_path: Path
):
    lines = [f'{{"@timestamp": "2026-01-01T00:00:00Z", "n": {n}}}' for n in range(300)]
    documents = {"source-file": "docs.json", "document-count": 300, "target-data-stream": "clicks"}
    tasks = [
        {"operation": {"name": "make", "operation-type": "create-data-stream"}},
        {"operation": {"name": "fill", "operation-type": "bulk", "bulk-size": 100}},
    ]
    track = {
        "data-streams": [{"name": "clicks"}],
        "corpora": [{"name": "c", "documents": [documents]}],
        "challenges": [{"name": "fills", "default": True, "schedule": tasks}],
    }
    write_files(tmp_path, {"track.json": json.dumps(track), "docs.json": "\n".join(lines) + "\n"})
    run = ("run", "--track", str(tmp_path), "--allow-writes", "--forks", "1")
    target = ("--target", f"prod={bare.endpoint.title}")

    def template(**content: object) -> None:
        body = {"index_patterns": ["clicks*"], "data_stream": {}, "priority": 500, "template": content}
        bare.client.request("PUT", "/_index_template/clicks", body=body)

    none = benchctl(*run, *target)
    assert "it rejects 'clicks': illegal_argument_exception: no matching index template" in none.stderr
    template(aliases={"everything": {}})
    led = benchctl(*run, *target)
    assert led.returncode == 1
    assert "its templates give 'clicks' alias everything" in led.stderr
    template()
    for _ in range(2):
        done = benchctl(*run, *target)
        assert done.returncode == 0, done.stderr
        assert not bare.client.request("GET", "/_data_stream")["data_streams"]
    assert store.find("latest", finished=False).load().plan.corpus.documents == 300


@pytest.mark.full
@ON_ONE
def test_several_targets_and_hosts_take_turns_in_one_run_until_one_is_lost(
    joined: tuple[Node, Node], benchctl: Benchctl, store: RunStore, tmp_path: Path
):
    one, two = joined
    # Every node has a copy and searches its own, so that it counts what it was sent.
    copied = {"settings": {"index.number_of_shards": 1, "index.number_of_replicas": 1}}
    green = {"wait_for_status": "green", "timeout": "30s"}
    tasks = [
        {"operation": {"name": "make", "operation-type": "create-index", **copied}},
        {"operation": {"name": "copy", "operation-type": "cluster-health", "request-params": green}},
        {"operation": {"name": "fill", "operation-type": "bulk", "bulk-size": 500}},
        {"operation": {"name": "settle", "operation-type": "refresh"}},
        {
            "operation": {
                "name": "near",
                "operation-type": "search",
                "request-params": {"preference": "_local"},
                "body": {"size": 0},
            },
            "clients": 2,
            "iterations": 20,
        },
    ]
    file = tmp_path / "near.json"
    file.write_text(json.dumps({"name": "near", "schedule": tasks}))
    run = ("run", "--challenge", str(file), "--docs", "2000", "--allow-writes", "--forks", "1")
    here = f"one={one.endpoint.title},{two.endpoint.title}"
    before = searches_by_node(one)
    done = benchctl(*run, "--target", here, "--target", f"two={two.endpoint.title}")
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert {fork.variant: fork.status for fork in record.forks} == {"one": "done", "two": "done"}
    assert not any(summary.failures for fork in record.forks for summary in fork.summaries)
    # Of 40 for `one` each host had 20, and those for `two` went where they were sent.
    sent = {name: count - before[name] for name, count in searches_by_node(one).items()}
    assert sent == {"first": 20, "second": 60}

    def kill() -> None:
        assert eventually(lambda: searches_by_node(one)["second"] > before["second"] + 65)
        psutil.Process(two.pid).kill()

    tasks[-1] |= {"iterations": 150, "target-throughput": 40}
    file.write_text(json.dumps({"name": "near", "schedule": tasks}))
    killer = threading.Thread(target=kill)
    killer.start()
    lost = benchctl(*run, "--target", here)
    killer.join()
    assert lost.returncode == 1
    said = " ".join(lost.stderr.split())
    assert f"refused: Failed to connect to {two.endpoint.title.removeprefix('http://')}" in said
    assert "FAILED: one: its node second went away while it was measured" in said


@pytest.mark.full
@ON_ONE
def test_a_red_line_is_searched_for_on_a_running_cluster(
    filled: str, node: Node, benchctl: Benchctl, store: RunStore
):
    quick = ("--forks", "1", "--warm-up", "1", "--settle", "0", "--step-time", "0.5", "--tolerance", "40%")
    words = ("redline", "--operation", "range", "--slo", "p90=9s", "--max-rate", "30", *quick)
    done = benchctl(*words, "--target", filled)
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    (fork,) = record.forks
    assert {point.verdict for point in fork.curve} & {"pass"}
    assert fork.boots[0].logs == ""
    before = node.client.count("big5")
    words = ("redline", "--operation", "bulk", "--slo", "p90=9s", *quick)
    refused = benchctl(*words, "--target", filled)
    assert refused.returncode == 2
    assert "'bulk'" in refused.stderr
    assert node.client.count("big5") == before


@pytest.mark.full
@ON_ONE
def test_a_cluster_that_goes_away_fails_its_fork(
    filled: str, node: Node, benchctl: Benchctl, store: RunStore
):
    """The last one of this node."""
    before = node.client.node_search_count()

    def kill() -> None:
        assert eventually(lambda: node.client.node_search_count() > before + 3)
        psutil.Process(node.pid).kill()

    killer = threading.Thread(target=kill)
    killer.start()
    long = ("--param", "target_throughput=10", "--param", "iterations=200")
    done = benchctl(*RUN, "--target", filled, "--forks", "1", *long)
    killer.join()
    assert done.returncode == 1
    (fork,) = store.find("latest", finished=False).load().forks
    assert fork.status == "failed"
    assert "prod at http://127.0.0.1" in fork.reason
    assert "refuses the connection" in fork.reason


@dataclass(frozen=True)
class Shielded:
    """A node behind TLS: its address, and a token of a service account that may only monitor."""

    url: str
    token: str


@contextmanager
def security_analysis(installation: Installation, jdk: Jdk, home: Home) -> Iterator[None]:
    """A plug-in without which a core build has no index for its API keys, installed within the block."""
    name = "SecurityAnalysis"
    folder = installation.root / "plugins" / "security-analysis"
    folder.mkdir(parents=True)
    try:
        source = Path(__file__).with_name(f"{name}.java")
        libraries = list((installation.root / "lib").glob("*.jar"))
        compiler = fetch_compiler(home, jdk, lambda *_: None)
        compiler.compile([source], libraries, 17, folder / "classes", name=source.name)
        with zipfile.ZipFile(folder / "security-analysis.jar", "w") as jar:
            for compiled in (folder / "classes").glob("*.class"):
                jar.write(compiled, compiled.name)
        shutil.rmtree(folder / "classes")
        described = {
            "name": "security-analysis", "description": "for tests", "version": "1", "classname": name,
            "elasticsearch.version": installation.version, "java.version": "17",
        }  # fmt: skip
        lines = "".join(f"{key}={value}\n" for key, value in described.items())
        (folder / "plugin-descriptor.properties").write_text(lines)
        yield
    finally:
        shutil.rmtree(folder)


@contextmanager
def shielded_node(installation: Installation, jdk: Jdk, home: Home, root: Path) -> Iterator[Shielded]:
    """An Elasticsearch that asks for credentials and speaks TLS only."""
    root.mkdir()
    root.chmod(0o755)
    folders = BootFolders.create(root / "boot")
    settings = {
        "xpack.security.enabled": True,
        "xpack.security.http.ssl.enabled": True,
        "xpack.security.http.ssl.key": "node.key",
        "xpack.security.http.ssl.certificate": "node.pem",
    }
    write_config(folders, installation, jdk, heap_mb=512, jvm_flags=(), settings=settings, data=root / "data")
    certificate = authority().issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(folders.config / "node.key")
    certificate.cert_chain_pems[0].write_to_path(folders.config / "node.pem")
    (root / "data").mkdir()
    env = environment(folders, installation, jdk)
    programs = installation.root.absolute() / "bin"
    for step in (["create"], ["add", "-x", "bootstrap.password"]):
        subprocess.run(
            [programs / "elasticsearch-keystore", *step], env=env, input=SPELL.encode(), check=True
        )
    create = [programs / "elasticsearch-service-tokens", "create", "elastic/fleet-server", "benchctl"]
    created = subprocess.run(create, env=env, capture_output=True, text=True, check=True)
    token = created.stdout.rpartition(" = ")[2].strip()
    for path in (folders.root, root / "data"):
        hand_over(path, home.node_owner)
    command = Command(
        argv=(str(programs / "elasticsearch"),),
        env=env,
        cwd=folders.root,
        stdout=folders.stdout,
        stderr=folders.stderr,
        owner=home.node_owner,
    )
    with (
        security_analysis(installation, jdk, home),
        NodeProcess(command, server="org.elasticsearch.bootstrap.Elasticsearch"),
    ):
        assert any(eventually(folders.http_ports.exists) for _ in range(4)), folders.stdout.read_text()
        yield Shielded(f"https://{folders.http_ports.read_text().split()[0]}", token)


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_file(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def shielded(
    installations: dict[EngineName, Installation], jdk: Jdk, home: Home, folder: Path, ca: Path
) -> Iterator[Shielded]:
    """A node behind TLS and a password, ready to be asked."""
    with shielded_node(installations["elasticsearch"], jdk, home, folder / "shielded") as node:
        endpoint = Endpoint((node.url,), Auth.basic("elastic", SPELL), ca)

        def is_ready() -> bool:
            try:
                return identify(Address("shielded", endpoint)).engine == "elasticsearch"
            except BenchctlError:
                return False

        assert any(eventually(is_ready) for _ in range(4))
        yield node


@pytest.fixture(scope="module")
def filled_with_password(
    shielded: Shielded, ca: Path, benchctl: Benchctl, store: RunStore
) -> tuple[subprocess.CompletedProcess[str], RunFolder]:
    """A run that filled the node behind a password."""
    targets = ca.with_name("filled.yml")
    targets.write_text(f"prod: {{url: '{shielded.url}', ca: {ca}, fill: true}}")
    done = benchctl(
        *RUN, "--forks", "1", "--targets", str(targets),
        BENCHCTL_PROD_USER="elastic", BENCHCTL_PROD_PASSWORD=SPELL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done, store.find("latest", finished=False)


def test_tls_and_a_password_are_no_obstacle_and_stay_secret(
    filled_with_password: tuple[subprocess.CompletedProcess[str], RunFolder],
):
    done, folder = filled_with_password
    (fork,) = folder.load().forks
    assert fork.boots[0].searches_sent == fork.boots[0].searches_counted == 10
    encoded = base64.b64encode(f"elastic:{SPELL}".encode()).decode()
    for secret in (SPELL, encoded):
        assert secret not in done.stdout + done.stderr
        assert not [
            path for path in folder.path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
        ]


def api_key(shielded: Shielded, ca: Path) -> str:
    """One for this cluster that can read its index, but no statistics of nodes."""
    may = ["nodes/info", "main", "health", "state"]
    body = {
        "name": "benchctl",
        "role_descriptors": {
            "reader": {
                "cluster": [f"cluster:monitor/{what}" for what in may],
                "indices": [{"names": ["big5"], "privileges": ["read", "monitor", "view_index_metadata"]}],
            }
        },
    }
    endpoint = Endpoint((shielded.url,), Auth.basic("elastic", SPELL), ca)
    with SearchClient("elasticsearch", endpoint) as client:
        made = client.request("POST", "/_security/api_key", body=body)
    return f"{made['id']}:{made['api_key']}"


@pytest.mark.full
@pytest.mark.usefixtures("filled_with_password")
def test_an_api_key_from_a_file_of_ones_own_that_may_not_do_much(
    shielded: Shielded, ca: Path, benchctl: Benchctl, store: RunStore, tmp_path: Path
):
    secret = tmp_path / "secret.yml"
    key = api_key(shielded, ca)
    secret.write_text(f"prod: {{url: '{shielded.url}', ca: {ca}, api-key: '{key}'}}\n")
    secret.chmod(0o644)
    target = ("--targets", str(secret))
    refused = benchctl(*RUN, *target)
    assert refused.returncode == 2
    assert f"chmod 600 {secret}" in refused.stderr
    secret.chmod(0o600)
    done = benchctl(*RUN, *target, "--forks", "1", "-v")
    assert done.returncode == 0, done.stderr
    folder = store.find("latest", finished=False)
    # The key may do what the run needs, and nothing that only tells more about it.
    (fork,) = folder.load().forks
    assert (fork.status, fork.boots[0].searches_counted) == ("done", None)
    for hidden in (key, key.partition(":")[2]):
        assert hidden not in done.stdout + done.stderr
        assert not [
            path for path in folder.path.rglob("*") if path.is_file() and hidden.encode() in path.read_bytes()
        ]

"""Three nodes on real ground: formed, filled, forked from, one of them killed, and nothing left behind."""

import json
import time
from pathlib import Path

import duckdb
import psutil
import pytest

from benchctl.engine.prepared_index import PreparedIndex
from benchctl.evidence.call_sites import logs_of
from benchctl.evidence.profile import fork_profiles
from benchctl.home import Home
from benchctl.results.plan import NodeSpec
from benchctl.results.store import RunStore
from integration.conftest import Start
from integration.test_run import java_processes, running, wait_until_gone

pytestmark = pytest.mark.timeout(600)

NODES = ["node-1", "node-2", "node-3"]
CHALLENGE = {
    "name": "failing",
    "schedule": [
        {
            "parallel": {
                "tasks": [
                    {"name": "searches", "operation": "range", "clients": 3, "time-period": 6},
                    *(
                        {
                            "operation": {
                                "name": action,
                                "operation-type": "failover",
                                "action": action,
                                "node": "node-2",
                                "delay": delay,
                            }
                        }
                        for action, delay in (("kill", 1), ("restart", 3))
                    ),
                ]
            }
        }
    ],
}


def node_process(home: Home, name: str) -> psutil.Process:
    (found,) = [one for one in java_processes(home) if f"/{name}/" in " ".join(one.cmdline())]
    return found


@pytest.mark.full
def test_a_node_may_be_killed_and_come_back_but_not_be_lost(
    home: Home, environ: dict[str, str], store: RunStore, tmp_path: Path
):
    challenge = tmp_path / "failing.json"
    challenge.write_text(json.dumps(CHALLENGE))
    variant = "os3=os,nodes:3,shards:3,replicas:1"
    arguments = ["run", "--challenge", str(challenge), "--variant", variant, "--docs", "5000"]
    arguments += [
        "--forks",
        "2",
        "--heap",
        "512m",
        "--evidence",
        "inlining,profile",
        "--evidence-forks",
        "all",
    ]
    with running(environ, arguments) as run:
        run.wait_for("node-2 was killed", times=2)
        javas = java_processes(home)
        node_process(home, "node-1").kill()
        assert run.end() == 1
        wait_until_gone(javas)
    assert not java_processes(home)
    assert not list(home.scratch.iterdir())

    folder = store.find("latest", finished=False)
    record = folder.load()
    facts = record.indices["os3"]
    assert (facts.documents, facts.segment_count, len(facts.cluster_uuid)) == (5000, 3, 22)
    # Another test may have built one of its own.
    root = max(home.indices.glob("opensearch-2.11.0-3-nodes-*"), key=facts_written)
    assert sorted(path.name for path in (root / "data").iterdir()) == NODES
    assert not PreparedIndex(root, facts).damage()
    # Rewritten where it is by every copy that is started: a link would have made forks share it.
    checkpoints = list(root.rglob("translog.ckp"))
    assert len(checkpoints) == 6
    assert all(path.stat().st_mtime < facts_written(root) for path in checkpoints)

    killed, lost = record.forks
    assert (killed.status, lost.status) == ("done", "failed")
    assert "node-1 of opensearch 2.11.0 was killed by signal 9 (SIGKILL)" in lost.reason
    (boot,) = killed.boots
    assert boot.recovered_bytes == 0
    assert [node.name for node in boot.node_starts] == NODES
    assert [(fate.node, fate.what) for fate in boot.fates] == [
        ("node-2", "killed"),
        ("node-2", "started again"),
    ]
    assert all((folder.path / node.logs / "logs" / "gc.log").is_file() for node in boot.node_starts)
    searches, *fates = killed.summaries
    assert searches.samples > 0
    assert searches.failures["refused"] > 0
    assert [(one.label, one.samples, one.failures) for one in fates] == [("kill", 1, {}), ("restart", 1, {})]
    assert sorted(searches.node_meters) == NODES
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT DISTINCT node FROM read_parquet(?) WHERE kind = 'node' ORDER BY node",
            [str(folder.path / str(killed.telemetry))],
        ).fetchall()
    assert [name for (name,) in rows] == NODES

    # Evidence of all nodes but the one that went.
    assert [node.name for node in boot.jvms] == ["node-1", "node-3"]
    for node in boot.jvms:
        kept = folder.evidence_folder("os3", 0, 0, node.name)
        assert (kept / "profile.json").is_file()
    assert [log.node for log in logs_of(folder, record)] == ["node-1", "node-3"]
    (profile,) = fork_profiles(folder, record, "os3")
    assert len(profile.nodes) == 2


def facts_written(root: Path) -> float:
    return (root / "manifest.json").stat().st_mtime


@pytest.mark.full
def test_a_node_that_starts_again_waits_for_none_that_is_gone_for_good(start: Start):
    # The only one that may be elected, so that it is this one whose wait would hold the cluster up.
    nodes = [NodeSpec("a"), NodeSpec("b", {"node.roles": ["data"]})]
    with start("elasticsearch", nodes=nodes) as cluster:
        # On the node that stays, or it would be gone for good, too.
        kept = {"number_of_replicas": 0, "routing.allocation.require._name": "a"}
        cluster.client.request("PUT", "/kept", body=json.dumps({"settings": kept}))
        cluster.act("kill", "b", lambda: False)
        begun = time.monotonic()
        cluster.act("restart", "a", lambda: False)
        # The engines' own wait for expected nodes is five minutes.
        assert time.monotonic() - begun < 60
        assert [(node, fate) for _, node, fate in cluster.fates] == [
            ("b", "killed"),
            ("a", "stopped"),
            ("a", "started again"),
        ]
        assert cluster.client.request("GET", "/_cluster/health")["number_of_nodes"] == 1

"""What becomes of a cluster whose nodes go, without any node."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchctl.engine.client import NodeInfo, NodeRequestError, loopback
from benchctl.engine.cluster import Cluster, _wait_healthy, _was_ended
from benchctl.engine.distribution import Installation
from benchctl.engine.process import describe_exit
from benchctl.errors import BenchctlError

INSTALLATION = Installation("opensearch", "2.11.0", Path("/os"), "a" * 64, (), "9.7.0")


class FakeNode:
    """A node whose process is there or not."""

    def __init__(self, number: int) -> None:
        self.name, self.info = f"node-{number}", NodeInfo("2.11.0", "b", 1)
        self.endpoint = loopback(9200 + number)
        self.client = SimpleNamespace(
            cluster_uuid=lambda: "u", primary_shards=lambda: 1, node_search_count=lambda: 4, number=number
        )
        self.down = self.gone = self.host_lost = False
        self.left_s = 1.0
        self.done: list[str] = []

    @property
    def lost(self) -> bool:
        return self.gone and not self.down

    def check_alive(self, within_s: float = 0.0, when: str = "") -> None:
        del within_s, when
        if self.lost:
            raise BenchctlError(f"{self.name} is gone")

    def failure(self, what: str, said: Sequence[str] = ()) -> BenchctlError:
        return BenchctlError(f"{self.name} {what}{said or ''}")

    def take_down(self, *, at_once: bool) -> None:
        self.down = True
        self.done.append("kill" if at_once else "stop")

    def stop(self, *, at_once: bool) -> float:
        return 2.0 if at_once else float(self.name[-1])


def cluster(count: int, *, tolerant: bool = False) -> tuple[Cluster, list[FakeNode]]:
    nodes = [FakeNode(number) for number in range(1, count + 1)]
    return Cluster(cast("Any", nodes), INSTALLATION, start_s=1.0, tolerant=tolerant), nodes


def fates(found: Cluster) -> list[tuple[str, str]]:
    return [(node, fate) for _, node, fate in found.fates]


def test_requests_go_to_all_nodes_of_which_one_may_be_down():
    found, _ = cluster(3)
    assert found.endpoint.hosts == tuple(f"http://127.0.0.1:{port}" for port in (9201, 9202, 9203))
    assert found.endpoint.lossy
    assert found.uuid == "u"
    assert found.stop() == 3.0
    single, _ = cluster(1)
    assert (single.endpoint.lossy, single.uuid) == (False, "")


def test_the_loss_of_a_node_is_an_error_that_names_it():
    found, nodes = cluster(3)
    found.glance()
    nodes[1].gone = True
    with pytest.raises(BenchctlError, match="node-2 is gone"):
        found.glance()
    assert fates(found) == []


def test_where_a_loss_is_put_up_with_the_others_go_on_and_tell_no_count():
    found, nodes = cluster(3, tolerant=True)
    assert found.searches_counted() == 4
    for gone in nodes[:2]:
        gone.gone = True
        found.glance()
    assert fates(found) == [("node-1", "lost"), ("node-2", "lost")]
    assert found.client is cast("Any", nodes[2].client)
    assert found.searches_counted() is None
    nodes[2].gone = True
    with pytest.raises(BenchctlError, match="node-3 is gone"):
        found.glance()


def test_the_loss_of_a_whole_host_is_put_up_with_by_nobody():
    found, nodes = cluster(3, tolerant=True)
    nodes[1].gone = nodes[1].host_lost = True
    with pytest.raises(BenchctlError, match="node-2 is gone"):
        found.glance()


def test_what_is_done_to_a_node_on_purpose_is_no_loss():
    found, nodes = cluster(2)
    found.act("kill", "node-2", lambda: False)
    nodes[1].gone = True
    found.glance()
    found.act("stop", "node-1", lambda: False)
    assert fates(found) == [("node-2", "killed"), ("node-1", "stopped")]
    assert [node.done for node in nodes] == [["stop"], ["kill"]]
    with pytest.raises(BenchctlError, match="no node 'node-9'") as caught:
        found.act("stop", "node-9", lambda: False)
    assert "node-1, node-2" in caught.value.hint


def test_the_node_that_found_no_others_is_the_one_whose_log_is_read():
    def unready(*_: object) -> str:
        raise NodeRequestError("GET /_cluster/health", 408, "health is still red with 1 of 2 nodes")

    _, nodes = cluster(2)
    for node, master in zip(nodes, (True, False), strict=True):
        node.client.health, node.client.has_master = unready, lambda master=master: master
        node.client.unassigned = list
    with pytest.raises(BenchctlError, match="node-2 never found the others"):
        _wait_healthy(cast("Any", nodes), "i")
    nodes[1].client.has_master = lambda: True
    with pytest.raises(BenchctlError, match=r"node-1 never got the shards of index 'i' ready: .* 1 of 2"):
        _wait_healthy(cast("Any", nodes), "i")


def test_an_archive_is_not_refused_for_a_node_that_somebody_ended():
    ends = {
        status: _was_ended(BenchctlError(f"elasticsearch {describe_exit(status)} before it was ready"))
        for status in (143, -9, 134, 1)
    }
    assert ends == {143: True, -9: True, 134: False, 1: False}

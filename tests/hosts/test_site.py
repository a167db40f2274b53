"""What a host does for nodes of a benchctl elsewhere, without any node: its home, indices, logs."""

import dataclasses
import os
import tarfile
from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.hosts.remote import SiteRoom, describe, describe_site, lacking
from benchctl.hosts.site import Site
from benchctl.results.model import IndexFacts, IngestReport

FACTS = IndexFacts("k", 1, 90, (), IngestReport(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), files={"other": 90})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def written(root: Path, node: str, text: str) -> None:
    index = root / "data" / node / "indices" / "AbC" / "0" / "index"
    index.mkdir(parents=True)
    (index / "_0.si").write_text(text)


def test_each_host_keeps_its_part_of_an_index_which_only_the_same_nodes_take_up(home: Home):
    with Site(home, "s", "127.0.0.1") as site:
        written(site.facts.root, "node-2", "two")
        assert site.find("i-part", ("node-2",)) is None
        site.keep("i-part", FACTS, ("node-2",))
    assert not list(home.scratch.iterdir())
    with Site(home, "t", "127.0.0.1") as site:
        # Without checksums, what is there cannot be whole: it is built again.
        assert site.find("i-part", ("node-2",)) is None
        assert site.find("i-part", ("node-1", "node-2")) is site.find("i-part", ()) is None
        assert "does not match its checksum" in site.damage("i-part")
        with pytest.raises(BenchctlError, match="the prepared index i-part is gone"):
            site.take("i-part", ("node-1",))


def test_the_host_of_benchctl_may_have_no_node_and_knows_the_index_all_the_same(home: Home):
    with Site(home, "s", "127.0.0.1") as site:
        (site.facts.root / "data").mkdir()
        site.keep("i-part", FACTS, ())
        found = site.find("i-part", ())
        site.take("i-part", ())
        assert list((site.facts.root / "data").iterdir()) == []
    assert found is not None
    # All hosts say the same of the whole of it: that is how parts of one build are known.
    assert (found.store_bytes, found.files, found.cached) == (90, {"other": 90}, True)


def test_two_hosts_with_one_home_are_refused_and_what_a_killed_worker_left_is_removed(home: Home):
    with Site(home, "s", "127.0.0.1") as site:
        with pytest.raises(BenchctlError, match=f"its home {home.root} is that of another host"):
            Site(home, "s", "127.0.0.2").__enter__()
        assert site.facts.root.is_dir()
    killed = Site(home, "s", "127.0.0.1")
    killed.__enter__()
    with Site(home, "t", "127.0.0.1") as site:
        assert [one.name for one in home.scratch.iterdir()] == [site.facts.root.name]


def test_logs_are_packed_without_temporary_files_and_without_following_a_link(home: Home, tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    with Site(home, "s", "127.0.0.1") as site:
        root = site.facts.root / "boot-0" / "node-1"
        for folder in ("logs", "tmp"):
            (root / folder).mkdir(parents=True)
            (root / folder / "a.log").write_text(folder)
        (root / "logs" / "b.log").symlink_to(tmp_path / "secret")
        os.mkfifo(root / "logs" / "c.log")
        with tarfile.open(site.pack("node-1", "boot-0")) as packed:
            assert packed.getnames() == ["logs/a.log"]
            content = packed.extractfile("logs/a.log")
            assert content is not None
            assert content.read() == b"logs"


def test_an_unfit_host_has_no_free_disk_rather_than_none_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path))
    monkeypatch.setattr("benchctl.home._check_reachable", lambda *_: None)
    assert describe_site("192.0.2.1") == SiteRoom(
        None, "the host has no interface with the address 192.0.2.1"
    )
    here = describe_site("127.0.0.1")
    assert here.free_disk_bytes
    assert not here.unfit


def test_what_a_cluster_over_hosts_lacks_is_known_before_it_starts():
    facts = dataclasses.replace(describe(Path.cwd()), memory_maps=65_530, open_files=1024)
    both = "sysctl -w vm.max_map_count=262144, ulimit -n 65535 for what starts them"
    assert lacking(facts, ["10.0.0.1", "10.0.0.2"]) == both
    assert lacking(dataclasses.replace(facts, open_files=None), ["10.0.0.1", ""]) == ""
    # What only this host reaches is not checked.
    assert lacking(facts, ["127.0.1.1", "127.0.1.2"]) == ""
    fit = dataclasses.replace(facts, memory_maps=262_144, open_files=None)
    assert lacking(fit, ["10.0.0.1", "10.0.0.2"]) == ""

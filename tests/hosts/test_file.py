"""Files of hosts: what they may say, and what is wrong with them, by line."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.hosts.file import Spread, load_hosts
from benchctl.results.plan import NodeSpec
from certificates import write_certificates
from golden import Cases

WHOLE = """\
scheduler: tls://10.0.0.1:8786
tls: {ca: ca.pem, certificate: me.pem, key: me.key}
hosts:
  here: {local: true, carries: [nodes], address: 127.0.0.1}
  load-1: {carries: [load]}
  load-2: {carries: [load]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_certificates(tmp_path)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "hosts.yml"
    path.write_text(text)
    return path


def test_a_file_says_who_carries_what_and_where_its_certificates_are(folder: Path):
    hosts = load_hosts(written(folder, WHOLE))
    assert (hosts.load, hosts.remote, hosts.nodes_at) == (("load-1", "load-2"),) * 2 + ("127.0.0.1",)
    assert hosts.tls is not None
    assert hosts.tls.ca == str(folder / "ca.pem")
    hosts.check_nodes()


def test_one_host_needs_neither_scheduler_nor_dask(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchctl.hosts.file.find_spec", lambda _: None)
    hosts = load_hosts(written(folder, "hosts: {here: {local: true, carries: [nodes, load]}}"))
    assert (hosts.load, hosts.remote) == ((), ())
    hosts.check_nodes()
    with pytest.raises(UsageError, match="Dask distributed, which is not installed"):
        load_hosts(written(folder, WHOLE))


def test_what_is_wrong_is_said_with_its_line(cases: Cases, folder: Path):
    cases("hosts", lambda old, new: load_hosts(written(folder, WHOLE.replace(old, new, 1))), folder)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"ca": "other"}, r"hosts.yml:2:\d+: tls, certificate: .*ca.pem does not vouch for .*me.pem"),
        ({"key": "other"}, r"hosts.yml:2:\d+: tls, key: .*me.key is not the key of .*me.pem"),
    ],
)
def test_files_that_do_not_belong_together_are_no_schedulers_fault(
    folder: Path, files: dict[str, str], said: str
):
    write_certificates(folder, **files)
    with pytest.raises(UsageError, match=said):
        load_hosts(written(folder, WHOLE))


def test_a_key_is_no_certificate_of_an_authority(folder: Path):
    (folder / "ca.pem").write_bytes((folder / "me.key").read_bytes())
    with pytest.raises(UsageError, match=r"tls, ca: .*ca.pem is not the certificate of an authority"):
        load_hosts(written(folder, WHOLE))


def test_where_nobody_else_carries_load_it_comes_from_this_host(folder: Path):
    assert not load_hosts(written(folder, "hosts: {here: {local: true, carries: [nodes]}}")).load


def test_nodes_have_to_be_reached_by_the_load(folder: Path):
    hosts = load_hosts(written(folder, WHOLE.replace(", address: 127.0.0.1", "")))
    with pytest.raises(UsageError, match=r"on loopback, where the load of load-1, load-2 does not"):
        hosts.check_nodes()
    # One of the addresses that documentation may name, which no interface has.
    hosts = load_hosts(written(folder, WHOLE.replace("127.0.0.1", "192.0.2.1")))
    with pytest.raises(UsageError, match=r"the host has no interface with the address 192\.0\.2\.1"):
        hosts.check_nodes()


SPREAD = WHOLE.replace(
    "load-1: {carries: [load]}", "one: {carries: [nodes, load], address: 127.0.0.2}"
).replace("load-2: {carries: [load]}", "two: {carries: [nodes], address: 127.0.0.3}")
THREE = [NodeSpec("a"), NodeSpec("b"), NodeSpec("c")]


def test_nodes_are_dealt_out_to_hosts_in_turn_but_for_those_that_say_where(folder: Path):
    hosts = load_hosts(written(folder, SPREAD))
    assert (hosts.nodes, hosts.load_elsewhere) == (("here", "one", "two"), ("one",))
    assert hosts.placed("v", ()) == ("",)
    assert hosts.placed("v", [*THREE, NodeSpec("d")]) == ("", "one", "two", "")
    assert hosts.placed("v", [NodeSpec("a", host="two"), *THREE[1:]]) == ("two", "", "one")
    assert hosts.placed("v", [NodeSpec("a", host="here")]) == ("",)
    with pytest.raises(
        UsageError, match="variant 'v': node 'a' is to be on 'x', and no host of that name"
    ) as caught:
        hosts.placed("v", [NodeSpec("a", host="x")])
    assert caught.value.hint == "those that do: here, one, two"
    alone = load_hosts(written(folder, "hosts: {here: {local: true, carries: [load]}}"))
    assert alone.placed("v", THREE) == ("", "", "")


def test_a_spread_knows_which_nodes_are_where(folder: Path):
    hosts = load_hosts(written(folder, SPREAD))
    found = Spread.of(hosts, ["a", "b", "c", "d"], ["one", "", "two", "one"])
    assert found is not None
    assert (found.by_host, found.own) == ({"one": ("a", "d"), "two": ("c",)}, ("b",))
    assert Spread.of(hosts, ["a", "b"], ["", ""]) is None


def test_nodes_here_have_to_be_reached_by_those_of_other_hosts(folder: Path):
    text = SPREAD.replace("[nodes, load]", "[nodes]").replace("[nodes], address: 127.0.0.1", "[nodes, load]")
    hosts = load_hosts(written(folder, text))
    hosts.check_nodes([("",), ("one", "two")])
    with pytest.raises(UsageError, match="on loopback, where nodes on two do not reach them"):
        hosts.check_nodes([("one",), ("", "two")])
    with pytest.raises(UsageError, match="on loopback, where nodes on one, two do not reach them"):
        hosts.check_nodes()

"""Files of hosts: what they may say, and what is wrong with them, by line."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.hosts.file import load_hosts

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
    for name in ("ca.pem", "me.pem", "me.key"):
        (tmp_path / name).touch()
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
    assert (hosts.load, hosts.remote) == (("here",), ())
    hosts.check_nodes()
    with pytest.raises(UsageError, match="Dask distributed, which is not installed"):
        load_hosts(written(folder, WHOLE))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tls://", "tcp://", r"hosts.yml:1:\d+: .*'tcp://10.0.0.1:8786' is not a tls:// address"),
        ("scheduler: tls://10.0.0.1:8786\n", "", "nothing says how load-1, load-2 can be reached"),
        ("tls: {ca: ca.pem, certificate: me.pem, key: me.key}\n", "", "its tls files are missing"),
        ("me.key", "you.key", r"hosts.yml:2:\d+: .*there is no file .*you.key"),
        ("[load]}\n  load-2: {carries: [load]}", "[nodes]}", "'load-1' is to carry nodes, and has no"),
        ("load-1: {", "load-1: {local: true, ", "'load-1' and 'here' are both local"),
        ("carries: [nodes], address: 127.0.0.1", "carries: [load], address: 127.0.0.2", "and carries none"),
        ("127.0.0.1", "'::'", "'::' is not the IP address of one interface"),
        ("127.0.0.1", "here.lan", "'here.lan' is not the IP address of one interface"),
        ("[load]", "[loads]", "loads"),
        ("[load]", "[]", "carries"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(folder: Path, old: str, new: str, said: str):
    assert old in WHOLE
    with pytest.raises(UsageError, match=said):
        load_hosts(written(folder, WHOLE.replace(old, new, 1)))


def test_somebody_has_to_carry_load(folder: Path):
    with pytest.raises(UsageError, match="no host carries load"):
        load_hosts(written(folder, "hosts: {here: {local: true, carries: [nodes]}}"))


def test_nodes_have_to_be_reached_by_the_load(folder: Path):
    hosts = load_hosts(written(folder, WHOLE.replace(", address: 127.0.0.1", "")))
    with pytest.raises(UsageError, match=r"on loopback, where the load of load-1, load-2 does not"):
        hosts.check_nodes()
    # One of the addresses that documentation may name, which no interface has.
    hosts = load_hosts(written(folder, WHOLE.replace("127.0.0.1", "192.0.2.1")))
    with pytest.raises(UsageError, match=r"no interface of this host has the address 192\.0\.2\.1"):
        hosts.check_nodes()

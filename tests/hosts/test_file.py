"""Files of hosts: what they may say, and what is wrong with them, by line."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.hosts.file import load_hosts
from builders import ES
from certificates import write_certificates
from golden import Cases

WHOLE = """\
scheduler: tls://10.0.0.1:8786
tls: {ca: ca.pem, certificate: me.pem, key: me.key}
address: 127.0.0.1
load: [load-1, load-2]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_certificates(tmp_path)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "hosts.yml"
    path.write_text(text)
    return path


def test_a_file_says_where_load_comes_from_and_where_its_certificates_are(folder: Path):
    hosts = load_hosts(written(folder, WHOLE))
    assert (hosts.load, hosts.elsewhere, hosts.address) == (("load-1", "load-2"),) * 2 + ("127.0.0.1",)
    assert hosts.tls is not None
    assert hosts.tls.ca == str(folder / "ca.pem")
    hosts.check_nodes([ES])


def test_one_host_needs_neither_scheduler_nor_dask(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchctl.hosts.file.find_spec", lambda _: None)
    hosts = load_hosts(written(folder, "load: [here]\nlocal: here"))
    assert (hosts.load, hosts.elsewhere) == ((), ())
    hosts.check_nodes([ES])
    with pytest.raises(UsageError, match="Dask distributed, which is not installed"):
        load_hosts(written(folder, WHOLE))


def test_what_is_wrong_is_said_with_its_line(cases: Cases, folder: Path):
    cases("hosts", lambda old, new: load_hosts(written(folder, WHOLE.replace(old, new, 1))), folder)


def test_nodes_have_to_be_reached_by_the_load(folder: Path):
    hosts = load_hosts(written(folder, WHOLE.replace("address: 127.0.0.1\n", "")))
    with pytest.raises(UsageError, match="on loopback, where load-1, load-2 would not reach it"):
        hosts.check_nodes([ES])
    # One of the addresses that documentation may name, which no interface has.
    hosts = load_hosts(written(folder, WHOLE.replace("127.0.0.1", "192.0.2.1")))
    with pytest.raises(UsageError, match=r"the host has no interface with the address 192\.0\.2\.1"):
        hosts.check_nodes([ES])

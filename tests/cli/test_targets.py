"""What the command line says about running clusters, checked before any of them is asked."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from authority import certificate_file
from aws_signature import refusal
from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.cli.targets import TargetOptions, endpoint_of, endpoints_of, read_targets
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.lock import SHARE_VARIABLE
from benchctl.results.plan import TargetSpec, VariantSpec
from stub_cluster import stub_cluster

ES = "es=https://search-1:9200"
REMOTE = TargetSpec(("http://search-1:9200",))


def test_options_meet_at_their_target(tmp_path: Path):
    ca = certificate_file(tmp_path)
    found = read_targets(
        TargetOptions(
            targets=("es=https://a:1,https://b:2", "os-prod=http://127.0.0.1:9200"),
            authorities=(f"es={ca}",),
            proxies=("es=http://proxy:3128/",),
            auth_files=("os-prod=secret.yml",),
            restart_commands=("es=systemctl restart 'my node'",),
            insecure=("os-prod",),
            fill=True,
        )
    )
    assert found == {
        "es": TargetSpec(
            ("https://a:1", "https://b:2"),
            ca=str(ca),
            proxy="http://proxy:3128",
            restart_command=("systemctl", "restart", "my node"),
            fill=True,
        ),
        "os-prod": TargetSpec(
            ("http://127.0.0.1:9200",),
            verify=False,
            auth_file=str(Path("secret.yml").absolute()),
            fill=True,
        ),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TargetOptions(("https://me:hunter2@search-1:9200",)), "needs a name"),
        (TargetOptions(("es=https://me:hunter2@search-1:9200",)), "holds credentials"),
        (TargetOptions(("es=search-1:9200",)), "not the address"),
        (TargetOptions(("Es Prod=https://a:1",)), "cannot be a variant's label"),
        (TargetOptions((ES, ES)), "given twice for es"),
        (TargetOptions(("es-1=https://a:1", "es.1=https://b:1")), "would share BENCHCTL_ES_1_USER"),
        (TargetOptions((ES,), authorities=("os=x.pem",)), "--target-ca is given for 'os'"),
        (TargetOptions((ES,), auth_files=("os=x.yml",)), "--target-auth is given for 'os'"),
        (TargetOptions((ES,), restart_commands=("os=true",)), "--restart-command is given for 'os'"),
        (TargetOptions((ES,), insecure=("os",)), "--insecure is given for 'os'"),
        (TargetOptions((ES,), proxies=("os=http://a:1",)), "--proxy is given for 'os'"),
        (TargetOptions((ES,), proxies=("es=http://me:hunter2@a:1",)), "holds credentials"),
        (TargetOptions((ES,), proxies=("es=socks5://a:1",)), "invalid proxy"),
        (TargetOptions((ES,), restart_commands=("es='open",)), "No closing quotation"),
        (TargetOptions((ES,), restart_commands=("es= ",)), "is empty"),
        (TargetOptions((ES,), authorities=("es=/no/such.pem",)), "cannot be read"),
        (TargetOptions((), fill=True), "needs a --target"),
        (TargetOptions((), writes=True), "--allow-writes needs a --target"),
        (TargetOptions((ES,), writes=True, fill=True), "do not mix"),
        (TargetOptions((ES,), keep=True), "--keep needs --allow-writes"),
    ],
)
def test_mistakes_are_told_without_secrets(options: TargetOptions, message: str):
    with pytest.raises(UsageError, match=message) as caught:
        read_targets(options)
    assert "hunter2" not in str(caught.value)


def test_a_file_without_certificates_is_told(tmp_path: Path):
    empty = tmp_path / "ca.pem"
    empty.write_text("nothing", encoding="utf-8")
    with pytest.raises(UsageError, match="holds no certificates"):
        read_targets(TargetOptions((ES,), authorities=(f"es={empty}",)))


def test_credentials_do_not_travel_unencrypted_by_accident():
    environ = {"BENCHCTL_ES_API_KEY": "aWQ6a2V5"}
    with pytest.raises(UsageError, match="would travel unencrypted") as caught:
        endpoint_of("es", REMOTE, environ)
    assert "--insecure es" in caught.value.hint
    assert "aWQ6a2V5" not in str(caught.value)
    accepted = endpoint_of("es", TargetSpec(REMOTE.hosts, verify=False), environ)
    assert accepted.headers == ("Authorization: ApiKey aWQ6a2V5",)
    assert endpoint_of("es", TargetSpec(("http://127.0.0.1:9200",)), environ).headers
    assert endpoint_of("es", TargetSpec(("https://search-1:9200",)), environ).headers
    assert endpoint_of("es", REMOTE, {}).headers == ()


def test_only_targets_have_endpoints():
    specs = (
        VariantSpec("os", "opensearch", "2.11.0"),
        VariantSpec("es", "elasticsearch", "8.11.0", target=REMOTE),
    )
    found = endpoints_of(specs, {})
    assert {name: endpoint.hosts for name, endpoint in found.items()} == {"es": REMOTE.hosts}


@pytest.fixture
def home() -> Iterator[Home]:
    """One that the nodes' user could enter: pytest's folders are private."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Home(Path(name))


def test_a_run_behind_aws_signs_every_request_and_keeps_the_key(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("BENCHCTL_HOME", str(home.root))
    monkeypatch.setenv(SHARE_VARIABLE, "1")
    for name, value in {
        "ACCESS_KEY": "AKIDEXAMPLE",
        "SECRET_KEY": "wJalr/XUtnFEMI",
        "REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(f"BENCHCTL_PROD_{name}", value)
    with stub_cluster() as node:
        node.guard = lambda *request: refusal(*request, "wJalr/XUtnFEMI")
        run = ["run", "--challenge", "range-only-short", "--target", f"prod=http://127.0.0.1:{node.port}"]
        run += ["--forks", "1", "--param", "iterations=1", "--quiet"]
        assert guarded(root, run) == 0, capsys.readouterr().err
        monkeypatch.setenv("BENCHCTL_PROD_SECRET_KEY", "another")
        assert guarded(root, run) == 1
    said = capsys.readouterr()
    assert (
        "does not accept the AWS access key, or not for this (HTTP 403): the signature is wrong" in said.err
    )
    assert "session token" in said.err
    assert "wJalr" not in said.out + said.err
    kept = [path for path in home.runs.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"wJalr" in path.read_bytes() or b"AKIDEXAMPLE" in path.read_bytes()]


def test_a_dry_run_says_what_the_target_holds(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("BENCHCTL_HOME", str(home.root))
    with stub_cluster() as node:
        target = f"prod=http://127.0.0.1:{node.port}"
        assert guarded(root, ["run", "--challenge", "range-only-short", "--target", target, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "on 1,000 documents" in said
    assert "1,000,000" not in said

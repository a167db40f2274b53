"""What the command line says about running clusters, checked before any of them is asked."""

import tempfile
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from authority import certificate_file
from aws_signature import refusal
from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.cli.targets import endpoints_of, read_targets
from benchctl.endpoint import Auth, Endpoint
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.lock import SHARE_VARIABLE
from benchctl.results.plan import TargetSpec, VariantSpec
from benchctl.spec import RunForm
from stub_cluster import stub_cluster

ES = "es=https://search-1:9200"
SPELL = "hunter2"
AWS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SPELL, "AWS_SESSION_TOKEN": "token"}


def targets_of(form: RunForm) -> dict[str, TargetSpec]:
    return {spec.name: spec.target for spec in read_targets(form) if spec.target}


def endpoint_of(name: str, target: TargetSpec, environ: Mapping[str, str] | None = None) -> Endpoint:
    os = VariantSpec("os", "opensearch", "2.11.0")  # which is no target
    found = endpoints_of([os, VariantSpec(name, "elasticsearch", "", target=target)], environ or {})
    assert [*found] == [name]
    return found[name]


def auth_of(environ: Mapping[str, str]) -> Auth | None:
    return endpoint_of("es", TargetSpec(("https://search-1:9200",)), environ).auth


def written(folder: Path, entries: str, mode: int = 0o600) -> str:
    path = folder / "targets.yml"
    path.write_text(entries, encoding="utf-8")
    path.chmod(mode)
    return str(path)


def test_a_file_says_how_to_connect_and_only_its_name_is_kept(tmp_path: Path):
    ca = certificate_file(tmp_path)
    file = written(
        tmp_path,
        f"es: {{url: 'https://a:1,https://b:2', ca: {ca.name}, proxy: 'http://proxy:3128/', fill: true,\n"
        "  bearer: hunter2}\n"
        "os-prod: {url: 'http://far:9200', insecure: true, user: me, password: hunter2}\n",
    )
    found = targets_of(RunForm(targets_file=file))
    assert found == {
        "es": TargetSpec(("https://a:1", "https://b:2"), file=file, fill=True),
        "os-prod": TargetSpec(("http://far:9200",), file=file),
    }
    assert endpoint_of("es", found["es"]) == Endpoint(
        ("https://a:1", "https://b:2"),
        Auth.bearer("hunter2"),
        ca,
        proxy="http://proxy:3128",
    )
    assert endpoint_of("os-prod", found["os-prod"]) == Endpoint(
        ("http://far:9200",), Auth.basic("me", "hunter2"), verify=False
    )
    chosen = targets_of(
        RunForm(targets=("os-prod", "near=https://search-1:9200"), targets_file=file, allow_writes=True)
    )
    assert chosen == {
        "os-prod": TargetSpec(("http://far:9200",), file=file, writes=True),
        "near": TargetSpec(("https://search-1:9200",), writes=True),
    }
    written(tmp_path, "es: {url: 'https://a:1'}")
    with pytest.raises(UsageError, match="has no target 'os-prod'"):
        endpoint_of("os-prod", found["os-prod"])


def test_credentials_of_a_target_that_moved_are_not_sent_to_where_it_was(tmp_path: Path):
    file = written(tmp_path, "es: {url: 'https://old:1', bearer: hunter2}\n")
    found = targets_of(RunForm(targets_file=file))
    written(tmp_path, "es: {url: 'https://new:1', bearer: hunter3}\n")
    with pytest.raises(UsageError, match="es was at https://old:1 and now has another address"):
        endpoint_of("es", found["es"])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"targets": ("https://me:hunter2@search-1:9200",)}, "needs a name"),
        ({"targets": ("es=https://me:hunter2@search-1:9200",)}, "holds credentials"),
        ({"targets": ("es=search-1:9200",)}, "not the address"),
        ({"targets": ("Es Prod=https://a:1",)}, "cannot be a variant's label"),
        ({"targets": (ES, ES)}, "duplicate --target es"),
        ({"targets": ("es-1=https://a:1", "es.1=https://b:1")}, "would share BENCHCTL_ES_1_USER"),
        ({"allow_writes": True}, "--allow-writes requires --target"),
        ({"targets_file": "/no/such.yml"}, "cannot read"),
    ],
)
def test_mistakes_are_told_without_secrets(form: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message) as caught:
        read_targets(RunForm(**form))
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("entries", "form", "message"),
    [
        ("es: {url: 'https://a:1'}", {"targets": ("os",)}, "needs a name"),
        ("es: {url: 'https://a:1', password: hunter2, user: me}", {"targets": (ES,)}, "defines es, too"),
        ("es: {url: 'https://a:1', fill: true}", {"allow_writes": True}, "cannot be used with"),
        ("es: {url: 'https://a:1', passwd: hunter2}", {}, "unknown field"),
        ("es: {url: 'https://a:1', password: [hunter2]}", {}, "Expected `str`"),
        ("es: {url: 'https://a:1', password: 'hunter2}", {}, "cannot be read as YAML"),
        ("hunter2", {}, "Expected `object`"),
        ("{}", {}, "has no targets"),  # not those that are measured without any
        ("es: {user: me}", {}, "not the address"),
        ("es: {url: 'https://a:1', proxy: 'http://me:hunter2@a:1'}", {}, "holds credentials"),
        ("es: {url: 'https://a:1', proxy: 'socks5://a:1'}", {}, "invalid proxy"),
        ("es: {url: 'https://a:1', ca: no.pem}", {}, "cannot read .*no.pem"),
        ("es: {url: 'https://a:1', ca: targets.yml}", {}, "holds no certificates"),
        ("es: {url: 'https://a:1', user: hunter2}", {}, "unusable credentials of es in .*: user"),
        ("es: {url: 'https://a:1', user: me, password: hunter2, bearer: hunter2}", {}, ": bearer and"),
        ("es: {url: 'https://a:1', bearer: two hunter2}", {}, "cannot be sent"),
        ("es: {url: 'https://a:1', api-key: 12345}", {}, "Expected `str`"),
        ("!!python/object/apply:os.system [hunter2]", {}, "cannot be read as YAML"),
        (f"# {'x' * 300_000}", {}, "is larger than"),
    ],
)
def test_mistakes_in_a_file_are_told_without_its_secrets(
    tmp_path: Path, entries: str, form: dict[str, Any], message: str
):
    with pytest.raises(UsageError, match=message) as caught:
        endpoints_of(read_targets(RunForm(targets_file=written(tmp_path, entries), **form)), {})
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_what_is_no_text_is_refused(tmp_path: Path):
    path = Path(written(tmp_path, ""))
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UsageError, match="cannot be read as YAML"):
        read_targets(RunForm(targets_file=str(path)))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_only_a_file_without_credentials_may_be_open_to_others(tmp_path: Path, mode: int):
    form = RunForm(targets_file=written(tmp_path, "es: {url: 'https://a:1'}", mode))
    assert [*targets_of(form)] == ["es"]
    written(tmp_path, "es: {url: 'https://a:1', api-key: hunter2}", mode)
    with pytest.raises(UsageError, match=f"is open to other users .mode {mode:o}") as caught:
        read_targets(form)
    assert caught.value.hint == f"chmod 600 {form.targets_file}"


def test_credentials_do_not_travel_unencrypted_by_accident(tmp_path: Path):
    environ = {"BENCHCTL_ES_API_KEY": "aWQ6a2V5"}
    remote = TargetSpec(("http://search-1:9200",))
    with pytest.raises(UsageError, match="refusing to send credentials") as caught:
        endpoint_of("es", remote, environ)
    assert "`insecure: true` of es" in caught.value.hint
    assert "aWQ6a2V5" not in str(caught.value)
    file = written(tmp_path, "es: {url: 'http://search-1:9200', insecure: true}")
    accepted = endpoint_of("es", targets_of(RunForm(targets_file=file))["es"], environ)
    assert accepted.headers == ("Authorization: ApiKey aWQ6a2V5",)
    assert endpoint_of("es", TargetSpec(("http://127.0.0.1:9200",)), environ).headers
    assert endpoint_of("es", TargetSpec(("https://search-1:9200",)), environ).headers
    assert endpoint_of("es", remote).headers == ()


@pytest.mark.parametrize(
    ("environ", "auth"),
    [
        ({}, None),
        ({"BENCHCTL_ES_USER": "", "BENCHCTL_OS_USER": "x"}, None),
        ({"BENCHCTL_ES_USER": "me", "BENCHCTL_ES_PASSWORD": SPELL}, Auth.basic("me", SPELL)),
        ({"BENCHCTL_ES_API_KEY": SPELL}, Auth.api_key(SPELL)),
        ({"BENCHCTL_ES_BEARER": SPELL}, Auth.bearer(SPELL)),
        (
            {
                "BENCHCTL_ES_ACCESS_KEY": "AKID",
                "BENCHCTL_ES_SECRET_KEY": SPELL,
                "BENCHCTL_ES_REGION": "eu-north-1",
            },
            Auth.aws("AKID", SPELL, "eu-north-1"),
        ),
        (
            # AWS's own variables are for targets that name a region, and for no other.
            {"BENCHCTL_ES_REGION": "eu-north-1", "BENCHCTL_ES_SERVICE": "aoss", **AWS},
            Auth.aws("AKID", SPELL, "eu-north-1", "aoss", "token"),
        ),
        (AWS, None),
        ({"BENCHCTL_ES_BEARER": "other", **AWS}, Auth.bearer("other")),
    ],
)
def test_the_environment_holds_one_kind_of_credentials(environ: dict[str, str], auth: Auth | None):
    assert auth_of(environ) == auth


@pytest.mark.parametrize(
    "names",
    [
        ("USER",),
        ("PASSWORD",),
        ("API_KEY", "BEARER"),
        ("USER", "PASSWORD", "BEARER"),
        ("REGION",),
        ("ACCESS_KEY", "SECRET_KEY"),
        ("BEARER", "REGION"),
    ],
)
def test_halves_and_doubles_are_refused(names: tuple[str, ...]):
    with pytest.raises(UsageError, match=r"unusable credentials of .* in the environment: ") as caught:
        auth_of({f"BENCHCTL_ES_{name}": SPELL for name in names})
    assert SPELL not in str(caught.value)


def test_credentials_in_a_file_and_in_the_environment_are_refused(tmp_path: Path):
    file = written(tmp_path, "es: {url: 'https://a:1', api-key: hunter2}")
    with pytest.raises(UsageError, match=r"given twice, in .* and in BENCHCTL_ES_BEARER") as caught:
        endpoints_of(read_targets(RunForm(targets_file=file)), {"BENCHCTL_ES_BEARER": SPELL})
    assert SPELL not in str(caught.value)


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

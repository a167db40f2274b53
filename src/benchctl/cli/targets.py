"""Running clusters: from options, or a file of `--targets` that may hold their credentials."""

import os
import shlex
import ssl
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from benchctl.cli.options import grouped
from benchctl.disk import expanded
from benchctl.endpoint import TARGET_OPTIONS, Auth, Endpoint, OptionNames, read_hosts, read_proxy, variable
from benchctl.engine.target import Address, identify
from benchctl.engine.variant import ENGINE_WORDS, canonical_engine, check_name
from benchctl.errors import UsageError
from benchctl.results.plan import Plan, TargetSpec, VariantSpec
from benchctl.spec import RunForm

KINDS = (
    *("user", "password", "api-key", "bearer"),
    *("access-key", "secret-key", "session-token", "region", "service"),
)
_MOST_BYTES = 256 * 1024
_AWS_REQUIRED = frozenset({"access-key", "secret-key", "region"})
# What AWS's own tools read, once a region says that requests are to be signed.
_AWS_VARIABLES = {
    "access-key": "AWS_ACCESS_KEY_ID",
    "secret-key": "AWS_SECRET_ACCESS_KEY",
    "session-token": "AWS_SESSION_TOKEN",
}
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_auth(name: str, given: Mapping[str, str], where: str, environ: Mapping[str, str]) -> Auth | None:
    """Return the credentials of a target, by KINDS as given, or from the environment; None without any.

    Raises:
        UsageError: If credentials are incomplete, or given twice.
    """
    credentials = {kind: environ[variable(name, kind)] for kind in KINDS if environ.get(variable(name, kind))}
    if credentials and given:
        names = ", ".join(variable(name, kind) for kind in credentials)
        raise UsageError(
            f"the credentials of {name} are given twice, in {where} and in {names}", hint="give one of them"
        )
    credentials = dict(given or credentials)
    if credentials and credentials.keys() <= {"region", "service"}:
        own = {kind: environ.get(variable, "") for kind, variable in _AWS_VARIABLES.items()}
        credentials |= {kind: secret for kind, secret in own.items() if secret}
    return _auth(name, credentials, where if given else "the environment")


def read_secret_file(path: Path) -> dict[str, str]:
    """Read a YAML file of credentials, by KINDS. No message quotes from it.

    Raises:
        UsageError: If the file cannot be read, others can read it, or it holds something else.
    """
    content, mode = _read_yaml(path, _form())
    _check_closed(path, mode)
    if not content or not isinstance(content, dict) or not set(content) <= set(KINDS):
        raise UsageError(f"{path} holds no credentials, or something else", hint=_form())
    for kind, value in content.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: {kind} is not text", hint=f"put quotes around the value of {kind}")
    return dict(content)


def _read_yaml(path: Path, form: str) -> tuple[Any, int]:
    """Return what a file holds, and its mode. No message quotes from it."""
    try:
        # What was looked at is what is read, whatever becomes of the name meanwhile.
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            text = opened.read(_MOST_BYTES + 1)
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror}") from err
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than {_MOST_BYTES:,} bytes", hint=form)
    try:
        return yaml.safe_load(text), mode
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "it"
        # The parser's own words quote the file.
        raise UsageError(f"{path}: {where} cannot be read as YAML", hint=form) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text", hint=form) from None


def _check_closed(path: Path, mode: int) -> None:
    if mode & _OTHERS:
        raise UsageError(
            f"{path} holds credentials and is open to other users (mode {stat.S_IMODE(mode):o})",
            hint=f"chmod 600 {shlex.quote(str(path))}",
        )


def _auth(name: str, found: Mapping[str, str], where: str) -> Auth | None:
    given = frozenset(found)
    if not given:
        return None
    if given == {"user", "password"}:
        return Auth.basic(found["user"], found["password"])
    if given == {"api-key"}:
        return Auth.api_key(found["api-key"])
    if given == {"bearer"}:
        return Auth.bearer(found["bearer"])
    if given >= _AWS_REQUIRED and given <= {*_AWS_REQUIRED, "service", "session-token"}:
        return Auth.aws(
            found["access-key"],
            found["secret-key"],
            found["region"],
            found.get("service", "es"),
            found.get("session-token", ""),
        )
    raise UsageError(
        f"the credentials of {name} in {where} are {' and '.join(sorted(given))}",
        hint="give user and password, api-key, bearer, or for AWS access-key, secret-key and region",
    )


def _form() -> str:
    return (
        "write `user: NAME` and `password: SECRET`, `api-key: KEY`, `bearer: TOKEN`, or for AWS "
        "`access-key`, `secret-key` and `region`"
    )


# Running clusters of a run.


class TargetEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A running cluster in a file of `--targets`; paths are relative to the file's directory."""

    url: str = ""  # address, such as https://search.example:9200
    user: str = ""  # user name, with `password`
    password: str = ""  # password of `user`
    api_key: str = ""  # API key, instead of a user
    bearer: str = ""  # bearer token, instead of a user
    access_key: str = ""  # AWS access key, with `secret-key`
    secret_key: str = ""  # AWS secret key
    session_token: str = ""  # AWS session token
    region: str = ""  # AWS region
    service: str = ""  # AWS service: es (default) or aoss
    ca: str = ""  # file of certificates to trust, PEM
    proxy: str = ""  # URL of a proxy
    insecure: bool = False  # true: skip checking the certificate, allow credentials without TLS
    fill: bool = False  # true: create and fill the track's missing index

    @property
    def secrets(self) -> dict[str, str]:
        """Credentials, by KINDS."""
        given = {kind: getattr(self, kind.replace("-", "_")) for kind in KINDS}
        return {kind: value for kind, value in given.items() if value}


_TARGETS_FORM = (
    "write NAME: {url: https://HOST:9200}, with user and password, api-key, bearer or AWS keys, ca, proxy, "
    "insecure and fill where needed"
)


def _read_entries(path: Path) -> dict[str, TargetEntry]:
    """Read a file of `--targets`. No message quotes a value of it.

    Raises:
        UsageError: If the file cannot be read, others can read credentials in it, or it holds something else.
    """
    content, mode = _read_yaml(path, _TARGETS_FORM)
    try:
        entries = msgspec.convert(content, dict[str, TargetEntry])
    except msgspec.ValidationError as err:
        raise UsageError(f"{path}: {err}", hint=_TARGETS_FORM) from None
    if not entries:
        raise UsageError(f"{path} has no targets", hint=_TARGETS_FORM)
    if any(entry.secrets for entry in entries.values()):
        _check_closed(path, mode)
    return entries


def read_targets(form: RunForm) -> dict[str, TargetSpec]:
    """Return the targets of a form, by name, without asking any cluster; without names all of the file.

    Raises:
        UsageError: If a text or the file is malformed, or a name is not in the file.
    """
    path = Path(form.targets_file).expanduser().absolute() if form.targets_file else None
    entries = {} if path is None else _read_entries(path)
    targets: dict[str, TargetSpec] = {}
    for text in form.targets or entries:
        name, _, url = text.partition("=")
        entry = entries.get(text)
        if entry is None and (not url or not name or "/" in name):
            # A misplaced text may hold a password; it is not repeated.
            listed = f", or one of {', '.join(entries)}" if entries else ""
            raise UsageError("--target needs a name", hint=f"write --target NAME=https://HOST:9200{listed}")
        if url and name in entries:
            hint = f"write --target {name}, or give the address another name"
            raise UsageError(f"--target {name}=URL: {path} defines {name}, too", hint=hint)
        if name in targets:
            raise UsageError(f"duplicate --target {name}")
        if entry is not None and path is not None:
            _connection(path, name, entry)
        targets[check_name(name)] = TargetSpec(
            hosts=read_hosts(url if entry is None else entry.url),
            file=None if entry is None else str(path),
            fill=entry is not None and entry.fill,
            writes=form.allow_writes,
        )
    if form.allow_writes and not targets:
        raise UsageError("--allow-writes requires --target or --targets")
    if form.allow_writes and any(target.fill for target in targets.values()):
        raise UsageError(
            "--allow-writes cannot be used with a target of `fill: true`",
            hint="a challenge that makes the index finds none; one that only reads needs it filled",
        )
    _check_variables(targets)
    return targets


def _connection(path: Path, name: str, entry: TargetEntry) -> dict[str, Any]:
    """Return how an entry of a file is connected to, as arguments of `endpoint_at`."""
    ca = path.parent / expanded(entry.ca) if entry.ca else None
    return {
        "secrets": entry.secrets,
        "where": str(path),
        "ca": None if ca is None else certificates(ca, f"{path}: {name}: ca"),
        "verify": not entry.insecure,
        "proxy": read_proxy(entry.proxy) if entry.proxy else None,
    }


def endpoint_at(
    name: str,
    hosts: tuple[str, ...],
    environ: Mapping[str, str],
    *,
    secrets: Mapping[str, str],
    where: str = "",
    ca: Path | None = None,
    verify: bool = True,
    proxy: str | None = None,
    options: OptionNames = TARGET_OPTIONS,
) -> Endpoint:
    """Return where a cluster is, with its credentials.

    Args:
        name: For messages and environment variables.
        hosts: Its addresses.
        environ: Has credentials where there are no `secrets`.
        secrets: Credentials by KINDS.
        where: The file that has these.
        ca: Certificates to trust.
        verify: Whether its certificate is checked.
        proxy: On the way to it.
        options: Of the command, for hints.

    Raises:
        UsageError: If the credentials are wrong, or would be sent unencrypted.
    """
    auth = read_auth(name, secrets, where, environ)
    endpoint = Endpoint(hosts, auth, ca, verify, options, proxy=proxy)
    if auth is not None and verify and not (endpoint.is_encrypted or endpoint.is_local):
        raise UsageError(
            f"refusing to send credentials for {name} to {endpoint.title} without TLS",
            hint=f"use https, or add {options.insecure.format(name=name)} on a trusted network",
        )
    return endpoint


def endpoint_of(name: str, target: TargetSpec, environ: Mapping[str, str]) -> Endpoint:
    """Return where a target is, with its credentials.

    Raises:
        UsageError: If its file no longer has it, or elsewhere, the credentials are wrong, or would be sent
            unencrypted.
    """
    if target.file is None:
        return endpoint_at(name, target.hosts, environ, secrets={})
    path = Path(target.file)
    entry = _read_entries(path).get(name)
    if entry is None:
        raise UsageError(f"{path} has no target '{name}'", hint="put it back, or start a new run")
    if read_hosts(entry.url) != target.hosts:
        # The credentials of the new address are nothing for the old one.
        raise UsageError(
            f"{path}: {name} was at {','.join(target.hosts)} and is elsewhere now",
            hint="put the address back, or start a new run",
        )
    return endpoint_at(name, target.hosts, environ, **_connection(path, name, entry))


_ADDRESS = OptionNames(ca="--ca PATH", auth="--auth FILE", insecure="--insecure")


@dataclass(frozen=True)
class AddressOptions:
    """Options about a cluster whose address is an option itself."""

    auth_file: Path | None
    ca: str | None
    insecure: bool

    def endpoint(self, name: str, url: str) -> Endpoint:
        """Return the cluster at `url`; credentials that no file has are in the environment, under `name`.

        Raises:
            UsageError: If an option is wrong, or `endpoint_at` raises it.
        """
        return endpoint_at(
            name,
            read_hosts(url, _ADDRESS),
            os.environ,
            secrets={} if self.auth_file is None else read_secret_file(self.auth_file.expanduser()),
            where=str(self.auth_file),
            ca=None if self.ca is None else certificates(Path(self.ca), "--ca"),
            verify=not self.insecure,
            options=_ADDRESS,
        )


address_options = grouped(
    "address",
    AddressOptions,
    click.option(
        "--auth",
        "auth_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="YAML file with the credentials (user and password, api-key, bearer or AWS keys), readable only "
        "by you.",
    ),
    click.option("--ca", metavar="PATH", help="Certificates to trust, PEM.  [default: the system's]"),
    click.option(
        "--insecure", is_flag=True, help="Do not check the certificate; send it credentials without TLS."
    ),
)


def endpoints_of(specs: Iterable[VariantSpec], environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Return where the targets among some variants are, by name.

    Raises:
        UsageError: If `endpoint_of` raises it.
    """
    return {
        spec.name: endpoint_of(spec.name, spec.target, environ) for spec in specs if spec.target is not None
    }


def unasked_targets(form: RunForm) -> tuple[VariantSpec, ...]:
    """Return the targets of a form as variants, in its order, before any is asked what it runs.

    Raises:
        UsageError: If the form is wrong.
    """
    return tuple(
        VariantSpec(name, "elasticsearch", "", target=target) for name, target in read_targets(form).items()
    )


def with_answers(plan: Plan, environ: Mapping[str, str]) -> Plan:
    """Return the plan with every target as it describes itself: it is asked when all else is right.

    Raises:
        UsageError: If credentials are wrong, or a target has the name of the other engine.
        BenchctlError: If a target cannot be reached, or refuses.
    """
    endpoints = endpoints_of(plan.variants, environ)
    identities = {name: identify(Address(name, endpoint)) for name, endpoint in endpoints.items()}

    def answered(spec: VariantSpec) -> VariantSpec:
        facts = identities.get(spec.name)
        if facts is None:
            return spec
        says = spec.name.partition("@")[0]
        if says in ENGINE_WORDS and canonical_engine(says) != facts.engine:
            raise UsageError(
                f"the target '{spec.name}' is {facts.engine} {facts.version}",
                hint="choose another name for it",
            )
        return msgspec.structs.replace(spec, engine=facts.engine, version=facts.version)

    swept = plan.swept
    if swept is not None:
        swept = msgspec.structs.replace(swept, bases=tuple(map(answered, swept.bases)))
    return msgspec.structs.replace(plan, variants=tuple(map(answered, plan.variants)), swept=swept)


def _check_variables(names: Iterable[str]) -> None:
    """Refuse two targets that would take each other's secrets."""
    by_variable: dict[str, str] = {}
    for name in names:
        other = by_variable.setdefault(variable(name, "user"), name)
        if other != name:
            raise UsageError(
                f"targets {other} and {name} would share {variable(name, 'user')}",
                hint="choose names that differ in letters or digits",
            )


def certificates(path: Path, where: str) -> Path:
    """Return the absolute path of a file of certificates.

    Raises:
        UsageError: If the file cannot be read, or holds no certificate.
    """
    path = path.expanduser().absolute()
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError as err:
        raise UsageError(f"{where}: {path} holds no certificates (expected PEM)") from err
    except OSError as err:
        raise UsageError(f"{where}: cannot read {path}: {err.strerror}") from err
    return path

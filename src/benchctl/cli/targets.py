"""Running clusters: addresses on the command line, or a file of `--targets` that may hold credentials."""

import os
import shlex
import ssl
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import yaml

from benchctl.disk import expanded
from benchctl.endpoint import Auth, Endpoint, read_hosts, read_proxy, variable
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
_FORM = (
    "write NAME: {url: https://HOST:9200}, with user and password, api-key, bearer or AWS keys, ca, proxy, "
    "insecure and fill where needed"
)


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


def _read_entries(path: Path) -> dict[str, TargetEntry]:
    """Read a file of `--targets`. No message quotes a value of it.

    Raises:
        UsageError: If the file cannot be read, others can read credentials in it, or it holds something else.
    """
    try:
        # What was looked at is what is read, whatever becomes of the name meanwhile.
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            text = opened.read(_MOST_BYTES + 1)
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror}") from err
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than {_MOST_BYTES:,} bytes", hint=_FORM)
    try:
        entries = msgspec.convert(yaml.safe_load(text), dict[str, TargetEntry])
    except msgspec.ValidationError as err:
        raise UsageError(f"{path}: {err}", hint=_FORM) from None
    except (yaml.YAMLError, UnicodeDecodeError) as err:
        mark = getattr(err, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "it"
        # The parser's own words quote the file.
        raise UsageError(f"{path}: {where} cannot be read as YAML", hint=_FORM) from None
    if not entries:
        raise UsageError(f"{path} has no targets", hint=_FORM)
    if mode & (stat.S_IRWXG | stat.S_IRWXO) and any(entry.secrets for entry in entries.values()):
        raise UsageError(
            f"{path} holds credentials and is open to other users (mode {stat.S_IMODE(mode):o})",
            hint=f"chmod 600 {shlex.quote(str(path))}",
        )
    return entries


def read_targets(form: RunForm) -> tuple[VariantSpec, ...]:
    """Return the targets of a form as variants, before any is asked what it runs.

    Without names they are those of the whole file.

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
        hosts = read_hosts(url if entry is None else entry.url)
        file = None if entry is None else str(path)
        fill = entry is not None and entry.fill
        targets[check_name(name)] = TargetSpec(hosts, file=file, fill=fill, writes=form.allow_writes)
    if form.allow_writes and not targets:
        raise UsageError("--allow-writes requires --target or --targets")
    if form.allow_writes and any(target.fill for target in targets.values()):
        raise UsageError(
            "--allow-writes cannot be used with a target of `fill: true`",
            hint="remove one: a challenge that creates the index does not need it filled",
        )
    by_variable: dict[str, str] = {}
    for name in targets:
        other = by_variable.setdefault(variable(name, "user"), name)
        if other != name:  # they would take each other's secrets
            raise UsageError(
                f"targets {other} and {name} would share {variable(name, 'user')}",
                hint="choose names that differ in letters or digits",
            )
    return tuple(VariantSpec(name, "elasticsearch", "", target=target) for name, target in targets.items())


def endpoints_of(specs: Iterable[VariantSpec], environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Return where the targets among some variants are, with their credentials, by name.

    Raises:
        UsageError: If a file no longer has a target, or elsewhere, or its entry or credentials are wrong, or
            these would be sent unencrypted.
    """
    return {
        spec.name: _endpoint(spec.name, spec.target, environ) for spec in specs if spec.target is not None
    }


def _endpoint(name: str, target: TargetSpec, environ: Mapping[str, str]) -> Endpoint:
    entry, ca = TargetEntry(), None
    if target.file is not None:
        path = Path(target.file)
        entries = _read_entries(path)
        if name not in entries:
            raise UsageError(f"{path} has no target '{name}'", hint="restore it, or start a new run")
        entry = entries[name]
        if read_hosts(entry.url) != target.hosts:
            # The credentials of the new address are nothing for the old one.
            raise UsageError(
                f"{path}: {name} was at {','.join(target.hosts)} and now has another address",
                hint="restore the address, or start a new run",
            )
        ca = _certificates(path.parent / expanded(entry.ca), f"{path}: {name}: ca") if entry.ca else None
    proxy = read_proxy(entry.proxy) if entry.proxy else None
    auth = _auth(name, entry.secrets, target.file or "", environ)
    endpoint = Endpoint(target.hosts, auth, ca, not entry.insecure, proxy=proxy)
    if auth is not None and endpoint.verify and not (endpoint.is_encrypted or endpoint.is_local):
        raise UsageError(
            f"refusing to send credentials for {name} to {endpoint.title} without TLS",
            hint=f"use https, or add `insecure: true` of {name} in --targets FILE on a trusted network",
        )
    return endpoint


def _auth(name: str, given: Mapping[str, str], where: str, environ: Mapping[str, str]) -> Auth | None:
    """Return the credentials of a target, as given in a file, or from the environment; None without any."""
    found = {kind: environ[variable(name, kind)] for kind in KINDS if environ.get(variable(name, kind))}
    if found and given:
        names = ", ".join(variable(name, kind) for kind in found)
        raise UsageError(
            f"the credentials of {name} are given twice, in {where} and in {names}", hint="give one of them"
        )
    found = dict(given or found)
    if not found:
        return None
    if found.keys() <= {"region", "service"}:
        found |= {kind: environ[own] for kind, own in _AWS_VARIABLES.items() if environ.get(own)}
    kinds = found.keys()
    if kinds == {"user", "password"}:
        return Auth.basic(found["user"], found["password"])
    if kinds == {"api-key"}:
        return Auth.api_key(found["api-key"])
    if kinds == {"bearer"}:
        return Auth.bearer(found["bearer"])
    if _AWS_REQUIRED <= kinds <= {*_AWS_REQUIRED, "service", "session-token"}:
        return Auth.aws(
            found["access-key"],
            found["secret-key"],
            found["region"],
            found.get("service", "es"),
            found.get("session-token", ""),
        )
    raise UsageError(
        f"unusable credentials of {name} in {where if given else 'the environment'}: "
        f"{' and '.join(sorted(kinds))}",
        hint="give user and password, api-key, bearer, or for AWS access-key, secret-key and region",
    )


def _certificates(path: Path, where: str) -> Path:
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError as err:
        raise UsageError(f"{where}: {path} holds no certificates (expected PEM)") from err
    except OSError as err:
        raise UsageError(f"{where}: cannot read {path}: {err.strerror}") from err
    return path


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
        label = spec.name.partition("@")[0]
        if label in ENGINE_WORDS and canonical_engine(label) != facts.engine:
            raise UsageError(
                f"the target '{spec.name}' runs {facts.engine} {facts.version}",
                hint="choose another name for it",
            )
        return msgspec.structs.replace(spec, engine=facts.engine, version=facts.version)

    swept = plan.swept
    if swept is not None:
        swept = msgspec.structs.replace(swept, bases=tuple(map(answered, swept.bases)))
    return msgspec.structs.replace(plan, variants=tuple(map(answered, plan.variants)), swept=swept)

"""Credentials of targets, from the environment or a file that is closed to others; never from arguments."""

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
from benchctl.endpoint import TARGET_OPTIONS, Auth, Endpoint, OptionNames, read_hosts, read_proxy, variable
from benchctl.engine.target import Address, identify
from benchctl.engine.variant import ENGINE_WORDS, canonical_engine, check_name
from benchctl.errors import UsageError
from benchctl.results.plan import Plan, TargetSpec, VariantSpec

KINDS = (
    *("user", "password", "api-key", "bearer"),
    *("access-key", "secret-key", "session-token", "region", "service"),
)
AUTH_FILE_HELP = (
    "YAML of user and password, api-key, bearer, or AWS's access-key, secret-key and region, that only you "
    "can read."
)
_AWS_REQUIRED = frozenset({"access-key", "secret-key", "region"})
# What AWS's own tools read, once a region says that requests are to be signed.
_AWS_VARIABLES = {
    "access-key": "AWS_ACCESS_KEY_ID",
    "secret-key": "AWS_SECRET_ACCESS_KEY",
    "session-token": "AWS_SESSION_TOKEN",
}
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_auth(name: str, file: Path | None, environ: Mapping[str, str]) -> Auth | None:
    """Return the credentials of a target, from `--target-auth` or the environment; None without any.

    Raises:
        UsageError: If credentials are incomplete, given twice, or open to others.
    """
    found = {kind: environ[variable(name, kind)] for kind in KINDS if environ.get(variable(name, kind))}
    if file is None:
        if found and found.keys() <= {"region", "service"}:
            own = {kind: environ.get(variable, "") for kind, variable in _AWS_VARIABLES.items()}
            found |= {kind: secret for kind, secret in own.items() if secret}
        return _auth(name, found, "the environment")
    if found:
        names = ", ".join(variable(name, kind) for kind in found)
        raise UsageError(
            f"the credentials of {name} are given twice, in {file} and in {names}", hint="give one of them"
        )
    auth = _auth(name, read_secret_file(file), str(file))
    if auth is None:
        raise UsageError(f"{file} holds no credentials", hint=_form())
    return auth


def read_secret_file(path: Path) -> dict[str, str]:
    """Read a YAML file of credentials, by KINDS. No message quotes from it.

    Raises:
        UsageError: If the file cannot be read, others can read it, or it holds something else.
    """
    try:
        # What was looked at is what is read, whatever becomes of the name meanwhile.
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if mode & _OTHERS:
                raise UsageError(
                    f"{path} holds credentials and is open to other users (mode {stat.S_IMODE(mode):o})",
                    hint=f"chmod 600 {shlex.quote(str(path))}",
                )
            text = opened.read()
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror}") from err
    try:
        content: Any = yaml.safe_load(text)
    except yaml.YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "it"
        # The parser's own words quote the file.
        raise UsageError(f"{path}: {where} cannot be read as YAML", hint=_form()) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text", hint=_form()) from None
    if not isinstance(content, dict) or not set(content) <= set(KINDS):
        raise UsageError(f"{path} holds something else than credentials", hint=_form())
    for kind, value in content.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: {kind} is not text", hint=f"put quotes around the value of {kind}")
    return dict(content)


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


# Running clusters from the command line: `--target NAME=URL` and what other options say about it.


@dataclass(frozen=True)
class TargetOptions:
    """Options of targets; each text is `NAME=VALUE`, those of `insecure` a name."""

    targets: tuple[str, ...]
    authorities: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    auth_files: tuple[str, ...] = ()
    restart_commands: tuple[str, ...] = ()
    insecure: tuple[str, ...] = ()
    fill: bool = False
    writes: bool = False
    keep: bool = False


target_options = grouped(
    "target_options",
    TargetOptions,
    "Nodes and indices",
    click.option(
        "--target",
        "targets",
        multiple=True,
        metavar="NAME=URL[,URL...]",
        help="A cluster that runs already; its credentials are in BENCHCTL_<NAME>_USER and _PASSWORD, in "
        "_API_KEY or _BEARER, or for AWS in _ACCESS_KEY, _SECRET_KEY and _REGION.",
    ),
    click.option(
        "--target-auth",
        "auth_files",
        multiple=True,
        metavar="NAME=FILE",
        help=AUTH_FILE_HELP,
    ),
    click.option(
        "--target-ca",
        "authorities",
        multiple=True,
        metavar="NAME=PATH",
        help="Certificates to trust, PEM  [default: the system's].",
    ),
    click.option(
        "--proxy",
        "proxies",
        multiple=True,
        metavar="NAME=URL",
        help="Proxy on the way to the target  [default: none, whatever the environment names].",
    ),
    click.option(
        "--insecure",
        "insecure",
        multiple=True,
        metavar="NAME",
        help="Do not check the target's certificate; send it credentials without TLS.",
    ),
    click.option(
        "--restart-command",
        "restart_commands",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Restarts the target where a node would be booted; run without a shell.",
    ),
    click.option(
        "--fill-target",
        "fill",
        is_flag=True,
        help="Create and fill the track's index where a target has none.",
    ),
    click.option(
        "--allow-writes",
        "writes",
        is_flag=True,
        help="Let challenges create and fill the track's indices and data streams on targets that lack them; "
        "they are removed after every fork.",
    ),
    click.option("--keep", is_flag=True, help="Leave what the last fork made under --allow-writes."),
)
"""The options about targets; the command gets them as one, `target_options`."""


def read_targets(options: TargetOptions) -> dict[str, TargetSpec]:
    """Check all options, by name, without asking any cluster.

    Raises:
        UsageError: If a text is malformed, or names no target.
    """
    hosts = _named(options.targets, "--target", "https://HOST:9200")
    authorities = _named(options.authorities, "--target-ca", "PATH", hosts)
    proxies = _named(options.proxies, "--proxy", "http://HOST:3128", hosts)
    auth_files = _named(options.auth_files, "--target-auth", "FILE", hosts)
    commands = _named(options.restart_commands, "--restart-command", "COMMAND", hosts)
    for name in options.insecure:
        _check_known(name, "--insecure", hosts)
    if options.fill and not hosts:
        raise UsageError("--fill-target needs a --target")
    if options.writes and not hosts:
        raise UsageError("--allow-writes needs a --target")
    if options.writes and options.fill:
        raise UsageError(
            "--allow-writes and --fill-target do not mix",
            hint="a challenge that makes the index finds none; one that only reads needs --fill-target",
        )
    if options.keep and not options.writes:
        raise UsageError("--keep needs --allow-writes", hint="an index made by --fill-target stays anyway")
    _check_variables(hosts)
    return {
        check_name(name): TargetSpec(
            hosts=read_hosts(text),
            ca=certificates(authorities[name]) if name in authorities else None,
            verify=name not in options.insecure,
            proxy=read_proxy(proxies[name]) if name in proxies else None,
            auth_file=str(Path(auth_files[name]).expanduser().absolute()) if name in auth_files else None,
            restart_command=_words(commands[name]) if name in commands else (),
            fill=options.fill,
            writes=("kept" if options.keep else "removed") if options.writes else None,
        )
        for name, text in hosts.items()
    }


def endpoint_of(
    name: str, target: TargetSpec, environ: Mapping[str, str], options: OptionNames = TARGET_OPTIONS
) -> Endpoint:
    """Return where a target is, with its credentials; `options` are named in hints.

    Raises:
        UsageError: If the credentials are wrong, or would be sent unencrypted.
    """
    auth = read_auth(name, Path(target.auth_file) if target.auth_file else None, environ)
    ca = Path(target.ca) if target.ca else None
    endpoint = Endpoint(target.hosts, auth, ca, target.verify, options, proxy=target.proxy)
    if auth is not None and target.verify and not (endpoint.is_encrypted or endpoint.is_local):
        raise UsageError(
            f"the credentials of {name} would travel unencrypted to {endpoint.title}",
            hint=f"use https, or say {options.insecure.format(name=name)} if nobody can listen",
        )
    return endpoint


def endpoints_of(specs: Iterable[VariantSpec], environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Return where the targets among some variants are, by name.

    Raises:
        UsageError: If `endpoint_of` raises it.
    """
    return {
        spec.name: endpoint_of(spec.name, spec.target, environ) for spec in specs if spec.target is not None
    }


def unasked_targets(options: TargetOptions) -> tuple[VariantSpec, ...]:
    """Return the targets as variants, in the order of the options, before any is asked what it runs.

    Raises:
        UsageError: If the options are wrong.
    """
    return tuple(
        VariantSpec(name, "elasticsearch", "", target=target)
        for name, target in read_targets(options).items()
    )


def with_answers(plan: Plan, environ: Mapping[str, str]) -> Plan:
    """Return the plan with every target as it describes itself: it is asked when all else is right.

    Raises:
        UsageError: If credentials are wrong, or a target has the name of the other engine.
        BenchctlError: If a target cannot be reached, or refuses.
    """
    endpoints = endpoints_of(plan.variants, environ)
    known = {name: identify(Address(name, endpoint)) for name, endpoint in endpoints.items()}

    def answered(spec: VariantSpec) -> VariantSpec:
        facts = known.get(spec.name)
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


def _named(
    texts: Iterable[str], option: str, value: str, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, content = text.partition("=")
        if not equals or not name or not content or "/" in name:
            # A misplaced text may hold a password; it is not repeated.
            raise UsageError(f"{option} needs a name", hint=f"write {option} NAME={value}")
        if name in found:
            raise UsageError(f"{option} is given twice for {name}")
        if known is not None:
            _check_known(name, option, known)
        found[name] = content
    return found


def _check_known(name: str, option: str, known: Mapping[str, str]) -> None:
    if name not in known:
        raise UsageError(
            f"{option} is given for '{name}', which is not a target",
            hint=f"targets are {', '.join(known)}" if known else "give --target, too",
        )


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


def certificates(text: str, option: str = "--target-ca") -> str:
    """Return the absolute path of a file of certificates.

    Raises:
        UsageError: If the file cannot be read, or holds no certificate.
    """
    path = Path(text).expanduser().absolute()
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError as err:
        raise UsageError(f"{option} {path} holds no certificates", hint="it takes PEM") from err
    except OSError as err:
        raise UsageError(f"{option} {path} cannot be read: {err.strerror}") from err
    return str(path)


def _words(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as err:
        raise UsageError(f"--restart-command '{command}': {err}", hint="quote it as for a shell") from err
    if not words:
        raise UsageError("--restart-command is empty")
    return words

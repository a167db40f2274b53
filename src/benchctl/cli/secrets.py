"""Credentials of targets, from the environment or a file that is closed to others; never from arguments."""

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchctl.endpoint import Auth, variable
from benchctl.errors import UsageError

KINDS = ("user", "password", "api-key", "bearer")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_auth(name: str, file: Path | None, environ: Mapping[str, str]) -> Auth | None:
    """The credentials of a target; None when there are none.

    Args:
        name: of the target.
        file: given with `--target-auth`; None for the environment.
        environ: the environment.

    Raises:
        UsageError: they are incomplete, given twice, or open to others.
    """
    found = {kind: environ[variable(name, kind)] for kind in KINDS if environ.get(variable(name, kind))}
    if file is None:
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
    """Read a YAML file of `user` and `password`, `api-key`, or `bearer`. No message quotes from it.

    Raises:
        UsageError: it cannot be read, others can, or it holds something else.
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
        raise UsageError(f"{path} is no text", hint=_form()) from None
    if not isinstance(content, dict) or not set(content) <= set(KINDS):
        raise UsageError(f"{path} holds something else than credentials", hint=_form())
    for kind, value in content.items():
        if not isinstance(value, str):
            raise UsageError(f"{path}: {kind} is no text", hint=f"put quotes around the value of {kind}")
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
    raise UsageError(
        f"the credentials of {name} in {where} are {' and '.join(sorted(given))}",
        hint="give user and password, or an API key, or a bearer token",
    )


def _form() -> str:
    return "write `user: NAME` and `password: SECRET`, or `api-key: KEY`, or `bearer: TOKEN`"

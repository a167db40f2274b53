"""`benchctl track trust` and `untrust`: remember that a Python plug-in may be executed, or forget it."""

import click

from benchctl.cli.streams import say
from benchctl.cli.trust_option import code_of
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.plugin.code import Code
from benchctl.plugin.consent import Consent


@click.command("trust")
@click.argument("path")
def trust_command(path: str) -> None:
    """Let `benchctl run` execute the Python plug-in of the track at PATH, until one of its files changes.

    A plug-in is a program: it can do whatever you can. Read the files that are named first.
    """
    code = _existing(path)
    Consent(resolve_home()).remember(code)
    say(f"trusted {code.digest[:12]}: {code.describe()}")


@click.command("untrust")
@click.argument("path")
def untrust_command(path: str) -> None:
    """Take that back, for what the plug-in is now and whatever it was before."""
    code = _existing(path)
    found = Consent(resolve_home()).forget(code)
    say(f"no longer trusted: {code.path}" if found else f"was not trusted: {code.path}")


def _existing(path: str) -> Code:
    code = code_of(path)
    if code is None:
        raise UsageError(
            f"the track at {path} has no Python plug-in", hint="one is called track.py or workload.py"
        )
    return code

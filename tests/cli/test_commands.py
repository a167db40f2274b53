import subprocess
import sys

import click

from benchctl.cli import root


def test_the_help_names_every_command_and_loads_none_of_them():
    code = (
        "import sys; from benchctl.cli import root\n"
        "root.main(['--help'], standalone_mode=False)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('benchctl.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *text, loaded = done.stdout.splitlines()
    named = [line.split()[0] for line in text[text.index("Commands:") + 1 :]]
    assert named == root.list_commands(click.Context(root))
    assert loaded.split() == [
        "benchctl.cli",
        "benchctl.cli.boundary",
        "benchctl.cli.ending",
        "benchctl.cli.lazy",
        "benchctl.cli.streams",
        "benchctl.errors",
        "benchctl.nearest",
    ]

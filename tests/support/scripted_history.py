"""A git repository whose commits build distributions: an archive packed anew, with flags of each."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BUILD = "python3 build.py"
ARTIFACT = "out/*.zip"
SLOW = "-XX:CompileCommand=quiet\n-XX:CompileCommand=exclude,org.apache.lucene.*::*"
"""Flags with which Lucene is interpreted, and nodes start as fast as ever."""

_BUILD = """\
import os, pathlib, shutil, sys, zipfile
flags = pathlib.Path("flags").read_text()
if "broken" in flags:
    sys.exit("build.py: this commit does not compile")
pathlib.Path("out").mkdir()
with zipfile.ZipFile({archive!r}) as old, zipfile.ZipFile("out/engine.zip", "w") as new:
    for entry in old.infolist():
        data = old.read(entry)
        if entry.filename.endswith("/config/jvm.options"):
            data += flags.encode()
        new.writestr(entry, data, zipfile.ZIP_STORED)
"""


class Step(NamedTuple):
    """A commit: what it says, and which flags all nodes built from it on have; `broken` does not build."""

    subject: str
    flags: str = ""


def git(folder: Path, *words: str) -> str:
    """Run git in a folder without the settings of whoever runs the tests; what it prints."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *words],  # noqa: S607 - as people have it installed
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def write_history(
    folder: Path, steps: Sequence[Step], build: str = "", archive: Path | None = None
) -> list[str]:
    """A repository with these commits, the oldest first; their hashes.

    `build` is the script `build.py`; by default one that packs an archive with the commit's flags.
    """
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "build.py").write_text(build or _BUILD.format(archive=str(archive)))
    shas = []
    for number, step in enumerate(steps):
        (folder / "flags").write_text(f"{step.flags}\n")
        (folder / "number").write_text(f"{number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", step.subject)
        shas.append(git(folder, "rev-parse", "HEAD"))
    return shas

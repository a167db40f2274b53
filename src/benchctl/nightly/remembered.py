"""What a suite's folder knows of its file, so that suites can be named without it."""

from pathlib import Path
from typing import Final

import msgspec

from benchctl.disk import read_file
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.nightly.folder import SuiteFolder, suites, write_whole

KNOWN_NAME: Final = "suite.json"


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A suite as it was when it last ran."""

    name: str
    title: str
    file: str  # absolute path of the suite file
    site: str  # absolute path of the folder of pages
    runs: str  # absolute path of the run store
    # Metric -> relative change that nobody is to be woken for, where it is not the default.
    margins: dict[str, float] = {}


def remember(folder: SuiteFolder, known: Known) -> None:
    """Save it.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    write_whole(folder.root / KNOWN_NAME, msgspec.json.encode(known) + b"\n")


def check_name(folder: SuiteFolder, file: str) -> None:
    """Refuse a second suite file of the same name: both would write one history.

    Raises:
        UsageError: another file that still exists has the name.
    """
    try:
        other = Path(recall(folder).file)
    except BenchctlError:  # never ran; or damaged, and about to be written anew
        return
    if other != Path(file) and other.is_file() and not other.samefile(file):
        raise UsageError(
            f"'{folder.root.name}' is the name of the suite in {other}",
            hint="give this one another `name`; or remove the other file, to go on with its history",
        )


def recall(folder: SuiteFolder) -> Known:
    """What is known of a suite that ran before.

    Raises:
        BenchctlError: it never did, or the file is damaged.
    """
    path = folder.root / KNOWN_NAME
    try:
        return msgspec.json.decode(read_file(path), type=Known)
    except OSError as err:
        raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
    except msgspec.DecodeError as err:
        raise BenchctlError(f"{path} is damaged: {err}", hint="run the suite; it is written anew") from err


def find_suite(home: Home, name: str) -> SuiteFolder:
    """A suite by its name, or by the path of its file.

    Raises:
        UsageError: it has had no night.
    """
    found = suites(home)
    if Path(name).is_file():
        # Who gives a name need not wait for all that a suite file may speak of.
        from benchctl.nightly.suite import load_suite  # noqa: PLC0415 - see above

        folder = SuiteFolder(home.nightly / load_suite(Path(name)).name)
        if folder.root.is_dir():
            return folder
        raise UsageError(f"{name} has had no night", hint=f"run it: benchctl nightly run {name}")
    for folder in found:
        if folder.root.name == name:
            return folder
    known = ", ".join(folder.root.name for folder in found)
    raise UsageError(
        f"there is no suite '{name}' in {home.nightly}",
        hint=f"known: {known}" if known else "run one: benchctl nightly run SUITE.yml",
    )

"""What only looks like a file is told, wherever files are read as a whole."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchctl.corpus.generated import load_corpus
from benchctl.disk import MOST_BYTES, read_file, replacing
from benchctl.errors import BenchctlError
from benchctl.nightly.records import SuiteFolder
from benchctl.nightly.suite import load_suite
from benchctl.results.store import RunFolder, RunStore
from benchctl.track.load import load_challenge, load_track
from benchctl.track.template import read_parameter_files
from benchctl.yaml_file import read_typed


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, MOST_BYTES + 1)


def big5(folder: Path) -> None:
    load_challenge(str(folder / "challenge.json"), load_track("big5", {})[0], {})


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "record of a run": ("run.json", lambda folder: RunFolder(folder).load()),
    "track": ("track.json", lambda folder: load_track(str(folder / "track.json"), {})),
    "challenge": ("challenge.json", big5),
    "parameters": ("params.yml", lambda folder: read_parameter_files([folder / "params.yml"])),
    "YAML file": ("variants.yml", lambda folder: read_typed(folder / "variants.yml", dict[str, str])),
    "suite": ("nightly.yml", lambda folder: load_suite(folder / "nightly.yml")),
    "corpus": ("manifest.json", load_corpus),
    "alarms of nights": ("suite.json", lambda folder: SuiteFolder(folder).state()),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [pipe, endless, huge])
@pytest.mark.parametrize("what", READERS)
def test_what_never_ends_is_refused_by_name(what: str, make: Callable[[Path], None], tmp_path: Path):
    name, read = READERS[what]
    make(tmp_path / name)
    with pytest.raises(BenchctlError, match=name):
        read(tmp_path)


@pytest.mark.timeout(60)
def test_a_record_that_is_a_pipe_keeps_no_other_run_from_being_found(tmp_path: Path):
    (tmp_path / "a").mkdir()
    pipe(tmp_path / "a" / "run.json")
    told: list[str] = []
    assert list(RunStore(tmp_path).runs(told.append)) == []
    assert "a/run.json: it is a pipe, a device or a socket, not a regular file" in told[0]


def test_files_of_any_size_up_to_the_bound_are_read(tmp_path: Path):
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        read_file(path, 4)


def test_threads_that_make_the_same_file_do_not_write_into_each_other(tmp_path: Path):
    target, both = tmp_path / "classes.jsa", threading.Barrier(2)

    def make(content: str) -> None:
        with replacing(target) as partial, partial.open("w") as file:
            both.wait(10)
            file.write(content)
            both.wait(10)

    threads = [threading.Thread(target=make, args=(one * 3000,)) for one in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_text() in {"a" * 3000, "b" * 3000}
    assert [one.name for one in tmp_path.iterdir()] == ["classes.jsa"]

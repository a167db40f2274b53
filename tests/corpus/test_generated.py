import json
import os
import signal
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.corpus.big5 import generate
from benchctl.corpus.generated import (
    Corpus,
    ensure_corpus,
    list_corpora,
    needed_bytes,
    open_documents,
)
from benchctl.disk import RESERVE_BYTES, sweep
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from waiting import eventually

DOCUMENTS = 3000

# A corpus made in a process of its own, which reports every part: something to interrupt and to kill.
BUILDER = """
import sys
from pathlib import Path
from benchctl.corpus.generated import ensure_corpus
from benchctl.home import Home

if __name__ == "__main__":
    home, documents, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    ensure_corpus(Home(home), documents, workers=workers, progress=lambda new: print(new, flush=True))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """For tests that only read."""
    return ensure_corpus(Home(tmp_path_factory.mktemp("home")), DOCUMENTS)


@pytest.fixture
def builder(tmp_path: Path) -> Path:
    path = tmp_path / "builder.py"
    path.write_text(BUILDER)
    return path


def _builder_command(builder: Path, home: Home, documents: int, workers: int) -> list[str]:
    return [sys.executable, str(builder), str(home.root), str(documents), str(workers)]


def _visible(home: Home) -> list[str]:
    return [path.name for path in home.corpora.iterdir() if not path.name.endswith(".lock")]


def _writes(process: psutil.Process, home: Home) -> bool:
    try:
        return any(Path(file.path).is_relative_to(home.corpora) for file in process.open_files())
    except psutil.NoSuchProcess:
        return False


def _wait_until_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive


def test_golden_digest(made: Corpus):
    """If this changes on purpose, so must GENERATOR_VERSION or FORMAT_VERSION."""
    assert made.digest == "2481b87070307ee56994224c062771c352a792b7801a61f5fa3adec15ad4f25e"


def test_a_corpus_is_what_the_generator_makes(made: Corpus):
    raw = b"".join(generate(1, DOCUMENTS, 0, DOCUMENTS))
    assert b"".join(open_documents(made)) == raw
    assert (made.seed, made.documents, made.raw_bytes) == (1, DOCUMENTS, len(raw))
    assert made.root.name == f"big5-v1-seed1-{DOCUMENTS}"
    assert [part.name for part in made.parts] == [f"day-{day:02d}-part-0000.ndjson.zst" for day in range(8)]
    assert made.file_bytes == sum(path.stat().st_size for path in made.root.glob("*.zst"))


def test_progress_counts_every_document_once_and_a_second_call_writes_nothing(home: Home):
    written: list[int] = []
    first = ensure_corpus(home, DOCUMENTS, seed=5, progress=written.append)
    assert sum(written) == DOCUMENTS
    before = {path: path.stat().st_mtime_ns for path in first.root.iterdir()}
    again = ensure_corpus(home, DOCUMENTS, seed=5, progress=written.append)
    assert again == first
    assert sum(written) == DOCUMENTS
    assert before == {path: path.stat().st_mtime_ns for path in first.root.iterdir()}


def test_workers_do_not_change_a_byte(tmp_path: Path):
    one = ensure_corpus(Home(tmp_path / "one"), 100_000, workers=1)
    two = ensure_corpus(Home(tmp_path / "two"), 100_000, workers=2)
    assert one.parts == two.parts
    assert one.digest == two.digest


def test_corpora_are_listed_by_size(home: Home):
    sizes = [500, 40, 300]
    made = {size: ensure_corpus(home, size) for size in sizes}
    assert list_corpora(home) == tuple(made[size] for size in sorted(sizes))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.tuples(st.integers(0, DOCUMENTS), st.integers(0, DOCUMENTS)), block=st.integers(1, 1 << 17))
def test_any_range_can_be_read_in_blocks_of_any_size(made: Corpus, cuts: tuple[int, int], block: int):
    start, stop = min(cuts), max(cuts)
    block = max(block, 64)
    blocks = list(open_documents(made, start=start, stop=stop, block_bytes=block))
    assert b"".join(blocks) == b"".join(generate(1, DOCUMENTS, start, stop))
    assert all(part.endswith(b"\n") and len(part) < block + 2000 for part in blocks)


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (0, DOCUMENTS + 1)])
def test_ranges_outside_of_the_corpus_are_refused(made: Corpus, start: int, stop: int):
    with pytest.raises(ValueError, match="not a slice"):
        list(open_documents(made, start=start, stop=stop))


@pytest.mark.parametrize(("documents", "seed"), [(0, 1), (-5, 1), (10, -1), (10, 2**64)])
def test_impossible_corpora_are_usage_errors(home: Home, documents: int, seed: int):
    with pytest.raises(UsageError):
        ensure_corpus(home, documents, seed=seed)
    assert _visible(home) == []


def _flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_a_changed_byte_is_found_while_reading(home: Home):
    corpus = ensure_corpus(home, DOCUMENTS)
    _flip_a_byte(corpus.root / corpus.parts[2].name)
    with pytest.raises(BenchctlError, match=f"{corpus.parts[2].name} is damaged") as caught:
        list(open_documents(corpus))
    assert f"rm -r {corpus.root}" in caught.value.hint


def test_a_file_that_ends_early_is_found_while_reading(home: Home):
    corpus = ensure_corpus(home, DOCUMENTS)
    path = corpus.root / corpus.parts[0].name
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BenchctlError, match="is damaged"):
        list(open_documents(corpus))
    with pytest.raises(BenchctlError, match=r"is damaged: \d+ bytes instead of \d+"):
        ensure_corpus(home, DOCUMENTS)


def test_a_missing_file_is_found_at_once(home: Home):
    corpus = ensure_corpus(home, DOCUMENTS)
    (corpus.root / corpus.parts[3].name).unlink()
    for look in (lambda: ensure_corpus(home, DOCUMENTS), lambda: list_corpora(home)):
        with pytest.raises(BenchctlError, match="is damaged"):
            look()
    with pytest.raises(BenchctlError, match="No such file"):
        list(open_documents(corpus))


@pytest.mark.parametrize("change", ["digest", "documents", "format-version", "colour"])
def test_a_changed_manifest_is_refused(home: Home, change: str):
    corpus = ensure_corpus(home, 100)
    path = corpus.root / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest[change] = {"digest": "0" * 64, "format-version": 2}.get(change, "many")
    path.write_text(json.dumps(manifest))
    with pytest.raises(BenchctlError, match=r"manifest\.json is damaged"):
        ensure_corpus(home, 100)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_leaves_nothing(home: Home, workers: int):
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_corpus(home, 200_000, workers=workers, progress=interrupt)
    assert _visible(home) == []


def test_ctrl_c_ends_the_workers_quietly(home: Home, builder: Path):
    command = _builder_command(builder, home, 20_000_000, 2)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        parent = psutil.Process(process.pid)
        assert eventually(lambda: sum(_writes(child, home) for child in parent.children()) == 2)
        children = parent.children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert stderr.count("Traceback") == 1
    _wait_until_gone(children)
    assert _visible(home) == []


def test_workers_do_not_outlive_a_killed_parent_and_its_rubbish_is_cleared(home: Home, builder: Path):
    with subprocess.Popen(
        _builder_command(builder, home, 300_000, 2), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    _wait_until_gone(children)
    (left,) = _visible(home)
    assert left.startswith(".partial-")
    assert list_corpora(home) == ()
    corpus = ensure_corpus(home, 300_000)
    sweep(home)
    assert _visible(home) == [corpus.root.name]


def test_a_dead_worker_is_an_error_and_leaves_nothing(home: Home):
    def kill_workers(_: int) -> None:
        for worker in active_children():
            worker.kill()

    with pytest.raises(BenchctlError, match="died") as caught:
        ensure_corpus(home, 2_000_000, workers=2, progress=kill_workers)
    assert "memory" in caught.value.hint
    assert _visible(home) == []


def test_two_processes_make_one_corpus(home: Home, builder: Path):
    command = _builder_command(builder, home, 60_000, 1)
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    written = [int(line) for each in builders for line in each.communicate(timeout=60)[0].split()]
    assert [each.returncode for each in builders] == [0, 0]
    assert sum(written) == 60_000
    assert len(list_corpora(home)) == 1


def test_too_little_space_is_refused_with_both_numbers(home: Home):
    enough = needed_bytes("big5", DOCUMENTS) + RESERVE_BYTES
    with pytest.raises(
        BenchctlError, match="to generate a corpus of 3,000 documents: 65 MiB needed, 64 MiB free"
    ) as caught:
        ensure_corpus(home, DOCUMENTS, free=lambda _: enough - 1)
    assert "fewer documents" in caught.value.hint
    assert _visible(home) == []
    assert ensure_corpus(home, DOCUMENTS, free=lambda _: enough).documents == DOCUMENTS


def test_the_estimate_is_enough_but_not_by_much(home: Home):
    corpus = ensure_corpus(home, 50_000)
    whole = sum(path.stat().st_size for path in corpus.root.iterdir())
    assert whole < needed_bytes("big5", 50_000) < 1.3 * whole


def test_a_failed_write_leaves_nothing(home: Home, builder: Path):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
    builder.write_text(limit + BUILDER)
    command = _builder_command(builder, home, 30_000, 1)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "BenchctlError: cannot write a corpus of 30,000 documents" in done.stderr
    assert _visible(home) == []

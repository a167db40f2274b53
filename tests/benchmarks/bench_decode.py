"""How fast packed files of documents are read, beside the libraries and tools for them, in the same run.

    python tests/benchmarks/bench_decode.py [documents, such as 300k] [repetitions]

Wall time is what a load waits for; CPU time is what reading takes from everything else, and the figure to
go by on a machine on which others work, too. A single Zstandard frame and gzip cannot be split: there, one
thread decodes ahead of the reader.
"""

import bz2
import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import zstandard
from rich.console import Console
from rich.table import Table

from benchctl.corpus.documents import parse_documents
from benchctl.corpus.generated import ensure_corpus, open_documents
from benchctl.corpus.packed import decode
from benchctl.corpus.source import index_file, local_file, open_file
from benchctl.home import Home

FRAME_BYTES = 2 << 20
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Job:
    """A row: what reads a file, which row it is compared with, and how."""

    label: str
    against: str
    work: Callable[[], object]


def _packed(folder: Path, documents: int) -> dict[str, Path]:
    """The same documents in all formats, by name."""
    paths = {name: folder / f"documents.{name}" for name in ("json", "bz2", "zst", "frames", "gz")}
    corpus = ensure_corpus(Home(folder / "corpus"), documents)
    frames = zstandard.ZstdCompressor()
    with (
        paths["json"].open("wb") as plain,
        bz2.open(paths["bz2"], "wb") as bzipped,
        zstandard.open(paths["zst"], "wb") as framed,
        gzip.open(paths["gz"], "wb", compresslevel=6) as gzipped,
    ):
        for block in open_documents(corpus):
            for sink in (plain, bzipped, framed, gzipped):
                sink.write(block)
    with paths["json"].open("rb") as plain, paths["frames"].open("wb") as sink:
        while block := plain.read(FRAME_BYTES):
            sink.write(frames.compress(block))
    return paths


def _library(opener: Callable[[Path], object]) -> Callable[[Path], int]:
    def read(path: Path) -> int:
        size = 0
        with opener(path) as reader:  # type: ignore[attr-defined]
            while block := reader.read(READ_BYTES):
                size += len(block)
        return size

    return read


def _zstandard(path: Path) -> object:
    return zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True, closefd=True)


def _tool(*command: str) -> Callable[[], object]:
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _benchctl(path: Path) -> Callable[[], int]:
    return lambda: sum(len(block) for _, block in decode(path))


def _jobs(paths: dict[str, Path], home: Home) -> list[Job]:
    libraries = {
        "bz2": ("bz2", _library(bz2.open)),
        "zst": ("zstandard", _library(_zstandard)),
        "frames": ("zstandard", _library(_zstandard)),
        "gz": ("gzip", _library(gzip.open)),
    }
    tools = {"bz2": "bzip2", "zst": "zstd", "frames": "zstd", "gz": "gzip"}
    jobs = []
    for name, (library, read) in libraries.items():
        path = paths[name]
        reference = f"{name}: library {library}, 1 thread"
        jobs.append(Job(reference, reference, lambda read=read, path=path: read(path)))  # type: ignore[misc]
        if shutil.which(tools[name]):
            command = (tools[name], "-dcf", str(path))
            jobs.append(Job(f"{name}: {tools[name]} -dc", reference, _tool(*command)))
        jobs.append(Job(f"{name}: benchctl, decoded", reference, _benchctl(path)))
        share = local_file(path, index="big5", home=home)
        tenth = local_file(path, index="big5", home=home, docs=share.held // 10)
        jobs.append(
            Job(
                f"{name}: benchctl, lines",
                reference,
                lambda share=share: sum(map(len, open_file(share, home=home))),  # type: ignore[misc]
            )
        )
        jobs.append(
            Job(
                f"{name}: benchctl, a tenth",
                reference,
                lambda tenth=tenth: sum(map(len, open_file(tenth, home=home))),  # type: ignore[misc]
            )
        )
    plain = "json: read"
    jobs.append(Job(plain, plain, lambda: _library(lambda path: path.open("rb"))(paths["json"])))
    jobs.append(
        Job(
            "json: first look",
            plain,
            lambda: index_file(paths["json"], Home(Path(tempfile.mkdtemp(dir=home.root)))),
        )
    )
    return jobs


def _cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _measured(work: Callable[[], object]) -> tuple[float, float]:
    """(wall, CPU) seconds."""
    began, used = time.perf_counter(), _cpu_s()
    work()
    return time.perf_counter() - began, _cpu_s() - used


def main() -> None:
    """Measure and print."""
    documents = parse_documents(sys.argv[1] if len(sys.argv) > 1 else "300k")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory(prefix="bench-decode-") as name:
        paths = _packed(Path(name), documents)
        size = paths["json"].stat().st_size
        jobs = _jobs(paths, Home(Path(name) / "home"))
        # Interleaved, so that a busy moment of the host does not hit one row alone.
        times = [[_measured(job.work) for job in jobs] for _ in range(repetitions)]
    wall, cpu = (
        {job.label: median(row[place][kind] for row in times) for place, job in enumerate(jobs)}
        for kind in (0, 1)
    )
    title = f"{documents:,} documents, {size / 1e6:,.0f} MB, {len(os.sched_getaffinity(0))} CPUs"
    table = Table("file and reader", "MB/s", "ratio", "CPU s/GB", "ratio", title=title)
    for job in jobs:
        label = job.label
        table.add_row(
            label,
            f"{size / wall[label] / 1e6:,.0f}",
            f"{wall[job.against] / wall[label]:.2f}",
            f"{cpu[label] / size * 1e9:.2f}",
            f"{cpu[label] / cpu[job.against]:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()

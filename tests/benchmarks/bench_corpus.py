"""How fast the corpus generators are, compression and writing included, beside plain ones in the same run.

    python tests/benchmarks/bench_corpus.py [documents, such as 2m] [repetitions]

The plain generator builds every document as a dictionary out of the standard library's random numbers and
serialises it, in one process, with the same compression level: what one would write first.
"""

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import zstandard
from rich.console import Console
from rich.table import Table

from benchctl.corpus.bulk import frame_bodies
from benchctl.corpus.cluster_metrics import EPOCHS, NODES, TASKS
from benchctl.corpus.generated import GENERATORS, Corpus, ensure_corpus, open_documents
from benchctl.corpus.tables import AGENT_IDS, MODIFIERS, NOUNS, PROCESSES, REGIONS
from benchctl.home import Home
from benchctl.quantities import COUNT
from benchctl.track.model import GeneratorName

PLAIN_DOCUMENTS = 50_000
DOCUMENTS_PER_BODY = 2000


def _name(draw: random.Random) -> str:
    return draw.choice(MODIFIERS) + draw.choice(NOUNS)


def _clock(draw: random.Random) -> str:
    second = draw.randrange(86_400)
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _plain_document(draw: random.Random) -> dict[str, Any]:
    stream, host, agent, process = _name(draw), _name(draw), draw.choice(AGENT_IDS), draw.choice(PROCESSES)
    clock = _clock(draw)
    ingestion = f"2023-04-30T{clock}.{draw.randrange(1000):03d}Z"
    address = "-".join(str(draw.randrange(256)) for _ in range(4))
    words = " ".join(draw.choices(NOUNS, k=min(draw.randint(1, 25), draw.randint(1, 25))))
    return {
        "@timestamp": f"2023-01-02T{_clock(draw)}.000Z",
        "aws.cloudwatch": {
            "log_stream": stream,
            "ingestion_time": ingestion,
            "log_group": "/var/log/messages",
        },
        "cloud": {"region": draw.choice(REGIONS)},
        "log.file.path": f"/var/log/messages/{stream}",
        "input": {"type": "aws-cloudwatch"},
        "data_stream": {"namespace": "default", "type": "logs", "dataset": "generic"},
        "process": {"name": process},
        "message": f"{ingestion} Apr 30 {clock} ip-{address} {process}: {words}",
        "event": {
            "id": _name(draw),
            "ingested": f"2023-07-20T{_clock(draw)}.{draw.randrange(10**6):06d}Z",
            "dataset": "generic",
        },
        "host": {"name": host},
        "metrics": {"size": draw.randint(1000, 10_000), "tmin": draw.randint(1, 2000)},
        "agent": {"id": agent, "name": host, "type": "filebeat", "version": "8.8.0", "ephemeral_id": agent},
        "tags": ["preserve_original_event"],
        "meta": {"file": "2023-01-02/1682891301-gotext.ndjson.gz"},
    }


def _plain_metrics(draw: random.Random) -> dict[str, Any]:
    return {
        "epoch": draw.randint(1, EPOCHS),
        "node": f"N{draw.randint(1, NODES):03d}",
        "task": f"T{draw.randint(1, TASKS):03d}",
        "cpu": round(draw.uniform(0, 100), 3),
        "mem": round(draw.uniform(0, 100), 3),
        "net": round(draw.uniform(0, 100), 3),
    }


PLAIN: dict[GeneratorName, Callable[[random.Random], dict[str, Any]]] = {
    "big5": _plain_document,
    "cluster-metrics": _plain_metrics,
}


def _write_plain(generator: GeneratorName, folder: Path) -> None:
    draw = random.Random(1)  # noqa: S311 - benchmark data
    compressor = zstandard.ZstdCompressor(level=1)
    with (folder / "plain.ndjson.zst").open("wb") as file, compressor.stream_writer(file) as compressed:
        for _ in range(PLAIN_DOCUMENTS):
            line = json.dumps(PLAIN[generator](draw), separators=(",", ":"))
            compressed.write(line.encode() + b"\n")


def _seconds(work: Callable[[Path], object]) -> float:
    with tempfile.TemporaryDirectory(prefix="bench-corpus-") as folder:
        began = time.perf_counter()
        work(Path(folder))
        return time.perf_counter() - began


def _framed(home: Home, generator: GeneratorName, documents: int) -> int:
    blocks = open_documents(ensure_corpus(home, documents, generator=generator))
    return sum(count for count, _ in frame_bodies(blocks, DOCUMENTS_PER_BODY))


def main() -> None:
    """Measure and print."""
    documents = COUNT.parse(sys.argv[1] if len(sys.argv) > 1 else "2m")
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    for generator in GENERATORS:
        _measure(generator, documents, repetitions)


def _measure(generator: GeneratorName, documents: int, repetitions: int) -> None:
    cpus = len(os.sched_getaffinity(0))
    kept = Path(tempfile.mkdtemp(prefix="bench-corpus-"))
    try:
        corpus = ensure_corpus(Home(kept), documents, generator=generator)

        def ours(at: Path, workers: int) -> Corpus:
            return ensure_corpus(Home(at), documents, generator=generator, workers=workers)

        jobs: list[tuple[str, int, Callable[[Path], object]]] = [
            ("plain, 1 process", PLAIN_DOCUMENTS, partial(_write_plain, generator)),
            ("benchctl, 1 process", documents, partial(ours, workers=1)),
            (f"benchctl, {cpus} processes", documents, partial(ours, workers=cpus)),
            ("read and frame, 1 process", documents, lambda _: _framed(Home(kept), generator, documents)),
        ]
        # Interleaved, so that a busy moment of the host does not hit one row alone.
        times = [[_seconds(work) for _, _, work in jobs] for _ in range(repetitions)]
    finally:
        shutil.rmtree(kept)
    table = Table(
        "work", "documents/s", "MB/s raw", "ratio to plain", title=f"{documents:,} documents of {generator}"
    )
    speeds = [size / median(row[job] for row in times) for job, (_, size, _) in enumerate(jobs)]
    bytes_a_document = corpus.raw_bytes / documents
    for (label, _, _), speed in zip(jobs, speeds, strict=True):
        table.add_row(
            label, f"{speed:,.0f}", f"{speed * bytes_a_document / 1e6:,.0f}", f"{speed / speeds[0]:.1f}"
        )
    Console().print(table)
    Console().print(
        f"{bytes_a_document:.1f} bytes a document, {corpus.file_bytes / documents:.1f} compressed"
    )


if __name__ == "__main__":
    main()

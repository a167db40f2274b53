"""Bare pycurl as a contestant: options once, then nothing but `perform`."""

import time
from typing import Any

import pycurl
from bodies import bodies
from jobs import Done, Job
from loops import HEADERS, QUERY_BYTES, Send, closed_loops, do_job, peak_bytes, timed_loop

# libcurl would otherwise ask whether it may send a large body, and wait for the answer.
NEVER_ASK = "Expect:"


def pycurl_search(job: Job) -> Done:
    """Bare pycurl: options once, then `perform` and nothing else; with `timed`, libcurl's clock, too."""

    def prepared() -> tuple[Any, list[bytes]]:
        chunks: list[bytes] = []
        curl = pycurl.Curl()
        curl.setopt(pycurl.URL, f"{job.url}/{job.index}/_search")
        curl.setopt(pycurl.HTTPHEADER, [*HEADERS, NEVER_ASK])
        curl.setopt(pycurl.POSTFIELDS, QUERY_BYTES)
        curl.setopt(pycurl.WRITEFUNCTION, chunks.append)
        return curl, chunks

    def untimed() -> Send:
        curl, chunks = prepared()
        perform, clear = curl.perform, chunks.clear

        def send() -> None:
            clear()
            perform()

        return send

    if not job.timed:
        return closed_loops(job, untimed)
    curl, chunks = prepared()

    def send_timed() -> tuple[int, int]:
        chunks.clear()
        start_ns = time.monotonic_ns()
        curl.perform()
        return start_ns, start_ns + curl.getinfo(pycurl.TOTAL_TIME_T) * 1000

    return timed_loop(job, send_timed)


def pycurl_bulk(job: Job) -> Done:
    """Bare pycurl in one thread: frame a body, send it, frame the next."""
    chunks: list[bytes] = []
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, f"{job.url}/{job.index}/_bulk")
    curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/x-ndjson", NEVER_ASK])
    curl.setopt(pycurl.WRITEFUNCTION, chunks.append)
    documents = 0
    began, cpu_s = time.perf_counter(), time.process_time()
    for count, body in bodies(job):
        chunks.clear()
        curl.setopt(pycurl.POSTFIELDS, body)
        curl.perform()
        documents += count
    return Done(
        units=documents,
        wall_s=time.perf_counter() - began,
        cpu_s=time.process_time() - cpu_s,
        peak_bytes=peak_bytes(),
    )


if __name__ == "__main__":
    do_job({"search": pycurl_search, "bulk": pycurl_bulk})

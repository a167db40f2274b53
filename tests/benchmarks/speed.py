"""Rows about cost: requests and documents a second, CPU, memory."""

import os
from statistics import median
from typing import Any

from jobs import Contestant, Job, run_watched
from lines import Line
from setting import Setting, costs, in_turn, rates, ratio_line, verdict
from stub_build import StubOptions, running_stub


def one_client(setting: Setting) -> list[Line]:
    """Rate and CPU of a single client.

    Left to the scheduler, client and stub share a core in some rounds and not in others, and are up to four
    times as fast when they do, because nobody has to be woken from idle. So both are pinned: to two cores,
    as with a node that is busy on its own, and for the naked cost of the code to a single one.
    """
    size = setting.size
    cpus = sorted(os.sched_getaffinity(0))
    contestants: tuple[Contestant, ...] = ("benchctl", "pycurl", "socket")
    apart, together = (
        in_turn(
            contestants,
            "search",
            setting,
            rounds=size.rounds,
            places=places,
            requests=size.one,
            prelude=200,
        )
        for places in ((cpus[0], cpus[-1]), (cpus[0], cpus[0]))
    )
    return [
        ratio_line("1 client, no delay: requests/s", rates(apart), least=0.75, rally="3,353", osb="3,709"),
        ratio_line("CPU a request, us", costs(apart), most=1.4, digits=1, rally="277", osb="248"),
        ratio_line("the same, stub on the same core", costs(together), most=1.4, digits=1),
        _beside_the_client(setting, median(costs(apart)["benchctl"]), (cpus[0], cpus[-1])),
    ]


def signed(setting: Setting) -> list[Line]:
    """What AWS's signature adds to a request of a single client, which is in its service time, too."""
    cpus = sorted(os.sched_getaffinity(0))
    plain_us, signed_us = [], []
    for _ in range(setting.size.rounds):
        for is_signed in (False, True):
            done = in_turn(
                ("benchctl",),
                "search",
                setting,
                rounds=1,
                places=(cpus[0], cpus[-1]),
                requests=setting.size.one,
                prelude=200,
                signed=is_signed,
            )
            (signed_us if is_signed else plain_us).extend(costs(done)["benchctl"])
    more_us = [after - before for before, after in zip(plain_us, signed_us, strict=True)]
    return [
        Line(
            what="signed for AWS: CPU a request, us",
            benchctl=f"{median(signed_us):.1f}",
            against=f"{median(plain_us):.1f} unsigned; {min(more_us):.1f} to {max(more_us):.1f} more",
            goal="no goal",
            verdict="n/a",
            figures={"plain_us": plain_us, "signed_us": signed_us},
        )
    ]


def _beside_the_client(setting: Setting, mine_us: float, places: tuple[int, int]) -> Line:
    """Fewer requests suffice for something several times as expensive."""
    done = in_turn(
        ("elasticsearch-py",),
        "search",
        setting,
        rounds=setting.size.rounds,
        places=places,
        requests=setting.size.one // 20,
        prelude=100,
    )
    theirs_us = median(costs(done)["elasticsearch-py"])
    return Line(
        what="elasticsearch-py: CPU a request, us",
        benchctl=f"{mine_us:.1f}",
        against=f"it takes {theirs_us:.0f}, {theirs_us / mine_us:.1f} x",
        goal="no goal",
        verdict="n/a",
        figures={"elasticsearch-py": theirs_us},
    )


def eight_clients(setting: Setting) -> list[Line]:
    """Rate of eight clients: in one process, and in two."""
    done, spread = (
        in_turn(
            contestants,
            "search",
            setting,
            rounds=setting.size.rounds,
            clients=8,
            requests=setting.size.eight,
            prelude=100,
            workers=workers,
        )
        for contestants, workers in ((("benchctl", "pycurl", "socket"), 1), (("benchctl", "pycurl"), 2))
    )
    return [
        ratio_line("8 clients, no delay: requests/s", rates(done), least=0.7, rally="6,571", osb="8,626"),
        ratio_line("the same: CPU a request, us", costs(done), most=1.4, digits=1),
        ratio_line("the same with --workers 2: requests/s", rates(spread), least=0.7),
        ratio_line("and its CPU a request, us", costs(spread), most=1.4, digits=1),
    ]


def bulk(setting: Setting) -> list[Line]:
    """Documents into a sink, framed while they are sent."""
    corpus = setting.corpus()
    done = in_turn(
        ("benchctl", "pycurl"),
        "bulk",
        setting,
        rounds=setting.size.rounds,
        corpus=str(corpus.root),
        documents=min(setting.size.documents, corpus.documents),
    )
    millions = {who: [one.per_s / 1e6 for one in found] for who, found in done.items()}
    return [
        ratio_line(
            "bulk into a sink, 5,000 a body, 1 sender: M docs/s",
            millions,
            least=0.9,
            digits=2,
            rally=".8",
            osb="1.6",
        ),
        ratio_line("the same: CPU s per M docs", costs(done), most=1.1, digits=2, rally="~1.5", osb="~.7"),
    ]


def memory(setting: Setting) -> list[Line]:
    """Resident memory of the process tree at its highest."""
    corpus = setting.corpus()
    jobs: tuple[dict[str, Any], ...] = (
        {"work": "search", "clients": 8, "requests": 2 * setting.size.eight},
        {
            "work": "bulk",
            "corpus": str(corpus.root),
            "documents": min(setting.size.documents, corpus.documents),
        },
    )
    peaks_mb = []
    for job in jobs:
        with running_stub(StubOptions(body_bytes=setting.body_bytes)) as stub:
            _, peak = run_watched(Job(contestant="benchctl", url=stub.url, **job))
        peaks_mb.append(peak / 1e6)
    return [
        Line(
            what="peak memory, 8 clients / bulk, MB",
            rally="1,100 / 700",
            osb="2,200 / 1,400",
            benchctl=" / ".join(f"{value:.0f}" for value in peaks_mb),
            against=f"{max(peaks_mb):.0f} MB",
            goal="200 MB",
            verdict=verdict(reached=max(peaks_mb) <= 200),
            figures={"peaks_mb": peaks_mb},
        )
    ]

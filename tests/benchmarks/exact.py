"""Rows about truth: what is reported, against what the stub recorded or the schedule demands."""

import numpy as np
import numpy.typing as npt
from jobs import Contestant, Job, run_job
from lines import Line
from setting import SECOND, Setting, in_turn, verdict
from stub_build import StubOptions, running_stub, true_latency_ns

MS = 1_000_000

Times = npt.NDArray[np.int64]


def service_time_error(setting: Setting) -> list[Line]:
    """How far measured service times are off at 2 ms: what the client says minus what the stub took."""
    size = setting.size
    contestants: tuple[Contestant, ...] = ("benchctl", "pycurl", "socket")
    errors: dict[Contestant, list[Times]] = {who: [] for who in contestants}
    stub_ns: list[Times] = []
    for _ in range(size.rounds):
        for contestant in contestants:
            requests = size.errors // size.rounds
            with running_stub(StubOptions(delay_ns=2 * MS, body_bytes=setting.body_bytes)) as stub:
                done = run_job(
                    Job(
                        contestant=contestant,
                        work="search",
                        url=stub.url,
                        requests=requests,
                        prelude=50,
                        timed=True,
                    )
                )
            took_ns = (stub.truth.sent_ns - stub.truth.arrived_ns)[-requests:]
            errors[contestant].append(np.array(done.end_ns) - np.array(done.start_ns) - took_ns)
            stub_ns.append(took_ns)
    found = {who: _p50_p99_max(np.concatenate(parts) / MS) for who, parts in errors.items()}
    beyond = [mine - theirs for mine, theirs in zip(found["benchctl"], found["pycurl"], strict=True)]
    exact = _p50_p99_max(np.concatenate(stub_ns) / MS)
    return [
        Line(
            what=f"service-time error at 2 ms, p50 / p99 / max of {size.errors:,}, ms",
            rally=".14 / .12 / 39",
            osb=".13 / .35 / 3",
            pycurl=_slashed(found["pycurl"]),
            socket=_slashed(found["socket"]),
            benchctl=_slashed(found["benchctl"]),
            against=" / ".join(f"{value:+.3f}" for value in beyond),
            goal="bare pycurl's + .03 / .05 / .5",
            verdict=verdict(reached=beyond[0] <= 0.03 and beyond[1] <= 0.05 and beyond[2] <= 0.5),
            figures={"stub": exact} | {str(who): three for who, three in found.items()},
        ),
        Line(
            what="the stub itself at 2 ms, p50 / p99 / max, ms",
            against=_slashed(exact),
            goal="no goal: errors are against its record",
            verdict="n/a",
        ),
    ]


def _p50_p99_max(values: npt.NDArray[np.float64]) -> list[float]:
    return [float(value) for value in np.percentile(values, [50, 99, 100])]


def _slashed(values: list[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


def stall(setting: Setting) -> list[Line]:
    """Latency of a throttled task when the server stops once: it must show in the latency, and only once."""
    size = setting.size
    requests = 100 * size.stall_s
    # Just before the due time of a request.
    at_ns = size.stall_s * SECOND // 2 - MS
    stub_options = StubOptions(
        delay_ns=2 * MS, stall_at_ns=at_ns, stall_ns=size.stall_ns, body_bytes=setting.body_bytes
    )
    measured, true = {}, {}
    for contestant in ("benchctl", "pycurl"):
        with running_stub(stub_options) as stub:
            done = run_job(
                Job(
                    contestant=contestant,
                    work="search",
                    url=stub.url,
                    requests=requests,
                    rate_per_s=100,
                    timed=True,
                )
            )
        due_ns, end_ns = np.array(done.due_ns), np.array(done.end_ns)
        measured[contestant] = _p50_p99_max((end_ns - due_ns) / MS)
        true[contestant] = _p50_p99_max(true_latency_ns(due_ns, 2 * MS, stub.truth) / MS)
    mine, mine_true = measured["benchctl"], true["benchctl"]
    beyond_ms, off = mine[0] - measured["pycurl"][0], mine[1] / mine_true[1] - 1
    return [
        Line(
            what=f"100/s, 2 ms, one {size.stall_ns / SECOND:g} s stall: latency p50, p99, ms "
            f"(truth {mine_true[0]:.2f}, {mine_true[1]:.0f})",
            rally="3.33, 855",
            osb="3.12, 847",
            pycurl=f"{measured['pycurl'][0]:.2f}, {measured['pycurl'][1]:.1f}",
            benchctl=f"{mine[0]:.2f}, {mine[1]:.1f}",
            against=f"{beyond_ms:+.3f} ms, {off:+.2%}",
            goal="bare pycurl's p50 + .1 ms; p99 within 1% of the truth",
            verdict=verdict(reached=beyond_ms <= 0.1 and abs(off) <= 0.01),
            figures={"truth": mine_true} | {str(who): three for who, three in measured.items()},
        )
    ]


def fixed_time(setting: Setting) -> list[Line]:
    """What a task of a single request takes, from call to result."""
    medians = []
    for clients in (1, 8):
        done = in_turn(
            ("benchctl",), "tasks", setting, rounds=1, clients=clients, requests=10 * setting.size.rounds
        )
        medians.append(float(np.median(done["benchctl"][0].task_s)) * 1000)
    return [
        Line(
            what="fixed time a task, 1 client; 8 clients, ms",
            rally="5,800",
            osb="6,000",
            benchctl="; ".join(f"{value:.1f}" for value in medians),
            against=f"{max(medians):.1f} ms",
            goal="20 ms",
            verdict=verdict(reached=max(medians) <= 20),
            figures={"medians": medians},
        )
    ]


def slow_warmup(setting: Setting) -> list[Line]:
    """Throughput as reported, over that of the measured requests in the stub's record."""
    warmup, requests = 20 * setting.size.rounds, 400 * setting.size.rounds
    slow = StubOptions(delay_ns=MS, slow_first=warmup, slow_ns=20 * MS, body_bytes=setting.body_bytes)
    with running_stub(slow) as stub:
        done = run_job(
            Job(contestant="benchctl", work="search", url=stub.url, requests=requests, warmup=warmup)
        )
    truth = stub.truth
    true_per_s = requests * SECOND / float(truth.sent_ns[-1] - truth.arrived_ns[-requests])
    ratio = (done.reported_per_s or 0.0) / true_per_s
    return [
        Line(
            what="reported / true throughput with slow warm-up",
            rally=".42",
            osb=".40",
            benchctl=f"{ratio:.3f}",
            against=f"{ratio - 1:+.2%}",
            goal="1.00 within 1%",
            verdict=verdict(reached=abs(ratio - 1) <= 0.01),
            figures={"reported_per_s": done.reported_per_s or 0.0, "true_per_s": true_per_s},
        )
    ]

"""How much the benchmark of the load generator measures, contestants in turn, and goals as ratios."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from jobs import Contestant, Done, Job, Work, run_job
from lines import Line, Verdict
from stub_build import StubOptions, running_stub

from benchctl.corpus.generated import Corpus

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        rounds: of everything that is compared by rate or CPU.
        one: requests of the single client, a round.
        eight: requests of each of eight clients, a round.
        errors: timed requests, over all rounds.
        stall_s: length of the throttled task; its stall begins half-way.
        stall_ns: length of the stall.
        documents: of the corpus, for bulk.
    """

    rounds: int = 5
    one: int = 20_000
    eight: int = 8_000
    errors: int = 10_000
    stall_s: int = 20
    stall_ns: int = SECOND
    documents: int = 1_000_000


QUICK = Size(
    rounds=2, one=10_000, eight=2000, errors=1000, stall_s=5, stall_ns=SECOND // 4, documents=200_000
)
# As little as shows that a row can be measured at all.
SMOKE = Size(rounds=1, one=40, eight=10, errors=20, stall_s=1, stall_ns=SECOND // 10, documents=2000)


@dataclass(frozen=True)
class Setting:
    """What rows need to know.

    Attributes:
        size: how much.
        corpus: gives the corpus; asked only by the rows that need it.
        body_bytes: of a search answer.
    """

    size: Size
    corpus: Callable[[], Corpus]
    body_bytes: int


def in_turn(
    contestants: tuple[Contestant, ...],
    work: Work,
    setting: Setting,
    *,
    rounds: int,
    places: tuple[int, int] | None = None,
    **job: Any,
) -> dict[Contestant, list[Done]]:
    """Let contestants do the same job on fresh stubs, in turn, so that a busy host hits all alike.

    Args:
        contestants: who.
        work: what.
        setting: for the stub.
        rounds: how often each.
        places: the CPU of the contestant and that of the stub; the scheduler's choice when None.
        job: the rest of the job.
    """
    client, server = places or (None, None)
    cpus = () if client is None else (client,)
    done: dict[Contestant, list[Done]] = {contestant: [] for contestant in contestants}
    for number in range(rounds):
        # Every round begins with another one.
        shift = number % len(contestants)
        for contestant in contestants[shift:] + contestants[:shift]:
            with running_stub(StubOptions(body_bytes=setting.body_bytes), cpu=server) as stub:
                asked = Job(contestant=contestant, work=work, url=stub.url, cpus=cpus, **job)
                done[contestant].append(run_job(asked))
    return done


def verdict(*, reached: bool) -> Verdict:
    """For the last column."""
    return "pass" if reached else "FAIL"


def ratio_line(
    what: str,
    values: dict[Contestant, list[float]],
    *,
    least: float | None = None,
    most: float | None = None,
    digits: int = 0,
    rally: str = "-",
    osb: str = "-",
) -> Line:
    """A line whose goal is a ratio to bare pycurl: at least (higher is better) or at most."""
    typical = {who: median(found) for who, found in values.items()}
    ratios = [mine / theirs for mine, theirs in zip(values["benchctl"], values["pycurl"], strict=True)]
    ratio = median(ratios)
    reached = ratio >= least if least is not None else most is not None and ratio <= most
    shown = {who: f"{value:,.{digits}f}" for who, value in typical.items()}
    return Line(
        what=what,
        rally=rally,
        osb=osb,
        pycurl=shown["pycurl"],
        socket=shown.get("socket", "-"),
        benchctl=shown["benchctl"],
        against=f"{ratio:.2f} x ({min(ratios):.2f}-{max(ratios):.2f})",
        goal=f"at least {least} x" if least is not None else f"at most {most} x",
        verdict=verdict(reached=reached),
        figures={"ratio": [ratio, *ratios]} | {str(who): found for who, found in values.items()},
    )


def rates(done: dict[Contestant, list[Done]]) -> dict[Contestant, list[float]]:
    """Units a second, by contestant and round."""
    return {who: [one.per_s for one in found] for who, found in done.items()}


def costs(done: dict[Contestant, list[Done]]) -> dict[Contestant, list[float]]:
    """Microseconds of CPU a unit, by contestant and round."""
    return {who: [one.cpu_us for one in found] for who, found in done.items()}

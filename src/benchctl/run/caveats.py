"""What a reader must know about a run before it has begun: the host, and how the load is made."""

from collections.abc import Mapping

from benchctl.results.figures import Calibration
from benchctl.results.model import Environment, ForkRecord
from benchctl.results.plan import Plan
from benchctl.run.lock import SHARE_VARIABLE, shares_host
from benchctl.run.offer import EASY_PER_S, most_offered_per_s

HIGH_LOAD_PER_CPU = 0.5


def host_caveats(environment: Environment) -> tuple[str, ...]:
    """What about the host makes its figures doubtful."""
    found = []
    if environment.other_java:
        found.append(f"other Java processes were up: {', '.join(environment.other_java)}")
    if environment.governor not in {None, "performance"}:
        found.append(f"the CPU governor is '{environment.governor}', not 'performance'")
    if environment.load_before[0] > HIGH_LOAD_PER_CPU * environment.cpus:
        found.append(
            f"the load before the run was {environment.load_before[0]:.1f} on {environment.cpus} CPUs"
        )
    return tuple(found)


def sharing_caveats(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Whether others may have measured at the same time."""
    if not shares_host(environ):
        return ()
    return (f"other benchctls may have measured on this host at the same time ({SHARE_VARIABLE} is set)",)


def load_caveats(plan: Plan, calibration: Calibration | None) -> tuple[str, ...]:
    """What about the way of measuring a reader must know."""
    found = []
    if plan.test_mode:
        found.append("--test-mode: tasks were cut to a few requests, so the figures mean nothing")
    if plan.transport == "client":
        found.append(
            "measured through elasticsearch-py and opensearch-py: their own cost, which differs, is part of "
            "every figure, as it is for an application (--transport client)"
        )
    if plan.workers > 1:
        asked = most_offered_per_s(plan)
        why = ""
        if calibration is not None and asked > EASY_PER_S:
            most = max(calibration.clients_per_s, calibration.one_client_per_s)
            why = f": {asked:,.0f} requests/s are asked for, and one process offers {most:,.0f} at most here"
        found.append(f"the load came from {plan.workers} processes (--workers){why}")
    return tuple(found)


def data_caveats(plan: Plan) -> tuple[str, ...]:
    """What about the data of forks a reader must know."""
    if plan.origin == "prepared":
        return ()
    text = (
        "every fork made its own data: answers were not compared before the run, and the segments that were "
        "searched differ from fork to fork"
    )
    return (text,)


def stand_in_caveats(fork: ForkRecord) -> tuple[str, ...]:
    """What a node lacks that the track asks for, and what stood in for it."""
    names = sorted({name for boot in fork.boots for name in boot.stand_ins})
    if not names:
        return ()
    verb = "stands in" if len(names) == 1 else "stand in"
    what = "a plain index" if len(names) == 1 else "plain indices"
    return (f"{fork.variant} has no data streams: {what} {verb} for {', '.join(names)}",)

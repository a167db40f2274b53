"""CPU that processes other than benchctl's and its nodes' use on this host: two looks, and the difference."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import psutil

from benchctl.results.model import OtherLoad

_MOST_NAMED = 3
_LONGEST_NAME = 32
# The kernel samples the host's clocks, and counts those of processes: the two differ by so much.
_UNLIKE = 0.1


class Seen(NamedTuple):
    """A process."""

    parent: int
    started_s: float  # with the id it tells a process from a later one
    name: str
    own_s: float  # CPU seconds so far
    with_children_s: float  # the same, with its children that ended and were waited for


class Look(NamedTuple):
    """The clocks of a host and of its processes."""

    at_s: float  # monotonic
    cpus: int
    total_s: float  # of all CPUs, idle or not
    busy_s: float  # of all processes
    processes: Mapping[int, Seen]  # by id


def look() -> Look:
    """Read the clocks; a process that ends meanwhile, or that is hidden, is left out."""
    times = psutil.cpu_times()
    processes = {}
    for process in psutil.process_iter(["ppid", "name", "create_time", "cpu_times"], ad_value=None):
        found = process.info
        if found["cpu_times"] is None:
            continue
        own_s = found["cpu_times"].user + found["cpu_times"].system
        children_s = found["cpu_times"].children_user + found["cpu_times"].children_system
        processes[process.pid] = Seen(
            found["ppid"] or 0,
            found["create_time"],
            (found["name"] or "")[:_LONGEST_NAME],
            own_s,
            own_s + children_s,
        )
    return Look(
        time.monotonic(),
        os.cpu_count() or 1,
        # The time of guests is in that of users.
        sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0),
        times.user + times.nice + times.system,
        processes,
    )


def used_by_others(before: Look, after: Look, own: int) -> OtherLoad | None:
    """Return what others used between two looks.

    Descendants of process `own` are its nodes and helpers; the time of those that ended is with who waited
    for them.

    Returns:
        None where the host's clocks are not to be seen: they stand still, or lag behind our own.
    """
    wall_s = after.at_s - before.at_s
    total_s, busy_s = after.total_s - before.total_s, after.busy_s - before.busy_s
    ours = [_family(seen.processes, own) for seen in (before, after)]
    first_s, last_s = (
        sum(seen.processes[pid].with_children_s for pid in pids)
        for seen, pids in zip((before, after), ours, strict=True)
    )
    own_s = last_s - first_s
    possible_s = wall_s * after.cpus
    if total_s < (1 - _UNLIKE) * possible_s or own_s > busy_s + _UNLIKE * possible_s:
        return None
    used, pids_of = dict[str, float](), dict[str, list[int]]()
    for pid, seen in after.processes.items():
        earlier = before.processes.get(pid)
        same = earlier is not None and earlier.started_s == seen.started_s
        if pid not in ours[1]:
            spent_s = seen.own_s - (earlier.own_s if earlier is not None and same else 0.0)
            used[seen.name] = used.get(seen.name, 0.0) + spent_s / wall_s
            pids_of.setdefault(seen.name, []).append(pid)
    largest = sorted(used, key=used.__getitem__, reverse=True)[:_MOST_NAMED]
    return OtherLoad(
        after.cpus,
        max(busy_s - own_s, 0.0) / wall_s,
        {_label(name, pids_of[name]): used[name] for name in largest if used[name] > 0},
    )


def _label(name: str, pids: Sequence[int]) -> str:
    return f"{name} pid {pids[0]}" if len(pids) == 1 else name


def _family(processes: Mapping[int, Seen], own: int) -> set[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for pid, seen in processes.items():
        children.setdefault(seen.parent, []).append(pid)
    found, ahead = set[int](), [own]
    while ahead:
        pid = ahead.pop()
        if pid in processes and pid not in found:
            found.add(pid)
            ahead += children.get(pid, ())
    return found

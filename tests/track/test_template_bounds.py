"""What a template of somebody else's may take: it ends, in time and in memory, with one clear error."""

import resource
import signal
import threading
import time
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_track
from benchctl.track.template import OutOfTimeError, Renderer, bounded
from foreign_tracks import write_files

# The bound on time is a signal.
pytestmark = pytest.mark.usefixtures("no_gc_callbacks")

DOUBLING = (
    "{% set ns = namespace(x='aaaaaaaaaa') %}{% for i in range(50) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "s of CPU"),
        ("{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n }}{% endmacro %}{{ f(99) }}", "s of CPU"),
        ("{{ [1] | slice(10**9) | list }}", "s of CPU|GiB of memory"),
        ("{{ 'a' | center(10**11) }}", "GiB of memory"),
        ("{{ '%99999999999d' % 1 }}", "GiB of memory"),
        (DOUBLING, "GiB of memory"),
        ("{{ 'a' * 10**10 }}", "GiB of memory"),
        ("{{ 10**10 * [1] }}", "GiB of memory"),
        ("{{ 9 ** (9 ** 9) }}", "too many digits"),
        ("{% set n = 3 ** 30000 %}{{ n * n }}", "too many digits"),
        ("{{ 'a' * (2**26 - 1) ~ 'bc' }}", "renders to more than 67,108,864 characters"),
        ("{% if 1 %}" * 200 + "{% endif %}" * 200, "too many levels of indentation"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "nested too deeply"),
        ("{% include 'a.json' %}", "nested too deeply, or includes itself"),
    ],
)
def test_a_template_that_would_never_end_does(tmp_path: Path, template: str, words: str):
    write_files(tmp_path, {"a.json": template})
    with pytest.raises(UsageError, match=rf"a\.json.*({words})"):
        Renderer(tmp_path, {}).render(tmp_path / "a.json")


def test_ordinary_sums_are_none_of_that(tmp_path: Path):
    write_files(tmp_path, {"a.json": "{{ 6 * 7 }} {{ 2 ** 10 }} {{ 'ab' * 3 }} {{ 2 * [1] }} {{ 1.5 * 2 }}"})
    assert Renderer(tmp_path, {}).render(tmp_path / "a.json").text == "42 1024 ababab [1, 1] 3.0"


def test_bounds_hold_within_their_block_only():
    before = (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGVTALRM))
    with bounded():
        assert resource.getrlimit(resource.RLIMIT_AS) != before[0]
    with pytest.raises(OutOfTimeError), bounded(cpu_s=0.01):
        _burn(5.0)
    with pytest.raises(MemoryError), bounded(more_bytes=2**24):
        bytearray(2**32)  # more than any earlier test left free
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGVTALRM)) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def _burn(cpu_s: float) -> None:
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass


def test_other_threads_are_bounded_in_memory_only():
    caught: list[bool] = []

    def work() -> None:
        try:
            with bounded(cpu_s=0.01, more_bytes=2**26):
                _burn(0.05)
                bytearray(2**28)
        except MemoryError:
            caught.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert caught == [True]


def test_parts_that_collect_parts_again_and_again_end(tmp_path: Path):
    files = {
        f"{name}.json": f'{{{{ rally.collect(parts="{part}.json") }}}}' * 100
        for name, part in ("ab", "bc", "cd")
    }
    write_files(tmp_path, {**files, "d.json": "1"})
    with pytest.raises(UsageError, match="collects more than 20,000 parts"):
        Renderer(tmp_path, {}).render(tmp_path / "a.json")


def test_a_pattern_cannot_climb_behind_a_wildcard(tmp_path: Path):
    write_files(tmp_path, {"t/a.json": '{{ rally.collect(parts="*/../*/../*.json") }}'})
    with pytest.raises(UsageError, match="goes up again after a wildcard"):
        Renderer(tmp_path / "t", {}).render(tmp_path / "t" / "a.json")


def test_comments_that_never_end_take_no_time(tmp_path: Path):
    write_files(tmp_path, {"a.json": "{#" * 300_000})
    before = time.process_time()
    with pytest.raises(UsageError, match="Missing end of comment"):
        Renderer(tmp_path, {}).render(tmp_path / "a.json")
    assert time.process_time() - before < 5


def test_many_inline_operations_of_one_name_take_no_time(tmp_path: Path):
    one = '{"operation": {"operation-type": "search", "name": "x", "body": {"size": %d}}}'
    tasks = ",".join(one % number for number in range(3000))
    write_files(tmp_path, {"track.json": f'{{"schedule": [{tasks}]}}'})
    before = time.process_time()
    track, _ = load_track(str(tmp_path), {})
    assert time.process_time() - before < 10
    assert list(track.challenges["default"].operations)[-1] == "x (3000)"


def test_many_notes_take_no_time(tmp_path: Path):
    task = '{"operation": "refresh", "request-params": {}}'
    write_files(tmp_path, {"track.json": f'{{"schedule": [{",".join([task] * 4000)}]}}'})
    before = time.process_time()
    track, _ = load_track(str(tmp_path), {})
    assert time.process_time() - before < 10
    assert len(track.remarks) == 4000
    assert "track.json: $.schedule[0]: 'request-params'" in str(track.remarks[0])
    assert "track.json: $.schedule[3999]: 'request-params'" in str(track.remarks[-1])

import re

from benchctl.evidence.profile import (
    UNKNOWN,
    Choice,
    Counted,
    Sample,
    count_stacks,
    engine_neutral,
    merged,
    method_of,
    pool_of,
    without_lines,
)
from golden import Cases

JAVA = Sample(10, "es[n][search][T#1]", ("java.lang.Thread.run", "org.x.A.score:12"))
COMPRESSING = Sample(
    20, "es[n][search][T#1]", ("org.x.A.read:3", "java.util.zip.Inflater.inflateBytesBytes"), native=True
)
WAITING = Sample(
    30, "es[n][transport_worker][T#1]", ("java.lang.Thread.run", "sun.nio.ch.EPoll.wait"), native=True
)
UNWALKED = Sample(40, "es[n][write][T#1]", ())
CUT = Sample(50, "es[n][search][T#2]", ("org.x.A.score:13",), cut=True)
PROFILER = Sample(60, "Attach Listener", ("jdk.jfr.Recording.stop",))
ALL = (JAVA, COMPRESSING, WAITING, UNWALKED, CUT, PROFILER)


def test_threads_that_ran_java_count_and_all_are_in_the_total():
    found = count_stacks(ALL, Choice())
    assert found.stacks == {JAVA.stack: 1, (UNKNOWN,): 1, CUT.stack: 1}
    assert (found.samples, found.total, found.cut) == (3, 6, 1)


def test_threads_in_native_code_count_unless_they_wait_there():
    assert count_stacks(ALL, Choice(native=True)).stacks == {COMPRESSING.stack: 1}


def test_threads_can_be_chosen_by_name():
    found = count_stacks(ALL, Choice(thread=re.compile(r"\[search\]")))
    assert found.stacks == {JAVA.stack: 1, CUT.stack: 1}


def test_only_samples_within_a_window_count_ends_included():
    at = {sample.uptime_ns for sample in ALL if Choice(windows=((10, 10), (41, 50))).takes(sample)}
    assert at == {10, 50}
    assert not any(Choice(windows=()).takes(sample) for sample in ALL)


def test_stacks_can_begin_with_the_pool_of_their_thread():
    found = count_stacks([JAVA, CUT], Choice(), pools=True)
    assert {stack[0] for stack in found.stacks} == {"[search]"}


def test_a_pool_is_what_its_threads_have_in_common(cases: Cases):
    cases("pools", pool_of)


def test_the_engines_own_packages_can_be_written_alike():
    sides = [
        engine_neutral(Counted({(f"org.{engine}.search.A.run:1", "org.apache.lucene.B.b"): 2}, 2, 0))
        for engine in ("elasticsearch", "opensearch")
    ]
    assert sides[0] == sides[1]
    assert sides[0].stacks == {("org.<engine>.search.A.run:1", "org.apache.lucene.B.b"): 2}


def test_without_lines_stacks_that_differed_by_them_are_one():
    found = without_lines(Counted({("a.A.run:1",): 2, ("a.A.run:2",): 3, ("a.A.run",): 1}, 9, 1))
    assert found == Counted({("a.A.run",): 6}, 9, 1)


def test_a_colon_that_no_line_follows_belongs_to_the_method():
    assert method_of("a.A.run:12") == "a.A.run"
    assert method_of("a.A.run:x") == "a.A.run:x"
    assert method_of("[pool]") == "[pool]"


def test_several_starts_are_added_up():
    one = Counted({("a",): 1, ("b",): 2}, 5, 1)
    assert merged([one, one]) == Counted({("a",): 2, ("b",): 4}, 10, 2)
    assert merged([]) == Counted({}, 0, 0)

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.evidence.profile import (
    PROFILE_NAME,
    Profile,
    Sample,
    engine_neutral,
    merged,
    method_of,
    pool_of,
    profile_of,
    read_profile,
    renamed,
)
from golden import Cases

FRAMES = st.sampled_from(["a.A.run", "a.A.run:7", "b.B.call:3", "c.C.leaf"])
SAMPLES = st.lists(
    st.builds(
        Sample, uptime_ns=st.integers(0, 10**12), stack=st.lists(FRAMES, min_size=1, max_size=5).map(tuple)
    ),
    max_size=20,
)


@given(SAMPLES, st.integers(0, 10**12), st.integers(0, 10**12))
def test_samples_of_a_window_come_back_from_a_file(samples: list[Sample], first: int, last: int):
    kept = msgspec.json.decode(msgspec.json.encode(profile_of(samples)), type=Profile)
    assert list(kept.uptime_ns) == sorted(kept.uptime_ns)
    assert kept.within([(first, last)]) == Counter(
        sample.stack for sample in samples if first <= sample.uptime_ns <= last
    )


def test_a_sample_of_overlapping_windows_counts_once_ends_included():
    kept = profile_of([Sample(at_ns, ("a",)) for at_ns in (10, 20, 30, 41)])
    assert kept.within([(10, 20), (20, 30)]) == {("a",): 3}
    assert kept.within([]) == {}


def test_frames_and_stacks_are_kept_once():
    kept = profile_of([Sample(time_ns, ("a.A.run", "b.B.call")) for time_ns in range(100)])
    assert (kept.frames, kept.stacks, len(kept.stack)) == (("a.A.run", "b.B.call"), ((0, 1),), 100)


def test_a_folder_without_a_profile_has_none(tmp_path: Path):
    assert read_profile(tmp_path) is None


def test_a_profile_of_another_version_is_refused(tmp_path: Path):
    later = msgspec.structs.replace(profile_of([]), profile_version=99)
    (tmp_path / PROFILE_NAME).write_bytes(msgspec.json.encode(later))
    with pytest.raises(BenchctlError, match="profile version 99"):
        read_profile(tmp_path)


def test_a_pool_is_what_its_threads_have_in_common(cases: Cases):
    cases("pools", pool_of)


def test_the_engines_own_packages_can_be_written_alike():
    for engine in ("elasticsearch", "opensearch"):
        stacks = Counter({(f"org.{engine}.search.A.run:1", "org.apache.lucene.B.b"): 2})
        assert renamed(stacks, engine_neutral) == {
            ("org.<engine>.search.A.run:1", "org.apache.lucene.B.b"): 2
        }


def test_without_lines_stacks_that_differed_by_them_are_one():
    assert renamed({("a.A.run:1",): 2, ("a.A.run:2",): 3, ("a.A.run",): 1}, method_of) == {("a.A.run",): 6}


def test_a_colon_that_no_line_follows_belongs_to_the_method():
    assert method_of("a.A.run:12") == "a.A.run"
    assert method_of("a.A.run:x") == "a.A.run:x"
    assert method_of("[pool]") == "[pool]"


def test_several_starts_are_added_up():
    one = Counter({("a",): 1, ("b",): 2})
    assert merged([one, one]) == {("a",): 2, ("b",): 4}
    assert merged([]) == {}

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.evidence.profile import PROFILE_NAME, Profile, Sample, profile_of, read_profile

FRAMES = st.sampled_from(["a.A.run", "a.A.run:7", "b.B.call:3", "c.C.leaf"])
SAMPLES = st.lists(
    st.builds(
        Sample,
        uptime_ns=st.integers(0, 10**12),
        native=st.booleans(),
        thread=st.sampled_from(["one", "two"]),
        stack=st.lists(FRAMES, max_size=5).map(tuple),
        cut=st.booleans(),
    ),
    max_size=20,
)


@given(SAMPLES)
def test_samples_come_back_as_they_were_in_order_of_time(samples: list[Sample]):
    kept = msgspec.json.decode(msgspec.json.encode(profile_of(samples, 3)), type=Profile)
    assert list(kept.samples()) == sorted(samples, key=lambda sample: sample.uptime_ns)
    assert kept.unread == 3


def test_frames_threads_and_stacks_are_kept_once():
    again = [Sample(time_ns, "t", ("a.A.run", "b.B.call")) for time_ns in range(100)]
    kept = profile_of(again)
    assert kept.frames == ("a.A.run", "b.B.call")
    assert kept.threads == ("t",)
    assert kept.stacks == ((0, 1),)
    assert len(kept.stack) == 100


def test_a_folder_without_a_profile_has_none(tmp_path: Path):
    assert read_profile(tmp_path) is None


def test_a_profile_of_another_version_is_refused(tmp_path: Path):
    later = msgspec.structs.replace(profile_of([]), profile_version=99)
    (tmp_path / PROFILE_NAME).write_bytes(msgspec.json.encode(later))
    with pytest.raises(BenchctlError, match="profile version 99"):
        read_profile(tmp_path)

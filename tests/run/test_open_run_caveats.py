"""What a reader is told of a run's data before and while it is measured."""

import msgspec

from benchctl.results.model import BootRecord
from benchctl.run.open_run import data_caveats, stand_in_caveats
from builders import make_fork, make_plan

BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 0, 0, (), "boots/x")


def test_data_that_every_fork_made_is_said():
    assert data_caveats(make_plan()) == ()
    (text,) = data_caveats(make_plan(origin="empty"))
    assert "answers were not compared" in text


def test_what_stood_in_for_a_data_stream_is_said_once_a_variant():
    one, two = (msgspec.structs.replace(BOOT, stand_ins=names) for names in (("a",), ("b", "a")))
    assert stand_in_caveats(make_fork("os", 0, boots=(BOOT,))) == ()
    assert stand_in_caveats(make_fork("es", 0, boots=(BOOT, one))) == (
        "es has no data streams: a plain index stands in for a",
    )
    assert stand_in_caveats(make_fork("es", 0, boots=(one, two))) == (
        "es has no data streams: plain indices stand in for a, b",
    )

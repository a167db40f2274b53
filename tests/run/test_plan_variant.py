"""What variants cannot ask of a plan."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.plan import TargetSpec
from benchctl.run.plan import check_index_settings
from benchctl.run.work import work_context
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from benchctl.track.operations.admin import CreateIndex
from builders import ES, make_plan
from foreign_tracks import write_files

OWN = msgspec.structs.replace(ES, name="own", index_settings={"index.codec": "default"})
TARGET = msgspec.structs.replace(ES, name="prod", target=TargetSpec(("http://127.0.0.1:9",)))


def test_index_settings_want_an_index_that_benchctl_makes(tmp_path: Path):
    prepared, _ = load_track("big5", {})
    check_index_settings((ES, OWN), prepared, "prepared", ())
    check_index_settings((ES,), prepared, "empty", ())
    with pytest.raises(UsageError, match="'own' has index settings or mappings, but no index"):
        check_index_settings((ES, OWN), prepared, "empty", ())
    folder = write_files(tmp_path / "streams", {"track.json": '{"data-streams": [{"name": "c"}]}'})
    streams, _ = load_track(str(folder), {})
    with pytest.raises(UsageError, match="'own' has index settings or mappings, but no index"):
        check_index_settings((OWN,), streams, "prepared", ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operations": {"term": {}}}, "no search 'term' is measured"),
        ({"operations": {"scroll": {"sort": "a"}, "flush": {}}}, "no search 'flush' is measured"),
        ({"mappings": {"message": "keyword"}}, "'message' is a field"),
    ],
)  # fmt: skip
def test_what_a_variant_changes_has_to_be_there(changes: dict[str, Any], message: str):
    track, _ = load_track("big5", {})
    challenge = Challenge("c", (Task("range"), Task("scroll")))
    fine = msgspec.structs.replace(ES, operations={"range": {}}, mappings={"message.norms": False})
    check_index_settings((fine,), track, "prepared", (challenge,))
    with pytest.raises(UsageError, match=message):
        check_index_settings((msgspec.structs.replace(ES, **changes),), track, "prepared", (challenge,))


def test_a_challenge_that_makes_the_track_s_index_gives_it_the_variant_s_settings(tmp_path: Path):
    track, _ = load_track("big5", {})
    making = CreateIndex(name="make")
    track = track.with_challenges(Challenge("c", (Task("make"),), operations={"make": making}))
    check_index_settings((OWN,), track, "empty", (Challenge("c", (Task("make"),)),))
    context = work_context(make_plan(origin="empty"), track, Home(tmp_path), OWN)
    assert context.index_body["settings"]["index.codec"] == "default"
    usual = work_context(make_plan(), track, Home(tmp_path), ES).index_body["settings"]
    assert usual["index.codec"] == "best_compression"
    own_body = msgspec.structs.replace(making, body={})
    track = track.with_challenges(Challenge("c", (), operations={"make": own_body}))
    with pytest.raises(UsageError, match="no index is made of the track's body"):
        check_index_settings((OWN,), track, "empty", (Challenge("c", (Task("make"),)),))

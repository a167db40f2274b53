"""The plug-in of a plan: recorded by its digest, confirmed when a run goes on, and told of its challenge."""

from pathlib import Path

import msgspec
import pytest

from asked import asked
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.plugin.code import Consent
from benchctl.results.plan import Plan, PluginSpec
from benchctl.run.form import in_test_mode
from benchctl.run.orchestrate import track_changes
from benchctl.run.plan import plan_run
from benchctl.run.work import allowed_plugin, confirm_plugin, plugin_use
from benchctl.track.load import load_track
from benchctl.track.model import Track
from benchctl.track.operations.catalogue import PluginOperation
from plugins import code_in, executed, write_track


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return write_track(tmp_path / "books")


@pytest.fixture
def trusting(tmp_path: Path) -> Consent:
    return Consent(Home(tmp_path / "home"), given=True)


def planned(books: Path, consent: Consent | None) -> tuple[Plan, Track]:
    return plan_run(asked(challenges=("ask",), track=str(books), consent=consent))


def test_the_plan_records_what_is_executed(books: Path, trusting: Consent):
    plan, _ = planned(books, trusting)
    code = code_in(books)
    assert plan.plugin == PluginSpec(str(books / "track.py"), code.digest)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_no_plan_is_made_without_consent(books: Path):
    with pytest.raises(UsageError, match=r"needs a Python plug-in, in track\.py"):
        planned(books, None)
    assert not executed(books)


def test_a_plug_in_that_is_not_there_is_named_as_ever(books: Path, trusting: Consent):
    (books / "track.py").unlink()
    track, _ = load_track(str(books), {})
    with pytest.raises(UsageError, match="which is not in the track's directory"):
        allowed_plugin(str(books), track, track.challenges.values(), trusting)


def test_a_plug_in_that_only_changes_the_track_is_executed_where_it_is_trusted(
    books: Path, tmp_path: Path, trusting: Consent
):
    code = code_in(
        books, {"track.py": "def register(registry):\n    registry.register_track_processor(object())\n"}
    )
    track, _ = load_track(str(books), {})
    assert allowed_plugin(str(books), track, (), Consent(Home(tmp_path / "another"))) is None
    assert allowed_plugin(str(books), track, (), trusting) == PluginSpec(str(code.path), code.digest)


def test_a_run_does_not_go_on_with_another_plug_in(books: Path, trusting: Consent):
    plan, track = planned(books, trusting)
    assert track_changes(plan, track) == []
    (books / "more.py").touch()
    (change,) = track_changes(plan, track)
    assert change.startswith(f"the plug-in {books / 'track.py'} was ")
    (books / "track.py").unlink()
    assert track_changes(plan, track) == [f"the plug-in {books / 'track.py'} is gone"]


def test_whoever_goes_on_with_a_run_has_to_trust_its_plug_in(books: Path, tmp_path: Path, trusting: Consent):
    plan, _ = planned(books, trusting)
    somebody = Consent(Home(tmp_path / "another"))
    with pytest.raises(UsageError, match="needs the Python plug-in of its track") as caught:
        confirm_plugin(plan, somebody)
    assert "--trust" in caught.value.hint
    confirm_plugin(plan, trusting)
    somebody.remember(code_in(books))
    confirm_plugin(plan, somebody)
    confirm_plugin(msgspec.structs.replace(plan, plugin=None), Consent(Home(tmp_path / "third")))


def test_the_load_gets_the_digest_that_was_consented_to(books: Path, trusting: Consent):
    plan, track = planned(books, trusting)
    use = plugin_use(plan, track, 7)
    assert use is not None
    assert (use.folder, use.digest, use.session) == (books, code_in(books).digest, 7)
    assert plugin_use(msgspec.structs.replace(plan, plugin=None), track) is None


def test_a_trial_asks_without_the_plug_ins_pauses(books: Path, trusting: Consent):
    plan, _ = planned(books, trusting)
    assert [task.scheduler for task in plan.schedules[0].schedule] == [None, "lazily"]
    assert [task.scheduler for task in in_test_mode(plan).schedules[0].schedule] == [None, None]


@pytest.mark.parametrize(("kind", "unit"), [("bulk", "docs"), ("search", "queries"), ("anything", "ops")])
def test_an_operation_of_a_plug_in_counts_what_its_type_counts(kind: str, unit: str):
    assert PluginOperation(name="x", type=kind, param_source="s").unit == unit

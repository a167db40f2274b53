"""A run of a track in a git repository: what its plan keeps, and how the track is found again."""

import shutil
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.plugin.code import Consent, read_code
from benchctl.results.plan import Plan, PluginSpec
from benchctl.run.form import run_spec
from benchctl.run.plan import plan_run, reload_track, track_remarks
from benchctl.run.work import confirm_plugin
from benchctl.spec import RunForm
from builders import ES
from track_repository import commit_files, track_files


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("benchctl.home._check_reachable", lambda *_: None)
    return Home(tmp_path / "home")


def planned(home: Home, repository: str, revision: str = "") -> Plan:
    form = RunForm(track="geonames", track_repository=repository, track_revision=revision)
    return plan_run(run_spec(form, (ES,), home=home))[0]


def test_a_checkout_that_was_deleted_is_made_again_and_nothing_newer(home: Home, tmp_path: Path):
    url = f"file://{tmp_path / 'tracks'}"
    commit = commit_files(tmp_path / "tracks", track_files("geonames"))
    plan = planned(home, url)
    assert plan.track_source is not None
    assert (plan.track_source.commit, plan.track_source.repository) == (commit, url)
    assert Path(plan.track).is_relative_to(home.tracks)
    commit_files(tmp_path / "tracks", track_files("geonames", iterations=9))
    planned(home, url)
    shutil.rmtree(home.tracks)
    assert reload_track(plan).digest == plan.track_digest
    assert Path(plan.track).is_dir()


def test_a_checkout_is_made_in_the_home_of_now(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commit_files(tmp_path / "tracks", track_files("geonames"))
    plan = planned(home, str(tmp_path / "tracks"))
    shutil.rmtree(home.root)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "another"))
    assert reload_track(plan).digest == plan.track_digest
    assert not home.root.exists()


def test_a_plug_in_that_comes_back_with_its_checkout_takes_consent(home: Home, tmp_path: Path):
    files = track_files("geonames") | {"geonames/track.py": "def register(registry):\n    pass\n"}
    commit_files(tmp_path / "tracks", files)
    plan = planned(home, str(tmp_path / "tracks"))
    code = read_code(Path(plan.track))
    assert code is not None
    plan = msgspec.structs.replace(plan, plugin=PluginSpec(str(code.path), code.digest))
    shutil.rmtree(home.tracks)
    with pytest.raises(UsageError, match="needs the Python plug-in of its track"):
        confirm_plugin(plan, Consent(home))
    confirm_plugin(plan, Consent(home, given=True))


def test_plans_are_the_same_whatever_the_revision_was_called(home: Home, tmp_path: Path):
    commit = commit_files(tmp_path / "tracks", track_files("geonames"))
    commit_files(tmp_path / "tracks", track_files("books"))
    first, second = (planned(home, str(tmp_path / "tracks"), revision) for revision in ("main", commit))
    assert first != second
    assert first.digest == second.digest
    commit_files(tmp_path / "tracks", track_files("geonames", iterations=9))
    assert planned(home, str(tmp_path / "tracks")).digest != first.digest


def test_a_copy_that_is_outdated_is_remarked(home: Home, tmp_path: Path):
    url = f"file://{tmp_path / 'tracks'}"
    commit_files(tmp_path / "tracks", track_files("geonames"))
    assert track_remarks(planned(home, url)) == ()
    (tmp_path / "tracks").rename(tmp_path / "away")
    plan = planned(home, url)
    assert track_remarks(plan) == (plan.track_source and plan.track_source.outdated,)
    assert track_remarks(msgspec.structs.replace(plan, track_source=None)) == ()

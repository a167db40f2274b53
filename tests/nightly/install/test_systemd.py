import configparser
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.nightly.install import Crontab, Daily, Units, local_zone, schedule_of, service_of, timer_of
from nightly.install.fake_cron import fake_cron
from nightly.install.jobs import job

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 21, 12, tzinfo=BERLIN)

_SYSTEMCTL = """#!/bin/sh
echo "$@" >> "{folder}/told"
[ ! -e "{folder}/refuses" ] || { echo "Failed to connect to bus" >&2; exit 1; }
case "$*" in *list-timers*) cat "{folder}/timers" ;; esac
"""


@pytest.fixture
def units(tmp_path: Path) -> Units:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "systemctl"
    program.write_text(_SYSTEMCTL.replace("{folder}", str(tmp_path)))
    program.chmod(0o755)
    (tmp_path / "booted").mkdir()
    (tmp_path / "timers").write_text("[]")
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.defpath}"}
    return Units(tmp_path / "units", system=False, environ=environ, booted=tmp_path / "booted")


def told(units: Units) -> list[str]:
    path = units.folder.parent / "told"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.removeprefix("--user --no-ask-password ") for line in lines]


def test_the_service_of_a_suite():
    assert service_of(job()) == (
        "[Unit]\n"
        "Description=benchctl nightly: big5\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        "Environment=PATH=/usr/bin:/bin\n"
        "EnvironmentFile=-/home/me/nightly/big5/environment\n"
        "ExecStart=/venv/bin/benchctl nightly run /suites/big5.yml\n"
        "SuccessExitStatus=3\n"
        "StandardOutput=append:/home/me/nightly/big5/nightly.log\n"
        "StandardError=append:/home/me/nightly/big5/nightly.log\n"
        "KillMode=mixed\n"
        "TimeoutStopSec=300\n"
    )


def test_the_timer_of_a_suite():
    parsed = configparser.ConfigParser()
    parsed.read_string(timer_of(job()))
    assert parsed["Timer"]["OnCalendar"] == "Mon,Tue,Wed,Thu,Fri *-*-* 03:00:00"
    assert parsed["Timer"]["Persistent"] == "true"
    assert parsed["Install"]["WantedBy"] == "timers.target"


def test_what_systemd_reads_in_its_own_way_is_escaped():
    made = job(
        file=Path('/my suites/100% $HOME "q".yml'),
        folder=Path("/my home/100%"),
        environment=(("WHERE", "/a b/100% $HOME 'q'"),),
    )
    service = service_of(made)
    assert 'ExecStart=/venv/bin/benchctl nightly run "/my suites/100%% $$HOME \\"q\\".yml"\n' in service
    assert "Environment=\"WHERE=/a b/100%% $HOME 'q'\"\n" in service
    assert "EnvironmentFile=-/my home/100%%/environment\n" in service
    assert "StandardOutput=append:/my home/100%%/nightly.log\n" in service


def test_a_folder_whose_name_is_a_pattern_stands_for_itself():
    service = service_of(job(folder=Path("/home/[b]*?")))
    assert "EnvironmentFile=-/home/[[]b][*][?]/environment\n" in service
    assert "StandardOutput=append:/home/[b]*?/nightly.log\n" in service


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path):
    folder = tmp_path / "100% 'q' home"
    folder.mkdir()
    program = tmp_path / "100% $bench ctl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = job(folder=folder, file=folder / "$HOME.yml", program=(str(program),))
    units = Units(tmp_path, system=True, environ={})
    for path, content in units.files(made).items():
        path.write_text(content)
        ended = subprocess.run(
            [str(ANALYZE), "verify", "--man=no", "--recursive-errors=no", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_program_that_systemd_would_not_start_is_refused():
    with pytest.raises(UsageError, match="quotes in its path"):
        service_of(job(program=("/it's here/benchctl",)))


def test_installing_starts_the_timer_and_repeating_it_changes_nothing(units: Units):
    assert units.install(job())
    assert units.timer_path("big5").read_text() == timer_of(job())
    timer = "benchctl-nightly-big5.timer"
    assert told(units) == ["daemon-reload", f"enable --now {timer}", f"restart {timer}"]
    assert not units.install(job())
    assert told(units)[3:] == ["daemon-reload", f"enable --now {timer}"]
    assert units.install(job(when=Daily.parse("04:00")))


def test_removing_stops_the_timer_and_leaves_nothing(units: Units):
    assert not units.remove("big5")
    units.install(job())
    assert units.remove("big5")
    assert told(units)[-2:] == ["disable --now benchctl-nightly-big5.timer", "daemon-reload"]
    assert list(units.folder.iterdir()) == []


def test_root_has_the_units_of_the_system_and_others_their_own(tmp_path: Path):
    assert Units.usual({}, euid=0).folder == Path("/etc/systemd/system")
    own = Units.usual({"XDG_CONFIG_HOME": str(tmp_path)}, euid=1000)
    assert (own.folder, own.system) == (tmp_path / "systemd" / "user", False)


def test_what_systemd_refuses_is_told(units: Units):
    (units.folder.parent / "refuses").touch()
    with pytest.raises(BenchctlError, match="daemon-reload: Failed to connect to bus") as refused:
        units.install(job())
    assert "loginctl" in refused.value.hint


def test_where_systemd_does_not_run_nothing_is_written(units: Units):
    units.booted.rmdir()
    with pytest.raises(BenchctlError, match="systemd does not run this host"):
        units.install(job())
    assert not units.folder.exists()


def test_nothing_starts_a_suite_that_was_not_installed(units: Units, tmp_path: Path):
    environ = fake_cron(tmp_path / "cron").environ
    assert schedule_of("big5", environ=environ, now=NOW, zone=BERLIN, units=units) is None
    assert schedule_of("big5", environ={"PATH": ""}, now=NOW, zone=BERLIN, units=units) is None


def test_cron_starts_a_suite_that_was_installed(units: Units, tmp_path: Path):
    cron = fake_cron(tmp_path / "cron")
    Crontab(cron.environ).install(job())
    found = schedule_of("big5", environ=cron.environ, now=NOW, zone=BERLIN, units=units)
    assert found is not None
    assert found.next_run == datetime(2026, 11, 23, 3, tzinfo=BERLIN)
    assert found.next_words == "2026-11-23 03:00 CET (cron, 03:00 on Mon, Tue, Wed, Thu, Fri)"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("0 3 * * 1,2,3,4,5", "*/10 3 * * *", "changed by hand: */10 3 * * * (crontab)"),
        ("0 3 * * 1,2,3,4,5", "@daily", "changed by hand: @daily "),
        ("0 3 * * 1,2,3,4,5", "#0 3 * * 1,2,3,4,5", "its line is commented out (crontab)"),
        ("end\n", "fin\n", "the crontab has '# benchctl nightly big5 begin'"),
    ],
)
def test_what_somebody_changed_is_told_as_it_is(
    units: Units, tmp_path: Path, before: str, after: str, words: str
):
    cron = fake_cron(tmp_path / "cron")
    Crontab(cron.environ).install(job())
    cron.table = cron.table.replace(before.encode(), after.encode())
    found = schedule_of("big5", environ=cron.environ, now=NOW, zone=BERLIN, units=units)
    assert found is not None
    assert found.next_run is None
    assert found.next_words.startswith(words)


def test_systemd_says_itself_when_its_timer_is_next(units: Units):
    units.install(job())
    at = datetime(2026, 11, 23, 2, tzinfo=UTC)
    timers = units.folder.parent / "timers"
    timers.write_text(
        f'[{{"next":{int(at.timestamp()) * 1_000_000},"left":1,"last":0,"passed":0,'
        '"unit":"benchctl-nightly-big5.timer","activates":"benchctl-nightly-big5.service"}]'
    )
    found = schedule_of("big5", environ=units.environ, now=NOW, zone=BERLIN, units=units)
    assert found is not None
    assert found.next_run == at
    assert found.next_words == "2026-11-23 03:00 CET (systemd, 03:00 on Mon, Tue, Wed, Thu, Fri)"
    timers.write_text('[{"next":null,"unit":"benchctl-nightly-big5.timer"}]')
    stopped = schedule_of("big5", environ=units.environ, now=NOW, zone=BERLIN, units=units)
    assert stopped is not None
    assert stopped.next_run is None


def test_an_old_systemd_is_not_asked_twice(units: Units):
    units.install(job(when=Daily.parse("03:00")))
    (units.folder.parent / "refuses").touch()
    found = schedule_of("big5", environ=units.environ, now=NOW, zone=BERLIN, units=units)
    assert found is not None
    assert found.next_run == datetime(2026, 11, 22, 3, tzinfo=BERLIN)


def test_the_zone_of_the_host_is_where_its_link_leads(tmp_path: Path):
    zones = tmp_path / "zoneinfo" / "Europe"
    zones.mkdir(parents=True)
    shutil.copy(Path("/usr/share/zoneinfo/Europe/Berlin"), zones / "Berlin")
    (tmp_path / "localtime").symlink_to(zones / "Berlin")
    zone = local_zone(tmp_path / "localtime")
    assert zone.key == "Europe/Berlin"
    assert datetime(2026, 7, 1, tzinfo=zone).utcoffset() == datetime(2026, 7, 1, tzinfo=BERLIN).utcoffset()
    assert local_zone(tmp_path / "none").key == "UTC"

"""`benchctl nightly install`: what it prints, and what cron and systemd make of that."""

import configparser
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchctl.errors import UsageError
from benchctl.nightly.commands.install import (
    Job,
    crontab_line,
    environment_of,
    install_command,
    service_unit,
    timer_unit,
)

SUITE = """\
variants: [es@8.19.0]
challenges: [range-only-short]
"""
NOTIFY = """\
notify:
  - webhook-env: CHAT_WEBHOOK
"""
# Benchctl itself, with runs that are made up: what a night prints and how it exits is real.


def job(**changes: Any) -> Job:
    content: dict[str, Any] = {
        "suite": "big5",
        "file": Path("/suites/big5.yml"),
        "hour": 3,
        "minute": 5,
        "program": ("/venv/bin/benchctl",),
        "environment": (("PATH", "/usr/bin:/bin"),),
        "secrets": (),
        "secrets_file": Path("/home/me/nightly/big5/environment"),
    }
    return Job(**(content | changes))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "big5.yml"
    path.write_text(SUITE)
    return path


def call(suite: Path, *arguments: str, **environ: str) -> Result:
    variables: dict[str, str | None] = {**dict.fromkeys(os.environ), "PATH": os.defpath}
    variables |= {"BENCHCTL_HOME": str(suite.parent / "home"), "XDG_CONFIG_HOME": "/config"}
    return CliRunner().invoke(install_command, [str(suite), *arguments], env=variables | environ)


def as_cron_runs(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of a line as cron does: `%` would be a line feed, and `\\%` is `%`."""
    command = line.split(None, 5)[5]
    assert "%" not in command.replace("\\%", "")
    return subprocess.run(
        ["/bin/sh", "-c", command.replace("\\%", "%")],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_line_is_printed_and_nothing_is_written(suite: Path):
    result = call(suite, "--at", "3:05")
    assert result.exit_code == 0
    minute, hour, *_, command = result.stdout.split(None, 5)
    assert (minute, hour) == ("5", "3")
    *variables, program, group, name, quiet, file = shlex.split(command)
    assert variables == [f"PATH={os.defpath}", f"BENCHCTL_HOME={suite.parent}/home"]
    assert Path(program) == Path(sys.executable).with_name("benchctl")
    assert (group, name, quiet, file) == ("nightly", "run", "--quiet", str(suite))
    assert list(suite.parent.iterdir()) == [suite]


def test_the_shell_reads_the_line_as_it_was_meant_whatever_is_in_paths(tmp_path: Path):
    folder = tmp_path / "100% of 'my' \"$HOME\"; touch it"
    folder.mkdir()
    program = folder / "bench ctl"
    program.write_text('#!/bin/sh\nprintf "<%s>\\n" "$@" "$WHERE"\nexit 3\n')
    program.chmod(0o755)
    made = job(
        file=folder / "suite.yml",
        program=(str(program),),
        environment=(("PATH", "/usr/bin:/bin"), ("WHERE", str(folder))),
    )
    ended = as_cron_runs(crontab_line(made), tmp_path)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert ended.stdout.splitlines() == [
        "<nightly>",
        "<run>",
        "<--quiet>",
        f"<{folder / 'suite.yml'}>",
        f"<{folder}>",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {folder.name}


def test_a_line_that_cron_would_cut_is_refused():
    with pytest.raises(UsageError, match="998"):
        crontab_line(job(environment=(("PATH", ":".join(f"/folder{number}" for number in range(100))),)))


def test_the_service_fails_on_an_alarm_as_on_any_other_exit_code_but_zero():
    assert service_unit(job()) == (
        "[Unit]\n"
        "Description=benchctl nightly: big5\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        "Environment=PATH=/usr/bin:/bin\n"
        "ExecStart=/venv/bin/benchctl nightly run --quiet /suites/big5.yml\n"
        "KillMode=mixed\n"
        "TimeoutStopSec=300\n"
    )


def test_the_timer_of_a_suite():
    parsed = configparser.ConfigParser()
    parsed.read_string(timer_unit(job()))
    assert parsed["Timer"]["OnCalendar"] == "*-*-* 03:05:00"
    assert parsed["Timer"]["Persistent"] == "true"
    assert parsed["Install"]["WantedBy"] == "timers.target"


def test_units_are_printed_under_their_names_with_a_file_of_secrets(suite: Path):
    suite.write_text(SUITE + NOTIFY)
    result = call(suite, "--at", "03:00", "--systemd", CHAT_WEBHOOK="https://hooks.example.org/hunter2000")
    assert result.exit_code == 0
    folder = "/etc/systemd/system" if os.geteuid() == 0 else "/config/systemd/user"
    assert f"# {folder}/benchctl-nightly-big5.service\n[Unit]\n" in result.stdout
    assert f"# {folder}/benchctl-nightly-big5.timer\n[Unit]\n" in result.stdout
    secrets = f"{suite.parent}/home/nightly/big5/environment"
    assert f"EnvironmentFile={secrets}\n" in result.stdout
    assert f"CHAT_WEBHOOK to {secrets}" in result.stderr
    assert "enable --now benchctl-nightly-big5.timer" in result.stderr
    assert "hunter2000" not in result.output


def test_what_systemd_reads_in_its_own_way_is_escaped():
    made = job(
        file=Path('/my suites/100% $HOME "q".yml'),
        environment=(("WHERE", "/a b/100% $HOME 'q'"),),
        secrets=("HOOK",),
        secrets_file=Path("/my home/100% [b]*?"),
    )
    service = service_unit(made)
    assert 'run --quiet "/my suites/100%% $$HOME \\"q\\".yml"\n' in service
    assert "Environment=\"WHERE=/a b/100%% $HOME 'q'\"\n" in service
    assert "EnvironmentFile=/my home/100%% [[]b][*][?]\n" in service
    with pytest.raises(UsageError, match="quotes in its path"):
        service_unit(job(program=("/it's here/benchctl",)))


@pytest.mark.parametrize("option", [(), ("--systemd",)])
def test_a_suite_that_notifies_nobody_is_warned_of(suite: Path, option: tuple[str, ...]):
    assert "big5 has no `notify:`" in call(suite, "--at", "03:00", *option).stderr
    suite.write_text(SUITE + NOTIFY)
    assert "no `notify:`" not in call(suite, "--at", "03:00", *option).stderr


def test_variables_with_secrets_are_named_and_their_values_not_printed(suite: Path):
    suite.write_text(SUITE + NOTIFY)
    proxy = "http://me:hunter2000@proxy:3128"
    result = call(suite, "--at", "03:00", https_proxy=proxy, CHAT_WEBHOOK="https://a/hunter2000")
    assert "https_proxy, CHAT_WEBHOOK" in result.stderr
    assert "hunter2000" not in result.output


def test_the_environment_of_a_night_is_where_things_are_and_how_to_reach_them():
    environ = {
        "PATH": "/a:/b::.:relative:/a",
        "BENCHCTL_HOME": "here",
        "REQUESTS_CA_BUNDLE": "/ca.pem",
        "HTTPS_PROXY": "http://me:hunter2000@proxy:3128",
        "no_proxy": "localhost",
        "SSH_AUTH_SOCK": "/run/agent",
    }
    variables, withheld = environment_of(environ)
    assert variables == (
        ("PATH", "/a:/b"),
        ("BENCHCTL_HOME", str(Path("here").absolute())),
        ("REQUESTS_CA_BUNDLE", "/ca.pem"),
        ("no_proxy", "localhost"),
    )
    assert withheld == ("HTTPS_PROXY",)
    assert environment_of({})[0] == (("PATH", "/usr/local/bin:/usr/bin:/bin"),)


@pytest.mark.parametrize("text", ["/a\nb", "/a\\b", "/a\x1b"])
def test_what_crontabs_and_unit_files_cannot_hold_is_refused(text: str):
    for place in ({"file": Path(text)}, {"program": (text,)}, {"environment": (("A", text),)}):
        with pytest.raises(UsageError):
            job(**place)


@pytest.mark.parametrize("at", ["", "3", "24:00", "03:60", "03:00:00", "3am", "٣:00", "-1:00"])
def test_what_is_no_time_of_day_is_refused(suite: Path, at: str):
    error = call(suite, "--at", at).exception
    assert isinstance(error, UsageError)
    assert error.message.startswith("--at: ")


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path):
    program = tmp_path / "100% $bench ctl"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    secrets = tmp_path / "100% 'q' secrets"
    made = job(file=tmp_path / "$HOME.yml", program=(str(program),), secrets=("HOOK",), secrets_file=secrets)
    for name, content in (("service", service_unit(made)), ("timer", timer_unit(made))):
        path = tmp_path / f"{made.unit}.{name}"
        path.write_text(content)
        ended = subprocess.run(
            [str(ANALYZE), "verify", "--man=no", "--recursive-errors=no", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

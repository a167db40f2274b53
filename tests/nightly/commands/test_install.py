from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.errors import BenchctlError, UsageError
from benchctl.nightly.commands.install import install_command
from benchctl.nightly.commands.suites import status_command
from nightly.install.fake_cron import FakeCron, fake_cron

SUITE = """\
variants: [es@8.19.0]
challenges: [range-only-short]
notify:
  - kind: webhook
    url-env: CHAT_WEBHOOK
    template: slack
"""


@pytest.fixture
def cron(tmp_path: Path) -> FakeCron:
    return fake_cron(tmp_path / "cron")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    return tmp_path / "home"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "big5.yml"
    path.write_text(SUITE)
    return path


def call(cron: FakeCron, home: Path, *arguments: str | Path) -> Result:
    environ = {"PATH": cron.environ["PATH"], "BENCHCTL_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    environ |= {"CHAT_WEBHOOK": "https://hooks.example.org/hunter2000"}
    return CliRunner().invoke(install_command, [str(one) for one in arguments], env=environ)


def test_a_crontab_line_is_printed_and_nothing_is_installed(cron: FakeCron, home: Path, suite: Path):
    result = call(cron, home, suite, "--at", "03:00", "--days", "mon-fri")
    assert result.exit_code == 0
    begin, line, end = result.stdout.splitlines()
    assert begin == "# benchctl nightly big5 begin"
    assert line.startswith("0 3 * * 1,2,3,4,5 (set -a; PATH=")
    assert f"BENCHCTL_HOME={home}; " in line
    assert f"nightly run {suite}) >>{home}/nightly/big5/nightly.log 2>&1" in line
    assert end == "# benchctl nightly big5 end"
    assert cron.writes == 0
    assert list((home / "nightly" / "big5").iterdir()) == []


def test_a_suite_with_a_challenge_that_nobody_has_is_not_installed(cron: FakeCron, home: Path, suite: Path):
    suite.write_text(SUITE.replace("range-only-short", "range-onyl"))
    result = call(cron, home, suite, "--at", "03:00", "--write")
    assert isinstance(result.exception, UsageError)
    assert "there is no challenge 'range-onyl'" in result.exception.message
    assert cron.writes == 0
    assert not (home / "nightly").exists()


def test_units_of_systemd_are_printed_under_their_names(cron: FakeCron, home: Path, suite: Path):
    result = call(cron, home, suite, "--at", "03:00", "--kind", "systemd")
    assert result.exit_code == 0
    assert "/benchctl-nightly-big5.service\n[Unit]" in result.stdout
    assert "OnCalendar=*-*-* 03:00:00" in result.stdout


def test_where_secrets_go_is_told_and_they_are_written_nowhere(cron: FakeCron, home: Path, suite: Path):
    for arguments in (["--kind", "cron"], ["--kind", "systemd"], ["--write"]):
        result = call(cron, home, suite, "--at", "03:00", *arguments)
        secrets = home / "nightly" / "big5" / "environment"
        assert f"its notifiers read CHAT_WEBHOOK, which {secrets} does not set" in result.stderr
        assert "hunter2000" not in result.output
    assert b"hunter2000" not in cron.table
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert "#CHAT_WEBHOOK='...'" in secrets.read_text()
    secrets.write_text("CHAT_WEBHOOK='https://hooks.example.org/hunter2000'\n")
    assert call(cron, home, suite, "--at", "03:00", "--write").stderr == ""
    assert "hunter2000" in secrets.read_text()


def test_a_file_of_secrets_that_is_open_to_others_is_refused(cron: FakeCron, home: Path, suite: Path):
    call(cron, home, suite, "--at", "03:00", "--write")
    (home / "nightly" / "big5" / "environment").chmod(0o644)
    with pytest.raises(UsageError, match="open to other users"):
        raise call(cron, home, suite, "--at", "04:00", "--write").exception or AssertionError
    assert b"0 3 * * *" in cron.table


def test_a_suite_is_installed_moved_and_taken_out(cron: FakeCron, home: Path, suite: Path):
    cron.table = b"0 1 * * * poll\n"
    first = call(cron, home, suite, "--at", "03:00", "--write")
    assert first.exit_code == 0
    assert "big5: cron starts it at 03:00 every day, next on 2" in first.stdout
    assert f"Log: {home}/nightly/big5/nightly.log" in first.stdout
    again = call(cron, home, suite, "--at", "03:00", "--write")
    assert "starts it already, at 03:00" in again.stdout
    assert cron.writes == 1
    call(cron, home, suite, "--at", "04:30", "--write")
    assert b"30 4 * * *" in cron.table
    assert b"0 3 * * *" not in cron.table
    assert call(cron, home, suite, "--remove").stdout == "big5: cron no longer starts it\n"
    assert cron.table == b"0 1 * * * poll\n"
    assert call(cron, home, suite, "--remove").stdout == "big5: cron did not start it\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--at is missing"),
        (["--at", "25:00"], "not a time of day"),
        (["--at", "03:00", "--days", "daily"], "names no days"),
        (["--at", "03:00", "--remove"], "--remove takes nothing but --kind"),
        (["--write", "--remove"], "--remove takes nothing but --kind"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    cron: FakeCron, home: Path, suite: Path, arguments: list[str], complaint: str
):
    error = call(cron, home, suite, *arguments).exception
    assert isinstance(error, UsageError)
    assert complaint in error.message


def test_a_suite_file_that_is_wrong_is_not_installed(cron: FakeCron, home: Path, suite: Path):
    suite.write_text(SUITE.replace("url-env: CHAT_WEBHOOK", "url: https://me:hunter2000@example.org/"))
    error = call(cron, home, suite, "--at", "03:00", "--write").exception
    assert isinstance(error, UsageError)
    assert "hunter2000" not in str(error)
    assert cron.writes == 0


def test_a_host_without_cron_is_told_what_else_there_is(cron: FakeCron, home: Path, suite: Path):
    (cron.folder / "bin" / "crontab").unlink()
    environ = {"PATH": str(cron.folder / "bin"), "BENCHCTL_HOME": str(home)}
    for kind in ("cron", "systemd"):
        arguments = [str(suite), "--at", "03:00", "--write", "--kind", kind]
        error = CliRunner().invoke(install_command, arguments, env=environ).exception
        assert isinstance(error, BenchctlError)
        assert "here" in error.message or "this host" in error.message
        assert "--kind" in error.hint
    printed = CliRunner().invoke(install_command, [str(suite), "--at", "03:00"], env=environ)
    assert printed.stdout.startswith("# benchctl nightly big5 begin")


def test_a_suite_that_is_installed_has_a_status_before_its_first_night(
    cron: FakeCron, home: Path, suite: Path, monkeypatch: pytest.MonkeyPatch
):
    call(cron, home, suite, "--at", "03:00", "--write")
    monkeypatch.setenv("PATH", cron.environ["PATH"])
    monkeypatch.setenv("BENCHCTL_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    for arguments in ([], [str(suite)]):
        text = CliRunner().invoke(status_command, arguments, catch_exceptions=False).stdout
        assert text.startswith("big5: no night yet\n")
        assert "03:00" in text

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.nightly.install import environment_of, find_program, missing_secrets
from nightly.install.jobs import job


@pytest.mark.parametrize(
    "changes",
    [
        {"file": Path("/suites/a\nb.yml")},
        {"file": Path("/suites/a\\b.yml")},
        {"folder": Path("/home/\x07")},
        {"program": ("/venv\r/bin/benchctl",)},
        {"environment": (("PATH", "/usr/bin\n* * * * * evil"),)},
    ],
)
def test_paths_that_crontabs_and_unit_files_read_differently_are_refused(changes: dict[str, object]):
    with pytest.raises(UsageError, match="read each in their own way"):
        job(**changes)


@pytest.mark.parametrize("suite", ["", "a b", "a\nb", "../a", "-a", "a%b"])
def test_names_of_suites_that_are_no_names_of_units_are_refused(suite: str):
    with pytest.raises(UsageError, match="cannot be installed"):
        job(suite=suite)


def test_the_search_path_has_absolute_folders_once_each():
    environment, _ = environment_of({"PATH": "/b:.:/a:/b::bin:~/bin"})
    assert environment == (("PATH", "/b:/a"),)
    assert environment_of({})[0] == (("PATH", "/usr/local/bin:/usr/bin:/bin"),)


def test_a_night_knows_where_things_are_and_how_to_reach_them_and_nothing_else():
    environ = {
        "PATH": "/bin",
        "BENCHCTL_HOME": "/data",
        "https_proxy": "http://proxy:3128",
        "no_proxy": "localhost,127.0.0.1",
        "SLACK_URL": "https://hooks.example.org/hunter2",
        "SSL_CERT_FILE": "",
    }
    environment, withheld = environment_of(environ)
    assert dict(environment) == {
        "PATH": "/bin",
        "BENCHCTL_HOME": "/data",
        "https_proxy": "http://proxy:3128",
        "no_proxy": "localhost,127.0.0.1",
    }
    assert withheld == ()


@pytest.mark.parametrize("value", ["http://me:hunter2@proxy:3128", "me:hunter2@proxy:3128"])
def test_what_holds_a_password_is_not_written_down(value: str):
    environment, withheld = environment_of({"PATH": "/bin", "https_proxy": value})
    assert dict(environment) == {"PATH": "/bin"}
    assert withheld == ("https_proxy",)


def test_benchctl_is_started_by_its_script_beside_python(tmp_path: Path):
    python = tmp_path / "python"
    assert find_program(str(python)) == (str(python), "-m", "benchctl")
    (tmp_path / "benchctl").touch()
    assert find_program(str(python)) == (str(tmp_path / "benchctl"),)


def test_the_link_to_python_is_not_followed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "python").touch()
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "python").symlink_to(tmp_path / "real" / "python")
    assert find_program(str(tmp_path / "venv" / "python"))[0] == str(tmp_path / "venv" / "python")


def test_secrets_that_a_file_does_not_set_are_named(tmp_path: Path):
    file = tmp_path / "environment"
    assert missing_secrets(file, ["A", "B", "A"]) == ("A", "B")
    file.write_text("# A=1\nexport B='2'\nC=\nD=4\n")
    file.chmod(0o600)
    assert missing_secrets(file, ["A", "B", "C", "D"]) == ("A", "C")


@pytest.mark.parametrize(
    "line",
    [
        "A=hunter 2000",
        "export A=https://chat.example.org/?a=1&b=2",
        "A='x' 'y'",
        "A=x;y",
        "A=$HOME",
        "A=back\\slash",
        "A=`x`",
    ],
)
def test_a_value_that_a_shell_would_read_otherwise_is_refused(tmp_path: Path, line: str):
    file = tmp_path / "environment"
    file.write_text(f"# Secrets\n{line}\n")
    file.chmod(0o600)
    with pytest.raises(
        UsageError, match="environment, line 2: a shell would not take the value of A"
    ) as refused:
        missing_secrets(file, ["A"])
    assert refused.value.hint == "put it into quotes: A='...'"
    assert line.partition("=")[2] not in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "A='hunter 2000; $HOME & more'",
        'A="hunter 2000"',
        "A=https://chat.example.org/?a=1#x",
        "A=plain  # a note",
        "A=plain \t",
        "#A=not a secret yet",
        "A='over\nlines'",
        "",
    ],
)
def test_what_is_in_quotes_or_plain_is_taken(tmp_path: Path, line: str):
    file = tmp_path / "environment"
    file.write_text(f"{line}\nB=1\n")
    file.chmod(0o600)
    assert missing_secrets(file, ["B"]) == ()


def test_a_file_of_secrets_that_others_can_read_is_refused(tmp_path: Path):
    file = tmp_path / "environment"
    file.write_text("A=hunter2\n")
    file.chmod(0o640)
    with pytest.raises(UsageError, match=r"open to other users \(mode 640\)") as refused:
        missing_secrets(file, ["A"])
    assert refused.value.hint == f"chmod 600 {file}"
    assert "hunter2" not in str(refused.value)

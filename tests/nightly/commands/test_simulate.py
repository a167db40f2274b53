import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchctl.errors import UsageError
from benchctl.nightly.commands.simulate import simulate_command

SMALL = ["--series", "3", "--nights", "50"]


def simulate(*arguments: str) -> Result:
    found = CliRunner().invoke(simulate_command, list(arguments), catch_exceptions=True)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def history(folder: Path, text: str = "") -> str:
    rows = [f"2026-{1 + night // 28:02}-{1 + night % 28:02},{10 + night % 3 / 10}" for night in range(45)]
    rows += [f"2026-06-{1 + night:02},{12 + night % 3 / 10}" for night in range(15)]
    path = folder / "history.csv"
    path.write_text(text or "day,ms\n" + "\n".join(rows) + "\n")
    return str(path)


def test_a_change_is_summed_up_in_a_table():
    lines = simulate(*SMALL, "--step", "30%", "--step-night", "46").stdout.splitlines()
    assert lines[0] == "3 series, 50 nights of 6 forks; night SD 2.0 %, fork SD 5.0 %; seed 1"
    table = dict(line.split(maxsplit=1) for line in lines[2:4])
    assert table["alarms"] == "3"
    assert "until screened  median 1 night, 90 % 1 night; 3 of 3 series" in lines
    assert any(line.startswith("cost") and "confirmation" in line for line in lines)


def test_without_a_change_there_are_no_delays():
    assert "until alarm     nothing changes" in simulate(*SMALL).stdout


def test_json_has_the_process_and_the_outcome():
    found = json.loads(simulate(*SMALL, "--step", "30%", "--faster", "--format", "json").stdout)
    assert (found["seed"], found["margin-percent"]) == (1, 5.0)
    assert found["process"]["series"] == 3
    assert found["outcome"]["series"] == 3


def test_the_same_seed_prints_the_same():
    assert simulate(*SMALL, "--seed", "7").stdout == simulate(*SMALL, "--seed", "7").stdout


def test_a_recorded_file_is_screened_and_located_and_nothing_confirmed(tmp_path: Path):
    text = simulate("--csv", history(tmp_path), "--time", "day", "--value", "ms").stdout
    lines = text.splitlines()
    assert lines[0] == "60 nights"
    assert [line for line in lines if "screened" in line] == [
        "  screened      2026-06-01: +18.8 % (slower), over 40 nights; outlier"
    ] or "screened" in text
    assert any(line.startswith("  change point  2026-06-01: +") for line in lines)
    assert lines[-1].startswith("Nothing of this could be confirmed")


def test_a_recorded_rate_is_faster_when_it_rises(tmp_path: Path):
    text = simulate("--csv", history(tmp_path), "--time", "day", "--value", "ms", "--higher-is-better").stdout
    assert "(faster)" in text


def test_a_quiet_file_says_so(tmp_path: Path):
    path = history(tmp_path, "1,10\n2,10\n3,10\n")
    assert "  nothing stands out" in simulate("--csv", path).stdout


def test_recorded_json_says_that_nothing_was_confirmed(tmp_path: Path):
    path = history(tmp_path)
    found = json.loads(simulate("--csv", path, "--time", "day", "--value", "ms", "--format", "json").stdout)
    assert found["confirmed"] is None
    assert found["times"][0] == "2026-01-01"
    assert found["series"][0]["nights"] == 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--csv", "FILE", "--step", "3%"], "--step is about made-up nights"),
        (["--higher-is-better"], "--higher-is-better is about recorded values"),
        (["--margin", "0%"], "--margin must be above 0 %"),
        (["--missing", "100%"], "must be below 100 %"),
        (["--csv", "FILE"], "no column time"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str], message: str):
    path = history(tmp_path)
    with pytest.raises(UsageError, match=message):
        simulate(*[path if one == "FILE" else one for one in arguments])


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "binary"
    path.write_bytes(b"time,value\n\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        simulate("--csv", str(path))

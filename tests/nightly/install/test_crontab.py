import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.nightly.install import Crontab, Daily, block_in, block_of, with_block
from nightly.install.fake_cron import FakeCron, fake_cron
from nightly.install.jobs import job

OTHERS = b"# mine\nMAILTO=me@example.org\n\n*/5 * * * * poll \xff\xfe 100\\%\n"


@pytest.fixture
def cron(tmp_path: Path) -> FakeCron:
    return fake_cron(tmp_path / "cron")


def test_the_line_of_a_suite():
    assert block_of(job()) == (
        "# benchctl nightly big5 begin\n"
        "0 3 * * 1,2,3,4,5 (set -a; PATH=/usr/bin:/bin; "
        "[ ! -f /home/me/nightly/big5/environment ] || . /home/me/nightly/big5/environment; "
        "exec /venv/bin/benchctl nightly run /suites/big5.yml) >>/home/me/nightly/big5/nightly.log 2>&1 "
        "|| [ $? -eq 3 ] || tail -n 20 /home/me/nightly/big5/nightly.log\n"
        "# benchctl nightly big5 end\n"
    )


def _as_cron_reads(line: str) -> str:
    """The command of a line: cron takes `%` for a line feed, and `\\%` for `%`."""
    command = line.split(None, 5)[5]
    assert "%" not in command.replace("\\%", "")
    return command.replace("\\%", "%")


def test_the_shell_reads_the_line_as_it_was_meant_whatever_is_in_paths(tmp_path: Path):
    folder = tmp_path / "100% of 'my' \"$HOME\"; touch it"
    folder.mkdir()
    program = folder / "bench ctl"
    program.write_text('#!/bin/sh\nprintf "<%s>\\n" "$@" "$WHERE" "$HOOK"\nexit 3\n')
    program.chmod(0o755)
    (folder / "environment").write_text("HOOK='https://a/?b=%20&c'\n")
    made = job(
        folder=folder,
        file=folder / "suite.yml",
        program=(str(program),),
        environment=(("PATH", "/usr/bin:/bin"), ("WHERE", str(folder))),
    )
    command = _as_cron_reads(block_of(made).splitlines()[1])
    ended = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, env={}, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    assert made.log.read_text().splitlines() == [
        "<nightly>",
        "<run>",
        f"<{folder / 'suite.yml'}>",
        f"<{folder}>",
        "<https://a/?b=%20&c>",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {folder.name}


def test_a_suite_without_secrets_needs_no_file_of_them(tmp_path: Path):
    program = tmp_path / "benchctl"
    program.write_text("#!/bin/sh\necho started\n")
    program.chmod(0o755)
    made = job(folder=tmp_path, program=(str(program),))
    command = _as_cron_reads(block_of(made).splitlines()[1])
    assert subprocess.run(["/bin/sh", "-c", command], env={}, check=False).returncode == 0
    assert made.log.read_text() == "started\n"


@pytest.mark.parametrize(
    ("status", "mailed"), [(0, False), (3, False), (1, True), (2, True), (127, True), (130, True)]
)
def test_cron_mails_the_end_of_the_log_of_a_night_that_failed(tmp_path: Path, status: int, *, mailed: bool):
    program = tmp_path / "benchctl"
    program.write_text(f"#!/bin/sh\nseq 100\nexit {status}\n")
    program.chmod(0o755)
    command = _as_cron_reads(block_of(job(folder=tmp_path, program=(str(program),))).splitlines()[1])
    ended = subprocess.run(["/bin/sh", "-c", command], env={}, capture_output=True, text=True, check=False)
    assert ended.stdout == ("".join(f"{number}\n" for number in range(81, 101)) if mailed else "")


@pytest.mark.parametrize("lacking", ["program", "folder"])
def test_cron_mails_why_benchctl_did_not_start(tmp_path: Path, lacking: str):
    made = job(folder=tmp_path / "gone" if lacking == "folder" else tmp_path)
    command = _as_cron_reads(block_of(made).splitlines()[1])
    ended = subprocess.run(["/bin/sh", "-c", command], env={}, capture_output=True, text=True, check=False)
    assert "/venv/bin/benchctl" in ended.stdout if lacking == "program" else "gone" in ended.stderr


def test_a_line_that_cron_would_cut_is_refused():
    with pytest.raises(UsageError, match="bytes long") as refused:
        block_of(job(environment=(("PATH", ":".join(f"/folder{number}" for number in range(100))),)))
    assert "PATH=/usr/bin:/bin" in refused.value.hint


def test_a_suite_is_put_into_a_crontab_that_was_not_there(cron: FakeCron):
    assert Crontab(cron.environ).install(job())
    assert cron.table.decode() == block_of(job())


def test_other_lines_stay_as_they_are_byte_by_byte(cron: FakeCron):
    cron.table = OTHERS
    table = Crontab(cron.environ)
    assert table.install(job())
    assert cron.table == OTHERS + block_of(job()).encode()
    assert table.install(job(when=Daily.parse("04:00")))
    assert cron.table == OTHERS + block_of(job(when=Daily.parse("04:00"))).encode()
    assert table.remove("big5")
    assert cron.table == OTHERS


def test_what_is_there_already_is_not_written_again(cron: FakeCron):
    table = Crontab(cron.environ)
    assert table.install(job())
    assert not table.install(job())
    assert cron.writes == 1
    assert not table.remove("another")
    assert cron.writes == 1


def test_a_last_line_that_does_not_end_stays_one_of_its_own(cron: FakeCron):
    cron.table = b"0 1 * * * poll"
    Crontab(cron.environ).install(job())
    assert cron.table == b"0 1 * * * poll\n" + block_of(job()).encode()


def test_suites_with_like_names_do_not_touch_each_other(cron: FakeCron):
    table = Crontab(cron.environ)
    for suite in ("big5", "big5-long", "big"):
        table.install(job(suite=suite))
    table.remove("big5")
    assert cron.table.decode() == block_of(job(suite="big5-long")) + block_of(job(suite="big"))


@pytest.mark.parametrize(
    "complaint",
    [
        "You (me) are not allowed to use this program (crontab)",
        "crontab: can't open 'me': Permission denied",
        "/var/spool/cron: Input/output error",
        "no crontab for me, or so it seems after some lines",
        "",
    ],
)
def test_a_crontab_that_cannot_be_read_is_not_written(cron: FakeCron, complaint: str):
    cron.table = OTHERS
    cron.is_broken(complaint)
    for change in (
        lambda: Crontab(cron.environ).install(job()),
        lambda: Crontab(cron.environ).remove("big5"),
    ):
        with pytest.raises(BenchctlError, match="cannot read the crontab"):
            change()
    assert cron.table == OTHERS
    assert cron.writes == 0


def test_busybox_says_otherwise_that_there_is_no_crontab(cron: FakeCron):
    cron.table = b""
    cron.is_broken("crontab: can't open 'me': No such file or directory")
    assert Crontab(cron.environ).read() == ""


def test_a_crontab_that_is_refused_is_told(cron: FakeCron):
    cron.refuses()
    with pytest.raises(BenchctlError, match="cannot write the crontab: bad minute"):
        Crontab(cron.environ).install(job())


def test_a_crontab_that_was_not_kept_is_told(cron: FakeCron):
    cron.forgets()
    with pytest.raises(BenchctlError, match="not what was written"):
        Crontab(cron.environ).install(job())


@pytest.mark.parametrize(
    "text",
    [
        "# benchctl nightly big5 begin\n0 3 * * * a\n",
        "0 3 * * * a\n# benchctl nightly big5 end\n",
        "# benchctl nightly big5 end\n# benchctl nightly big5 begin\n",
        block_of(job()) * 2,
    ],
)
def test_damaged_marks_are_left_to_their_owner(cron: FakeCron, text: str):
    cron.table = text.encode()
    with pytest.raises(BenchctlError, match="not once each"):
        Crontab(cron.environ).install(job())
    assert cron.table == text.encode()


def test_without_cron_it_says_what_else_there_is(tmp_path: Path):
    with pytest.raises(BenchctlError, match="cron is not installed") as refused:
        Crontab({"PATH": str(tmp_path)})
    assert "--kind systemd" in refused.value.hint


lines = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=20).filter(
    lambda line: "benchctl nightly" not in line
)


@given(before=st.lists(lines), after=st.lists(lines), end=st.sampled_from(["", "\n"]))
def test_putting_in_and_taking_out_leaves_every_other_line(before: list[str], after: list[str], end: str):
    text = "".join(f"{line}\n" for line in before)
    rest = "\n".join(after) + end
    block = block_of(job())
    whole = text + block + rest
    assert with_block(whole, "big5", block) == whole
    assert block_in(whole, "big5") == block
    assert with_block(whole, "big5", "") == text + rest
    appended = with_block(text + rest, "big5", block)
    assert appended.endswith(block)
    # A last line that did not end does now.
    assert with_block(appended, "big5", "").removesuffix("\n") == (text + rest).removesuffix("\n")

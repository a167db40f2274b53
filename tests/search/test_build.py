"""Commits and what is built of them: kept once made, bound in time, and nothing left of what fails."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import VariantSpec
from benchctl.search.build import Workshop
from benchctl.search.record import Source
from scripted_history import Step, git, write_history
from waiting import eventually

BUILD = "mkdir out && cp number out/engine.zip && date +%N >> out/engine.zip && echo made"
ES = VariantSpec("es", "elasticsearch", "8.11.0")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_history(tmp_path / "source", [Step("First"), Step("Second | `ticks`"), Step("Third")], "pass")
    return tmp_path / "source"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def workshop(
    home: Home, source: Path | str, build: str = BUILD, artifact: str = "out/*", timeout_s: float = 60
) -> Workshop:
    return Workshop(home, Source(str(source), build, artifact, timeout_s))


def built(
    home: Home, source: Path | str, ref: str = "HEAD", **changes: str | float
) -> tuple[list[str], list[str]]:
    """What a build made, as text, and the stages that it told."""
    shop, stages = workshop(home, source, **changes), []  # type: ignore[arg-type]
    made = shop.build(shop.repository.commit("--head", ref), stages.append)
    return [path.read_text() for path in made.files], stages


def leftovers(home: Home) -> list[str]:
    return [path.name for path in home.builds.glob(".*")]


def test_a_build_is_kept_by_commit_and_command(home: Home, source: Path):
    first, stages = built(home, source)
    assert first[0].startswith("2\n")
    assert [one.partition(" ")[0] for one in stages] == ["building"]
    assert built(home, source) == (first, [])
    assert built(home, source, "HEAD~1")[0][0].startswith("1\n")
    again, stages = built(home, source, build=f"{BUILD} ")
    assert again != first
    assert stages
    assert leftovers(home) == []
    assert git(source, "status", "--short") == ""
    assert built(home, f"file://{source}", "main")[0] == first


def test_what_is_built_is_an_archive_or_jars(home: Home, source: Path):
    shop = workshop(home, source)
    archive = shop.build(shop.repository.commit("--head", "HEAD"), lambda _: None).variant(ES, "head")
    assert (archive.name, Path(archive.distribution or "").name, archive.jars) == ("head", "engine.zip", ())
    shop = workshop(home, source, "touch b.jar a.jar", "*.jar")
    jars = shop.build(shop.repository.commit("--head", "HEAD"), lambda _: None).variant(ES, "head")
    assert [Path(one).name for one in jars.jars] == ["a.jar", "b.jar"]
    assert jars.distribution is None


@pytest.mark.parametrize(
    ("build", "found"),
    [
        ("true", "nothing"),
        ("mkdir out && touch out/a.zip out/b.zip", "out/a.zip, out/b.zip"),
        ("mkdir out && touch out/a.zip out/b.jar", "out/a.zip, out/b.jar"),
        ("mkdir out && touch out/notes.txt", "out/notes.txt"),
        ("mkdir out && ln -s /etc/passwd out/a.zip", "nothing"),
    ],
)
def test_a_pattern_that_does_not_name_one_thing_is_told(home: Home, source: Path, build: str, found: str):
    with pytest.raises(BenchctlError) as raised:
        built(home, source, build=build)
    assert raised.value.message.endswith(f": --artifact out/* finds {found}")
    assert leftovers(home) == []


def test_a_build_that_fails_in_silence_says_so(home: Home, source: Path):
    with pytest.raises(BenchctlError, match=r"exited with status 3 .*\n  it printed nothing$"):
        built(home, source, build="exit 3")


def test_a_build_that_fails_shows_its_last_lines_and_keeps_its_log(home: Home, source: Path):
    with pytest.raises(BenchctlError) as raised:
        built(home, source, build="seq 30; echo no such symbol >&2; exit 3")
    first, *rest = raised.value.message.splitlines()
    assert "does not build: seq 30; echo no such symbol >&2; exit 3 exited with status 3 (log: " in first
    assert [line.strip() for line in rest] == [*map(str, range(20, 31)), "no such symbol"]
    log = Path(first.partition("(log: ")[2].removesuffix(")"))
    assert log.read_text().splitlines()[0] == "1"
    assert leftovers(home) == []


def test_a_build_that_takes_too_long_is_ended(home: Home, source: Path):
    with pytest.raises(BenchctlError, match=r"was not built within 0 s"):
        built(home, source, build="echo $$ > /dev/stderr; sleep 1000", timeout_s=0.2)
    (log,) = home.logs.iterdir()
    assert not psutil.pid_exists(int(log.read_text()))
    assert leftovers(home) == []


def test_a_build_does_not_see_the_repository_that_benchctl_was_called_in(
    home: Home, source: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_DIR", str(source / "elsewhere"))
    made, _ = built(home, source, build="mkdir out && git rev-parse HEAD > out/engine.zip")
    assert made == [git(source, "rev-parse", "HEAD") + "\n"]


def test_ctrl_c_ends_all_that_a_build_started(home: Home, source: Path, tmp_path: Path):
    told = tmp_path / "pids"
    build = f"sleep 1000 & echo $! >> {told}; echo $$ >> {told}; sleep 1000"
    script = (
        "import sys; from pathlib import Path; from benchctl.home import Home\n"
        "from benchctl.search.build import Workshop; from benchctl.search.record import Source\n"
        "home = Home(Path(sys.argv[1]))\n"
        "shop = Workshop(home, Source(sys.argv[2], sys.argv[3], 'out/*', 600.0))\n"
        "shop.build(shop.repository.commit('--head', 'HEAD'), print)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, home.root, source, build], stderr=subprocess.DEVNULL
    ) as caller:
        assert eventually(lambda: told.is_file() and len(told.read_text().split()) == 2)
        caller.send_signal(signal.SIGINT)
        caller.wait(30)
    assert [pid for pid in told.read_text().split() if psutil.pid_exists(int(pid))] == []
    assert leftovers(home) == []


def test_a_shallow_clone_says_so_and_builds_what_it_has(home: Home, source: Path, tmp_path: Path):
    """As build servers have it: no branch, a detached merge that only a remote ref leads to."""
    git(tmp_path, "clone", "--quiet", "--depth", "2", f"file://{source}", "shallow")
    shallow = tmp_path / "shallow"
    git(shallow, "update-ref", "refs/remotes/pull/9/merge", "HEAD")
    git(shallow, "checkout", "--quiet", "--detach", "HEAD~1")
    git(shallow, "branch", "--quiet", "-D", "main")
    with pytest.raises(UsageError) as raised:
        workshop(home, shallow).repository.commit("--base", "HEAD~1")
    assert "the clone is shallow" in raised.value.hint
    assert built(home, shallow, "refs/remotes/pull/9/merge")[0][0].startswith("2\n")


@pytest.mark.parametrize("artifact", ["../*.zip", "/srv/*.zip", ""])
def test_a_pattern_outside_of_the_checkout_is_refused(home: Home, artifact: str):
    with pytest.raises(UsageError, match="is not a pattern within a checkout"):
        workshop(home, "nowhere", artifact=artifact)

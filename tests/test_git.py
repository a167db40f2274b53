"""Git repositories: found or copied, kept up to date, read and checked out, and nothing else executed."""

import os
from pathlib import Path

import pytest

from benchctl import git as module
from benchctl.errors import BenchctlError, UsageError
from benchctl.git import Repository, address_problem, repository_place
from benchctl.home import Home
from scripted_history import Step, git, write_history


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_history(tmp_path / "source", [Step("First"), Step("Second | `ticks`"), Step("Third")], "pass")
    return tmp_path / "source"


def commit_files(source: Path, files: dict[str, str], subject: str = "More") -> str:
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", subject)
    return git(source, "rev-parse", "HEAD")


def test_a_remote_repository_is_copied_once_and_brought_up_to_date(home: Home, source: Path):
    url = f"file://{source}"
    assert Repository(home, url, "--source").commit("--head", "main").subject == "Third"
    git(source, "commit", "--quiet", "--allow-empty", "-m", "Fourth")
    assert Repository(home, url, "--source").commit("--head", "main").subject == "Fourth"
    assert len([*home.repositories.iterdir()]) == 1


def test_without_a_network_the_copy_is_used_where_that_will_do(home: Home, source: Path):
    url = f"file://{source}"
    head = Repository(home, url, "--source").commit("--head", "main")
    source.rename(source.with_name("away"))
    with pytest.raises(BenchctlError, match="cannot fetch"):
        Repository(home, url, "--source")
    copy = Repository(home, url, "--source", stale=True)
    assert copy.commit("--head", "main") == head
    assert url in copy.outdated
    # A commit by its full hash is what it is: nothing has to be asked.
    assert Repository(home, url, "--source", revision=head.sha).outdated == ""
    with pytest.raises(BenchctlError, match="cannot fetch"):
        Repository(home, url, "--source", revision="0" * 40)


def test_a_copy_that_fails_leaves_nothing(home: Home):
    with pytest.raises(BenchctlError, match="cannot clone file:///nowhere"):
        Repository(home, "file:///nowhere", "--source", stale=True)
    assert list(home.repositories.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "https://joe:secret@example.org/a.git",
        "https://secret@example.org/a.git",
        "http://joe:secret@example.org/a.git",
        "ssh://git:secret@example.org/a.git",
        "joe:secret@example.org:a.git",
        "https://joe:sec/secret@example.org/a.git",
        "https://example.org/a.git?token=secret",
    ],
)
def test_a_url_with_a_secret_is_refused_without_a_word_of_it(home: Home, url: str):
    with pytest.raises(UsageError, match="holds a user or a password") as raised:
        Repository(home, url, "--source")
    assert "sec" not in str(raised.value)
    assert not home.root.exists()


@pytest.mark.parametrize("protocol", ["http", "git", "ext", "ftp"])
def test_other_protocols_are_refused(protocol: str):
    assert f"unsupported protocol '{protocol}'" in address_problem(f"{protocol}://example.org/a.git")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org:8443/a.git", "ssh://git@example.org:22/a.git", "git@example.org:a/b.git",
        "file:///srv/a@b.git", "https://[::1]/a.git",
    ],
)  # fmt: skip
def test_a_url_stays_as_it_is_and_a_path_becomes_absolute(url: str):
    assert address_problem(url) == ""
    assert repository_place(url, Path("/srv")) == url
    assert repository_place("a/b", Path("/srv")) == "/srv/a/b"


def test_nothing_else_is_executed_and_no_submodule_fetched(
    home: Home, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The user's hooks, and repositories within the repository, whatever the user's settings are."""
    inner = tmp_path / "inner"
    write_history(inner, [Step("Inner")], "pass")
    git(source, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    git(source, "commit", "--quiet", "-m", "With a submodule")
    hooks, witness = tmp_path / "hooks", tmp_path / "executed"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {witness}\n")
        (hooks / name).chmod(0o755)
    settings = tmp_path / "settings"
    settings.write_text(
        f'[core]\n hooksPath = {hooks}\n[submodule]\n recurse = true\n[protocol "ext"]\n allow = always\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    repository = Repository(home, f"file://{source}", "--source")
    tree = repository.checkout(repository.commit("--head", "main"), tmp_path)
    assert (tree / "number").is_file()
    assert list((tree / "inner").iterdir()) == []
    done = module.git(["fetch", f"ext::sh -c touch% {witness}"], tree)
    assert done.returncode != 0
    assert not witness.exists()


def test_the_last_change_of_a_part_is_found(home: Home, source: Path):
    first = commit_files(source, {"a/file": "a", "b/file": "b"})
    second = commit_files(source, {"b/file": "new"})
    for place in (str(source), f"file://{source}"):
        repository = Repository(home, place, "--source")
        head = repository.commit("--head", "main")
        assert head.sha == second
        assert repository.last_change(head, ["b"]).sha == first
        assert repository.last_change(head, []).sha == second


def test_branches_of_a_clone_are_its_own_and_those_of_its_origin(home: Home, source: Path, tmp_path: Path):
    git(source, "branch", "8")
    git(tmp_path, "clone", "--quiet", str(source), "clone")
    clone = Repository(home, str(tmp_path / "clone"), "--source")
    names = clone.refs("refs/heads", "refs/remotes/origin")
    assert names["8"] == "refs/remotes/origin/8"
    assert names["main"] == "refs/heads/main"


@pytest.mark.parametrize(
    ("bound", "most", "message"),
    [
        ("_TIMEOUT_S", 0, "did not end within"),
        ("_MOST_OUTPUT", 10, "prints more than"),
        ("_MOST_BYTES", 10, "is larger than"),
    ],
)
def test_what_is_too_much_is_ended(
    source: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, message: str
):
    """A git that would go on for ever, and its children, are gone."""
    program = source / "git"
    program.write_text("#!/bin/sh\necho 0123456789abcdef\necho $$ > pid\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{source}:{os.environ['PATH']}")
    monkeypatch.setattr(module, bound, most)
    with pytest.raises(BenchctlError, match=message):
        module.git(["clone"], source)
    assert not Path("/proc", (source / "pid").read_text().strip()).exists()


def test_no_git_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchctlError, match="git is not installed"):
        module.git(["--version"], tmp_path)


def test_what_is_no_commit_or_repository_is_told(home: Home, source: Path, tmp_path: Path):
    with pytest.raises(UsageError, match=r"--base nowhere is not a commit of .*source"):
        Repository(home, str(source), "--source").commit("--base", "nowhere")
    with pytest.raises(UsageError, match=r"--base -x is not a commit"):
        Repository(home, str(source), "--source").commit("--base", "-x")
    with pytest.raises(UsageError, match=r"--base \^main is not a commit"):
        Repository(home, str(source), "--source").commit("--base", "^main")
    (tmp_path / "plain").mkdir()
    with pytest.raises(UsageError, match=r"plain is not a git repository: not a git repository"):
        Repository(home, str(tmp_path / "plain"), "--source")
    with pytest.raises(BenchctlError, match=r"cannot clone file:///nowhere"):
        Repository(home, "file:///nowhere", "--source")


def test_a_repository_of_another_user_is_told_as_such(
    home: Home, source: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    with pytest.raises(UsageError, match="another user") as raised:
        Repository(home, str(source), "--source")
    assert f"safe.directory {source}" in raised.value.hint

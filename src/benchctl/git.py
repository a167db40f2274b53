"""Calls of the git that is installed; repositories: directories as they are, and copies of remote ones."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

import msgspec

from benchctl.disk import expanded, settle, size_bytes, staging
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home

_TIMEOUT_S: Final = 600
_POLL_S: Final = 0.5
_MOST_OUTPUT: Final = 64 * 2**20  # bytes; the names of a million files
_MOST_BYTES: Final = 8 * 2**30  # of a copy with its history: more than that of any engine
_SHORT: Final = 10
# A repository that a hook or a shell is in must not stand in for the one that is meant.
_OF_A_REPOSITORY: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
# Nothing is asked, nothing but git is executed, and no connection hangs.
_ALWAYS: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
}
_SETTINGS: Final = (
    "core.hooksPath=/dev/null", "submodule.recurse=false", "fetch.recurseSubmodules=false",
    "gc.autoDetach=false", "http.lowSpeedLimit=1000", "http.lowSpeedTime=60",
)  # fmt: skip
_PROTOCOLS: Final = ("https", "ssh", "file")
_URL: Final = re.compile(rf"({'|'.join(_PROTOCOLS)})://.+|[\w.-]+@[\w.-]+:.+")
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:]*)(:\d+)?")
_HASH: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def environment() -> dict[str, str]:
    """Return this process's environment, without what names a repository other than the folder's."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}


def git(arguments: Sequence[str], folder: Path, *, alone: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, to its end, whatever its status.

    It asks nothing, runs no hooks and speaks https, ssh and file only.

    Args:
        arguments: the command and its own.
        folder: where it runs, and what a clone or a fetch must not fill.
        alone: without the user's settings, and outside of any repository that the folder may lie in.

    Raises:
        BenchctlError: If there is no git, it takes too long, or there is too much of what it gets.
    """
    program = shutil.which("git")
    if program is None:
        raise BenchctlError("git is not installed", hint="install it")
    around = environment() | _ALWAYS | {"GIT_ALLOW_PROTOCOL": ":".join(_PROTOCOLS)}
    if alone:
        around |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
        }
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [program, *settings, *arguments],
            cwd=folder,
            env=around,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            # Without a terminal ssh asks nothing, and all that git starts can be ended with it.
            start_new_session=True,
        ) as process,
    ):
        try:
            _wait(process, arguments[0], folder, (output, errors))
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        texts = [_content(file) for file in (output, errors)]
        return subprocess.CompletedProcess(list(arguments), process.returncode, *texts)


def _wait(
    process: "subprocess.Popen[bytes]", command: str, folder: Path, outputs: Sequence[IO[bytes]]
) -> None:
    """Wait for the end of git, within bounds of time and size."""
    ends = time.monotonic() + _TIMEOUT_S
    grows = command in ("clone", "fetch")
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
        if any(os.fstat(file.fileno()).st_size > _MOST_OUTPUT for file in outputs):
            raise BenchctlError(f"git {command} prints more than {_MOST_OUTPUT >> 20} MiB in {folder}")
        if process.returncode is not None:
            return
        if time.monotonic() > ends:
            raise BenchctlError(f"git {command} did not end within {_TIMEOUT_S} s in {folder}")
        # Files come and go while they are counted.
        with suppress(OSError):
            if grows and size_bytes(folder) > _MOST_BYTES:
                raise BenchctlError(f"git {command}: the repository is larger than {_MOST_BYTES >> 30} GiB")


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def complaint(done: subprocess.CompletedProcess[bytes], most: int = 5) -> str:
    """Return the first lines of git's errors, without credentials of URLs."""
    lines = re.sub(r"://[^/@\s]+@", "://", done.stderr.decode(errors="replace")).splitlines()
    lines = [line for line in lines if line.strip()][:most]
    return "; ".join(line.removeprefix("error: ").removeprefix("fatal: ") for line in lines)


class Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A commit: its hash, and the first line of what it says."""

    sha: str
    subject: str

    @property
    def short(self) -> str:
        """Abbreviated hash."""
        return self.sha[:_SHORT]


def address_problem(text: str) -> str:
    """Return why a repository's URL is refused: credentials, or another protocol; empty if it is not."""
    scheme, separator, rest = text.partition("://")
    user, at, host = (rest if separator else text).partition("/")[0].rpartition("@")
    is_secret = ":" in user or (separator and at and scheme != "ssh") or (separator and "?" in text)
    if is_secret or (separator and not _HOST.fullmatch(host)):
        # No part of it is shown: where a password begins and ends is only a guess.
        return (
            "the URL holds a user or a password, which would be recorded (use a credential helper of git, "
            "~/.netrc or ssh)"
        )
    if separator and scheme not in _PROTOCOLS:
        return f"unsupported protocol '{scheme}' (expected {', '.join(_PROTOCOLS)})"
    return ""


def repository_place(text: str, folder: Path = Path()) -> str:
    """Return the URL of a repository as it is, or the absolute path of a directory."""
    return text if _URL.fullmatch(text) else str((folder / expanded(text)).absolute())


class Repository:
    """A git repository: a directory as it is, or a copy of a remote one, which is brought up to date."""

    def __init__(
        self, home: Home, text: str, option: str, *, revision: str = "", stale: bool = False
    ) -> None:
        """Find it.

        Args:
            home: that has the copies of remote ones.
            text: its path or URL.
            option: where it was given.
            revision: that is needed; nothing is fetched for the full hash of a commit that the copy has.
            stale: whether an earlier copy will do when there is no network; `outdated` has the reason.

        Raises:
            UsageError: If the path is no repository, or its URL is refused.
            BenchctlError: If the repository cannot be fetched, or there is no git.
        """
        if problem := address_problem(text):
            raise UsageError(f"{option}: {problem}")
        self.place = repository_place(text)
        self.text = text
        self.outdated = ""
        self.path = Path(self.place)
        if _URL.fullmatch(text):
            self.path = self._fetched(home, revision, stale=stale)
        done = git(["rev-parse", "--git-dir"], self.path) if self.path.is_dir() else None
        if done is None or done.returncode != 0:
            why = "" if done is None else f": {complaint(done, 1)}"
            if "dubious ownership" in why:
                raise UsageError(
                    f"{option} {text} belongs to another user, and git does not read it",
                    hint=f"clone it, or trust it: git config --global --add safe.directory {self.path}",
                )
            raise UsageError(
                f"{option} {text} is not a git repository{why}", hint="give a checkout, or its URL"
            )

    def _fetched(self, home: Home, revision: str, *, stale: bool) -> Path:
        text = self.text
        final = home.repositories / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.git"
        fetched = final / "fetched"
        if not final.is_dir():
            with staging(home.repositories, f"clone {text}") as folder:
                self._read(["clone", "--quiet", "--mirror", "--", text, "mirror"], folder, f"clone {text}")
                (folder / "mirror" / fetched.name).touch()
                settle(folder / "mirror", final)
        elif not (_HASH.fullmatch(revision) and self._has(final, revision)):
            try:
                self._read(["fetch", "--quiet", "--prune", "origin"], final, f"fetch {text}")
                fetched.touch()
            except BenchctlError as err:
                if not stale:
                    raise
                day = datetime.fromtimestamp(fetched.stat().st_mtime, UTC).date()
                self.outdated = f"{err.message}; its copy of {day} is used"
        return final

    @staticmethod
    def _has(folder: Path, revision: str) -> bool:
        return git(["cat-file", "-e", f"{revision}^{{commit}}"], folder).returncode == 0

    def commit(self, option: str, ref: str) -> Commit:
        """Resolve a branch, tag or hash; `option` is where it was given.

        Raises:
            UsageError: If it resolves to nothing.
        """
        done = git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"], self.path)
        sha = done.stdout.decode().strip()
        # Of `^main`, git prints the exclusion of a commit.
        if done.returncode != 0 or not _HASH.fullmatch(sha):
            hint = (
                f"see: git ls-remote {self.text}" if _URL.fullmatch(self.text) else "see: git log --oneline"
            )
            if self._read(["rev-parse", "--is-shallow-repository"]) == "true":
                hint = "the clone is shallow: git fetch --unshallow; in actions/checkout, fetch-depth: 0"
            raise UsageError(f"{option} {ref} is not a commit of {self.text}", hint=hint)
        return self._log(["-1", sha])[0]

    def refs(self, *kinds: str) -> dict[str, str]:
        """Return short -> full name of the refs of some kinds, such as `refs/heads`; the first kind wins."""
        names = {}
        for kind in reversed(kinds):
            for ref in self._read(["for-each-ref", "--format=%(refname)", kind]).split():
                names[ref.removeprefix(f"{kind}/")] = ref
        return names

    def files(self, commit: Commit) -> dict[str, int]:
        """Return path -> size in bytes of all files of a commit; those of submodules are not its own."""
        listed = self._read(["ls-tree", "-r", "-l", "-z", "--full-tree", commit.sha])
        sizes = {}
        for entry in listed.split("\0"):
            about, _, path = entry.partition("\t")
            if about.split()[1:2] == ["blob"]:
                sizes[path] = int(about.split()[3])
        return sizes

    def last_change(self, commit: Commit, without: Sequence[str]) -> Commit:
        """Return the newest commit up to one that changed a file outside of some directories."""
        excluded = [f":(top,exclude,literal){name}" for name in without]
        return self._log(["-1", commit.sha], [":/", *excluded])[0]

    def checkout(self, commit: Commit, folder: Path) -> Path:
        """Make a clone in a folder, which the repository knows nothing of, with the files of a commit.

        Args:
            commit: which one.
            folder: that gets it.

        Returns:
            The directory of the clone.

        Raises:
            BenchctlError: If git fails.
        """
        source, tree = self.path, folder / "tree"
        arguments = ["clone", "--quiet", "--shared", "--no-checkout", "--", str(source), "tree"]
        self._read(arguments, folder, f"clone {self.text}")
        # Of a shallow one, git copies what branches lead to, and a build server has none: share all objects.
        objects, shallow = (
            source / self._read(["rev-parse", "--git-path", name]) for name in ("objects", "shallow")
        )
        hidden = tree / ".git"
        (hidden / "objects" / "info" / "alternates").write_text(f"{objects.absolute()}\n")
        if shallow.is_file():
            shutil.copyfile(shallow, hidden / "shallow")
        self._read(["checkout", "--quiet", "--detach", commit.sha], tree, f"check {commit.short} out")
        return tree

    def _log(self, arguments: Sequence[str], paths: Sequence[str] = ()) -> list[Commit]:
        printed = self._read(["log", "--format=%H %s", *arguments, "--", *paths])
        return [
            Commit(sha, subject) for sha, _, subject in (line.partition(" ") for line in printed.splitlines())
        ]

    def _read(self, arguments: Sequence[str], folder: Path | None = None, doing: str = "") -> str:
        """Return git's output; `doing` completes "cannot ..." in messages."""
        done = git(arguments, folder or self.path)
        if done.returncode != 0:
            raise BenchctlError(f"cannot {doing or f'read {self.text}'}: {complaint(done, 2)}")
        return os.fsdecode(done.stdout).strip()

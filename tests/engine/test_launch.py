import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import (
    ClassArchive,
    Starts,
    UnlearnableError,
    _Places,
    _string,
    direct,
    ruled_out,
)
from benchctl.engine.process import Command, NodeProcess
from benchctl.engine.settings import BootFolders
from benchctl.errors import BenchctlError
from waiting import DEADLINE_S, eventually

SERVER = "org.elasticsearch.bootstrap.Elasticsearch"
# Parses options by a JVM, changes its folder, leaves a file in the configuration, and becomes the server.
PLAIN = """
echo asked >>"$ASKED"
options=$("$ES_JAVA_HOME/bin/java" -version)
cd /
printf key >"$ES_PATH_CONF/elasticsearch.keystore"
WORD=one exec "$ES_JAVA_HOME/bin/java" "$options" -Dlogs="$HOME/logs" -Ddata="$DATA" "two words" {server} \\
    <<<"word"
"""
# Stays, tells the server where its folders are, and ends it by a last byte once it has said that it is ready.
LAUNCHER = """
import os, signal, subprocess, sys
from pathlib import Path
home = os.environ["HOME"]
java = os.environ["ES_JAVA_HOME"] + "/bin/java"
def text(path):
    length, head = len(path), []
    while length > 127:
        head.append(length % 128 + 128)
        length //= 128
    return bytes([*head, length]) + path.encode()
server = subprocess.Popen([java, {server!r}], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
server.stdin.write(b"\\x01" + text(home + "/config") + b"\\x00" + text(os.environ["DATA"]) + b"end")
server.stdin.flush()
server.stderr.readline()
def end(*_):
    server.stdin.write(b"\\x1b")
    server.stdin.flush()
    os._exit(0)
signal.signal(signal.SIGTERM, end)
server.wait()
"""
JAVA = """#!/bin/bash
if [ "$1" = -version ]; then echo -Xparsed; else pwd; printf '%s\\n' "$@"; cat; fi
"""

Learn = Callable[..., Command]


@pytest.fixture
def learn(tmp_path: Path) -> Learn:
    """What a start in a folder of a name becomes, for an engine whose script is this text."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA)
    java.chmod(0o755)
    jdk = Jdk(tmp_path / "jdk", "21.0.8", "someone", 21, frozenset())
    installation = Installation("elasticsearch", "8.11.0", tmp_path / "distribution", "0" * 64, (), "9.8.0")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    starts = Starts(tmp_path, scratch)

    def begin(
        script: str,
        name: str,
        flags: str = "",
        *,
        archive: bool = False,
        archived: bool = True,
        archive_to: Path | None = None,
    ) -> Command:
        folders = BootFolders.create(tmp_path / name)
        folders.config.mkdir()
        (folders.config / "jvm.options").write_text(f"-Dlogs={folders.logs}\n{flags}")
        program = tmp_path / "elasticsearch"
        program.write_text(script.replace("{server}", SERVER).replace("{server!r}", repr(SERVER)))
        program.chmod(0o755)
        data = tmp_path / "data" / name
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folders.root),
            "ES_PATH_CONF": str(folders.config),
            "ES_JAVA_HOME": str(jdk.home),
            "DATA": str(data),
            "ASKED": str(tmp_path / "asked"),
        }
        command = Command((str(program),), env, folders.root, folders.stdout, folders.stderr)
        own = replace(starts, archived=archived)
        if archive:
            own.archive(installation, jdk).path.write_bytes(b"classes")
        return direct(command, own, folders, installation, jdk, data, archive_to=archive_to)

    return begin


def output(command: Command, last: bytes) -> bytes:
    """What a start prints until it ends with something; it ends itself unless its input stays open."""
    with NodeProcess(command, grace_s=5.0) as process:
        eventually(lambda: command.stdout.read_bytes().endswith(last))
        assert (process.wait(0.0 if command.stdin_open else DEADLINE_S) is None) == command.stdin_open
    return command.stdout.read_bytes()


def test_a_script_is_run_once_and_every_start_gets_its_own_folders(learn: Learn, tmp_path: Path):
    script = f"#!/bin/bash{PLAIN}"
    learn(script, "first")
    for name in ("second-and-longer", "3"):
        command = learn(script, name)
        data = tmp_path / "data" / name
        assert output(command, b"word\n").decode().splitlines() == [
            *(
                "/",
                "-Xparsed",
                f"-Dlogs={tmp_path / name}/logs",
                f"-Ddata={data}",
                "two words",
                SERVER,
                "word",
            )
        ]
        assert command.env["ES_JAVA_HOME"] == str(tmp_path / "jdk")
        assert command.env["WORD"] == "one"
        assert not {"_", "SHLVL", "BENCHCTL_LAUNCH"} & command.env.keys()
        assert (tmp_path / name / "config" / "elasticsearch.keystore").read_text() == "key"
        assert not list((tmp_path / name / "tmp").iterdir())
    assert (tmp_path / "asked").read_text() == "asked\n"
    # Another configuration may make it another start.
    learn(script, "4", flags="-XX:-Inline")
    assert (tmp_path / "asked").read_text() == "asked\n" * 2


def test_a_launcher_that_resolves_links_starts_the_server_by_the_link(learn: Learn, tmp_path: Path):
    real = tmp_path / "white space"
    real.mkdir()
    (tmp_path / "distribution").symlink_to(real)
    command = learn(running(f'--module-path="{real}/lib"'), "first")
    assert f"--module-path={tmp_path}/distribution/lib" in command.argv


def running(*flags: str) -> str:
    return f'#!/bin/bash\nexec "$ES_JAVA_HOME/bin/java" {" ".join(flags)} {SERVER}'


@pytest.mark.parametrize("use", [True, False])
def test_a_server_starts_with_the_archive_of_its_classes_if_the_run_does(learn: Learn, *, use: bool):
    arguments = learn(running(), "first", archive=True, archived=use).argv[1:]
    assert [argument.partition("=")[0] for argument in arguments] == [
        *(["-XX:SharedArchiveFile"] if use else []),
        SERVER,
    ]


@pytest.mark.parametrize(
    ("flag", "writes"),
    [("-ea", True), ("-javaagent:a.jar", False), ("--patch-module=java.base=b.jar", False)],
)
def test_where_a_runtime_would_write_no_archive_or_a_bad_one_none_is_asked_for(
    learn: Learn, tmp_path: Path, *, flag: str, writes: bool
):
    arguments = learn(running(flag), "first", archive_to=tmp_path / "classes.jsa").argv[1:]
    assert any(argument.startswith("-XX:ArchiveClassesAtExit=") for argument in arguments) == writes
    assert bool(ruled_out(arguments)) != writes


def test_what_a_launcher_tells_its_server_is_told_again_with_other_folders(learn: Learn, tmp_path: Path):
    script = f"#!{sys.executable}\n{LAUNCHER}"
    learn(script, "first")
    name = "second" + "d" * 150
    command = learn(script, name)
    root, data = tmp_path / name, tmp_path / "data" / name
    assert command.stdin == b"\x01" + _string(f"{root}/config") + b"\x00" + _string(str(data)) + b"end"
    assert command.stdin_open
    assert command.stdin in output(command, b"end")


def test_a_script_that_starts_no_server_stays_a_script_and_is_not_asked_again(learn: Learn, tmp_path: Path):
    script = '#!/bin/bash\necho asked >>"$ASKED"; echo no such thing >&2; exit 3'
    for name in ("first", "second"):
        with pytest.raises(UnlearnableError, match="no such thing"):
            learn(script, name)
    assert (tmp_path / "asked").read_text() == "asked\n"


# What whoever a script runs as may leave where benchctl looks next, which reads more than that user may.
LINKS = {
    "a key": 'ln -s "$SECRET" "$ES_PATH_CONF/elasticsearch.keystore"',
    "a pipe": 'mkfifo "$ES_PATH_CONF/elasticsearch.keystore"',
    "a note": 'ln -s "$SECRET" "$BENCHCTL_LAUNCH/cwd"',
}


@pytest.mark.parametrize("left", LINKS.values(), ids=LINKS)
def test_what_a_script_merely_points_to_is_not_read(learn: Learn, tmp_path: Path, left: str):
    (tmp_path / "secret").write_text("secret")
    leaves = left.replace("$SECRET", str(tmp_path / "secret"))
    with pytest.raises(UnlearnableError, match="that it wrote cannot be read"):
        learn(f'#!/bin/bash\n{leaves}\nexec "$ES_JAVA_HOME/bin/java" {SERVER}', "first")
    assert not list(tmp_path.glob("start-*"))


def test_a_launcher_that_fails_behind_the_start_has_told_nothing_for_good(learn: Learn):
    fails = f'#!/bin/bash\n"$ES_JAVA_HOME/bin/java" {SERVER}\necho lost my server >&2\nexit 1'
    with pytest.raises(UnlearnableError, match=r"or failed: .*lost my server"):
        learn(fails, "first")


def test_of_archives_only_what_a_node_itself_wrote_is_kept(tmp_path: Path):
    written, archive = tmp_path / "written", ClassArchive(tmp_path / "classes.jsa", 21)
    assert archive.refusal is None
    (tmp_path / "secret").write_text("secret")
    written.symlink_to(tmp_path / "secret")
    with pytest.raises(BenchctlError, match="symbolic links"):
        archive.keep(written, "it wrote none")
    assert archive.refusal is None
    written.unlink()
    archive.keep(written, "it wrote none")
    assert archive.refusal == "it wrote none"
    written.write_text("classes")
    archive.keep(written, "it wrote none")
    assert archive.path.read_text() == "classes"
    assert archive.refusal == ""


def test_an_archive_that_was_refused_is_tried_again_a_day_later(tmp_path: Path):
    archive = ClassArchive(tmp_path / "classes.jsa", 21)
    archive.refuse("its node wrote none of its classes")
    assert archive.refusal == "its node wrote none of its classes"
    yesterday = time.time() - 86_500
    os.utime(tmp_path / "classes.refused", (yesterday, yesterday))
    assert archive.refusal is None
    assert replace(archive, java=11).refusal == "Java 11 writes none"


def places(root: Path, data: Path) -> _Places:
    return _Places(BootFolders(root), data)


FOLDER = st.text("abc/", min_size=1, max_size=300).map(lambda text: Path(f"/x/{text}"))
CHUNK = st.binary(max_size=20).filter(lambda raw: b"/x/" not in raw)


@given(
    FOLDER, FOLDER, FOLDER, FOLDER, st.lists(st.tuples(CHUNK, st.sampled_from(["config", "logs", "data"])))
)
def test_every_path_that_is_told_is_exchanged_with_its_length(
    root: Path, other_root: Path, data: Path, other_data: Path, told: list[tuple[bytes, str]]
):
    first, second = places(root / "start", data / "data"), places(other_root / "start", other_data / "data")

    def whole(here: _Places) -> bytes:
        paths = {"config": here.folders.config, "logs": here.folders.logs, "data": here.data}
        return b"".join(chunk + _string(str(paths[name])) for chunk, name in told)

    assert second.fill_pieces(first.pieces(whole(first))) == whole(second)


def test_a_path_inside_something_else_is_refused():
    here = places(Path("/x/start"), Path("/x/data"))
    with pytest.raises(UnlearnableError, match="in a way that benchctl does not support"):
        here.pieces(_string("[/x/data, /more]"))

"""Where credentials may come from, what is refused, and that no refusal repeats them."""

import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchctl.cli.targets import read_auth, read_secret_file
from benchctl.endpoint import Auth
from benchctl.errors import UsageError

SPELL = "hunter2"
AWS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SPELL, "AWS_SESSION_TOKEN": "token"}


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def of_file(path: Path, environ: Mapping[str, str] | None = None) -> Auth | None:
    return read_auth("es", read_secret_file(path), str(path), environ or {})


@pytest.mark.parametrize(
    ("environ", "auth"),
    [
        ({}, None),
        ({"BENCHCTL_ES_USER": "", "BENCHCTL_OS_USER": "x"}, None),
        ({"BENCHCTL_ES_USER": "me", "BENCHCTL_ES_PASSWORD": SPELL}, Auth.basic("me", SPELL)),
        ({"BENCHCTL_ES_API_KEY": SPELL}, Auth.api_key(SPELL)),
        ({"BENCHCTL_ES_BEARER": SPELL}, Auth.bearer(SPELL)),
        (
            {
                "BENCHCTL_ES_ACCESS_KEY": "AKID",
                "BENCHCTL_ES_SECRET_KEY": SPELL,
                "BENCHCTL_ES_REGION": "eu-north-1",
            },
            Auth.aws("AKID", SPELL, "eu-north-1"),
        ),
        (
            # AWS's own variables are for targets that name a region, and for no other.
            {"BENCHCTL_ES_REGION": "eu-north-1", "BENCHCTL_ES_SERVICE": "aoss", **AWS},
            Auth.aws("AKID", SPELL, "eu-north-1", "aoss", "token"),
        ),
        (AWS, None),
        ({"BENCHCTL_ES_BEARER": "other", **AWS}, Auth.bearer("other")),
    ],
)
def test_the_environment_holds_one_kind_of_credentials(environ: dict[str, str], auth: Auth | None):
    assert read_auth("es", {}, "", environ) == auth


@pytest.mark.parametrize(
    "names",
    [
        ("USER",),
        ("PASSWORD",),
        ("API_KEY", "BEARER"),
        ("USER", "PASSWORD", "BEARER"),
        ("REGION",),
        ("ACCESS_KEY", "SECRET_KEY"),
        ("BEARER", "REGION"),
    ],
)
def test_halves_and_doubles_are_refused(names: tuple[str, ...]):
    with pytest.raises(UsageError, match="in the environment are") as caught:
        read_auth("es", {}, "", {f"BENCHCTL_ES_{name}": SPELL for name in names})
    assert SPELL not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "auth"),
    [
        ("user: me\npassword: 'hunter2'\n", Auth.basic("me", SPELL)),
        ("api-key: hunter2", Auth.api_key(SPELL)),
        ("{bearer: hunter2}", Auth.bearer(SPELL)),
        (
            "{access-key: AKID, secret-key: hunter2, region: eu-north-1}",
            Auth.aws("AKID", SPELL, "eu-north-1"),
        ),
    ],
)
def test_a_file_holds_them_as_well(tmp_path: Path, text: str, auth: Auth):
    assert of_file(write(tmp_path / "auth.yml", text)) == auth


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_file_that_others_can_open_is_refused_with_the_command_that_closes_it(tmp_path: Path, mode: int):
    path = write(tmp_path / "my auth.yml", "api-key: hunter2", mode)
    with pytest.raises(UsageError, match=f"mode {mode:o}") as caught:
        read_secret_file(path)
    assert caught.value.hint == f"chmod 600 '{path}'"


@pytest.mark.parametrize(
    "text",
    ["", "hunter2", "user: me", "passwd: hunter2", "api-key: [hunter2", "api-key: 12345", "- hunter2",
     "!!python/object/apply:os.system [hunter2]", "user: me\npassword: hunter2\nbearer: hunter2",
     "bearer: two hunter2"],
)  # fmt: skip
def test_other_content_is_refused_and_not_repeated(tmp_path: Path, text: str):
    path = write(tmp_path / "auth.yml", text)
    with pytest.raises(UsageError) as caught:
        of_file(path)
    assert SPELL not in "".join(traceback.format_exception(caught.value))


def test_what_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "auth.yml"
    path.write_bytes(b"\xff\xfe\xfa")
    path.chmod(0o600)
    with pytest.raises(UsageError):
        read_secret_file(path)


def test_a_missing_file_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="No such file"):
        of_file(tmp_path / "none.yml")


def test_a_file_beside_the_environment_is_refused(tmp_path: Path):
    path = write(tmp_path / "auth.yml", "api-key: hunter2")
    with pytest.raises(UsageError, match=r"given twice, in .* and in BENCHCTL_ES_BEARER") as caught:
        of_file(path, {"BENCHCTL_ES_BEARER": SPELL})
    assert SPELL not in str(caught.value)

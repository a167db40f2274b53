"""Variants get their versions, and are checked before anybody asks for those."""

from typing import Any

import msgspec
import pytest

from benchctl.engine.variant import LATEST
from benchctl.engine.variant_file import check_spec, with_newest
from benchctl.errors import UsageError
from benchctl.results.plan import EngineName
from builders import ES, OS


def test_each_engine_is_asked_about_once_and_only_where_its_newest_is_wanted():
    asked: list[EngineName] = []

    def newest(engine: EngineName) -> str:
        asked.append(engine)
        return "9.9.9"

    moving = msgspec.structs.replace(ES, name="es@latest", version=LATEST)
    again = msgspec.structs.replace(moving, name="again", jvm_flags=("-Xint",))
    found = with_newest((OS, moving, again), newest)
    assert found == (
        OS,
        msgspec.structs.replace(moving, version="9.9.9"),
        msgspec.structs.replace(again, version="9.9.9"),
    )
    assert asked == ["elasticsearch"]
    assert with_newest((), newest) == ()


def test_what_no_node_can_be_given_is_refused():
    assert check_spec(ES) is ES
    with pytest.raises(UsageError, match="benchctl's own"):
        check_spec(msgspec.structs.replace(ES, settings={"path.data": "/x"}))
    with pytest.raises(UsageError, match="not a JVM flag"):
        check_spec(msgspec.structs.replace(ES, jvm_flags=("Xint",)))
    with pytest.raises(UsageError, match="seems to hold a secret"):
        check_spec(msgspec.structs.replace(ES, environment={"MY_PASSWORD": "x"}))


@pytest.mark.parametrize(
    "change", [{"distribution": "https://me:pw@h/es.zip"}, {"plugins": ("http://me@h/x.zip",)}]
)
def test_a_url_with_a_user_in_it_is_refused_and_not_repeated(change: dict[str, Any]):
    with pytest.raises(UsageError, match=r"the URL of h/.* holds a user or a password") as caught:
        check_spec(msgspec.structs.replace(ES, **change))
    assert "me" not in caught.value.message

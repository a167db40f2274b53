"""Variants get their versions, and are checked before anybody asks for those."""

import msgspec
import pytest

from benchctl.engine.newest import check_spec, with_newest
from benchctl.engine.variant import LATEST
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

"""What the generator is asked about a run's answers, and when it is not."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.corpus.generated.generator import GENERATOR_VERSION
from benchctl.engine.answers.answers import AnswerBook
from benchctl.home import Home
from benchctl.results.plan import CorpusSpec, Plan
from benchctl.run.observer import SilentObserver
from benchctl.run.plan import PlanOptions, operations_used, plan_run
from benchctl.run.prepare import _generators_book
from benchctl.track.model import Index, IndexBody, Track
from builders import ES, OS

CORPUS = CorpusSpec(seed=1, documents=2000, generator_version=GENERATOR_VERSION, digest="ab" * 32)


class Stages(SilentObserver):
    """Keeps the stages that it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def stage(self, text: str) -> None:
        self.told.append(text)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "corpora").mkdir(exist_ok=True)
    return Home(tmp_path)


def planned() -> tuple[Plan, Track]:
    return plan_run(
        PlanOptions(
            variants=(ES, OS),
            challenges=("range-only",),
            warmup_challenges=(),
            restart="challenge",
            forks=1,
            seed=1,
            heap_mb=512,
            track="big5",
            corpus=CORPUS,
            segments=1,
            params={},
        )
    )


def known(home: Home, observer: Stages, **changes: Any) -> AnswerBook | None:
    plan, track = planned()
    plan = msgspec.structs.replace(plan, **changes)
    return _generators_book(operations_used(plan, track), plan, track, home, observer)


def test_the_generator_is_asked_once(home: Home):
    observer = Stages()
    (operation,) = operations_used(*planned())
    for _ in range(2):
        book = known(home, observer)
        assert book is not None
        answer = book.get(operation)
        assert answer is not None
        assert answer.total == pytest.approx(552, abs=2)
    assert len(observer.told) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"corpus": msgspec.structs.replace(CORPUS, generator_version=GENERATOR_VERSION + 1)},
        {"corpus": msgspec.structs.replace(CORPUS, generator_version=0)},
        {"track": "/somewhere/else"},
    ],
)
def test_of_other_documents_and_other_tracks_the_generator_knows_nothing(home: Home, changes: dict[str, Any]):
    assert known(home, Stages(), **changes) is None


def test_over_several_shards_the_generator_is_not_asked(home: Home):
    plan, track = planned()
    body = IndexBody({**track.index_body.settings, "index.number_of_shards": 2}, track.index_body.mappings)
    track = msgspec.structs.replace(track, indices=(Index(track.index_name, body),))
    assert _generators_book(operations_used(plan, track), plan, track, home, Stages()) is None

"""Answers of nights: kept with the night, held against the last, and against those before an alarm."""

import contextlib
from collections.abc import Iterable, Sequence

from benchctl.errors import BenchctlError
from benchctl.nightly.answers.compare import changed, comparable, noted, recalled
from benchctl.nightly.baseline import number_of
from benchctl.results.answers import VariantAnswers
from benchctl.results.nightly.events import Alarm, Recovered
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.nightly.model import AnswerChange, NightRecord
from benchctl.results.store import RunFolder


def keep_answers(folder: SuiteFolder, night: NightRecord, run: RunFolder) -> None:
    """Copy what the night's run was answered: a run may be deleted, a night is kept for ever.

    Raises:
        BenchctlError: the disk is full or cannot be written, or the answers cannot be read.
    """
    found = {one.label: run.read_answers(one.label) for one in night.variants}
    kept = {label: noted(answers) for label, answers in found.items() if answers is not None}
    if kept:
        folder.write_answers(night.id, kept)


def answer_changes(
    folder: SuiteFolder, nights: Iterable[NightRecord], tonight: NightRecord
) -> tuple[AnswerChange, ...]:
    """What is answered otherwise than in the newest earlier night that asked the same of the same documents.

    Args:
        folder: of the suite.
        nights: of it.
        tonight: whose answers are kept already.
    """
    now = _answers(folder, tonight.id)
    earlier = sorted(
        (
            night
            for night in nights
            if night.status == "done" and night.era == tonight.era and night.number < tonight.number
        ),
        key=lambda night: night.number,
        reverse=True,
    )
    found: list[AnswerChange] = []
    for label, answers in now.items():
        for night in earlier:
            before = _answers(folder, night.id).get(label)
            if before is not None:
                found += changed(before, answers, night.id)
                break
    return tuple(found)


def answers_recovered(
    folder: SuiteFolder, tonight: NightRecord, alarms: Sequence[Alarm], now: str
) -> list[Recovered]:
    """Alarms about answers that are what they were before.

    Args:
        folder: of the suite.
        tonight: whose answers are kept already.
        alarms: as they stand.
        now: the wall clock, ISO 8601.
    """
    answers = _answers(folder, tonight.id)
    found = []
    for alarm in alarms:
        raised = alarm.raised
        if raised.kind != "answer" or alarm.recovered is not None or raised.key.variant not in answers:
            continue
        before = _answers(folder, raised.last_good).get(raised.key.variant)
        if before is None:
            continue
        about = set(raised.operations)
        now_answered = answers[raised.key.variant]
        still = changed(before, now_answered, raised.last_good)
        if about <= comparable(before, now_answered) and not any(one.operation in about for one in still):
            text = f"answered as in night {number_of(raised.last_good)} again"
            found.append(Recovered(raised.alarm, now, tonight.id, text))
    return found


def _answers(folder: SuiteFolder, night: str) -> dict[str, VariantAnswers]:
    """Label -> its answers of a night; empty where none are kept, or in a form of another version."""
    found = {}
    # What another version of benchctl kept, or a damaged file, is as good as never asked.
    with contextlib.suppress(BenchctlError):
        for label, answers in ((folder.answers(night) if night else None) or {}).items():
            with contextlib.suppress(BenchctlError):
                found[label] = recalled(label, answers)
    return found

"""Several runs as one: block after block, whatever fails in one of them, until the policy ends it."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from benchctl.errors import BenchctlError, ExitCode
from benchctl.results.model import BootRecord
from benchctl.run.bench import Observer
from benchctl.run.study import Hopeless, LeftOf, OpenRun, Study, ending, stand_in_caveats
from builders import make_fork


class Made:
    """A run of which only the order of its forks matters."""

    def __init__(
        self,
        name: str,
        variants: str,
        blocks: int,
        log: list[Any],
        fails: str = "",
        *,
        extra: int = 0,
        together: str = "",
    ) -> None:
        self.name, self.log, self.fails, self.together = name, log, fails, together
        self.left = [(block, variant) for block in range(blocks + extra) for variant in variants]
        self.whole, self.extra = len(self.left), extra * len(variants)
        plan = SimpleNamespace(is_extra=lambda block: block >= blocks, stop=None)
        self.record = SimpleNamespace(
            id=name,
            total=self.whole,
            plan=plan,
            block_numbers=range(blocks + extra),
        )
        self.timings: dict[str, float] = {}
        self.ended: list[str] = []
        self.reasons: list[str] = []
        self.expected: list[float | None] = []

    def seconds(self, variant: str = "") -> list[float]:
        """A fork takes a second."""
        return [1.0 for entry in forks(self.log) if entry[1] == self.name and variant in ("", entry[2])]

    def end_early(self, reason: str) -> None:
        self.reasons.append(reason)
        done = sum(entry[1] == self.name for entry in forks(self.log))
        self.record.total = done + self.extra

    def going(self) -> Any:
        made = self

        class Held:
            def __enter__(self) -> None:
                made.log.append((made.name, "held"))

            def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
                made.ended.append("well" if kind is None else kind.__name__)
                assert made.timings["forks-s"] >= 0

        return Held()

    def ask(self) -> None:
        self.log.append((self.name, "asked"))

    def jobs(self, _number: int = 0) -> list[Any]:
        return [
            SimpleNamespace(block=block, subject=SimpleNamespace(spec=SimpleNamespace(name=variant)))
            for block, variant in self.left
        ]

    def company(self, job: Any) -> object:
        return job.subject.spec.name in self.together or job.subject.spec.name

    def fork(self, jobs: list[Any], number: int, total: int, left_s: LeftOf) -> dict[str, Hopeless]:
        self.expected.append(left_s([job.subject.spec.name for job in jobs]))
        variants = "".join(job.subject.spec.name for job in jobs)
        self.log.append((jobs[0].block, self.name, variants, number, total))
        if variants == "!":
            raise KeyboardInterrupt
        return {variant: Hopeless("it failed twice") for variant in variants if variant == self.fails}


def go(runs: list[Made], enough: Any = lambda: "", **options: Any) -> str:
    study = Study(cast("list[OpenRun]", runs), Observer(), seed=7, ends=lambda *_: enough(), **options)
    return study.measure()


def forks(log: list[Any]) -> list[Any]:
    return [entry[:3] for entry in log if len(entry) > 2]


def test_all_are_asked_before_a_fork_and_blocks_come_one_after_the_other() -> None:
    log: list[Any] = []
    runs = [Made("a", "xy", 4, log), Made("b", "z", 4, log)]
    assert go(runs) == ""
    assert log[:4] == [("a", "held"), ("b", "held"), ("a", "asked"), ("b", "asked")]
    found = forks(log)
    assert [block for block, *_ in found] == [block for block in range(4) for _ in range(3)]
    assert len({tuple(found[3 * block + place][1:] for place in range(3)) for block in range(4)}) > 1
    assert [entry[3:] for entry in log[4:]] == [(number, 12) for number in range(1, 13)]
    assert [run.ended for run in runs] == [["well"], ["well"]]


def test_what_is_missing_keeps_the_order_that_it_had() -> None:
    whole: list[Any] = []
    go([Made("a", "xyz", 2, whole), Made("b", "xyz", 2, whole)])
    rest: list[Any] = []
    second = Made("b", "xyz", 2, rest)
    second.left.remove((0, "y"))
    go([Made("a", "xyz", 2, rest), second])
    assert forks(rest) == [entry for entry in forks(whole) if entry != (0, "b", "y")]


def test_runs_keep_their_order_by_their_numbers_when_others_are_whole() -> None:
    every: list[Any] = []
    go([Made("a", "xyz", 4, every), Made("b", "xyz", 4, every), Made("c", "xyz", 4, every)])
    rest: list[Any] = []
    go([Made("a", "xyz", 4, rest), Made("c", "xyz", 4, rest)], numbers=[0, 2])
    assert forks(rest) == [entry for entry in forks(every) if entry[1] != "b"]


def test_a_variant_that_fails_again_and_again_is_given_up_and_the_others_go_on() -> None:
    log: list[Any] = []
    assert "given up" in go([Made("a", "xy", 3, log, fails="y"), Made("b", "y", 3, log)])
    assert forks(log).count((0, "a", "y")) == 1
    assert [entry for entry in forks(log) if entry[1:] == ("a", "y")] == [(0, "a", "y")]
    assert sum(entry[1:] == ("b", "y") for entry in forks(log)) == 3


def test_forks_of_a_variant_that_was_given_up_are_no_time_to_come() -> None:
    run = Made("a", "xy", 4, [], fails="y")
    go([run])
    places = [place for place, (_, _, variant) in enumerate(forks(run.log)) if variant == "x"]
    # After the first block, only what the other variant is missing.
    assert [run.expected[place] for place in places[1:]] == [3.0, 2.0, 1.0]


def test_a_block_that_does_not_fit_is_not_begun_but_the_first_is() -> None:
    log: list[Any] = []
    assert "time budget was used up" in go([Made("a", "xy", 3, log)], left_s=lambda: -1.0)
    assert [block for block, *_ in forks(log)] == [0, 0]


def test_an_interruption_ends_all_of_them() -> None:
    runs = [Made("a", "x", 1, []), Made("b", "!", 1, [])]
    with pytest.raises(KeyboardInterrupt):
        go(runs)
    assert [run.ended for run in runs] == [["KeyboardInterrupt"], ["KeyboardInterrupt"]]


@pytest.mark.parametrize(
    ("error", "kept", "code", "hint"),
    [
        (KeyboardInterrupt(), ("interrupted", "it was interrupted"), 130, "resume with: benchctl resume r"),
        (BenchctlError("x", exit_code=ExitCode.INTERRUPTED), ("interrupted", "it was interrupted"), 130,
         "resume with: benchctl resume r"),
        (BenchctlError("full", hint="free it"), ("failed", "full"), 1, "free it; then: benchctl resume r"),
        (BenchctlError("no", hint="then: benchctl resume r"), ("failed", "no"), 1, "then: benchctl resume r"),
    ],
)  # fmt: skip
def test_what_ends_a_measurement_is_kept_and_says_how_to_go_on(
    error: BaseException, kept: tuple[str, str], code: int, hint: str
) -> None:
    ends: list[tuple[str, str]] = []
    with (
        pytest.raises(BenchctlError) as caught,
        ending(lambda *end: ends.append(end), lambda: "2 of 4 are kept", "benchctl resume r"),
    ):
        raise error
    assert (ends, caught.value.exit_code, caught.value.hint) == ([kept], code, hint)


def test_a_bug_leaves_nothing_that_looks_as_if_it_went_on() -> None:
    ends: list[tuple[str, str]] = []
    with pytest.raises(ZeroDivisionError), ending(lambda *end: ends.append(end), str, "benchctl resume r"):
        _ = 1 / 0
    assert ends == [("failed", "")]


def test_nothing_missing_is_nothing_to_do() -> None:
    assert go([Made("a", "", 3, [])]) == ""


def test_blocks_end_when_it_is_enough_and_every_run_keeps_the_reason() -> None:
    log: list[Any] = []
    runs = [Made("a", "x", 5, log), Made("b", "x", 5, log)]
    assert go(runs, enough=lambda: "it is known" if len(forks(log)) >= 4 else "") == "it is known"
    assert [block for block, *_ in forks(log)] == [0, 0, 1, 1]
    assert [run.reasons for run in runs] == [["it is known"], ["it is known"]]
    assert [run.ended for run in runs] == [["well"], ["well"]]


def test_what_is_known_before_the_first_block_needs_none() -> None:
    log: list[Any] = []
    assert go([Made("a", "x", 2, log)], enough=lambda: "it was known") == "it was known"
    assert forks(log) == []


def test_forks_for_evidence_are_run_although_the_time_is_up() -> None:
    log: list[Any] = []
    runs = [Made("a", "x", 3, log), Made("b", "x", 3, log, extra=1), Made("c", "x", 1, log, extra=2)]
    assert "time budget was used up after 1 block" in go(runs, left_s=lambda: -1.0)
    assert sorted(forks(log)) == [
        (0, "a", "x"), (0, "b", "x"), (0, "c", "x"), (1, "c", "x"), (2, "c", "x"), (3, "b", "x"),
    ]  # fmt: skip
    assert log[-1][3:] == (6, 6)


def test_a_block_that_leaves_no_room_for_the_evidence_behind_it_is_not_begun() -> None:
    def blocks(extra: int) -> list[int]:
        log: list[Any] = []
        go([Made("a", "xy", 3, log, extra=extra)], left_s=lambda: 7.0 - len(forks(log)))
        return [entry[0] for entry in forks(log)]

    assert blocks(0) == [0, 0, 1, 1, 2, 2]
    assert blocks(1) == [0, 0, 1, 1, 3, 3]


def test_forks_for_evidence_are_run_although_it_is_enough() -> None:
    log: list[Any] = []
    runs = [Made("a", "x", 5, log), Made("b", "x", 5, log, extra=1)]
    assert go(runs, enough=lambda: "it is known" if len(forks(log)) >= 4 else "") == "it is known"
    assert [entry[:2] for entry in forks(log)][4:] == [(5, "b")]
    assert [run.reasons for run in runs] == [["it is known"], ["it is known"]]


def test_what_only_misses_evidence_is_never_too_late() -> None:
    log: list[Any] = []
    run = Made("a", "x", 0, log, extra=2)
    assert go([run], left_s=lambda: -1.0) == ""
    assert [block for block, *_ in forks(log)] == [0, 1]


def test_what_stood_in_for_a_data_stream_is_said_once_a_variant() -> None:
    boot = BootRecord((0,), 1.0, 0.1, 0.1, 0, 0, (), "boots/x")
    one, two = (msgspec.structs.replace(boot, stand_ins=names) for names in (("a",), ("b", "a")))
    assert stand_in_caveats(make_fork("os", 0, boots=(boot,))) == ()
    (text,) = stand_in_caveats(make_fork("es", 0, boots=(one, two)))
    assert text.endswith("plain indices replace a, b")

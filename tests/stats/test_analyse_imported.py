import msgspec

from benchctl.results.figures import Quantiles
from benchctl.results.model import Imported, RunRecord
from benchctl.stats.analyse import analyse_run, with_imports
from benchctl.stats.analysis import Analysis
from builders import make_fork, make_record, make_summary

RALLY = Imported("rally", "2.9.1", ("a", "b"))
OSB = Imported("opensearch-benchmark", "", ("c",))


def record(**changes: object) -> RunRecord:
    forks = tuple(
        make_fork(name, block, make_summary("range", ms + block / 10, **changes))
        for block in range(4)
        for name, ms in (("es", 10.0), ("os", 12.0))
    )
    return make_record("r", forks=forks)


def texts(analysis: Analysis, code: str) -> list[str]:
    return [doubt.text for doubt in analysis.caveats if doubt.code == code]


def test_results_of_our_own_stay_as_they_are():
    found = analyse_run(record())
    assert with_imports(found, {"es": None, "os": None}) == found


def test_imported_results_say_so_first():
    found = analyse_run(msgspec.structs.replace(record(), imported=RALLY))
    assert found.caveats[0].code == "imported"
    assert "es and os by Rally 2.9.1" in found.caveats[0].text
    assert texts(found, "one-index-build") == []


def test_beside_our_own_both_doubts_stand():
    found = with_imports(analyse_run(record()), {"es": None, "os": OSB})
    assert len(texts(found, "imported")) == 1
    assert "os by OpenSearch Benchmark. Throughput" in texts(found, "imported")[0]
    assert texts(found, "one-index-build")


def test_two_imports_may_come_from_two_hosts():
    found = with_imports(analyse_run(record()), {"es": RALLY, "os": OSB})
    assert "es by Rally 2.9.1, os by OpenSearch Benchmark. " in texts(found, "imported")[0]
    assert texts(found, "imported")[1] == "no record shows that they were measured on the same host"


def test_latency_alone_tells_that_a_task_was_throttled():
    latency = Quantiles(14e6, 20e6, 30e6)
    found = analyse_run(record(latency=latency))
    throughput, _, last = found.rows
    assert last.metric == "latency_p90"
    assert [figures.value for figures in last.figures] != [None, None]
    assert throughput.comparisons[0].verdict == "n/a"
    assert [doubt.text for doubt in throughput.caveats if doubt.code == "offered-rate"] == [
        (
            "taken to be throttled, because its latency is not its service time: this is the offered rate, "
            "judge its latency instead"
        )
    ]
    assert [row.metric for row in analyse_run(record()).rows] == ["throughput", "service_time_p90"]

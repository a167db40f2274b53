"""The shipped experiments can be run as they are, and the blog's figures in them are the blog's."""

import pytest

from benchctl.experiment.file import (
    Changes,
    Experiment,
    ExperimentFile,
    experiment_names,
    find_experiment,
    load_experiment,
)
from benchctl.home import Home
from benchctl.yaml_file import read_typed
from report.published import BLOG_MS, BLOG_QPS, Line

# What each table of the blog is called here; the figures of one stand as well in the one that repeats them.
TABLES = {
    "big5": "big5",
    "big5-range": "big5, range",
    "range-only": "range alone",
    "big5rangedebug": "big5rangedebug",
    "range-only-short": "range in, after and without big5rangedebug",
    "no-inlining": "big5rangedebug without inlining",
    "range-no-inlining": "range with and without inlining",
    "big5rangedebug-histo-size-1": "big5rangedebug-histo-size-1",
    "big5-warmed": "big5 after big5rangedebug-histo-size-1",
}
SHIPPED = (
    "docvalues",
    "histories",
    "jvm-inlining",
    "jvm-inlining-40m",
    "lucene-visit",
    "phase-report",
    "published",
    "vectors",
)
# They are compiled when they are planned: tests/integration/test_experiment.py does.
MICRO = ("circuit-breaker", "visit")

# Microseconds, on 12 CPUs, by aggregations and breaker: none, the real one, preallocation.
BREAKER_US = {
    "sum": (1.672, 4.100, 4.230),
    "terms, sum": (4.573, 9.932, 7.695),
    "terms, 60 sums": (92.658, 278.764, 120.896),
}

# The core distributions lack these.
UNSUPPORTED = {"multi_terms-keyword", "range-auto-date-histo", "range-auto-date-histo-with-metrics"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def inlining(home: Home) -> Experiment:
    return load_experiment(find_experiment("jvm-inlining"), Changes(), home)


def test_they_are_all_known():
    assert experiment_names() == tuple(sorted((*SHIPPED, *MICRO)))


def test_published_figures_of_the_breaker_are_its_commits():
    tables = read_typed(find_experiment("circuit-breaker"), ExperimentFile).value.tables
    published = {
        (row.label, table.baseline): row.published for table in tables for row in table.rows if row.published
    }
    expected = {}
    for label, (noop, real, preallocated) in BREAKER_US.items():
        expected[label, "noop"] = (1000 * noop, 1000 * real)
        expected[label, "real"] = (1000 * real, 1000 * preallocated)
    assert published == {name: pytest.approx(pair) for name, pair in expected.items()}


@pytest.mark.parametrize("name", SHIPPED)
def test_they_can_be_run_as_they_are(name: str, home: Home):
    experiment = load_experiment(find_experiment(name), Changes(), home)
    assert experiment.spec.expectations


@pytest.mark.parametrize(("blog", "title"), TABLES.items())
def test_published_figures_are_the_blogs(inlining: Experiment, blog: str, title: str):
    (table,) = (table for table in inlining.spec.tables if table.title == title)
    lines: tuple[Line, ...] = (BLOG_MS | BLOG_QPS)[blog]
    assert [row.label for row in table.rows] == [line.operation for line in lines]
    assert [row.published for row in table.rows] == [(line.es, line.os) for line in lines]
    metric = "service_time_p90" if blog in BLOG_MS else "throughput"
    assert {row.metric for row in table.rows} == {metric}


def test_a_lucene_with_a_change_has_its_control_which_has_to_be_alike(inlining: Experiment):
    """Compiling the class anew may change its speed by itself: that is not the change's doing."""
    variants = {spec.name: spec.jars for spec in inlining.plans["size-1"].plan.variants}
    assert variants["es-recompiled"] == ("patched:recompiled:bulk-visit",)
    rows = {row.name: row for row in inlining.spec.comparisons}
    patched, control = rows["patched-es"], rows["recompiled-es"]
    assert (patched.baseline, patched.metric) == (control.baseline, control.metric)
    assert control.contender == "size-1/es-recompiled/range"
    (expected,) = (one for one in inlining.spec.expectations if "recompiled-es" in one.comparisons)
    assert (expected.is_, expected.margin, expected.comparisons) == ("alike", "15%", ("recompiled-es",))


def test_the_cause_is_looked_up_where_the_blog_found_it(inlining: Experiment):
    plans = {name: planned.plan for name, planned in inlining.plans.items()}
    for site in inlining.spec.call_sites:
        plan = plans[site.measurement]
        assert (site.method, site.callee) == ("DocIdsWriter::readInts24", "visit")
        assert [plan.evidence_in(block) for block in range(plan.forks)] == [("inlining",)] * 4
    for logged, plain in (("jit", "debug"), ("jit-size-1", "size-1")):
        assert plans[logged].schedules[0] == plans[plain].schedules[0]
    fates = {
        (one.fate.call_site, one.fate.variant): one.fate.is_
        for one in inlining.spec.expectations
        if one.fate is not None
    }
    assert fates == {
        ("visit", "es"): "inlined",
        ("visit", "os"): "virtual",
        ("visit-size-1", "es"): "virtual",
    }
    compared = {ref.measurement for row in inlining.spec.comparisons for ref in row.refs}
    assert not compared & {"jit", "jit-size-1"}

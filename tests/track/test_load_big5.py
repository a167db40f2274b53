"""The shipped track is the whole of big5."""

import hashlib

import msgspec

from benchctl.track.load import load_challenge, load_track

TRACK, _ = load_track("big5", {})
SCHEDULE = [
    "default", "desc_sort_timestamp", "asc_sort_timestamp", "desc_sort_with_after_timestamp",
    "asc_sort_with_after_timestamp", "desc_sort_timestamp_can_match_shortcut",
    "desc_sort_timestamp_no_can_match_shortcut", "asc_sort_timestamp_can_match_shortcut",
    "asc_sort_timestamp_no_can_match_shortcut", "term", "multi_terms-keyword", "keyword-terms",
    "keyword-terms-low-cardinality", "composite-terms", "composite_terms-keyword",
    "composite-date_histogram-daily", "range", "range-numeric", "keyword-in-range",
    "date_histogram_hourly_agg", "date_histogram_minute_agg", "scroll", "query-string-on-message",
    "query-string-on-message-filtered", "query-string-on-message-filtered-sorted-num",
    "sort_keyword_can_match_shortcut", "sort_keyword_no_can_match_shortcut", "sort_numeric_desc",
    "sort_numeric_asc", "sort_numeric_desc_with_match", "sort_numeric_asc_with_match",
    "range_field_conjunction_big_range_big_term_query",
    "range_field_disjunction_big_range_small_term_query",
    "range_field_conjunction_small_range_small_term_query",
    "range_field_conjunction_small_range_big_term_query", "range-auto-date-histo",
    "range-auto-date-histo-with-metrics",
]  # fmt: skip
# In the track, but in nobody's schedule.
FURTHER = ["terms-significant-1", "terms-significant-2", "composite-date_histogram-daily-size-1"]


def test_the_track_has_all_operations_and_no_other():
    assert len(SCHEDULE) == 37
    assert set(TRACK.operations) == {*SCHEDULE, *FURTHER}


def test_operations_change_no_prepared_index():
    """If this changes, every index that was ever prepared is built again."""
    body = msgspec.json.encode([TRACK.indices[0].name, TRACK.indices[0].body], order="sorted")
    assert hashlib.sha256(body).hexdigest()[:16] == "2c185878e3f72073"


def test_the_big5_challenge_is_the_schedule_in_its_order():
    challenge, _ = load_challenge("big5", TRACK, {})
    assert [task.operation for task in challenge.schedule] == SCHEDULE
    found = {(one.warmup_iterations, one.iterations, one.target_throughput) for one in challenge.schedule}
    assert found == {(200, 100, 2)}


def test_the_test_challenge_has_every_operation():
    challenge, _ = load_challenge("test", TRACK, {})
    assert sorted(task.operation for task in challenge.schedule) == sorted(TRACK.operations)
    assert {(one.warmup_iterations, one.iterations) for one in challenge.schedule} == {(1, 3)}

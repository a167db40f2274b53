from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.nightly.install import EVERY_DAY, Daily

BERLIN = ZoneInfo("Europe/Berlin")

dailies = st.builds(
    Daily,
    st.builds(time, st.integers(0, 23), st.integers(0, 59)),
    st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
)


@pytest.mark.parametrize(
    ("at", "days", "cron", "calendar"),
    [
        ("03:00", "", "0 3 * * *", "*-*-* 03:00:00"),
        ("3:05", "mon-fri", "5 3 * * 1,2,3,4,5", "Mon,Tue,Wed,Thu,Fri *-*-* 03:05:00"),
        ("23:59", "sat,sun", "59 23 * * 0,6", "Sat,Sun *-*-* 23:59:00"),
        ("00:00", "sat-mon", "0 0 * * 0,1,6", "Mon,Sat,Sun *-*-* 00:00:00"),
        ("12:00", "Mon-Sun", "0 12 * * *", "*-*-* 12:00:00"),
        ("12:00", "wed", "0 12 * * 3", "Wed *-*-* 12:00:00"),
    ],
)
def test_a_time_is_written_for_cron_and_for_systemd(at: str, days: str, cron: str, calendar: str):
    daily = Daily.parse(at, days)
    assert (daily.cron, daily.calendar) == (cron, calendar)


@pytest.mark.parametrize("at", ["", "3", "24:00", "03:60", "03:00:00", "3am", "٣:00", "-1:00"])
def test_what_is_no_time_of_day_is_refused(at: str):
    with pytest.raises(UsageError, match="is not a time of day"):
        Daily.parse(at)


@pytest.mark.parametrize("days", ["monday", "1-5", "mon-", "mon,", ",", "mon-fri-sat", "-fri"])
def test_what_are_no_days_is_refused(days: str):
    with pytest.raises(UsageError, match="names no days"):
        Daily.parse("03:00", days)


@given(daily=dailies)
def test_what_was_written_is_read_again(daily: Daily):
    assert Daily.from_cron(daily.cron) == daily
    assert Daily.from_calendar(daily.calendar) == daily


@pytest.mark.parametrize(
    "fields",
    ["", "@daily", "*/5 3 * * *", "0 3 1 * *", "0 3 * * mon", "0 24 * * *", "0 3 * * ,", "0 3 * * 12"],
)
def test_what_somebody_changed_is_not_guessed_at(fields: str):
    assert Daily.from_cron(fields) is None
    assert Daily.from_calendar(fields) is None


def test_words_for_people():
    assert Daily.parse("03:00").text == "03:00 every day"
    assert Daily.parse("03:00", "fri,mon").text == "03:00 on Mon, Fri"


@given(
    daily=dailies,
    now=st.datetimes(datetime(2000, 1, 1), datetime(2037, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),  # noqa: DTZ001 - hypothesis wants them so
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    makes_up=st.booleans(),
)
def test_the_next_time_is_the_first_that_is_due(daily: Daily, now: datetime, zone: str, *, makes_up: bool):
    next_at = daily.next_after(now, ZoneInfo(zone), makes_up=makes_up)
    utc = next_at.astimezone(UTC)
    assert utc > now
    assert utc - now <= timedelta(days=15)
    # It is a time that clocks show, on one of the days, and the time asked for unless clocks jump.
    assert utc.astimezone(next_at.tzinfo).replace(tzinfo=None) == next_at.replace(tzinfo=None)
    assert next_at.weekday() in daily.days
    if next_at.time() != daily.at:
        assert makes_up
        assert (
            timedelta(0)
            < datetime.combine(date.min, next_at.time()) - datetime.combine(date.min, daily.at)
            <= timedelta(hours=1)
        )
    # Nothing is due before: not a second after now, nor a second before then.
    assert daily.next_after(now + timedelta(seconds=1), ZoneInfo(zone), makes_up=makes_up) >= next_at
    assert daily.next_after(next_at - timedelta(seconds=1), ZoneInfo(zone), makes_up=makes_up) == next_at


def test_cron_makes_up_for_a_time_that_clocks_jump_over_and_systemd_leaves_it_out():
    daily = Daily.parse("02:30")
    now = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert daily.next_after(now, BERLIN, makes_up=True) == datetime(2026, 3, 29, 3, 0, tzinfo=BERLIN)
    assert daily.next_after(now, BERLIN, makes_up=False) == datetime(2026, 3, 30, 2, 30, tzinfo=BERLIN)
    assert daily.left_out(now, BERLIN) == date(2026, 3, 29)
    assert Daily.parse("03:00").left_out(now, BERLIN) is None
    assert Daily.parse("02:30", "mon-sat").left_out(now, BERLIN) is None
    assert daily.left_out(now, ZoneInfo("UTC")) is None


def test_a_time_that_comes_twice_counts_once():
    daily = Daily.parse("02:30")
    first = daily.next_after(datetime(2026, 10, 24, 12, tzinfo=BERLIN), BERLIN, makes_up=True)
    assert first.astimezone(UTC) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    between = datetime(2026, 10, 25, 0, 45, tzinfo=UTC)
    second = datetime(2026, 10, 25, 2, 15, fold=1, tzinfo=BERLIN)
    for now in (between, second):
        assert daily.next_after(now, BERLIN, makes_up=True) == datetime(2026, 10, 26, 2, 30, tzinfo=BERLIN)


def test_a_sunday_only_suite_waits_a_week_more_where_systemd_leaves_its_day_out():
    daily = Daily.parse("02:30", "sun")
    now = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert daily.next_after(now, BERLIN, makes_up=False) == datetime(2026, 4, 5, 2, 30, tzinfo=BERLIN)


def test_a_time_of_right_now_is_over():
    daily = Daily(time(3), EVERY_DAY)
    now = datetime(2026, 11, 21, 3, tzinfo=BERLIN)
    assert daily.next_after(now, BERLIN, makes_up=True) == datetime(2026, 11, 22, 3, tzinfo=BERLIN)

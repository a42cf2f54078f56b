"""What the engine's counters say of a measurement."""

from __future__ import annotations

from lab.runner.counters import Counters


def test_the_hit_ratio_is_the_share_of_what_was_asked_in_between() -> None:
    assert Counters(1000.0, 100.0).hit_ratio_until(Counters(1400.0, 110.0)) == 10 / 400


def test_no_ratio_without_counters_or_questions_or_after_a_restart() -> None:
    assert Counters().hit_ratio_until(Counters(10.0, 1.0)) is None
    assert Counters(10.0, 1.0).hit_ratio_until(Counters(10.0, 1.0)) is None
    assert Counters(10.0, 1.0).hit_ratio_until(Counters(4.0, 0.0)) is None


def test_preemptions_are_a_mark_only_when_there_were_some() -> None:
    assert Counters(preemptions=2.0).marks_until(Counters(preemptions=2.0)) == ()
    assert Counters().marks_until(Counters()) == ()
    (mark,) = Counters(preemptions=2.0).marks_until(Counters(preemptions=5.0))
    assert (mark.code, dict(mark.params)) == ("preempted", {"count": 3})

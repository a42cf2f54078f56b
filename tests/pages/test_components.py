"""States, numbers and log lines as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from lab.records.states import ExperimentState, LaunchState, RequestFailure, TrialState
from lab.runner.outcome import FailureClass
from pages.components import status
from pages.components.i18n import word
from pages.components.log import LogLine, filtered, log_lines, read_tail
from pages.components.markdown import escaped, plain_markdown


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf")])
def test_what_is_missing_is_a_dash_never_zero(missing: float | None) -> None:
    for show in (status.number, status.milliseconds, status.tokens_per_s, status.percent, status.byte_size):
        assert show(missing) == "–"
    assert status.duration(missing) == "–"


def test_numbers_carry_their_units() -> None:
    assert status.number(1234567) == "1,234,567"
    assert status.milliseconds(83.04) == "83.0 ms"
    assert status.milliseconds(2400) == "2,400 ms"
    assert status.milliseconds(83_000) == "83.0 s"
    assert status.tokens_per_s(300.4) == "300 tok/s"
    assert status.tokens_per_s(29.04) == "29.0 tok/s"
    assert status.percent(0.256) == "26 %"
    assert status.byte_size(24 * 1024**3) == "24.0 GiB"
    assert status.byte_size(512) == "512 B"
    assert status.number(0.0) == "0"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (185, "3 min 05 s"), (7800, "2 h 10 min"), (90_000, "1 d 1 h")]
)
def test_durations_name_the_two_largest_units(seconds: float, text: str) -> None:
    assert status.duration(seconds) == text


def test_a_moment_is_told_as_its_age() -> None:
    now = datetime.now(UTC)
    assert status.ago(now) == "just now"
    assert status.ago(now - timedelta(seconds=90)) == "1 min 30 s ago"
    assert status.ago(now - timedelta(days=1, hours=1)) == "1 day ago"
    assert status.ago(now - timedelta(days=3)) == "3 days ago"
    assert status.ago(None) == "–"


def test_an_unknown_state_is_shown_as_it_is() -> None:
    assert status.state_word("hibernating") == "hibernating"
    assert "hibernating" in status.state_badge("hibernating")


def test_a_traceback_has_the_level_of_the_line_before_it() -> None:
    text = (
        "(APIServer pid=4) INFO 11-29 22:10:01 [api.py:1] ready\n"
        "(EngineCore_DP0 pid=5) ERROR 11-29 22:10:02 [core.py:2] failed\n"
        "Traceback (most recent call last):\n"
        "\x1b[31mValueError: x\x1b[0m\n"
        "loading 10%\rloading 100%\n"
        "(APIServer pid=4) WARNING 11-29 22:10:03 late\n"
    )
    assert list(log_lines(text)) == [
        LogLine("INFO", "(APIServer pid=4) INFO 11-29 22:10:01 [api.py:1] ready"),
        LogLine("ERROR", "(EngineCore_DP0 pid=5) ERROR 11-29 22:10:02 [core.py:2] failed"),
        LogLine("ERROR", "Traceback (most recent call last):"),
        LogLine("ERROR", "ValueError: x"),
        LogLine("ERROR", "loading 100%"),
        LogLine("WARNING", "(APIServer pid=4) WARNING 11-29 22:10:03 late"),
    ]


def test_the_filter_keeps_the_last_lines_at_or_above_a_level_with_the_text() -> None:
    lines = [LogLine("INFO", "KV cache 1"), LogLine("ERROR", "kv CACHE 2"), LogLine("WARNING", "other")]
    assert filtered(lines, "INFO", "kv cache", 10) == lines[:2]
    assert filtered(lines, "WARNING", "", 1) == lines[2:]


def test_a_log_outside_of_the_run_directory_is_not_read(tmp_path: Path) -> None:
    inside = tmp_path / "run" / "logs" / "a.log"
    inside.parent.mkdir(parents=True)
    inside.write_text("line\n")
    outside = tmp_path / "b.log"
    outside.write_text("secret\n")
    link = tmp_path / "run" / "link.log"
    link.symlink_to(outside)
    assert read_tail(inside, tmp_path / "run") == "line\n"
    assert read_tail(outside, tmp_path / "run") is None
    assert read_tail(link, tmp_path / "run") is None
    assert read_tail(tmp_path / "run" / "missing.log", tmp_path / "run") is None


def test_the_tail_of_a_long_log_starts_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 300_000 + b"\nINFO last\n")
    assert read_tail(log, tmp_path) == "INFO last\n"


def test_a_verdict_of_one_stage_names_it_in_words() -> None:
    params = {"stage": "concurrency 4: ", "stage_kind": "concurrency", "stage_value": 4.0, "arm": "a", "other": "b"}
    assert word("cannot-tell-missing", {**params, "metric": "TPOT"}).startswith("4 requests at a time: a and b are not")
    assert word("cannot-tell-missing", {**params, "stage": "", "metric": "TPOT"}).startswith("a and b are not")


def test_true_and_false_are_written_as_in_the_files() -> None:
    params = {"knob": "enable_prefix_caching", "asked": False, "effective": True}
    assert "enable_prefix_caching = true, not false" in word("effective-differs", params)


def test_what_people_write_is_no_markup() -> None:
    assert escaped("*a* [b](c) `d` :red[e]") == "\\*a\\* \\[b\\](c) \\`d\\` \\:red\\[e\\]"
    assert plain_markdown("run `make setup` for *x*") == "run `make setup` for \\*x\\*"
    assert plain_markdown("http://127.0.0.1:8000/v1 is http://h/v1. 见 http://h:1/v1。") == (
        "`http://127.0.0.1:8000/v1` is `http://h/v1`. 见 `http://h:1/v1`。"
    )
    assert plain_markdown("see (https://a.b/c_d), *now*") == "see (`https://a.b/c_d`), \\*now\\*"
    assert plain_markdown("one ` tick") == "one \\` tick"


@pytest.mark.parametrize("kind", [*get_args(FailureClass), *get_args(RequestFailure)])
def test_every_failure_class_has_a_word(kind: str) -> None:
    assert status.failure_word(kind) != kind


@pytest.mark.parametrize("state", [*get_args(ExperimentState), *get_args(TrialState), *get_args(LaunchState)])
def test_every_state_has_a_word(state: str) -> None:
    assert status.state_word(state) != state

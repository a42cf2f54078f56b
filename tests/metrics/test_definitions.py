"""The table of definitions covers what a summary holds."""

from __future__ import annotations

from lab.messages import messages
from lab.metrics import METRICS
from lab.metrics.validity import SPOILING
from lab.records.summary import Interference, Summary

COUNTS = {"requests", "succeeded", "incomplete", "failed", "marks", "tokens_estimated"}
APART = {"quiet_gap_ms", "disturbed_gap_ms", "intruder_ttft_ms"}


def test_every_number_of_a_summary_is_defined() -> None:
    assert not APART - set(Interference.model_fields)
    assert set(METRICS) == (set(Summary.model_fields) - COUNTS - {"interference"}) | APART


def test_every_definition_is_filled_in() -> None:
    for metric in METRICS.values():
        assert all((metric.label, metric.unit, metric.formula, metric.source, metric.help)), metric.name


def test_every_mark_of_this_package_has_words() -> None:
    own = {
        "failures", "stopped-early", "client-lag", "client-late", "client-near-ceiling", "concurrency-not-reached",
        "rate-not-achieved", "cache-hits", "cache-on-purpose", "output-length-differs", "tokens-unknown",
        "tokens-estimated", "cut-off-shared-out", "several-tokens-per-chunk", "low-samples-p95", "low-samples-p99",
        "answers-loop", "telemetry-gap", "engine-restarted", "near-client-ceiling",
        "natural-length", "stage-too-long", "stage-refused-as-too-long", "workload-shrunk",
    }  # fmt: skip
    assert own <= messages().keys()
    assert SPOILING - {"effective-differs"} <= own

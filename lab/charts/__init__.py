"""From stored values to Plotly figures."""

from lab.charts.distribution import ttft_histogram
from lab.charts.interference import StallPanel, StallTexts, stalls
from lab.charts.ladder import LadderTexts, cache_use, ladder
from lab.charts.points import (
    CachePoint,
    LadderPoint,
    Point,
    cache_points,
    knees,
    ladder_points,
    throughput_ttft_points,
)
from lab.charts.requests import RequestTexts, request_ttft
from lab.charts.series import SeriesGroup, known_groups, time_series
from lab.charts.throughput import ThroughputTexts, throughput_ttft
from lab.charts.waterfall import ttft_waterfall

__all__ = [
    "CachePoint",
    "LadderPoint",
    "LadderTexts",
    "Point",
    "RequestTexts",
    "SeriesGroup",
    "StallPanel",
    "StallTexts",
    "ThroughputTexts",
    "cache_points",
    "cache_use",
    "knees",
    "known_groups",
    "ladder",
    "ladder_points",
    "request_ttft",
    "stalls",
    "throughput_ttft",
    "throughput_ttft_points",
    "time_series",
    "ttft_histogram",
    "ttft_waterfall",
]

"""From stored values to Plotly figures."""

from lab.charts.distribution import ttft_histogram
from lab.charts.ladder import ladder
from lab.charts.points import LadderPoint, Point, ladder_points, throughput_ttft_points
from lab.charts.requests import RequestTexts, request_ttft
from lab.charts.series import SeriesGroup, known_groups, time_series
from lab.charts.throughput import ThroughputTexts, throughput_ttft

__all__ = [
    "LadderPoint",
    "Point",
    "RequestTexts",
    "SeriesGroup",
    "ThroughputTexts",
    "known_groups",
    "ladder",
    "ladder_points",
    "request_ttft",
    "throughput_ttft",
    "throughput_ttft_points",
    "time_series",
    "ttft_histogram",
]

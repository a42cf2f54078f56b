"""What the figures show."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from lab.charts import (
    LadderPoint,
    LadderTexts,
    Point,
    RequestTexts,
    SeriesGroup,
    ThroughputTexts,
    known_groups,
    ladder,
    request_ttft,
    throughput_ttft,
    time_series,
)
from lab.charts.style import BASELINE, PALETTE
from lab.metrics.growth import Step, fit_steps
from lab.records.plan import Slo
from lab.records.sample import Sample
from lab.records.states import Target
from lab.records.workload import Stage
from tests.factories import make_failure, make_request, make_samples

SLO = Slo(ttft_p95_ms=2000)


def point(number: int, arm: str, rate: float, ttft: float, **changes: Any) -> Point:
    target: Target = changes.pop("target", "engine")
    return Point(
        number, arm, target, changes.pop("repeat", 1), changes.pop("stage", Stage()), rate, ttft, 40, **changes
    )


def drawn(figure: Any) -> dict[str, Any]:
    """The figure as the browser gets it."""
    return dict(json.loads(figure.to_json()))


POINTS = (
    point(1, "off", 29.0, 83_000.0),
    point(2, "off", 29.2, 82_000.0, repeat=2),
    point(3, "on", 300.0, 2500.0, marks=("client-lag",), doubtful=True),
    point(4, "on", 296.0, 2600.0, repeat=2),
    point(5, "TaoToken", 780.0, 1400.0, target="gateway"),
)


def test_every_point_carries_its_measurement() -> None:
    figure = drawn(throughput_ttft(POINTS, slo=SLO))
    ids = [row[0] for trace in figure["data"] for row in trace.get("customdata", [])]
    assert ids == [1, 2, 4, 3, 5]
    assert [trace["name"] for trace in figure["data"]] == ["off", "on", "TaoToken (baseline)"]


def test_the_baseline_is_a_grey_diamond_and_doubt_is_hollow() -> None:
    off, on, gateway = drawn(throughput_ttft(POINTS))["data"]
    assert off["marker"]["symbol"] == ["circle", "circle"]
    assert on["marker"]["symbol"] == ["circle", "circle-open"]
    assert gateway["marker"]["symbol"] == ["diamond"]
    assert [t["marker"]["color"] for t in (off, on, gateway)] == [PALETTE[0], PALETTE[1], BASELINE]


def test_axes_that_span_much_are_logarithmic() -> None:
    layout = drawn(throughput_ttft(POINTS))["layout"]
    assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")
    assert layout["yaxis"]["ticktext"] == ["2,000", "5,000", "10,000", "20,000", "50,000", "100,000"]
    close = drawn(throughput_ttft([point(1, "a", 100, 200), point(2, "b", 120, 300)]))["layout"]
    assert (close["xaxis"]["type"], close["xaxis"]["rangemode"]) == ("linear", "tozero")


def test_the_limit_is_drawn_and_named() -> None:
    layout = drawn(throughput_ttft(POINTS, slo=SLO))["layout"]
    assert layout["shapes"][0]["y0"] == layout["shapes"][0]["y1"] == 2000
    (note,) = layout["annotations"]
    assert note["text"] == "Limit: P95 TTFT 2000 ms"
    # on a logarithmic axis annotations stand at the exponent
    assert note["y"] == pytest.approx(3.30103)
    assert "shapes" not in drawn(throughput_ttft(POINTS))["layout"]


@pytest.mark.parametrize(("near_the_line", "side"), [(10.0, "right"), (90.0, "left")])
def test_the_name_of_the_limit_hides_no_point(near_the_line: float, side: str) -> None:
    points = [point(1, "a", near_the_line, 2100.0), point(2, "b", 100.0 - near_the_line, 300.0)]
    (note,) = drawn(throughput_ttft(points, slo=SLO))["layout"]["annotations"]
    assert note["xanchor"] == side


def test_hovering_tells_what_a_point_is() -> None:
    figure = drawn(throughput_ttft(POINTS))
    words = figure["data"][1]["hovertext"][1]
    for part in ("<b>on</b>", "repeat 1", "300.0", "2,500", "n = 40", "Reservations: 1"):
        assert part in words


def test_names_cannot_break_out_of_the_hover() -> None:
    figure = drawn(throughput_ttft([point(1, "<script>", 1.0, 1.0)]))
    assert "<script>" not in figure["data"][0]["hovertext"][0]


def test_words_come_from_the_page() -> None:
    texts = ThroughputTexts(throughput="吞吐量", ttft="首字延迟", baseline="{arm}（基线）", repeat="第 {repeat} 次")
    figure = drawn(throughput_ttft(POINTS, texts=texts))
    assert figure["layout"]["xaxis"]["title"]["text"] == "吞吐量"
    assert figure["data"][2]["name"] == "TaoToken（基线）"
    assert "第 1 次" in figure["data"][0]["hovertext"][0]


def test_stages_of_one_repeat_are_joined_in_order() -> None:
    stages = [(8.0, 300.0, 900.0), (1.0, 50.0, 100.0), (4.0, 200.0, 300.0)]
    points = [
        point(i, "a", rate, ttft, stage=Stage(kind="concurrency", value=v)) for i, (v, rate, ttft) in enumerate(stages)
    ]
    path = next(t for t in drawn(throughput_ttft(points))["data"] if t["mode"] == "lines")
    assert path["x"] == [50.0, 200.0, 300.0]


def test_a_chart_of_nothing_is_empty() -> None:
    assert drawn(throughput_ttft([], slo=SLO))["data"] == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_background_is_the_pages(dark: bool) -> None:
    layout = drawn(throughput_ttft(POINTS, dark=dark))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"


GROUPS = (
    SeriesGroup("KV cache", {"kv_cache_usage_ratio": "used"}, percent=True),
    SeriesGroup("Requests", {"requests_running": "running", "requests_waiting": "waiting"}),
    SeriesGroup("GPU", {"gpu0_power_w": "power"}),
)


def test_telemetry_that_was_not_sampled_is_absent() -> None:
    only_gaps = [*make_samples(), Sample(0.0, "gpu0_power_w", None)]
    assert [group.title for group in known_groups(only_gaps, GROUPS)] == ["KV cache", "Requests"]


def test_a_missing_sample_is_a_gap_in_the_line() -> None:
    figure = drawn(time_series(make_samples(), GROUPS))
    use = figure["data"][0]
    assert (use["x"][4], use["y"][4], use["connectgaps"]) == (4.0, None, False)
    assert figure["layout"]["yaxis"]["tickformat"] == ".0%"


def test_time_counts_from_the_first_sample() -> None:
    figure = drawn(
        time_series([Sample(5000.0, "requests_running", 1.0), Sample(6500.0, "requests_running", 2.0)], GROUPS)
    )
    assert figure["data"][0]["x"] == [0.0, 1.5]


def test_no_telemetry_draws_nothing() -> None:
    assert drawn(time_series([], GROUPS))["data"] == []


def test_requests_are_told_apart_by_how_they_ended() -> None:
    records = [
        make_request(0), make_request(1, warmup=True), make_request(2, incomplete=True),
        make_failure(3, message="<b>no</b>"),
    ]  # fmt: skip
    figure = drawn(request_ttft(records, slo_ms=150, texts=RequestTexts(failed="gescheitert")))
    names = {trace["name"]: [row[0] for row in trace["customdata"]] for trace in figure["data"]}
    assert names == {"answered": [0], "cut off by the end": [2], "warm-up, left out": [1], "gescheitert": [3]}
    failed = figure["data"][-1]
    assert failed["yaxis"] == "y2"
    assert failed["hovertext"] == ["timeout: &lt;b&gt;no&lt;/b&gt;"]


def test_a_ladder_has_a_line_per_repeat_and_one_legend_per_arm() -> None:
    points = [
        LadderPoint(i, "a", "engine", r, n, n * 2.0, 3) for i, (r, n) in enumerate([(1, 500.0), (1, 100.0), (2, 100.0)])
    ]
    first, second = drawn(ladder(points))["data"]
    assert (first["x"], first["customdata"]) == ([100.0, 500.0], [[1], [0]])
    assert (first["showlegend"], second["showlegend"]) == (True, False)


def test_a_ladder_shows_what_was_fitted_in_place_of_joined_steps() -> None:
    lengths = (100.0, 200.0, 400.0, 800.0)
    points = [LadderPoint(i, "a", "engine", 1, n, n**2 / 100, 2) for i, n in enumerate(lengths)]
    fit = fit_steps("a", [Step(n, np.array([n**2 / 100] * 2)) for n in lengths])
    steps, line, parabola = drawn(ladder(points, fits=[fit], texts=LadderTexts(quadratic="curve of {arm}")))["data"]
    assert (steps["mode"], line["mode"], parabola["name"]) == ("markers", "lines", "curve of a")
    assert (parabola["x"][0], parabola["x"][-1]) == (100.0, 800.0)
    assert (parabola["y"][0], parabola["y"][-1]) == (pytest.approx(100.0), pytest.approx(6400.0))
    assert all(height is None or height > 0 for height in line["y"])


def test_the_knee_has_a_star_and_what_the_client_may_have_limited_a_ring() -> None:
    points = [
        point(i, "on", rate, 500.0, stage=Stage(kind="concurrency", value=n), near_ceiling=n == 16)
        for i, (n, rate) in enumerate([(1, 30.0), (4, 100.0), (16, 104.0)])
    ]
    traces = {
        trace["name"]: trace for trace in drawn(throughput_ttft(points, knees={"on": 4.0}))["data"] if "name" in trace
    }
    assert traces["throughput stops growing here"]["customdata"] == [[1]]
    assert traces["near the client's ceiling"]["customdata"] == [[2]]
    assert traces["near the client's ceiling"]["marker"]["symbol"] == "circle-open"

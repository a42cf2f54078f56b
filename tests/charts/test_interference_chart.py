"""Gaps over time: nothing that matters is thinned away, and rows can be compared."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from lab.charts import StallPanel, StallTexts, stalls
from lab.charts.interference import thinned
from lab.metrics.interference import Course


def course(gaps_ms: list[float], waits_ms: tuple[tuple[float, float], ...] = ()) -> Course:
    gaps = np.array(gaps_ms)
    return Course(np.cumsum(gaps), gaps, waits_ms)


def drawn(figure: Any) -> dict[str, Any]:
    return dict(json.loads(figure.to_json()))


PANELS = (
    StallPanel(7, "chunked <b>", course([30, 30, 90, 30], ((70.0, 140.0),))),
    StallPanel(8, "whole", course([30, 30, 400, 30], ((70.0, 455.0),))),
)


def test_disturbed_gaps_have_a_colour_of_their_own_and_carry_their_measurement() -> None:
    figure = drawn(stalls(PANELS, texts=StallTexts(quiet="quiet", disturbed="disturbed", wait="wait")))
    shown = [(trace["name"], trace["y"], trace.get("customdata")) for trace in figure["data"]]
    assert shown[:2] == [("quiet", [30, 30, 30], [[7]] * 3), ("disturbed", [90], [[7]])]
    assert shown[2:4] == [("quiet", [30, 30, 30], [[8]] * 3), ("disturbed", [400], [[8]])]
    assert [trace["showlegend"] for trace in figure["data"][:4]] == [True, True, False, False]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["chunked &lt;b&gt;", "whole"]


def test_waits_are_bands_and_all_rows_have_the_same_axes() -> None:
    layout = drawn(stalls(PANELS))["layout"]
    assert [(band["x0"], band["x1"]) for band in layout["shapes"]] == [(0.07, 0.14), (0.07, 0.455)]
    assert layout["xaxis"]["range"] == layout["xaxis2"]["range"] == [0, pytest.approx(0.49 * 1.02)]
    assert layout["yaxis"]["range"] == layout["yaxis2"]["range"]


def test_of_many_gaps_the_longest_stay() -> None:
    source = np.random.default_rng(3)
    long = course(list(source.uniform(20, 40, 20_000)))
    long.gap_ms[[5, 7000, 19_999]] = 900.0
    kept = thinned(long, most=500)
    assert kept.size <= 500
    assert {5, 7000, 19_999} <= set(kept.tolist())
    assert list(kept) == sorted(kept)


def test_nothing_measured_draws_nothing() -> None:
    assert drawn(stalls([]))["data"] == []
    assert len(drawn(stalls([StallPanel(1, "a", course([]))]))["data"]) == 3

"""The spread of TTFT as a picture."""

from __future__ import annotations

from typing import Any

import pytest

from lab.charts import ttft_histogram


def lines(figure: Any) -> list[float]:
    return [shape.x0 for shape in figure.layout.shapes]


def test_every_request_is_in_the_histogram_with_its_percentiles() -> None:
    values = [10.0, 20.0, 30.0, 40.0, 1000.0]
    figure = ttft_histogram(values)
    assert list(figure.data[0].x) == values
    assert lines(figure) == pytest.approx([30.0, 808.0])
    assert [note.text for note in figure.layout.annotations] == ["P50", "P95"]


def test_without_values_nothing_is_drawn() -> None:
    figure = ttft_histogram([])
    assert (len(figure.data), lines(figure)) == (0, [])


def test_titles_are_the_readers() -> None:
    figure = ttft_histogram([1.0], ttft_title="首字延迟", requests_title="请求")
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("首字延迟", "请求")

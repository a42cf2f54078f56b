"""The figure of the way to the first token holds each request's parts."""

from __future__ import annotations

from lab.charts import ttft_waterfall
from lab.metrics.waterfall import Waterfall


def test_each_part_is_a_trace_in_the_order_in_which_it_passes() -> None:
    falls = [Waterfall(5, 1.0, None, 10.0, 3.0, 50.0, None), Waterfall(6, 1.0, None, None, None, None, 40.0)]
    figure = ttft_waterfall(falls)
    assert [(trace.name, list(trace.y)) for trace in figure.data] == [
        ("wait in the client", [1.0, 1.0]),
        ("network and front end", [10.0, None]),
        ("queue of the engine", [3.0, None]),
        ("prefill", [50.0, None]),
        ("not told by the server", [None, 40.0]),
    ]
    assert list(figure.data[0].x) == ["5", "6"]
    assert figure.layout.barmode == "stack"


def test_of_many_requests_200_are_drawn_from_first_to_last() -> None:
    figure = ttft_waterfall([Waterfall(i, 0.0, None, None, None, None, 1.0) for i in range(1000)])
    assert list(figure.data[0].x) == [str(i) for i in range(0, 1000, 5)]

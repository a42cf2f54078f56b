"""Reading a page of metrics: the recorded one of a real vLLM, and lines that resemble each other."""

from __future__ import annotations

import pytest

from lab.environment import ROOT
from lab.host.metrics_page import read_labels, read_metrics

PAGE = (ROOT / "tests" / "engine" / "recordings" / "metrics_vllm_0.32_cpu.txt").read_text("utf-8")


def test_the_wanted_metrics_of_a_real_page() -> None:
    wanted = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:kv_cache_usage_perc", "vllm:none")
    assert read_metrics(PAGE, wanted) == {
        "vllm:prompt_tokens_total": 31.0,
        "vllm:generation_tokens_total": 1.0,
        "vllm:kv_cache_usage_perc": 0.0,
    }


def test_label_sets_are_summed_and_longer_names_left_out() -> None:
    page = 'a_total{engine="0"} 2\na_total{engine="1"} 3\na_total_by_reason{reason="x"} 100\na_totally 7\n'
    assert read_metrics(page, ("a_total",)) == {"a_total": 5.0}


def test_labels_of_a_real_page() -> None:
    labels = read_labels(PAGE, "vllm:cache_config_info")
    assert labels is not None
    assert (labels["block_size"], labels["cache_dtype"], labels["num_gpu_blocks"]) == ("128", "fp8", "206")
    assert read_labels(PAGE, "vllm:none") is None


def test_a_broken_line_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_metrics("a_total{engine= 2\n", ("a_total",))

"""What every number means: the one table that page help, README and tests read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """`name` is the field of `Summary`; `formula` is exact, `help` is for people; `source` says where it is taken."""

    name: str
    label: str
    unit: str
    formula: str
    source: str
    help: str


_TABLE = (
    Metric(
        "ttft_ms", "TTFT", "ms",
        "first chunk with generated output of any channel - t0",
        "client clock; t0 is the scheduled moment in an open loop, otherwise when the request was handed over",
        "How long a user waits for the first word. Requests that failed have none; requests cut off by the end of a "
        "time window count.",
    ),
    Metric(
        "first_answer_ms", "First answer text", "ms", "first chunk with answer text - t0", "client clock",
        "Like TTFT, but text of a reasoning channel does not count.",
    ),
    Metric(
        "tpot_ms", "TPOT", "ms per token",
        "(last token-bearing chunk - first) / (completion tokens - 1)", "client clock, token count of the server",
        "How steadily words follow, averaged over one answer. Answers of fewer than two tokens have none.",
    ),
    Metric(
        "itl_ms", "ITL", "ms per token",
        "gap between neighbouring chunks / ((completion tokens - 1) / (chunks - 1))",
        "client clock, token count of the server",
        "The gap from one token to the next. Where chunks carry several tokens a gap is spread evenly over them; the "
        "maximum shows the longest stall.",
    ),
    Metric(
        "inter_chunk_ms", "Inter-chunk gap", "ms", "gap between neighbouring token-bearing chunks", "client clock",
        "The raw gap between chunks, however many tokens they carry. Never mixed with ITL.",
    ),
    Metric(
        "e2e_ms", "E2E", "ms", "last token-bearing chunk - t0", "client clock",
        "How long a whole answer takes. It grows with the length of the answer: compare TPOT or throughput instead.",
    ),
    Metric(
        "decode_tokens_per_s", "Decode speed", "tokens/s per request", "1000 / TPOT", "from TPOT",
        "How fast one answer is written once it has begun. Not the throughput of the system.",
    ),
    Metric(
        "output_tokens_per_s", "Throughput", "tokens/s",
        "completion tokens of successful requests / (last token - first t0); with a time window: tokens that arrived "
        "inside it / its length",
        "token count of the server, client clock",
        "What the system writes per second for all users together. Tokens of requests that a ramp had started count "
        "where they arrived meanwhile.",
    ),
    Metric(
        "completed_tokens_per_s", "Throughput of completed answers", "tokens/s",
        "completion tokens of answers that ended inside the window / its length", "token count of the server",
        "Like throughput, without the answers that the end of the time window cut off.",
    ),
    Metric(
        "requests_per_s", "Requests per second", "requests/s", "successful requests / wall time", "client clock",
        "Answers completed per second.",
    ),
    Metric(
        "goodput_per_s", "Goodput", "requests/s", "requests that kept every limit of the SLO / wall time",
        "client clock", "Answers per second that were good enough. Failed requests never are.",
    ),
    Metric(
        "wall_s", "Wall time", "s",
        "last token - first t0, or the length of the time window (until the duration was over, or the last of the long "
        "prompts thrown in was answered)", "client clock",
        "How long the measured part took, warm-up left out.",
    ),
    Metric(
        "output_tokens", "Output tokens", "tokens", "sum over successful requests",
        "the server's last usage; estimated from the whole text where it gives none, and marked",
        "Never counted from chunks.",
    ),
    Metric(
        "prompt_tokens", "Prompt tokens", "tokens", "sum over successful requests", "the server's usage",
        "With the chat template, which adds its own.",
    ),
    Metric(
        "peak_in_flight", "Peak in flight", "requests", "largest number of requests that overlap", "client clock",
        "How many requests were really under way at once, beside what was asked for.",
    ),
    Metric(
        "tokens_per_chunk", "Tokens per chunk", "tokens", "completion tokens / token-bearing chunks",
        "token count of the server", "About 1 where every token is sent by itself.",
    ),
    Metric(
        "cache_hit_ratio", "Prefix cache hits", "ratio", "prompt tokens from the prefix cache / prompt tokens",
        "the engine's counters, else the server's usage", "From 1 % on, TTFT is partly the cache's.",
    ),
    Metric(
        "client_lag_p99_ms", "Client lag (P99)", "ms", "how late the load generator's event loop ran",
        "load generator", "Large values mean that the client, not the server, was measured.",
    ),
    Metric(
        "client_cpu_s", "Client CPU", "s", "CPU time of the load generator from the first t0 to the summary",
        "load generator", "Near the wall time the client is at its ceiling.",
    ),
    Metric(
        "steady_tokens_per_s", "Steady throughput", "tokens/s",
        "tokens that arrived while the asked concurrency was held / the length of that time",
        "token count of the server, client clock",
        "Throughput without the start and the end of the run, which weigh the more the shorter it is. There is none "
        "unless at least 95 % of the concurrency was in flight on average and as many answers ended meanwhile.",
    ),
    Metric(
        "steady_s", "Steady time", "s", "last - first moment with the asked concurrency in flight", "client clock",
        "How long the concurrency that was asked for was held.",
    ),
    Metric(
        "longest_stall_ms", "Longest stall", "ms",
        "largest gap between neighbouring token-bearing chunks of one answer", "client clock",
        "The longest that one answer stood still, answers cut off by the end included. Where long prompts are thrown "
        "in, only the steady answers count.",
    ),
    Metric(
        "quiet_gap_ms", "Gap while no long prompt waits", "ms",
        "mean gap between neighbouring chunks of steady answers that no wait of a long prompt overlaps",
        "client clock", "How steady answers flow when they are left alone. Only where long prompts are thrown in.",
    ),
    Metric(
        "disturbed_gap_ms", "Gap while a long prompt waits", "ms",
        "mean gap between neighbouring chunks of steady answers that overlaps the wait of a long prompt",
        "client clock",
        "What reading a long prompt costs those who are being answered. Chunked prefill is for making it smaller.",
    ),
    Metric(
        "intruder_ttft_ms", "TTFT of long prompts", "ms",
        "mean of first chunk - scheduled moment over the long prompts", "client clock",
        "How long the long prompts wait for their first token while others are being answered: what chunked prefill "
        "costs.",
    ),
    Metric(
        "looping_ratio", "Looping answers", "ratio",
        "answers in whose second half at least half of the runs of four words stood before / answers",
        "text of the answers; of more than 200 answers, 200 evenly picked",
        "Answers that repeat themselves are easier to predict than real ones. A lower temperature does not cure it; a "
        "repetition penalty may.",
    ),
    Metric(
        "kv_peak_ratio", "KV cache peak", "ratio", "largest share of the KV cache in use among the readings",
        "the engine's metrics, as often as sampled",
        "Short answers fill the cache for moments that fall between two readings: sample 10 times a second to see it.",
    ),
    Metric(
        "energy_j", "Energy", "J", "GPU power integrated over the wall time, all sampled GPUs together",
        "NVML power readings", "Unknown without a GPU and where readings are missing.",
    ),
    Metric(
        "joules_per_token", "Energy per token", "J/token", "energy / output tokens", "NVML power readings",
        "What one written token costs, prefill and idle time of the GPU included.",
    ),
)  # fmt: skip

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _TABLE}
PERCENTILE_HELP = (
    "Percentiles use numpy's linear method, always with n. Below 20 samples P95 and below 100 samples P99 carry a "
    "mark. Percentiles are never averaged: repeats are pooled."
)

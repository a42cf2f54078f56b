"""Rules between knobs, as vLLM 0.32 checks them at start, and what has no effect or opens a door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.configs.gateway import is_loopback
from lab.configs.workload_rules import TEMPLATE_TOKENS
from lab.findings import Finding
from lab.records.workload import Scalar

Ruled = tuple[str, Finding]  # the knob to put the finding at

VLLM_ONLY_FIELDS = ("top_k", "min_p", "repetition_penalty")
VLLM = "vllm"


def knob_rules(knobs: Mapping[str, Scalar], engine: str = VLLM) -> Iterator[Ruled]:
    """Findings on well-typed knobs, with the knob each one is about. Nothing is assumed of knobs that are not set.

    Another engine than vLLM has other rules between its knobs, and is left to say them itself.
    """
    if engine == VLLM:
        yield from _scheduler_rules(knobs)
        yield from _chunk_rules(knobs)
        if knobs.get("use_cache") is False:
            yield "use_cache", Finding("use-cache-off", "warning")
    host = knobs.get("host")
    if isinstance(host, str) and not is_loopback(host):
        yield "host", Finding("host-not-loopback", "error", {"host": host})
    if knobs.get("stream") is False:
        yield "stream", Finding("stream-off", "warning")


def length_rules(knobs: Mapping[str, Scalar], prompt_tokens: int, output_tokens: int) -> Iterator[Ruled]:
    """Whether the longest request fits into max_model_len; nothing is said where that is not set."""
    limit = _whole(knobs, "max_model_len")
    if limit is None:
        return
    needed = prompt_tokens + output_tokens + TEMPLATE_TOKENS
    sizes = {
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "max_model_len": limit,
        "needed": needed,
        "room": max(1, limit - TEMPLATE_TOKENS),
        "template": TEMPLATE_TOKENS,
    }
    if prompt_tokens + output_tokens > limit:
        yield "max_model_len", Finding("request-too-long", "error", sizes)
    elif needed > limit:
        yield "max_model_len", Finding("request-may-be-too-long", "warning", sizes)


def _scheduler_rules(knobs: Mapping[str, Scalar]) -> Iterator[Ruled]:
    tokens, sequences = _whole(knobs, "max_num_batched_tokens"), _whole(knobs, "max_num_seqs")
    length = _whole(knobs, "max_model_len")
    if sequences == 1:
        yield "max_num_seqs", Finding("no-batching", "advice")
    if tokens is not None and sequences is not None and tokens < sequences:
        params = {"max_num_batched_tokens": tokens, "max_num_seqs": sequences}
        yield "max_num_batched_tokens", Finding("fewer-tokens-than-sequences", "error", params)
    if knobs.get("enable_chunked_prefill") is False and tokens is not None and length is not None and tokens < length:
        limits = {"max_num_batched_tokens": tokens, "max_model_len": length}
        yield "max_num_batched_tokens", Finding("chunked-prefill-off-needs-tokens", "error", limits)
    if tokens is not None and sequences is not None and length is not None and tokens > sequences * length:
        most = {"max_num_batched_tokens": tokens, "most": sequences * length}
        yield "max_num_batched_tokens", Finding("tokens-beyond-use", "advice", most)


def _chunk_rules(knobs: Mapping[str, Scalar]) -> Iterator[Ruled]:
    chunk, tokens = _whole(knobs, "long_prefill_token_threshold"), _whole(knobs, "max_num_batched_tokens")
    length = _whole(knobs, "max_model_len")
    if not chunk:
        return
    if length is not None and chunk > length:
        params = {"chunk": chunk, "max_model_len": length}
        yield "long_prefill_token_threshold", Finding("chunk-beyond-context", "error", params)
    if knobs.get("enable_chunked_prefill") is False:
        yield "long_prefill_token_threshold", Finding("chunk-without-chunking", "warning", {"chunk": chunk})
    elif tokens is not None and chunk >= tokens:
        params = {"chunk": chunk, "max_num_batched_tokens": tokens}
        yield "long_prefill_token_threshold", Finding("chunk-without-effect", "warning", params)


def _whole(knobs: Mapping[str, Scalar], name: str) -> int | None:
    value = knobs.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

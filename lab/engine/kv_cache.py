"""How many bytes one token takes in the KV cache, as vLLM 0.32 lays it out; or why that cannot be told."""

from __future__ import annotations

from collections.abc import Mapping

from lab.engine.model_facts import ModelFacts
from lab.findings import Finding
from lab.records.workload import Scalar

_SAME = {"half": "float16", "float": "float32", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "fp8_inc": "fp8"}
ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "fp8": 1}
# keys or values of one head: an fp32 scale beside the numbers
_PER_HEAD_SCALE_BYTES = 4
_UNKNOWN = {
    "sliding": "forecast-sliding-window",
    "mixed": "forecast-mixed-attention",
    "encoder-decoder": "forecast-encoder-decoder",
    "other": "forecast-other-attention",
}


def model_dtype(model: ModelFacts, knobs: Mapping[str, Scalar]) -> str:
    """The number type of the activations: as asked, else the config's or the weights'; 32 bits are halved by `auto`."""
    asked = str(knobs.get("dtype") or "auto")
    if asked != "auto":
        return _SAME.get(asked, asked)
    own = model.shape.dtype or model.weights.main_type
    return own if own in ("float16", "bfloat16") else "bfloat16"


def cache_dtype(model: ModelFacts, knobs: Mapping[str, Scalar]) -> str:
    """The number type of the cache; `auto` is what a quantised model brings, else the model's own."""
    asked = str(knobs.get("kv_cache_dtype") or "auto")
    if asked == "auto":
        return model.shape.kv_cache_dtype or model_dtype(model, knobs)
    return _SAME.get(asked, asked)


def bytes_per_token(
    model: ModelFacts, knobs: Mapping[str, Scalar], shards: int = 1, stages: int = 1
) -> tuple[int | None, Finding | None]:
    """Bytes of one token on one device of `shards` (tensor parallel) × `stages` (pipeline parallel).

    Else None and the finding that says why. Grouped heads are divided over the shards and repeated where there are
    more shards than heads; MLA keeps one latent vector on each.
    """
    shape, kind = model.shape, cache_dtype(model, knobs)
    if shape.attention in _UNKNOWN:
        params = {"model": model.name, "window": shape.sliding_window, "type": shape.model_type}
        return None, Finding(_UNKNOWN[shape.attention], "advice", params)
    if shape.layers is None or shape.head_size is None or shape.kv_heads is None:
        return None, Finding("forecast-shape-unknown", "advice", {"model": model.name})
    layers = -(-shape.layers // stages)
    if shape.attention == "mla":
        if shape.latent_size is None or kind not in ELEMENT_BYTES:
            return None, Finding("forecast-cache-type-unknown", "advice", {"kv_cache_dtype": kind})
        return layers * shape.latent_size * ELEMENT_BYTES[kind], None
    side = _side_bytes(kind, shape.head_size)
    if side is None:
        return None, Finding("forecast-cache-type-unknown", "advice", {"kv_cache_dtype": kind})
    return layers * 2 * max(1, shape.kv_heads // shards) * side, None


def _side_bytes(kind: str, head_size: int) -> int | None:
    """The keys, or the values, of one token and head."""
    if kind in ELEMENT_BYTES:
        return head_size * ELEMENT_BYTES[kind]
    if kind in ("int8_per_token_head", "fp8_per_token_head"):
        return head_size + _PER_HEAD_SCALE_BYTES
    if kind == "int4_per_token_head":
        return head_size // 2 + _PER_HEAD_SCALE_BYTES
    if kind in ("nvfp4", "nvfp4_4over6"):
        return head_size // 2 + head_size // 16
    return None

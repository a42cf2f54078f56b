"""What a model's config.json says of its shape: layers, heads, context, number types, kind of attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Attention = Literal["full", "mla", "sliding", "mixed", "encoder-decoder", "other"]

# keys that hold the longest context, in the order and with the rule of vLLM 0.32: the smallest counts
_CONTEXT_KEYS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions",
    "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
# rope types whose factor is already in max_position_embeddings
_SCALED_ALREADY = ("default", "su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling")
_KV_HEAD_KEYS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
_PLAIN_MLA = ("deepseek_v2", "deepseek_v3", "kimi_k2")
# layers that keep a state of their own beside or instead of keys and values
_RECURRENT_KEYS = (
    "hybrid_override_pattern", "layers_block_type", "attn_layer_period", "ssm_cfg", "mamba_d_state", "state_size",
    "linear_num_key_heads", "linear_attn_config", "compress_ratios",
)  # fmt: skip
_DTYPES = {"half": "float16", "float": "float32", "torch.float16": "float16", "torch.bfloat16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """All counts are None where the config does not tell them. `latent_size` is what MLA keeps of a token per layer.

    `context_tokens` is the longest context that vLLM serves, `default_context_tokens` the one where nothing is set.
    `kv_cache_dtype` is what a quantised model asks for, None where the cache has the model's own type;
    `quantization` is the method, None for plain weights.
    """

    model_type: str | None = None
    architecture: str | None = None
    layers: int | None = None
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_size: int | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    vocab_size: int | None = None
    experts: int | None = None
    latent_size: int | None = None
    attention: Attention = "full"
    sliding_window: int | None = None
    context_tokens: int | None = None
    default_context_tokens: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    tied_embeddings: bool = False
    attention_bias: bool = False


def read_shape(config: Mapping[str, Any]) -> ModelShape:
    """The shape of the text model; never raises."""
    inner = config.get("text_config")
    text: Mapping[str, Any] = inner if isinstance(inner, Mapping) and inner else config
    heads, hidden = _count(text, "num_attention_heads", "n_head"), _count(text, "hidden_size", "n_embd")
    quantization = _table(config, "quantization_config") or _table(text, "quantization_config")
    architectures = config.get("architectures")
    model_type = str(text.get("model_type") or config.get("model_type") or "") or None
    return ModelShape(
        model_type=model_type,
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else None,
        layers=_count(text, "num_hidden_layers", "n_layer"),
        attention_heads=heads,
        kv_heads=_kv_heads(text, heads),
        head_size=_count(text, "head_dim") or (hidden // heads if hidden and heads else None),
        hidden_size=hidden,
        intermediate_size=_count(text, "intermediate_size"),
        vocab_size=_count(text, "vocab_size"),
        experts=_count(text, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        latent_size=_latent_size(text),
        attention=_attention(config, text, model_type),
        sliding_window=_window(text),
        context_tokens=_context(text),
        default_context_tokens=_default_context(text),
        dtype=_dtype(config) or _dtype(text),
        quantization=str(quantization.get("quant_method") or "").lower() or None,
        kv_cache_dtype=_quantised_cache(quantization),
        tied_embeddings=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
        attention_bias=bool(text.get("attention_bias")) or model_type == "qwen2",
    )


def _attention(config: Mapping[str, Any], text: Mapping[str, Any], model_type: str | None) -> Attention:
    if config.get("is_encoder_decoder"):
        return "encoder-decoder"
    if _count(text, "kv_lora_rank"):
        return "mla" if model_type in _PLAIN_MLA and "compress_ratios" not in text else "other"
    kinds = set(text["layer_types"]) if isinstance(text.get("layer_types"), list) else set()
    if any(key in text for key in _RECURRENT_KEYS) or kinds - {"full_attention", "sliding_attention"}:
        return "other"
    if kinds == {"full_attention"} or (not kinds and _window(text) is None):
        return "full"
    if kinds == {"sliding_attention"} or (not kinds and "sliding_window_pattern" not in text):
        return "sliding"
    return "mixed"


def _window(text: Mapping[str, Any]) -> int | None:
    """The window in force: Qwen2 names one and switches it off."""
    if text.get("use_sliding_window") is False:
        return None
    return _count(text, "sliding_window")


def _kv_heads(text: Mapping[str, Any], heads: int | None) -> int | None:
    if text.get("model_type") == "falcon" and text.get("multi_query") and not text.get("new_decoder_architecture"):
        return 1
    return _count(text, *_KV_HEAD_KEYS) or heads


def _latent_size(text: Mapping[str, Any]) -> int | None:
    rank, rope = _count(text, "kv_lora_rank"), _count(text, "qk_rope_head_dim")
    return rank + rope if rank and rope else None


def _default_context(text: Mapping[str, Any]) -> int | None:
    """vLLM serves the context before scaling where longer ones would slow down short ones."""
    original = _count(text, "original_max_position_embeddings")
    return original if original and _rope(text)[0] == "longrope" else _context(text)


def _rope(text: Mapping[str, Any]) -> tuple[str, Any]:
    rope = _table(text, "rope_scaling") or _table(text, "rope_parameters")
    return str(rope.get("rope_type") or rope.get("type") or "default"), rope.get("factor")


def _context(text: Mapping[str, Any]) -> int | None:
    found = [value for key in _CONTEXT_KEYS if (value := _count(text, key))]
    if not found:
        return None
    limit = _count(text, "model_max_length") or min(found)
    kind, factor = _rope(text)
    if kind in _SCALED_ALREADY or "gemma3" in str(text.get("model_type")) or not isinstance(factor, int | float):
        return limit
    return int(limit * factor)


def _dtype(table: Mapping[str, Any]) -> str | None:
    name = table.get("dtype") or table.get("torch_dtype")
    return _DTYPES.get(name, name.removeprefix("torch.")) if isinstance(name, str) else None


def _quantised_cache(quantization: Mapping[str, Any]) -> str | None:
    """The cache type that a quantised model brings, as vLLM 0.32 reads it; only 8-bit floats are told apart here."""
    inner = _table(quantization, "quantization") or quantization
    asked = [table.get(key) for table in (inner, quantization) for key in ("kv_cache_scheme", "kv_cache_quant_algo")]
    scheme = next((each for each in asked if each), None)
    if isinstance(scheme, Mapping):
        return "fp8" if (scheme.get("type"), scheme.get("num_bits")) == ("float", 8) else "unknown"
    if isinstance(scheme, str):
        return "fp8" if scheme.lower().startswith("fp8") else "unknown"
    return None


def _table(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = config.get(key)
    return found if isinstance(found, Mapping) else {}


def _count(table: Mapping[str, Any], *keys: str) -> int | None:
    """The first of these keys that holds a whole number above 0."""
    for key in keys:
        value = table.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None

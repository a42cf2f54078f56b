"""How many parameters a dense or mixture model has, counted from its shape: for models whose weights are not here."""

from __future__ import annotations

from lab.engine.model_config import ModelShape

# families whose layers are counted right by the formula below (checked against their published counts)
_COUNTED = ("llama", "mistral", "mixtral", "qwen2", "qwen3")


def count_parameters(shape: ModelShape) -> int | None:
    """The number of weights; None for a family that this does not know or a config that lacks a count."""
    hidden, inter, layers, vocab = shape.hidden_size, shape.intermediate_size, shape.layers, shape.vocab_size
    heads, kv_heads, head = shape.attention_heads, shape.kv_heads, shape.head_size
    if shape.model_type not in _COUNTED or None in (hidden, inter, layers, vocab, heads, kv_heads, head):
        return None
    assert hidden and inter and layers and vocab and heads and kv_heads and head  # noqa: S101  for the type checker
    attention = hidden * head * (2 * heads + 2 * kv_heads)
    if shape.attention_bias:
        # Qwen2 has a bias on queries, keys and values; Llama with attention_bias on the output as well
        attention += head * (heads + 2 * kv_heads) + (0 if shape.model_type == "qwen2" else hidden)
    if shape.model_type == "qwen3":
        attention += 2 * head
    mlp = 3 * hidden * inter
    if shape.experts:
        mlp = shape.experts * mlp + shape.experts * hidden
    embeddings = vocab * hidden * (1 if shape.tied_embeddings else 2)
    return layers * (attention + mlp + 2 * hidden) + embeddings + hidden

"""A model and its memory forecast in words and as JSON, for the commands that tell of them."""

from __future__ import annotations

from typing import Any

from lab.engine.forecast import MemoryForecast
from lab.engine.model_facts import ModelFacts
from lab.findings import Finding
from lab.messages import word_finding

MISSING = "–"


def facts_text(facts: ModelFacts) -> str:
    """Parameters, number type, context and size on disk in one line."""
    shape = facts.shape
    parts = [
        parameters_text(facts.parameters),
        shape.quantization or shape.dtype or facts.weights.main_type or MISSING,
        f"context {shape.context_tokens:,}" if shape.context_tokens else "context unknown",
        f"{size_text(facts.disk_bytes)} on disk",
    ]
    return ", ".join(parts)


def facts_json(facts: ModelFacts) -> dict[str, Any]:
    """The same for a machine; what is not known is null."""
    shape = facts.shape
    return {
        "architecture": shape.architecture,
        "parameters": facts.parameters,
        "parameters_counted": facts.counted,
        "dtype": shape.dtype or facts.weights.main_type,
        "quantization": shape.quantization,
        "context_tokens": shape.context_tokens,
        "layers": shape.layers,
        "attention_heads": shape.attention_heads,
        "kv_heads": shape.kv_heads,
        "head_size": shape.head_size,
        "weights_bytes": facts.weights.bytes,
        "disk_bytes": facts.disk_bytes,
        "complete": facts.complete,
        "problems": [each.code for each in facts.problems],
    }


def forecast_text(found: MemoryForecast) -> str:
    """Weights, cache and what fits into it, in one line."""
    where = "of the host's memory" if found.host == "cpu" else f"of GPU {', '.join(map(str, found.devices))}"
    if found.kv_tokens is None:
        unknown = " ".join(word_finding(each) for each in found.unknown)
        return f"weights {size_text(found.weights_bytes)}; {unknown or 'what the KV cache holds is not known'}"
    contexts = f", {found.contexts:.1f} requests of {found.context_tokens:,} tokens" if found.contexts else ""
    return (
        f"{found.share:.0%} {where} is {size_text(found.budget_bytes)}: weights {size_text(found.weights_bytes)}, "
        f"rest about {size_text(found.overhead_bytes)}, KV cache {size_text(found.kv_bytes)} "
        f"= {found.kv_tokens:,} tokens{contexts}"
    )


def forecast_json(found: MemoryForecast) -> dict[str, Any]:
    """The forecast for a machine; bytes are those of one device."""
    return {
        "devices": list(found.devices),
        "total_bytes": found.total_bytes,
        "budget_bytes": found.budget_bytes,
        "free_bytes": found.free_bytes,
        "weights_bytes": found.weights_bytes,
        "overhead_bytes_guess": found.overhead_bytes,
        "kv_bytes": found.kv_bytes,
        "kv_dtype": found.kv_dtype,
        "kv_bytes_per_token": found.kv_bytes_per_token,
        "kv_tokens": found.kv_tokens,
        "context_tokens": found.context_tokens,
        "contexts": found.contexts,
        "unknown": [each.code for each in found.unknown],
        "findings": [each.code for each in found.findings],
    }


def parameters_text(parameters: int | None) -> str:
    """As people say it: 8.03 B, 135 M."""
    if parameters is None:
        return "parameters unknown"
    return f"{parameters / 1e9:.3g} B parameters" if parameters >= 10**9 else f"{parameters / 1e6:.3g} M parameters"


def size_text(size: int | None) -> str:
    """In binary units, as vLLM's log has them."""
    if size is None:
        return MISSING
    return f"{size / 2**30:.2f} GiB" if abs(size) >= 2**30 else f"{size / 2**20:.0f} MiB"


def worst(findings: tuple[Finding, ...]) -> Finding | None:
    """The first error, else the first warning; None where there is neither."""
    for severity in ("error", "warning"):
        for finding in findings:
            if finding.severity == severity:
                return finding
    return None

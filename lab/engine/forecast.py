"""What a launch will take of the memory and what room is left for the KV cache, told before it (vLLM's way of sharing).

Weights and bytes per token are counted; what activations, graphs and the runtime take is a guess and named as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab.engine.kv_cache import ELEMENT_BYTES, bytes_per_token, cache_dtype, model_dtype
from lab.engine.model_facts import ModelFacts
from lab.engine.parallel_rules import named_devices
from lab.findings import Finding
from lab.host.facts import Gpu, HostFacts, HostKind
from lab.records.workload import Scalar

GIB = 2**30
DEFAULT_SHARE = 0.92
_BLOCK_SIZE: Mapping[HostKind, int] = {"cpu": 128, "cuda": 16}
# the guess: what the process itself holds beside the weights (imports on a CPU; CUDA libraries and kernels on a GPU),
# CUDA graphs, and per token and sequence of the largest step what is computed at once
_RUNTIME_BYTES: Mapping[HostKind, int] = {"cpu": int(0.84 * GIB), "cuda": int(0.5 * GIB)}
_GRAPH_BYTES = int(0.6 * GIB)
_STEP_TOKENS: Mapping[HostKind, int] = {"cpu": 2048, "cuda": 8192}
_SEQUENCES = 256
_LOGIT_BYTES = 6
_FITTING = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)")


@dataclass(frozen=True, slots=True)
class MemoryForecast:
    """Bytes are those of one device (the tightest); None is not known, and `unknown` says why.

    `budget_bytes` is the share that weights, activations and cache may take together; `free_bytes` what nobody holds
    now; `overhead_bytes` is a guess. `kv_fixed` says that the cache's size is set and not what is left.
    `contexts` is how many requests of the full `context_tokens` the cache holds at once.
    """

    host: HostKind
    devices: tuple[int, ...]
    shards: int
    total_bytes: int | None = None
    share: float = DEFAULT_SHARE
    budget_bytes: int | None = None
    free_bytes: int | None = None
    weights_bytes: int | None = None
    overhead_bytes: int | None = None
    kv_bytes: int | None = None
    kv_fixed: bool = False
    kv_dtype: str | None = None
    kv_bytes_per_token: int | None = None
    block_size: int = 16
    kv_tokens: int | None = None
    context_tokens: int | None = None
    contexts: float | None = None
    unknown: tuple[Finding, ...] = ()
    findings: tuple[Finding, ...] = ()


def forecast(model: ModelFacts, knobs: Mapping[str, Scalar], host: HostFacts) -> MemoryForecast:
    """The forecast for these knobs, those that the host's overlays bring included; never raises."""
    shards, stages = _whole(knobs, "tensor_parallel_size") or 1, _whole(knobs, "pipeline_parallel_size") or 1
    gpus = chosen_gpus(knobs, host, shards * stages)
    total, free = _memory(host, gpus)
    share = _number(knobs.get("gpu_memory_utilization")) or DEFAULT_SHARE
    per_token, why = bytes_per_token(model, knobs, shards, stages)
    weights, weights_why = _weights(model, knobs, shards * stages)
    found = MemoryForecast(
        host=host.kind,
        devices=tuple(gpu.index for gpu in gpus),
        shards=shards * stages,
        total_bytes=total,
        share=share,
        budget_bytes=None if total is None else int(total * share),
        free_bytes=free,
        weights_bytes=weights,
        overhead_bytes=_overhead(model, knobs, host.kind, shards),
        kv_dtype=cache_dtype(model, knobs),
        kv_bytes_per_token=per_token,
        block_size=_whole(knobs, "block_size") or _BLOCK_SIZE[host.kind],
        context_tokens=context_in_force(model, knobs),
        unknown=tuple(each for each in (weights_why, why) if each is not None),
    )
    found = _with_cache(found, knobs)
    return replace(found, findings=_findings(found))


def context_in_force(model: ModelFacts, knobs: Mapping[str, Scalar]) -> int | None:
    """max_model_len, else the model's own context; None where neither is known or the engine fits it to the memory."""
    asked = knobs.get("max_model_len")
    if asked is None:
        return model.shape.default_context_tokens
    return _whole(knobs, "max_model_len")


def chosen_gpus(knobs: Mapping[str, Scalar], host: HostFacts, wanted: int) -> tuple[Gpu, ...]:
    """The GPUs that the engine will use, as NVML counts them: those of `devices`, else the first ones.

    Empty where `devices` names one that is not known by its number: what another one holds says nothing of it.
    """
    named = named_devices(knobs)
    if not named:
        return host.gpus[:wanted]
    by_index = {str(gpu.index): gpu for gpu in host.gpus}
    return tuple(by_index[name] for name in named)[:wanted] if all(name in by_index for name in named) else ()


def memory_size(value: Scalar | None) -> int | None:
    """A size as vLLM takes it: 2147483648, 2G (binary) or 2g (decimal); None for anything else."""
    found = _FITTING.fullmatch(str(value).strip())
    if found is None:
        return None
    number, unit = float(found[1]), found[2]
    base = 1024 if unit.isupper() else 1000
    return int(number * base ** (" kmgt".index(unit.lower()) if unit else 0))


def _memory(host: HostFacts, gpus: tuple[Gpu, ...]) -> tuple[int | None, int | None]:
    """All and free memory of the tightest device."""
    if host.kind == "cpu":
        return host.node_memory_bytes or host.memory_bytes, host.memory_available_bytes
    totals = [gpu.memory_total_bytes for gpu in gpus if gpu.memory_total_bytes is not None]
    free = [
        gpu.memory_total_bytes - gpu.memory_used_bytes
        for gpu in gpus
        if gpu.memory_total_bytes is not None and gpu.memory_used_bytes is not None
    ]
    return min(totals, default=None), min(free, default=None)


def _weights(model: ModelFacts, knobs: Mapping[str, Scalar], devices: int) -> tuple[int | None, Finding | None]:
    """Bytes on each device. Plain weights are loaded in the type of the activations, quantised ones as they lie."""
    if knobs.get("quantization") and model.shape.quantization is None:
        return None, Finding("forecast-quantised-on-load", "advice", {"quantization": knobs["quantization"]})
    size = model.weights.bytes
    element = ELEMENT_BYTES.get(model_dtype(model, knobs))
    if model.shape.quantization is None and model.parameters is not None and element is not None:
        size = model.parameters * element
    if size is None:
        return None, Finding("forecast-weights-unknown", "advice", {"model": model.name})
    return size // devices, None


def _overhead(model: ModelFacts, knobs: Mapping[str, Scalar], kind: HostKind, shards: int) -> int:
    """The guess: largest step of the network, the logits of all sequences, graphs, the runtime itself."""
    shape, element = model.shape, ELEMENT_BYTES.get(model_dtype(model, knobs), 2)
    tokens = _whole(knobs, "max_num_batched_tokens") or _STEP_TOKENS[kind]
    width = 4 * (shape.hidden_size or 0) + 2 * (shape.intermediate_size or 0) // shards
    logits = (_whole(knobs, "max_num_seqs") or _SEQUENCES) * (shape.vocab_size or 0) * _LOGIT_BYTES
    graphs = 0 if kind == "cpu" or knobs.get("enforce_eager") is True else _GRAPH_BYTES
    step = 0 if kind == "cpu" else tokens * width * element + logits
    return _RUNTIME_BYTES[kind] + graphs + step


def _with_cache(found: MemoryForecast, knobs: Mapping[str, Scalar]) -> MemoryForecast:
    """Room of the cache: fixed by a knob, else what is left of the budget."""
    fixed, blocks = memory_size(knobs.get("kv_cache_memory_bytes")), _whole(knobs, "num_gpu_blocks_override")
    room = fixed
    if fixed is None and found.budget_bytes is not None and found.weights_bytes is not None:
        room = found.budget_bytes - found.weights_bytes - (found.overhead_bytes or 0)
    per_block = found.block_size * found.kv_bytes_per_token if found.kv_bytes_per_token else None
    if blocks is None and room is not None and per_block is not None:
        blocks = max(0, room) // per_block
    elif blocks is not None:
        room = None if per_block is None else blocks * per_block
    kv_fixed = fixed is not None or knobs.get("num_gpu_blocks_override") is not None
    found = replace(found, kv_bytes=room, kv_fixed=kv_fixed)
    return found if blocks is None else _with_tokens(found, blocks)


def _with_tokens(found: MemoryForecast, blocks: int) -> MemoryForecast:
    """Tokens as vLLM counts them: whole blocks for each request of the longest context."""
    if not found.context_tokens:
        return replace(found, kv_tokens=blocks * found.block_size)
    contexts = blocks / -(-found.context_tokens // found.block_size)
    return replace(found, contexts=contexts, kv_tokens=int(contexts * found.context_tokens))


def _findings(found: MemoryForecast) -> tuple[Finding, ...]:
    told = (_beyond_free(found), _no_room(found), _context_beyond_cache(found))
    return tuple(each for each in told if each is not None)


def _beyond_free(found: MemoryForecast) -> Finding | None:
    """vLLM refuses a share that is not free at the start; what others hold may be gone by then, so it is a warning."""
    if found.budget_bytes is None or found.free_bytes is None or found.total_bytes is None:
        return None
    if (found.kv_fixed and found.host == "cpu") or found.budget_bytes <= found.free_bytes:
        return None
    nearest = int(found.free_bytes / found.total_bytes * 100) / 100
    params = {
        "share": found.share,
        "budget_gib": _gib(found.budget_bytes),
        "free_gib": _gib(found.free_bytes),
        "total_gib": _gib(found.total_bytes),
        "nearest": nearest,
    }
    return Finding("forecast-beyond-free" if nearest > 0 else "forecast-nothing-free", "warning", params)


def _no_room(found: MemoryForecast) -> Finding | None:
    if found.kv_bytes is None or found.kv_bytes > 0 or found.budget_bytes is None:
        return None
    needed = (found.weights_bytes or 0) + (found.overhead_bytes or 0)
    params = {
        "budget_gib": _gib(found.budget_bytes),
        "weights_gib": _gib(found.weights_bytes or 0),
        "overhead_gib": _gib(found.overhead_bytes or 0),
        "share": found.share,
        "nearest": _share_for(needed, found),
    }
    possible = params["nearest"] is not None
    return Finding("forecast-no-kv-room" if possible else "forecast-model-too-large", "warning", params)


def _context_beyond_cache(found: MemoryForecast) -> Finding | None:
    if found.contexts is None or found.contexts >= 1 or found.context_tokens is None or not found.kv_tokens:
        return None
    nearest = int(found.contexts * -(-found.context_tokens // found.block_size)) * found.block_size
    params = {"max_model_len": found.context_tokens, "kv_tokens": found.kv_tokens, "nearest": nearest}
    return Finding("forecast-context-beyond-cache", "warning", params)


def _share_for(needed: int, found: MemoryForecast) -> float | None:
    """The smallest share that leaves room for one context; None where all of the memory does not."""
    if not found.total_bytes:
        return None
    room = (found.kv_bytes_per_token or 0) * (found.context_tokens or 0)
    share = -(-100 * (needed + room) // found.total_bytes) / 100
    return share if share < 1 else None


def _gib(size: int) -> float:
    return round(size / GIB, 1)


def _whole(knobs: Mapping[str, Scalar], name: str) -> int | None:
    """A knob's value where it is a whole number above 0."""
    value = knobs.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _number(value: Scalar | None) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

"""Whether the GPUs that are asked for are there, and whether the model can be split over them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lab.configs.rules import Ruled
from lab.engine.model_facts import ModelFacts
from lab.findings import Finding
from lab.host.facts import HostFacts
from lab.records.workload import Scalar

_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def parallel_rules(knobs: Mapping[str, Scalar], facts: ModelFacts | None, host: HostFacts) -> Iterator[Ruled]:
    """Findings on the parallel sizes and on `devices`, each with the nearest value that works."""
    yield from _devices_exist(knobs, host)
    yield from _enough_gpus(knobs, host)
    if facts is not None:
        yield from _heads_divide(_size(knobs, _SIZES[0]), facts)


def _devices_exist(knobs: Mapping[str, Scalar], host: HostFacts) -> Iterator[Ruled]:
    named = named_devices(knobs)
    if named and host.kind == "cpu":
        yield "devices", Finding("devices-without-gpu", "warning", {"devices": ",".join(named)})
        return
    there = [str(gpu.index) for gpu in host.gpus]
    # an address like GPU-3f… or MIG-… is the driver's to find
    unknown = [name for name in named if name.isdecimal() and name not in there]
    if unknown:
        params = {"devices": ",".join(unknown), "there": ", ".join(there)}
        yield "devices", Finding("device-unknown", "error", params)
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        yield "devices", Finding("device-twice", "error", {"devices": ",".join(twice)})


def _enough_gpus(knobs: Mapping[str, Scalar], host: HostFacts) -> Iterator[Ruled]:
    sizes = [_size(knobs, name) for name in _SIZES]
    wanted = devices_wanted(knobs)
    if wanted == 1:
        return
    if host.kind == "cpu":
        yield _SIZES[0], Finding("shards-on-cpu", "warning", {"wanted": wanted})
        return
    there = len(named_devices(knobs)) or len(host.gpus)
    if wanted > there:
        params = {
            "wanted": wanted,
            "tensor": sizes[0],
            "pipeline": sizes[1],
            "data": sizes[2],
            "there": there,
            "nearest": max(1, there // (sizes[1] * sizes[2])),
        }
        largest = max(_SIZES, key=lambda name: _size(knobs, name))
        yield largest, Finding("more-shards-than-gpus", "error", params)


def _heads_divide(shards: int, facts: ModelFacts) -> Iterator[Ruled]:
    """Each shard has whole heads; grouped ones are divided, or repeated where there are fewer than shards."""
    heads, kv_heads = facts.shape.attention_heads, facts.shape.kv_heads
    if shards == 1 or heads is None:
        return
    params = {"tensor_parallel_size": shards, "heads": heads, "kv_heads": kv_heads}
    works = [size for size in range(1, heads + 1) if _splits(size, heads, kv_heads)]
    if shards not in works:
        nearest = max((size for size in works if size <= shards), default=1)
        yield _SIZES[0], Finding("heads-not-divisible", "error", {**params, "nearest": nearest})


def _splits(shards: int, heads: int, kv_heads: int | None) -> bool:
    if heads % shards:
        return False
    return kv_heads is None or kv_heads % shards == 0 or shards % kv_heads == 0


def devices_wanted(knobs: Mapping[str, Scalar]) -> int:
    """How many devices the parallel sizes need together."""
    return math.prod(_size(knobs, name) for name in _SIZES)


def named_devices(knobs: Mapping[str, Scalar]) -> list[str]:
    """The GPUs that the knob `devices` names; empty where it leaves the choice open."""
    value = knobs.get("devices")
    return [] if value is None else [part.strip() for part in str(value).split(",") if part.strip()]


def _size(knobs: Mapping[str, Scalar], name: str) -> int:
    value = knobs.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1

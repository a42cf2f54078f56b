"""What is known before a launch: the model's facts, the memory forecast, and the rules that need model and host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lab.configs.checks import placed_at_knob, sound_knobs
from lab.configs.pair import ConfigPair
from lab.configs.placeholders import with_variables
from lab.configs.rules import Ruled, knob_rules, length_rules
from lab.configs.workload_rules import longest_request
from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.forecast import MemoryForecast, chosen_gpus, context_in_force, forecast
from lab.engine.model import ModelRef, find_model
from lab.engine.model_facts import ModelFacts, read_model_facts
from lab.engine.overlays import apply_overlays
from lab.engine.parallel_rules import devices_wanted, parallel_rules
from lab.environment import Environment
from lab.findings import Finding, LabError, Param
from lab.host.facts import HostFacts
from lab.messages import word
from lab.plan import arm_pair
from lab.records.plan import Arm, Experiment
from lab.records.workload import Scalar, Workload

_LONGER_ALLOWED = "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
# flags that change the model's own shape or context: its config.json is then not what the engine will run with
_RESHAPING = ("hf_overrides", "rope_scaling", "rope_parameters", "config_format", "hf_config_path")
_LOADED_FROM_FILES = ("auto", "safetensors", "hf")
_FP8_CAPABILITY, _BF16_CAPABILITY = (8, 9), (8, 0)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A launch before it happens. `knobs` are those that this host gets, overlays included.

    `facts` and `forecast` are None where the model is not on this disk; `findings` are the errors and warnings of the
    rules, each at its place in the pair; those about the memory at this moment stand in the forecast.
    """

    model: ModelRef
    knobs: Mapping[str, Scalar]
    facts: ModelFacts | None
    forecast: MemoryForecast | None
    findings: tuple[Finding, ...]


def look_ahead(
    pair: ConfigPair,
    definition: EngineDefinition,
    env: Environment,
    host: HostFacts,
    *,
    explicit: frozenset[str] = frozenset(),
    workload: Workload | None = None,
    told: ModelFacts | None = None,
) -> Outlook:
    """What a launch of this pair comes to. Raises nothing.

    `workload` None leaves the lengths of requests out. `told` is what the hub says of a model that is not here.
    """
    # a variable that is not set stays as it stands in the file: the checks of the pair say so
    with contextlib.suppress(LabError):
        pair = with_variables(pair, env.variables)
    asked = sound_knobs(pair.engine_knobs())
    knobs, _overlays, _warnings = apply_overlays(definition.overlay, asked, explicit, host.kind)
    model = find_model(str(asked.get("model", "")), env)
    facts = read_model_facts(model.name, model.folder) if model.folder is not None else told
    ruled = list(_rules(definition, knobs, asked, facts, host, env))
    if workload is not None:
        ruled += _lengths(asked, facts, workload)
    findings = [placed_at_knob(pair, name, finding) for name, finding in ruled]
    return Outlook(
        model,
        knobs,
        facts,
        forecast(facts, knobs, host) if facts is not None and definition.canonical else None,
        (*_of_the_files(model, facts, asked, env), *findings),
    )


def look_ahead_arms(experiment: Experiment, env: Environment, host: HostFacts) -> tuple[Finding, ...]:
    """The same for the arms of an experiment that run on an engine of this host, memory included.

    What holds for all of them is told once, anything else with its arm's name. Advice is left out.
    """
    told: dict[str, tuple[Finding, ...]] = {}
    for arm in experiment.arms:
        if arm.target == "engine" and arm.engine is not None:
            told[arm.name] = _of_one_arm(experiment, arm, env, host)
    common = [each for each in next(iter(told.values()), ()) if all(each in found for found in told.values())]
    single = [
        Finding("arm-rule", each.severity, {"arm": name, "rule": each.code, "reason": word(each.code, each.params)})
        for name, found in told.items()
        for each in found
        if each not in common
    ]
    return (*common, *single)


def _of_one_arm(experiment: Experiment, arm: Arm, env: Environment, host: HostFacts) -> tuple[Finding, ...]:
    try:
        definition, pair = load_definition(str(arm.engine), env.config_dir), arm_pair(experiment, arm)
    except LabError:
        return ()  # told by the checks of the file
    ahead = look_ahead(pair, definition, env, host, explicit=frozenset(arm.set), workload=experiment.workload)
    memory = ahead.forecast.findings if ahead.forecast is not None else ()
    found = (replace(each, file=None, line=None, column=None) for each in (*ahead.findings, *memory))
    return tuple(each for each in found if each.severity != "advice")


def _of_the_files(
    model: ModelRef, facts: ModelFacts | None, asked: Mapping[str, Scalar], env: Environment
) -> tuple[Finding, ...]:
    """What lacks in the model's folder, unless the model's own finding says it or weights are not loaded from there.

    What lacks in the hub's cache the engine fetches itself.
    """
    if facts is None or model.problem is not None or str(asked.get("load_format", "auto")) not in _LOADED_FROM_FILES:
        return ()
    if model.source == "cache" and facts.problems and env.variables.get("HF_HUB_OFFLINE", "0") in ("", "0"):
        return (Finding("model-partly-here", "warning", {"model": model.name}),)
    return facts.problems


def _rules(
    definition: EngineDefinition,
    knobs: Mapping[str, Scalar],
    asked: Mapping[str, Scalar],
    facts: ModelFacts | None,
    host: HostFacts,
    env: Environment,
) -> Iterator[Ruled]:
    """Rules of vLLM 0.32, for engines that have its knobs; an engine with other ones has other rules."""
    if not definition.canonical:
        return
    yield from parallel_rules(knobs, facts, host)
    yield from _device_rules(knobs, facts, host)
    if facts is None or any(name in knobs for name in _RESHAPING):
        return
    context = facts.shape.context_tokens
    limit = asked.get("max_model_len")
    if context is not None and isinstance(limit, int) and limit > context:
        allowed = env.variables.get(_LONGER_ALLOWED, "0") not in ("", "0")
        params: dict[str, Param] = {"max_model_len": limit, "context": context, "model": facts.name}
        yield "max_model_len", Finding("context-beyond-model", "warning" if allowed else "error", params)
    yield from _with_the_models_context(asked, facts)
    yield from _blocks(knobs, facts)


def _with_the_models_context(asked: Mapping[str, Scalar], facts: ModelFacts) -> Iterator[Ruled]:
    """The rules between knobs again, where max_model_len is left to the model."""
    context = context_in_force(facts, asked)
    if context is None or "max_model_len" in asked:
        return
    known = {finding.code for _name, finding in knob_rules(asked)}
    for name, finding in knob_rules({**asked, "max_model_len": context}):
        if finding.code not in known:
            yield name, finding


def _blocks(knobs: Mapping[str, Scalar], facts: ModelFacts) -> Iterator[Ruled]:
    """A cache of a fixed number of blocks must hold one request of the full context."""
    blocks, context = knobs.get("num_gpu_blocks_override"), context_in_force(facts, knobs)
    size = knobs.get("block_size")
    if not isinstance(blocks, int) or not isinstance(size, int) or context is None or facts.shape.attention != "full":
        return
    if blocks * size < context:
        params = {
            "blocks": blocks,
            "block_size": size,
            "tokens": blocks * size,
            "max_model_len": context,
            "nearest": -(-context // size),
        }
        yield "num_gpu_blocks_override", Finding("blocks-below-context", "error", params)


def _device_rules(knobs: Mapping[str, Scalar], facts: ModelFacts | None, host: HostFacts) -> Iterator[Ruled]:
    """What the chosen GPUs cannot do. Kernels differ, so a cache type is a warning; bfloat16 is refused."""
    known = [(gpu, _capability(gpu.capability)) for gpu in chosen_gpus(knobs, host, devices_wanted(knobs))]
    for gpu, capability in known:
        if capability is None:
            continue
        params = {"gpu": gpu.name, "capability": gpu.capability, "value": knobs.get("kv_cache_dtype")}
        if str(knobs.get("kv_cache_dtype", "")).startswith("fp8") and capability < _FP8_CAPABILITY:
            yield "kv_cache_dtype", Finding("fp8-cache-on-old-gpu", "warning", params)
            break
    for gpu, capability in known:
        if knobs.get("dtype") == "bfloat16" and capability is not None and capability < _BF16_CAPABILITY:
            yield "dtype", Finding("bfloat16-on-old-gpu", "error", {"gpu": gpu.name, "capability": gpu.capability})
            break
    quantised = facts.shape.quantization if facts is not None else None
    if knobs.get("kv_cache_dtype") == "fp8_e5m2" and quantised == "fp8":
        yield "kv_cache_dtype", Finding("fp8-e5m2-with-fp8-weights", "error")
    size = knobs.get("block_size")
    if host.kind == "cuda" and isinstance(size, int) and size % 16:
        yield (
            "block_size",
            Finding("block-size-odd", "warning", {"block_size": size, "nearest": max(16, size // 16 * 16)}),
        )


def _lengths(asked: Mapping[str, Scalar], facts: ModelFacts | None, workload: Workload) -> list[Ruled]:
    """Whether the longest request fits where max_model_len is left to the model; a set one is checked with the pair."""
    context = context_in_force(facts, asked) if facts is not None else None
    if context is None or "max_model_len" in asked:
        return []
    return list(length_rules({"max_model_len": context}, *longest_request(workload.model_dump())))


def _capability(text: str | None) -> tuple[int, int] | None:
    major, _, minor = (text or "").partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None

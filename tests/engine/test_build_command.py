"""Knobs become flags, the host's differences are shown, secrets stay out."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.engine.catalogue import Catalogue, Flag
from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition
from lab.engine.model import ModelRef
from lab.engine.overlays import Overlay
from lab.findings import Finding
from lab.host.facts import HostKind
from lab.messages import word_finding
from lab.records.workload import Scalar

FOLDER = ModelRef("smol", Path("/models/smol"), "folder", "smol")
HUB = ModelRef("org/model", None, "hub", "org/model")
CATALOGUE = Catalogue(
    distribution="vllm",
    version="0.32.0",
    flags=(
        Flag(name="max_num_seqs", flag="--max-num-seqs", type="int"),
        Flag(name="kv_cache_dtype", flag="--kv-cache-dtype", type="str", choices=("auto", "fp8")),
        Flag(name="async_scheduling", flag="--async-scheduling", off="--no-async-scheduling", type="bool"),
        Flag(name="disable_log_stats", flag="--disable-log-stats", type="bool"),
        Flag(name="max_model_len", flag="--max-model-len", type="human_readable_int_or_auto"),
    ),
)


def command(
    definition: EngineDefinition,
    knobs: dict[str, Scalar],
    *explicit: str,
    host: HostKind = "cuda",
    model: ModelRef = FOLDER,
    devices: str | None = None,
    variables: dict[str, str] | None = None,
    catalogue: Catalogue | None = None,
) -> EngineCommand:
    return build_command(
        definition,
        knobs,
        frozenset(explicit),
        host_kind=host,
        model=model,
        port=8123,
        python=Path("/venv/bin/python"),
        devices=devices,
        variables=variables or {},
        catalogue=catalogue,
    )


def test_the_whole_command_of_a_gpu_host(vllm: EngineDefinition) -> None:
    built = command(vllm, {"model": "smol", "max_num_seqs": 64, "gpu_memory_utilization": 0.9, "block_size": 16})
    assert built.shown == (
        "/venv/bin/python -m vllm.entrypoints.openai.api_server --model /models/smol --served-model-name smol "
        "--host 127.0.0.1 --port 8123 --max-num-seqs 64 --gpu-memory-utilization 0.9 --block-size 16"
    )
    assert (built.overlays, built.findings) == ((), ())


@pytest.mark.parametrize(
    ("value", "flag"), [(True, "--enable-chunked-prefill"), (False, "--no-enable-chunked-prefill")]
)
def test_a_switch_says_yes_and_no(vllm: EngineDefinition, value: bool, flag: str) -> None:
    assert command(vllm, {"enable_chunked_prefill": value}).argv[-1] == flag


def test_a_value_that_starts_like_a_flag_is_tied_to_its_own(vllm: EngineDefinition) -> None:
    assert command(vllm, {"max_model_len": -1}).argv[-1] == "--max-model-len=-1"


def test_a_cpu_gets_its_overlays_and_they_are_shown(vllm: EngineDefinition) -> None:
    built = command(vllm, {"gpu_memory_utilization": 0.9, "block_size": 16}, host="cpu")
    assert built.overlays == (
        Overlay("enforce_eager", None, True, "overlay-cpu-eager"),
        Overlay("block_size", 16, 128, "overlay-cpu-block-size"),
        Overlay("gpu_memory_utilization", 0.9, 0.3, "overlay-cpu-memory"),
    )
    assert built.flags == {"gpu_memory_utilization": 0.3, "block_size": 128, "enforce_eager": True}


@pytest.mark.parametrize("knobs", [{"block_size": 32, "gpu_memory_utilization": 0.2, "enforce_eager": False}])
def test_values_that_fit_a_cpu_stay(vllm: EngineDefinition, knobs: dict[str, Scalar]) -> None:
    built = command(vllm, knobs, host="cpu")
    assert (built.overlays, built.flags) == ((), knobs)


def test_an_unset_share_of_memory_is_bounded_on_a_cpu(vllm: EngineDefinition) -> None:
    assert command(vllm, {}, host="cpu").flags["gpu_memory_utilization"] == 0.3


def test_what_an_arm_sets_is_never_overlaid_but_told(vllm: EngineDefinition) -> None:
    knobs: dict[str, Scalar] = {"block_size": 16, "gpu_memory_utilization": 0.8, "enforce_eager": False}
    built = command(vllm, knobs, *knobs, host="cpu")
    assert (built.flags, built.overlays) == (knobs, ())
    assert [(f.code, f.severity, f.params["knob"]) for f in built.findings] == [
        ("overlay-not-applied", "warning", "block_size"),
        ("overlay-not-applied", "warning", "gpu_memory_utilization"),
    ]


def test_any_flag_of_the_installed_engine_is_a_knob(vllm: EngineDefinition) -> None:
    built = command(vllm, {"async_scheduling": False, "disable_log_stats": True}, catalogue=CATALOGUE)
    assert built.argv[-2:] == ("--no-async-scheduling", "--disable-log-stats")


def test_a_flag_the_engine_lacks_is_refused_with_the_nearest(vllm: EngineDefinition) -> None:
    built = command(vllm, {"max_num_sequences": 3}, catalogue=CATALOGUE)
    assert "--max-num-sequences" not in built.argv
    assert [(f.code, f.severity, f.params["nearest"]) for f in built.findings] == [
        ("unknown-flag", "error", "max_num_seqs")
    ]


def test_a_value_outside_the_engines_choices_is_refused(vllm: EngineDefinition) -> None:
    built = command(vllm, {"kv_cache_dtype": "fp9"}, catalogue=CATALOGUE)
    assert [(f.code, f.params["choices"]) for f in built.findings] == [("flag-choice", "auto, fp8")]


def test_without_a_catalogue_an_unknown_flag_is_passed_on_with_a_warning(vllm: EngineDefinition) -> None:
    built = command(vllm, {"async_scheduling": True})
    assert [(f.code, f.severity) for f in built.findings] == [("flag-unchecked", "warning")]
    assert built.argv[-1] == "--async-scheduling"


@pytest.mark.parametrize(("explicit", "severity"), [((), "warning"), (("swap_space",), "error")])
def test_a_removed_flag_is_never_dropped_silently(
    vllm: EngineDefinition, explicit: tuple[str, ...], severity: str
) -> None:
    built = command(vllm, {"swap_space": 4}, *explicit, catalogue=CATALOGUE)
    assert [(f.code, f.severity, f.params["nearest"]) for f in built.findings] == [
        ("knob-absent", severity, "kv_offloading_size")
    ]
    assert "--swap-space" not in built.argv


@pytest.mark.parametrize("explicit", [(), ("speculative_model",)])
def test_an_option_of_an_earlier_release_is_refused_with_what_took_its_place(
    vllm: EngineDefinition, explicit: tuple[str, ...]
) -> None:
    built = command(vllm, {"speculative_model": "org/draft"}, *explicit, catalogue=CATALOGUE)
    (finding,) = built.findings
    assert (finding.code, finding.severity) == ("flag-gone", "error")
    assert "speculative_config took its place" in word_finding(finding)


def test_no_kv_cache_is_refused_and_the_cache_itself_needs_no_flag(vllm: EngineDefinition) -> None:
    off = command(vllm, {"use_cache": False})
    on = command(vllm, {"use_cache": True})
    assert [f.severity for f in off.findings] == ["error"]
    assert "cannot turn its KV cache off" in word_finding(off.findings[0])
    assert [f.severity for f in on.findings] == ["advice"]
    assert on.flags == {}


@pytest.mark.parametrize("knob", ["api_key", "api-key", "served_model_name", "config"])
def test_what_the_lab_sets_itself_cannot_be_a_knob(vllm: EngineDefinition, knob: str) -> None:
    built = command(vllm, {knob: "sk-test-LEAK-0001"})
    assert [f.code for f in built.findings] == ["flag-owned-by-the-lab"]
    assert "LEAK" not in built.shown


def test_host_and_port_of_the_pair_change_nothing(vllm: EngineDefinition) -> None:
    built = command(vllm, {"host": "192.0.2.7", "port": 1})
    assert built.argv[built.argv.index("--host") + 1] == "127.0.0.1"
    assert built.argv[built.argv.index("--port") + 1] == "8123"


def test_the_problem_of_a_model_is_a_finding(vllm: EngineDefinition) -> None:
    broken = ModelRef("x", Path("/x"), "folder", "x", problem=Finding("model-folder-missing"))
    assert [f.code for f in command(vllm, {}, model=broken).findings] == ["model-folder-missing"]


def test_secrets_of_the_user_do_not_reach_the_engine(vllm: EngineDefinition) -> None:
    secrets = {
        "TAOTOKEN_API_KEY": "a",
        "OPENAI_API_KEY": "b",
        "MY_GATEWAY_KEY": "c",
        "LAB_DATABASE_URL": "d",
        "X_TOKEN": "e",
    }
    kept = {"PATH": "/bin", "HF_TOKEN": "h", "TOKENIZERS_PARALLELISM": "false", "LD_LIBRARY_PATH": "/cuda"}
    environment = command(vllm, {}, variables={**secrets, **kept}).environment
    assert not set(secrets) & set(environment)
    assert kept.items() <= environment.items()


def test_the_engines_own_key_is_passed_on_and_named_only_where_the_user_set_it(vllm: EngineDefinition) -> None:
    keyed = command(vllm, {}, variables={"VLLM_API_KEY": "sk-test-LEAK-0001"})
    assert (keyed.environment["VLLM_API_KEY"], keyed.api_key_env) == ("sk-test-LEAK-0001", "VLLM_API_KEY")
    assert "LEAK" not in keyed.shown + repr(keyed)
    assert command(vllm, {}).api_key_env is None


def test_the_environment_bends_nothing(vllm: EngineDefinition) -> None:
    variables = {"VLLM_CPU_KVCACHE_SPACE": "8", "VLLM_ATTENTION_BACKEND": "FLASH_ATTN"}
    environment = command(vllm, {}, variables=variables).environment
    assert "VLLM_CPU_KVCACHE_SPACE" not in environment
    assert environment["VLLM_ATTENTION_BACKEND"] == "FLASH_ATTN"
    assert environment["VLLM_NO_USAGE_STATS"] == environment["VLLM_SERVER_DEV_MODE"] == "1"


@pytest.mark.parametrize(("model", "offline"), [(FOLDER, "1"), (HUB, None)])
def test_the_hub_is_shut_only_for_a_model_on_disk(vllm: EngineDefinition, model: ModelRef, offline: str | None) -> None:
    assert command(vllm, {}, model=model).environment.get("HF_HUB_OFFLINE") == offline


@pytest.mark.parametrize(("knobs", "devices"), [({"devices": "0,1"}, None), ({}, "0,1"), ({"devices": "3"}, "0,1")])
def test_gpus_are_chosen_by_the_variable(vllm: EngineDefinition, knobs: dict[str, Scalar], devices: str | None) -> None:
    built = command(vllm, {**knobs, "tensor_parallel_size": 2}, devices=devices)
    assert built.environment["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert built.argv[-2:] == ("--tensor-parallel-size", "2")


def _with_switches(*names: str) -> Catalogue:
    more = tuple(Flag(name=name, flag=f"--{name.replace('_', '-')}", type="bool") for name in names)
    return CATALOGUE.model_copy(update={"flags": (*CATALOGUE.flags, *more)})


DETAILS, METRICS = "enable_prompt_tokens_details", "enable_per_request_metrics"


def test_an_engine_that_can_tell_more_about_each_request_is_asked_to(vllm: EngineDefinition) -> None:
    built = command(vllm, {"max_num_seqs": 8}, catalogue=_with_switches(DETAILS, METRICS))
    assert built.shown.endswith("--max-num-seqs 8 --enable-prompt-tokens-details --enable-per-request-metrics")
    assert dict(built.flags) == {"max_num_seqs": 8}


def test_switches_that_the_engine_lacks_or_refuses_are_left_out(vllm: EngineDefinition) -> None:
    assert "--enable" not in command(vllm, {}, catalogue=CATALOGUE).shown
    assert "--enable" not in command(vllm, {}).shown
    quiet = command(vllm, {"disable_log_stats": True}, catalogue=_with_switches(DETAILS, METRICS))
    assert METRICS.replace("_", "-") not in quiet.shown
    assert "--enable-prompt-tokens-details" in quiet.argv


def test_a_switch_that_the_pair_sets_is_not_set_twice(vllm: EngineDefinition) -> None:
    built = command(vllm, {"enable-prompt-tokens-details": True}, catalogue=_with_switches(DETAILS))
    assert built.argv.count("--enable-prompt-tokens-details") == 1

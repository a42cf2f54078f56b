from __future__ import annotations

import json
import shlex

import pytest
import yaml

from lab.configs.experiment_file import experiment_from_parts
from lab.configs.pair import read_pair
from lab.engine.definition import load_definition
from lab.environment import ROOT
from lab.export import ExportFile, export_arm, write_export
from lab.findings import LabError

EFFECTIVE = {"model": "/models/smol", "device": "cpu", "block_size": 128, "max_model_len": 4096, "enforce_eager": True}


@pytest.fixture
def experiment():
    pair = read_pair(ROOT / "configs").with_knobs({"devices": "0,1", "async_scheduling": False})
    arms = [
        {"name": "no: 8 # yes", "set": {"max_num_seqs": 8, "kv_cache_dtype": "fp8", "enable_chunked_prefill": True}},
        {"name": "gw", "target": "gateway"},
    ]
    return experiment_from_parts("Grid", arms=arms, pair=pair)


@pytest.fixture
def files(experiment):
    definition = load_definition("vllm", ROOT / "configs")
    return {file.name: file.text for file in export_arm(experiment, "no: 8 # yes", definition, EFFECTIVE)}


def test_the_two_files_differ_only_in_the_values_of_the_arm(experiment, files):
    before = experiment.settings_text.split("\n")
    after = files["settings.json"].split("\n")
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        ('    "max_num_seqs": 32,', '    "max_num_seqs": 8,'),
        ('    "kv_cache_dtype": "auto",', '    "kv_cache_dtype": "fp8",'),
    ]
    assert files["config.toml"] == experiment.config_text


def test_yaml_holds_the_arms_knobs_as_vllm_reads_them(files):
    assert yaml.safe_load(files["vllm.yaml"]) == {
        "model": "/models/smol",
        "served-model-name": "smollm2-135m-instruct",
        "host": "127.0.0.1",
        "port": 8000,
        "max-num-batched-tokens": 4096,
        "enable-chunked-prefill": True,
        "long-prefill-token-threshold": 512,
        "max-num-seqs": 8,
        "max-model-len": 8192,
        "gpu-memory-utilization": 0.9,
        "kv-cache-dtype": "fp8",
        "block-size": 16,
        "async-scheduling": False,
    }


def test_differences_of_the_measuring_host_stand_in_comments_only(files):
    comments = [line for line in files["vllm.yaml"].split("\n") if line.startswith("#")]
    text = "\n".join(comments)
    assert "#   block_size = 128 instead of 16" in text
    assert "#   gpu_memory_utilization = 0.3 instead of 0.9" in text
    assert "#   enforce_eager = true" in text
    assert "# Measured with max_model_len = 4096: the engine changed it from 8192." in text


def test_launch_text_names_the_command_and_the_devices(files):
    lines = files["launch.txt"].split("\n")
    assert "vllm serve --config vllm.yaml" in lines
    assert "export CUDA_VISIBLE_DEVICES=0,1" in lines
    cpu = next(line for line in lines if line.startswith("python -m vllm"))
    assert shlex.split(cpu)[-5:] == ["--enforce-eager", "--block-size", "128", "--gpu-memory-utilization", "0.3"] or (
        {"--enforce-eager", "--block-size", "128", "0.3"} <= set(shlex.split(cpu))
    )
    whole = next(line for line in lines if line.startswith("vllm serve /models"))
    assert "--no-async-scheduling" in shlex.split(whole)


def test_gateway_arm_has_the_two_files_only(experiment):
    files = export_arm(experiment, "gw", None)
    assert [file.name for file in files] == ["settings.json", "config.toml"]


def test_keys_written_out_become_placeholders(experiment):
    config = experiment.config_text.replace("${TAOTOKEN_API_KEY}", "sk-made-up-0001")
    settings = experiment.settings_text.replace("TAOTOKEN_API_KEY", "sk-made-up-0002")
    old = experiment.model_copy(update={"config_text": config + "# sk-made-up-0003\n", "settings_text": settings})
    files = {file.name: file.text for file in export_arm(old, "gw", None)}
    assert "made-up" not in "".join(files.values())
    assert 'api_key = "${TAOTOKEN_API_KEY}"' in files["config.toml"]
    assert json.loads(files["settings.json"])["api_key_env"] == "TAOTOKEN_API_KEY"


def test_unknown_arm_is_named(experiment):
    with pytest.raises(LabError) as caught:
        export_arm(experiment, "nope", None)
    assert caught.value.findings[0].code == "no-such-arm"


def test_writing_never_replaces_another_text(tmp_path):
    files = (ExportFile("a.txt", "one\n"), ExportFile("b.txt", "two\n"))
    write_export(files, tmp_path / "new" / "folder")
    write_export(files, tmp_path / "new" / "folder")
    other = (ExportFile("a.txt", "ONE\n"), ExportFile("c.txt", "x"))
    with pytest.raises(LabError) as caught:
        write_export(other, tmp_path / "new" / "folder")
    assert caught.value.findings[0].code == "export-exists"
    assert not (tmp_path / "new" / "folder" / "c.txt").exists()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", ".."])
def test_names_stay_inside_the_folder(tmp_path, name):
    with pytest.raises(LabError):
        write_export((ExportFile(name, "x"),), tmp_path)


def test_another_engine_is_started_by_its_own_command_in_its_own_words():
    pair = read_pair(ROOT / "configs")
    arms = [{"name": "a", "engine": "sglang", "set": {"max_num_seqs": 8, "enable_prefix_caching": False}}]
    definition = load_definition("sglang", ROOT / "configs")
    files = {
        file.name: file.text for file in export_arm(experiment_from_parts("E", arms=arms, pair=pair), "a", definition)
    }
    assert set(files) == {"settings.json", "config.toml", "launch.txt"}
    line = next(each for each in files["launch.txt"].split("\n") if each.startswith("python -m sglang.launch_server"))
    assert {"--max-running-requests", "8", "--disable-radix-cache"} <= set(shlex.split(line))
    assert "pip install 'sglang[all]'" in files["launch.txt"]


def test_what_an_engine_takes_with_each_request_is_told():
    pair = read_pair(ROOT / "configs")
    arms = [{"name": "off", "engine": "transformers", "set": {"use_cache": False, "temperature": 0}}]
    definition = load_definition("transformers", ROOT / "configs")
    experiment = experiment_from_parts("E", arms=arms, pair=pair)
    launch = next(file.text for file in export_arm(experiment, "off", definition) if file.name == "launch.txt")
    carried = next(line for line in launch.split("\n") if line.startswith("# Each request"))
    fields = json.loads(carried.partition(": ")[2])
    assert json.loads(fields["generation_config"])["use_cache"] is False
    assert "max_num_seqs" in next(line for line in launch.split("\n") if "left out" in line)


def test_an_option_that_was_never_read_is_written_and_not_called_left_out():
    pair = read_pair(ROOT / "configs")
    arms = [{"name": "a", "engine": "sglang", "set": {"watchdog_timeout": 60, "num_gpu_blocks_override": 8}}]
    definition = load_definition("sglang", ROOT / "configs")
    experiment = experiment_from_parts("E", arms=arms, pair=pair)
    launch = next(file.text for file in export_arm(experiment, "a", definition) if file.name == "launch.txt")
    assert "--watchdog-timeout 60" in launch
    left_out = next(line for line in launch.split("\n") if "left out" in line)
    assert "watchdog_timeout" not in left_out and "num_gpu_blocks_override" in left_out

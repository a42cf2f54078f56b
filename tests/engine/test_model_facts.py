"""Models on disk: whole ones, half ones, broken ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.engine.model_config import read_shape
from lab.engine.model_facts import read_model_facts
from tests.engine import model_configs as published
from tests.engine.model_folders import safetensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of two weight files and their index."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(published.LLAMA_3_8B))
    safetensors(made / "model-00001-of-00002.safetensors", {"a": ("BF16", [4, 8], 64)})
    safetensors(made / "model-00002-of-00002.safetensors", {"b": ("BF16", [2], 4), "c": ("F32", [1, 3], 12)})
    places = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (made / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return made


def test_headers_tell_bytes_and_parameters(folder: Path) -> None:
    found = read_model_facts("m", folder)
    assert (found.weights.bytes, found.parameters, found.counted) == (80, 37, False)
    assert found.weights.by_type == {"bfloat16": 68, "float32": 12}
    assert found.complete
    assert found.disk_bytes == sum(file.stat().st_size for file in folder.iterdir())


def test_the_real_small_model(smol_model: Path) -> None:
    found = read_model_facts("smol", smol_model)
    assert found.parameters == 134_515_008
    assert found.weights.bytes == 2 * 134_515_008
    shape = found.shape
    assert (shape.layers, shape.kv_heads, shape.head_size, shape.context_tokens) == (30, 3, 64, 8192)
    assert (shape.dtype, shape.quantization, found.complete) == ("bfloat16", None, True)


def test_a_missing_weight_file_makes_it_incomplete(folder: Path) -> None:
    (folder / "model-00002-of-00002.safetensors").unlink()
    found = read_model_facts("m", folder)
    assert [each.code for each in found.problems] == ["model-weights-missing"]
    assert (found.complete, found.weights.bytes) == (False, None)


def test_a_weight_file_that_is_cut_off_is_named(folder: Path) -> None:
    cut = folder / "model-00001-of-00002.safetensors"
    cut.write_bytes(cut.read_bytes()[:-1])
    found = read_model_facts("m", folder)
    assert [(each.code, each.params["files"]) for each in found.problems] == [("model-weights-broken", cut.name)]


@pytest.mark.parametrize("content", [b"", b"\x00" * 16, b"version https://git-lfs.github.com/spec/v1\n" * 3])
def test_what_is_no_weight_file_is_named(folder: Path, content: bytes) -> None:
    (folder / "model-00001-of-00002.safetensors").write_bytes(content)
    assert [each.code for each in read_model_facts("m", folder).problems] == ["model-weights-broken"]


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_broken_config_is_a_finding(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    assert [each.code for each in read_model_facts("m", folder).problems] == ["model-config-broken"]


def test_a_folder_without_weights_or_config(folder: Path) -> None:
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    assert [each.code for each in read_model_facts("m", folder).problems] == ["model-without-weights"]
    (folder / "config.json").unlink()
    assert [each.code for each in read_model_facts("m", folder).problems] == ["model-folder-incomplete"]
    shutil.rmtree(folder)
    assert [each.code for each in read_model_facts("m", folder).problems] == ["model-folder-missing"]


def test_other_weight_formats_count_by_size(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(published.LLAMA_3_8B))
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(1000))
    found = read_model_facts("m", tmp_path)
    assert (found.weights.format, found.weights.bytes, found.complete) == ("bin", 1000, True)


@pytest.mark.parametrize(
    ("change", "limit", "default"),
    [
        ({}, 8192, 8192),
        ({"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, 32768, 32768),
        ({"rope_scaling": {"type": "dynamic", "factor": 2}}, 16384, 16384),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 8192, 8192),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, 8192, 8192),
        ({"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 4096}, 8192, 4096),
        ({"seq_length": 2048}, 2048, 2048),
        ({"model_max_length": 131072}, 131072, 131072),
        ({"max_position_embeddings": None}, None, None),
    ],
)
def test_the_longest_context_is_the_one_vllm_derives(change: dict[str, Any], limit: int | None, default: int) -> None:
    shape = read_shape({**published.LLAMA_3_8B, **change})
    assert (shape.context_tokens, shape.default_context_tokens) == (limit, default)


def test_the_text_model_inside_another_is_read() -> None:
    outer = {"architectures": ["X"], "model_type": "x", "torch_dtype": "bfloat16", "text_config": published.QWEN_25_7B}
    shape = read_shape(outer)
    assert (shape.layers, shape.kv_heads, shape.dtype, shape.architecture) == (28, 4, "bfloat16", "X")

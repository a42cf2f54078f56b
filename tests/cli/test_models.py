"""`lab models` tells of models before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.cli.app import main
from lab.cli.models import models
from tests.engine.model_configs import LLAMA_3_8B
from tests.engine.model_folders import model_folder
from tests.servers.hub_server import Hub, serve_hub


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models and an empty cache of the hub."""
    monkeypatch.setenv("LAB_MODEL_DIRS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    model_folder(tmp_path / "models" / "org" / "Whole", LLAMA_3_8B)
    broken = model_folder(tmp_path / "models" / "Half", LLAMA_3_8B)
    (broken / "model.safetensors").unlink()
    return tmp_path / "models"


def told(*arguments: str) -> Result:
    return CliRunner().invoke(models, list(arguments), standalone_mode=True)


def test_models_in_folders_are_listed_with_what_they_lack(folders: Path) -> None:
    found = {Path(each["name"]).name: each for each in json.loads(told("--json").stdout)["models"]}
    assert set(found) == {"Whole", "Half"}
    whole = found["Whole"]
    assert (whole["complete"], whole["context_tokens"], whole["kv_heads"], whole["dtype"]) == (
        True, 8192, 8, "bfloat16",
    )  # fmt: skip
    assert found["Half"]["problems"] == ["model-without-weights"]


def test_the_live_pairs_model_is_listed_wherever_it_lies(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = model_folder(tmp_path / "elsewhere" / "Mine", LLAMA_3_8B)
    configs = tmp_path / "configs"
    configs.mkdir()
    (configs / "settings.json").write_text(json.dumps({"model": str(elsewhere), "decode": {"max_num_seqs": 8}}))
    (configs / "config.toml").write_text("[request]\nmax_tokens = 8\n")
    monkeypatch.setenv("LAB_CONFIG_DIR", str(configs))
    listed = json.loads(told("--json").stdout)["models"]
    assert [Path(each["name"]).name for each in listed if each["name"] == str(elsewhere)] == ["Mine"]
    (configs / "settings.json").write_text("{")
    assert len(json.loads(told("--json").stdout)["models"]) == len(listed) - 1


def test_one_model_by_its_folder(folders: Path) -> None:
    assert main(["models", str(folders / "org" / "Whole")]) == 0
    assert main(["models", str(folders / "Half")]) == 1
    assert main(["models", str(folders / "none")]) == 2


def test_the_hub_is_asked_only_when_told_to(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"config.json": json.dumps(LLAMA_3_8B).encode(), "model.safetensors": bytes(2_000_000)}
    with serve_hub(Hub(models={"org/far": files})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        found = json.loads(told("org/far", "--hub", "--json").stdout)
    assert (found["gated"], found["kv_heads"]) == (False, 8)
    assert found["download_bytes"] == 2_000_000 + len(files["config.json"])
    assert found["parameters"] == 8_030_261_248
    assert main(["models", "org/far"]) == 1

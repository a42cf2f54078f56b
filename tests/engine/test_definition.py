"""An engine's definition is checked when it is read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.environment import ROOT
from lab.findings import LabError


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "configs" / "engines", tmp_path / "engines")
    return tmp_path


def change(config_dir: Path, old: str, new: str) -> None:
    file = config_dir / "engines" / "vllm.toml"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")


def test_vllm_is_defined(vllm: EngineDefinition) -> None:
    assert (vllm.kind, vllm.api_key_variable, vllm.devices_variable) == ("vllm", "VLLM_API_KEY", "CUDA_VISIBLE_DEVICES")
    assert "vllm" in list_engines(ROOT / "configs")


def test_a_definition_cannot_be_changed(vllm: EngineDefinition) -> None:
    with pytest.raises(ValueError, match="frozen"):
        vllm.kind = "other"  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["vlm", "../vllm", ""])
def test_an_unknown_engine_is_told_with_the_known_ones(config_dir: Path, kind: str) -> None:
    with pytest.raises(LabError) as caught:
        load_definition(kind, config_dir)
    finding = caught.value.findings[0]
    assert (finding.code, finding.params["known"]) == ("unknown-engine", ", ".join(list_engines(ROOT / "configs")))


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('label = "vLLM"', "label = 7", "label"),
        ("[ready]", "[ready]\nspeed = 1", "ready.speed"),
        ("Starting to load model|", "(", "ready.phase.3.pattern"),
        ('rule = "at-most"', 'rule = "about"', "overlay.2.rule"),
        ('kind = "vllm"', "kind = ", None),
    ],
)
def test_a_broken_definition_names_the_place(config_dir: Path, old: str, new: str, place: str | None) -> None:
    change(config_dir, old, new)
    with pytest.raises(LabError) as caught:
        load_definition("vllm", config_dir)
    finding = caught.value.findings[0]
    assert (finding.code, finding.params["place"]) == ("engine-definition-broken", place)

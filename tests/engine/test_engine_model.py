"""What a model's name stands for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.engine.default_model import DEFAULT_MODEL, ModelNotMadeError, make_default_model
from lab.engine.model import find_model
from lab.environment import ROOT, read_environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Some-Model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"max_position_embeddings": 8192}))
    (made / "tokenizer.json").write_text("{}")
    return made


def test_a_folder_is_served_under_its_own_name(folder: Path) -> None:
    found = find_model(str(folder), read_environment())
    assert (found.source, found.path, found.served_name) == ("folder", folder, "Some-Model")
    assert (found.tokenizer_dir, found.max_position_embeddings, found.problem) == (folder, 8192, None)


def test_the_context_of_a_model_with_an_inner_text_model_is_found(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"text_config": {"max_position_embeddings": 4096}}))
    assert find_model(str(folder), read_environment()).max_position_embeddings == 4096


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("/no/such/model", "model-folder-missing"),
        ("./no-such-model", "model-folder-missing"),
        (str(ROOT / "tests"), "model-folder-incomplete"),
        ("two words", "model-name-invalid"),
        ("a/b/c", "model-name-invalid"),
        ("", "model-unset"),
        ("--trust-remote-code", "model-name-invalid"),
    ],
)
def test_a_wrong_model_is_a_finding(name: str, code: str) -> None:
    problem = find_model(name, read_environment()).problem
    assert problem is not None
    assert (problem.code, problem.severity) == (code, "error")


def test_a_name_that_is_nowhere_here_is_left_to_the_hub(tmp_path: Path) -> None:
    found = find_model("org/model", read_environment({"HF_HOME": str(tmp_path)}))
    assert (found.source, found.argument, found.problem) == ("hub", "org/model", None)


def test_a_cached_name_tells_its_tokenizer_and_context_but_is_served_by_name(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--org--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text('{"max_position_embeddings": 2048}')
    (snapshot / "tokenizer.json").write_text("{}")
    (tmp_path / "hub" / "models--org--model" / "refs").mkdir()
    (tmp_path / "hub" / "models--org--model" / "refs" / "main").write_text("abc")
    found = find_model("org/model", read_environment({"HF_HOME": str(tmp_path)}))
    assert (found.source, found.argument, found.path) == ("cache", "org/model", None)
    assert (found.tokenizer_dir, found.max_position_embeddings) == (snapshot, 2048)


def test_the_default_model_that_is_not_made_yet_says_how(separate_lab: Path) -> None:
    found = find_model(DEFAULT_MODEL, read_environment())
    assert found.problem is not None
    assert found.problem.code == "default-model-missing"
    assert found.path == separate_lab / "models" / DEFAULT_MODEL


def test_making_the_default_model_again_does_nothing(folder: Path) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert make_default_model(folder) is False
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_a_folder_with_other_things_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ModelNotMadeError, match="not a model folder"):
        make_default_model(tmp_path)


def test_a_model_that_cannot_be_made_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "lab.engine.default_model", "--to", str(blocked / "model")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("default model not made: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [blocked]

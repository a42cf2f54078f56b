"""Fetching models, from a hub on loopback: whole, gone on with, refused, without room."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.engine.found_models import found_models
from lab.engine.hub import hub_model, wanted_files
from lab.engine.model import find_model
from lab.environment import ROOT, read_environment
from lab.findings import LabError
from tests.engine.model_configs import LLAMA_3_8B
from tests.engine.model_folders import safetensors
from tests.servers.hub_server import Hub, serve_hub

NAME = "org/small"
LARGE = 6_000_000


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub with one model of a large weight file, and what engines do not need beside it."""
    safetensors(tmp_path / "w", {"a": ("BF16", [LARGE // 2], LARGE)})
    files = {
        "config.json": json.dumps(LLAMA_3_8B).encode(),
        "tokenizer.json": b"{}",
        "model.safetensors": (tmp_path / "w").read_bytes(),
        "pytorch_model.bin": b"x" * 1000,
        "README.md": b"# small",
    }
    with serve_hub(Hub(models={NAME: files})) as served:
        yield served


@pytest.fixture
def variables(hub: Hub, tmp_path: Path) -> dict[str, str]:
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_ETAG_TIMEOUT": "5"}


def start(variables: dict[str, str], progress: Path, *more: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    command = [sys.executable, "-m", "lab.engine.download", NAME, "--progress", str(progress), *more]
    return subprocess.Popen(
        command, cwd=ROOT, env={**clean, **variables}, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        stdin=subprocess.PIPE, text=True,
    )  # fmt: skip


def fetched(variables: dict[str, str], progress: Path) -> tuple[int, dict[str, Any], str]:
    process = start(variables, progress)
    _out, err = process.communicate(timeout=120)
    return process.returncode, json.loads(progress.read_text()), err


def came(progress: Path) -> int:
    try:
        return int(json.loads(progress.read_text())["done_bytes"])
    except (OSError, ValueError, KeyError):
        return 0


def wait_for(progress: Path, at_least: int) -> None:
    deadline = time.monotonic() + 60
    while came(progress) < at_least:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_model_is_there_whole_under_its_name_and_without_what_no_engine_needs(
    hub: Hub, variables: dict[str, str], tmp_path: Path
) -> None:
    status, news, err = fetched(variables, tmp_path / "p.json")
    assert (status, news["result"]) == (0, "done"), err
    env = read_environment({**variables, "LAB_RUN_DIR": str(tmp_path)})
    model = find_model(NAME, env)
    assert (model.source, model.problem) == ("cache", None)
    assert model.folder is not None
    assert sorted(file.name for file in model.folder.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    assert (model.folder / "model.safetensors").read_bytes() == hub.models[NAME]["model.safetensors"]
    (found,) = found_models(env)
    assert (found.name, found.source, found.complete, found.unfinished_bytes) == (NAME, "cache", True, 0)
    assert found.facts.parameters == LARGE // 2


def test_a_killed_download_goes_on_where_it_ended(hub: Hub, variables: dict[str, str], tmp_path: Path) -> None:
    hub.slow_bytes_per_s = 1_500_000
    process = start(variables, tmp_path / "p.json")
    wait_for(tmp_path / "p.json", 1_000_000)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    hub.slow_bytes_per_s = None
    status, news, err = fetched(variables, tmp_path / "q.json")
    assert (status, news["result"]) == (0, "done"), err
    assert hub.ranges[0] == 0
    assert hub.ranges[1] > 500_000
    folder = Path(news["folder"])
    assert (folder / "model.safetensors").read_bytes() == hub.models[NAME]["model.safetensors"]


def test_it_ends_with_who_started_it(hub: Hub, variables: dict[str, str], tmp_path: Path) -> None:
    hub.slow_bytes_per_s = 200_000
    process = start(variables, tmp_path / "p.json", "--with-parent")
    wait_for(tmp_path / "p.json", 100_000)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=60) == 1
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_a_gated_model_is_named_and_opens_with_the_token(hub: Hub, variables: dict[str, str], tmp_path: Path) -> None:
    hub.gated, hub.token = {NAME}, "secret-of-the-test"
    status, news, err = fetched(variables, tmp_path / "p.json")
    assert (status, news["problem"]["code"]) == (1, "hub-model-gated")
    assert "HF_TOKEN" in err
    status, news, err = fetched({**variables, "HF_TOKEN": hub.token}, tmp_path / "p.json")
    assert (status, news["result"]) == (0, "done"), err


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "org/other"}, "hub-model-unknown"),
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, "hub-unreachable"),
        ({"status": 500}, "hub-refused"),
        ({"name": "a b"}, "model-name-invalid"),
    ],
)
def test_what_stands_in_the_way_is_named(
    hub: Hub, variables: dict[str, str], change: dict[str, Any], code: str
) -> None:
    hub.status = change.get("status")
    with pytest.raises(LabError) as refused:
        hub_model(change.get("name", NAME), {**variables, **{k: v for k, v in change.items() if k.isupper()}})
    assert refused.value.findings[0].code == code


def test_offline_is_said(variables: dict[str, str], tmp_path: Path) -> None:
    status, news, _err = fetched({**variables, "HF_HUB_OFFLINE": "1"}, tmp_path / "p.json")
    assert (status, news["problem"]["code"]) == (1, "hub-offline")


def test_a_file_with_another_checksum_is_dropped(hub: Hub, variables: dict[str, str], tmp_path: Path) -> None:
    hub.corrupt = True
    status, news, _err = fetched(variables, tmp_path / "p.json")
    assert (status, news["problem"]["code"]) == (1, "download-broken")
    assert not [path for path in (tmp_path / "hf").rglob("*") if path.is_file() and path.stat().st_size > 1_000_000]


def test_a_full_disk_is_named_and_keeps_what_came(hub: Hub, variables: dict[str, str], tmp_path: Path) -> None:
    limit = f"import resource,runpy,sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({LARGE // 2}, {LARGE // 2}));"
    program = f"{limit} sys.argv[1:]=['{NAME}', '--progress', r'{tmp_path / 'p.json'}'];"
    program += " runpy.run_module('lab.engine.download', run_name='__main__')"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**clean, **variables}, capture_output=True, text=True
    )
    news = json.loads((tmp_path / "p.json").read_text())
    assert (done.returncode, news["problem"]["code"]) == (1, "download-disk-full"), done.stderr
    (part,) = (tmp_path / "hf").rglob("*.part")
    assert part.stat().st_size == LARGE // 2
    (found,) = found_models(read_environment({**variables, "LAB_RUN_DIR": str(tmp_path)})) or (None,)
    assert found is None or not found.complete


def test_before_anything_is_fetched_the_hub_tells_size_shape_and_access(hub: Hub, variables: dict[str, str]) -> None:
    hub.gated, hub.token = {NAME}, "secret-of-the-test"
    found = hub_model(NAME, {**variables, "HF_TOKEN": hub.token})
    assert (found.gated, found.facts.shape.kv_heads) == (True, 8)
    assert [file.path for file in found.files] == ["config.json", "tokenizer.json", "model.safetensors"]
    assert found.total_bytes == sum(len(hub.models[NAME][file.path]) for file in found.files)


def test_only_the_best_form_of_the_weights_is_wanted() -> None:
    names = ["config.json", "pytorch_model.bin", "tokenizer.model", "original/consolidated.00.pth", "model.gguf"]
    assert wanted_files(names) == ["config.json", "pytorch_model.bin", "tokenizer.model"]
    assert wanted_files([*names, "model.safetensors"]) == ["config.json", "tokenizer.model", "model.safetensors"]

"""check, set, command and export as a user runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lab.cli.app import main
from lab.environment import ROOT, read_environment
from lab.store import get_experiment, open_store
from tests.factories import seed_finished_experiment


@pytest.fixture
def configs(tmp_path, monkeypatch):
    folder = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", folder)
    monkeypatch.setenv("LAB_CONFIG_DIR", str(folder))
    return folder


def test_check_passes_on_what_is_shipped(configs, capsys):
    assert main(["check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


def test_check_of_a_typo_names_file_line_rule_and_remedy(configs, capsys):
    path = configs / "experiments" / "batching.toml"
    path.write_text(path.read_text().replace("max_num_seqs", "max_num_seq"))
    assert main(["check", str(path)]) == 2
    line = capsys.readouterr().out.split("\n")[0]
    assert line.startswith(f"error: {path}:21:9:") and "max_num_seqs" in line and line.endswith("[unknown-knob]")


def test_check_of_a_missing_file_is_wrong_input(configs, capsys):
    assert main(["check", "nothing.toml"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_set_changes_the_file_and_prints_the_diff(configs, capsys):
    before = (configs / "settings.json").read_text()
    assert main(["set", "decode.max_num_seqs=64", "--dry-run"]) == 0
    assert (configs / "settings.json").read_text() == before
    assert main(["set", "decode.max_num_seqs=64", "workload.concurrency=1,4"]) == 0
    assert '+    "max_num_seqs": 64,' in capsys.readouterr().out
    assert (configs / "settings.json").read_text() == before.replace("32", "64")
    assert "concurrency = [1, 4]\n" in (configs / "config.toml").read_text()


@pytest.mark.parametrize(
    "assignment",
    [
        "max_num_seqs=0",
        "max_num_seq=4",
        "api_key=sk-made-up-0001",
        "chunked_prefill=false",
        "max_num_seqs",
        "swap_space=4",
    ],
)
def test_set_refuses_what_is_wrong_and_writes_nothing(configs, capsys, assignment):
    before = (configs / "settings.json").read_bytes(), (configs / "config.toml").read_bytes()
    assert main(["set", assignment]) == 2
    assert ((configs / "settings.json").read_bytes(), (configs / "config.toml").read_bytes()) == before
    told = capsys.readouterr()
    assert "Traceback" not in told.err and "made-up" not in told.err + told.out


def test_command_names_command_overlays_and_findings(configs, capsys):
    status = main(["command", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["argv"][1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    missing = [finding["rule"] for finding in report["findings"] if finding["severity"] == "error"]
    assert status == (2 if missing else 0) and set(missing) <= {"default-model-missing"}


@pytest.fixture
def finished():
    """A finished experiment in the database of the test: two engine arms and the gateway's."""
    store = open_store(read_environment().database_url)
    return store, get_experiment(store, seed_finished_experiment(store))


def test_export_writes_the_files_of_a_measured_arm(configs, finished, tmp_path, capsys):
    _, view = finished
    arm = next(row.arm for row in view.arms if row.arm.target == "engine" and row.arm.set)
    arguments = ["export", str(view.row.id), "--arm", arm.name, "--to", str(tmp_path / "out")]
    assert main([*arguments, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert [Path(name).name for name in written] == ["settings.json", "config.toml", "vllm.yaml", "launch.txt"]
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["decode"]["max_num_seqs"] == 1
    assert main(arguments) == 0
    (tmp_path / "out" / "vllm.yaml").write_text("mine: true\n")
    assert main(arguments) == 2
    assert (tmp_path / "out" / "vllm.yaml").read_text() == "mine: true\n"


@pytest.mark.parametrize(("experiment", "arm"), [("999", "x"), ("latest", "nope"), ("no", "x")])
def test_export_of_what_is_not_there_is_wrong_input(configs, finished, tmp_path, capsys, experiment, arm):
    assert main(["export", experiment, "--arm", arm, "--to", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "out").exists()

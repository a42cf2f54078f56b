"""check, set, command and export as a user runs them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from lab.cli.app import main
from lab.configs.pair import read_pair
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
    assert capsys.readouterr().out.startswith("error: nothing.toml")


def test_a_file_that_cannot_be_read_does_not_hide_what_is_wrong_in_others(configs, capsys):
    (configs / "settings.json").write_bytes(b"\xff\xfe{")
    path = configs / "experiments" / "batching.toml"
    path.write_text(path.read_text() + "\nodd = 1\n")
    told = report(capsys, "check", str(configs / "settings.json"), str(configs), str(path), status=2)
    rules = {(each["rule"], each["file"]) for each in told["findings"]}
    assert ("config-not-utf8", str(configs / "settings.json")) in rules
    assert ("config-unreadable", str(configs)) in rules


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


def report(capsys, *arguments, status=0):
    assert main([*arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_each_set_is_a_version_with_its_note_and_can_be_compared_and_restored(configs, capsys):
    before = (configs / "settings.json").read_bytes()
    assert report(capsys, "set", "max_num_seqs=64", "--note", "more at once")["version"] == 2
    assert report(capsys, "set", "max_num_seqs=64")["version"] is None
    (configs / "settings.json").write_bytes(before.replace(b'"max_num_seqs": 32', b'"max_num_seqs": 8'))
    listed = report(capsys, "restore")["versions"]
    assert [(each["version"], each["source"], each["note"]) for each in listed] == [
        (3, "external", ""),
        (2, "cli", "more at once"),
        (1, "external", ""),
    ]
    diff = report(capsys, "diff", "1", "2")
    assert [(each["key"], each["old"], each["new"]) for each in diff["changes"]] == [("decode.max_num_seqs", 32, 64)]
    assert report(capsys, "diff")["changes"][0]["new"] == 8
    assert report(capsys, "restore", "1", "--dry-run")["written"] is False
    assert report(capsys, "restore", "1", "--note", "back")["version"] == 4
    assert (configs / "settings.json").read_bytes() == before
    newest = report(capsys, "restore")["versions"][0]
    assert (newest["source"], newest["note"]) == ("restore", "back")


@pytest.mark.parametrize("name", ["settings.json", "config.toml"])
def test_a_deleted_file_comes_back_from_a_version_and_the_other_stays(configs, capsys, name):
    assert report(capsys, "set", "max_num_seqs=64", "max_tokens=77", "--note", "both files")["version"] == 2
    saved = {path: path.read_bytes() for path in (configs / "settings.json", configs / "config.toml")}
    other = next(path for path in saved if path.name != name)
    (configs / name).unlink()
    other.write_bytes(saved[other] + b"\n")
    assert main(["check"]) == 2
    assert "lab restore last" in capsys.readouterr().out
    assert [each["version"] for each in report(capsys, "restore")["versions"]] == [2, 1]
    told = report(capsys, "restore", "last", "--dry-run")
    assert not told["written"] and "+" in told["diff"] and not (configs / name).exists()
    assert report(capsys, "restore", "last", "--note", "it was gone")["version"] == 3
    assert (configs / name).read_bytes() == saved[configs / name]
    assert other.read_bytes() == saved[other] + b"\n"
    newest = report(capsys, "restore")["versions"][0]
    assert (newest["version"], newest["source"], newest["note"]) == (3, "restore", "it was gone")


def test_both_deleted_files_come_back(configs, capsys):
    before = read_pair(configs)
    assert main(["restore"]) == 0
    for name in ("settings.json", "config.toml"):
        (configs / name).unlink()
    assert main(["restore", "1"]) == 0
    assert read_pair(configs) == before


def test_diff_takes_a_folder(configs, capsys):
    assert main(["set", "max_num_seqs=64"]) == 0
    capsys.readouterr()
    diff = report(capsys, "diff", str(ROOT / "configs"), "disk")
    assert [(each["key"], each["new"]) for each in diff["changes"]] == [("decode.max_num_seqs", 64)]
    assert main(["diff", "disk", "disk"]) == 0
    assert capsys.readouterr().out == "No difference.\n"


@pytest.mark.parametrize("arguments", [["restore", "99"], ["restore", "nothing"], ["diff", "99"], ["diff", "nothing"]])
def test_versions_that_are_not_there_are_wrong_input(configs, capsys, arguments):
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_convert_there_and_back_keeps_the_meaning(configs, capsys):
    before = read_pair(configs)
    told = report(capsys, "convert", "--dry-run")
    assert told["form"] == 3 and not told["written"] and read_pair(configs) == before
    told = report(capsys, "convert")
    assert told["written"] and read_pair(configs).dialect == 3
    assert read_pair(configs).knobs() == before.knobs()
    assert report(capsys, "convert", "--to", "3")["diff"] == ""
    report(capsys, "convert", "--to", "1")
    assert read_pair(configs).knobs() == before.knobs()
    report(capsys, "restore", "1")
    assert read_pair(configs) == before


def test_convert_lists_what_has_no_counterpart(configs, capsys):
    text = (configs / "settings.json").read_text().replace('"prefill": {', '"prefill": {\n    "batch_size": 8,')
    (configs / "settings.json").write_text(text)
    lost = report(capsys, "convert", "--dry-run")["lost"]
    assert [(each["rule"], each["params"]["key"]) for each in lost] == [
        ("no-counterpart-removed", "prefill.batch_size")
    ]


PASTED = (
    "正文 [batching] max_num_seqs 8 max_num_batched_tokens 2048 [decode] temperature 0.3 以上 "
    "export A_API_KEYsk-你的Key"
)


def test_paste_shows_first_and_writes_only_when_told(configs, tmp_path, capsys):
    source = tmp_path / "article.txt"
    source.write_text(PASTED, "utf-8")
    before = read_pair(configs)
    told = report(capsys, "paste", str(source))
    assert [(each["key"], each["value"]) for each in told["understood"]] == [
        ("batching.max_num_seqs", 8),
        ("batching.max_num_batched_tokens", 2048),
        ("decode.temperature", 0.3),
    ]
    assert [each["client"] for each in told["other_clients"]] == ["environment"]
    assert read_pair(configs) == before
    assert report(capsys, "paste", str(source), "--write")["version"] == 2
    knobs = read_pair(configs).knobs()
    assert (knobs["max_num_seqs"], knobs["max_num_batched_tokens"], knobs["temperature"]) == (8, 2048, 0.3)
    assert main(["paste", str(source)]) == 0
    assert "Nothing to change." in capsys.readouterr().out


def test_paste_with_an_error_is_not_written(configs, tmp_path, capsys):
    source = tmp_path / "article.txt"
    source.write_text("[server] host 0.0.0.0 port 8000 [batching] max_num_seqs 8 max_num_batched_tokens 2048", "utf-8")
    before = read_pair(configs)
    assert report(capsys, "paste", str(source), "--write", status=2)["written"] is False
    assert read_pair(configs) == before


def test_paste_reads_stdin_and_says_when_there_is_nothing(configs, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("just words"))
    assert main(["paste"]) == 0
    assert "Nothing in the text belongs" in capsys.readouterr().out


def test_check_offers_repairs_as_diffs_and_applies_none(configs, capsys):
    path = configs / "settings.json"
    path.write_text(path.read_text().replace("0.90", '"0.90"'))
    before = path.read_bytes()
    told = report(capsys, "check", str(path), status=2)
    offer = told["repairs"][0]
    assert (offer["rule"], offer["line"]) == ("wrong-type", 16) and '+    "gpu_memory_utilization": 0.90,' in offer[
        "diff"
    ]
    assert main(["check", str(path), "--repairs"]) == 2
    assert '+    "gpu_memory_utilization": 0.90,' in capsys.readouterr().out
    assert path.read_bytes() == before


def test_command_fills_in_placeholders_and_keeps_them_in_the_file(configs, monkeypatch, capsys):
    path = configs / "settings.json"
    path.write_text(path.read_text().replace('"max_num_seqs": 32', '"max_num_seqs": "${LAB_T_SEQS}"'))
    before = path.read_bytes()
    assert main(["command", "--json"]) == 2
    assert "variable-unset" in [each["rule"] for each in json.loads(capsys.readouterr().out)["findings"]]
    monkeypatch.setenv("LAB_T_SEQS", "12")
    main(["command", "--json"])
    argv = json.loads(capsys.readouterr().out)["argv"]
    assert argv[argv.index("--max-num-seqs") + 1] == "12"
    assert path.read_bytes() == before


def test_versions_of_another_folder_are_not_taken_for_this_one_s(configs, tmp_path, monkeypatch, capsys):
    first = report(capsys, "set", "max_num_seqs=48")["version"]
    other = shutil.copytree(configs, tmp_path / "other")
    monkeypatch.setenv("LAB_CONFIG_DIR", str(other))
    before = read_pair(other)
    for command in (["restore", str(first)], ["diff", str(first)]):
        assert main(command) == 2
        assert f"no version {first}" in capsys.readouterr().err
    assert read_pair(other) == before

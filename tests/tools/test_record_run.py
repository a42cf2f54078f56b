"""A run kept for the documents: numbers, host, table and pictures from one command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.environment import ROOT
from tests.runner.labs import configs_with_stub

LADDER = """
name = "Small ladder"
question = "Does it grow?"
[workload]
kind = "ladder"
prompt_tokens = [8, 16, 32, 64]
repeat = 2
output_tokens = 4
warmup_requests = 0
[[arm]]
name = "as configured"
"""


@pytest.mark.browser
def test_one_command_keeps_numbers_host_and_pictures(tmp_path: Path) -> None:
    configs_with_stub(tmp_path / "configs")
    (tmp_path / "ladder.toml").write_text(LADDER)
    environment = {
        **os.environ,
        "LAB_CONFIG_DIR": str(tmp_path / "configs"),
        "LAB_RUN_DIR": str(tmp_path / "own"),
        "OPENAI_STUB": json.dumps({"first_ms": 5, "gap_ms": 2}),
    }
    command = [sys.executable, "tools/record_run.py", str(tmp_path / "ladder.toml"), "--to", str(tmp_path / "kept")]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    kept = tmp_path / "kept"
    document = json.loads((kept / "show.json").read_text())
    assert [row["stage_value"] for row in document["rows"]] == [8, 16, 32, 64]
    host = json.loads((kept / "host.json").read_text())
    assert host["cores"] == os.cpu_count()
    assert str(tmp_path) not in (kept / "host.json").read_text() + (kept / "README.md").read_text().replace(
        str(tmp_path / "ladder.toml"), ""
    )
    pictures = sorted(path.name for path in kept.glob("*.png"))
    assert pictures == ["throughput-ttft.png", "ttft-by-prompt-length.png"]
    assert all((kept / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    assert "Small ladder" in (kept / "README.md").read_text()
    assert not list((tmp_path / "own").glob("*"))

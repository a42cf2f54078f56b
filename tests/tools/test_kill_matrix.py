"""The kill matrix on a real vLLM: each process and each moment once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.environment import ROOT

# each process and each moment once; what is killed last is followed by a trial that nobody disturbs
CELLS = ("api:starting", "worker:ready", "core:measuring", "runner:stopping", "loader:measuring")


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_killed_process_costs_its_trial_at_most_and_nothing_that_was_stored(smol_model: Path) -> None:
    command = [sys.executable, "tools/kill_matrix.py", "--model", str(smol_model), "--cells", ",".join(CELLS)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=870)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "6 of 6 hold"


def test_a_cell_that_there_is_not_is_named() -> None:
    command = [sys.executable, "tools/kill_matrix.py", "--cells", "loader:starting"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 1
    assert "no such cell: loader:starting" in run.stderr and "runner:stopping" in run.stderr

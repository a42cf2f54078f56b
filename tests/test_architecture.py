"""The rules of the house that a machine can hold: who may import whom, how long a module is, what stands nowhere."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lab.environment import ROOT

# Low to high: a package may import those of the lines above its own, and none beside it.
LAYERS = (
    ("findings", "messages", "environment", "records"),
    ("configs",),
    ("plan", "host"),
    ("engine", "load", "telemetry"),
    ("metrics",),
    ("store",),
    ("charts", "export"),
    ("runner", "cli"),
)
# Inside the lowest line: `messages` words `findings`, `records` hold parameters of them.
LEAVES = LAYERS[0]
LONGEST_MODULE = 350


def _modules(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*.py"))


def _package(module: Path) -> str:
    return module.relative_to(ROOT / "lab").parts[0].removesuffix(".py")


def _imports(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _line(package: str) -> int:
    return next((number for number, line in enumerate(LAYERS) if package in line), len(LAYERS))


def _wrong_imports(module: Path) -> set[str]:
    own = _package(module)
    used = {parts[1] for name in _imports(module) if (parts := name.split("."))[0] == "lab" and len(parts) > 1}
    allowed = {package for line in LAYERS[: _line(own)] for package in line} | {own}
    if own in LEAVES:
        allowed |= {"findings", "records"}
    return {name for name in used - allowed if _line(name) < len(LAYERS)}


def test_every_package_of_lab_has_a_place_in_the_layers() -> None:
    packages = {_package(path) for path in _modules("lab")} - {"__init__", "__main__"}
    assert packages == {name for line in LAYERS for name in line}


@pytest.mark.parametrize("module", _modules("lab"), ids=lambda path: str(path.relative_to(ROOT)))
def test_data_flows_one_way(module: Path) -> None:
    if _package(module) not in ("__init__", "__main__"):
        assert _wrong_imports(module) == set()


@pytest.mark.parametrize("module", _modules("lab"), ids=lambda path: str(path.relative_to(ROOT)))
def test_lab_never_imports_streamlit(module: Path) -> None:
    assert not any(name.split(".")[0] == "streamlit" for name in _imports(module))


@pytest.mark.parametrize("module", [*_modules("pages"), ROOT / "app.py"], ids=lambda path: path.name)
def test_pages_neither_run_nor_load(module: Path) -> None:
    forbidden = ("lab.runner", "lab.load.supervisor", "lab.engine.process", "lab.telemetry", "subprocess")
    assert not [name for name in _imports(module) if name.startswith(forbidden)]
    assert "Thread(" not in module.read_text("utf-8")


@pytest.mark.parametrize("module", _modules("lab") + _modules("pages"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_stays_short(module: Path) -> None:
    assert len(module.read_text("utf-8").splitlines()) <= LONGEST_MODULE


def test_no_module_is_called_utils() -> None:
    assert not [path for path in _modules("lab") + _modules("pages") if path.stem in ("utils", "helpers", "misc")]

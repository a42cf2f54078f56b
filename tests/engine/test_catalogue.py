"""Flags are read from an engine's own parser, wherever the definition says that it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.engine.catalogue import Catalogue, cached_catalogue, read_catalogue
from lab.engine.definition import CatalogueSource, EngineDefinition, Installed, load_definition
from lab.engine.installation import check_installed, engine_python, engine_version
from lab.environment import ROOT, read_environment
from lab.findings import LabError

# an engine as SGLang is made: a class that fills a parser of argparse's
ENGINE = """
import argparse, sys

TELL = "--help" in sys.argv

class ServerArgs:
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", "--model", type=str)
        parser.add_argument("--page-size", type=int, default=1, help="Tokens of a page." if TELL else "")
        parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8_e5m2"], default="auto")
        parser.add_argument("--share", type=optional(float))
        parser.add_argument("--disable-radix-cache", action="store_true")
        parser.add_argument("--overlap", action=argparse.BooleanOptionalAction, default=True)

def optional(kind):
    def _read(text):
        return None if text == "none" else kind(text)
    return _read
"""
METADATA = "Metadata-Version: 2.1\nName: madeup-engine\nVersion: 1.2.3\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the made-up engine and none of the lab's packages."""
    home = tmp_path_factory.mktemp("engine")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    packages = next(home.glob("lib/python*/site-packages"))
    (packages / "madeup").mkdir()
    (packages / "madeup" / "__init__.py").touch()
    (packages / "madeup" / "server_args.py").write_text(ENGINE, "utf-8")
    (packages / "madeup_engine-1.2.3.dist-info").mkdir()
    (packages / "madeup_engine-1.2.3.dist-info" / "METADATA").write_text(METADATA, "utf-8")
    return home / "bin" / "python"


@pytest.fixture
def engine(vllm: EngineDefinition) -> EngineDefinition:
    source = CatalogueSource(
        kind="argparse", source=["madeup.old_place:ServerArgs.add", "madeup.server_args:ServerArgs.add_cli_args"]
    )
    installed = Installed(distributions=["madeup", "madeup-engine"], hint="pip install madeup-engine")
    return vllm.model_copy(update={"kind": "madeup", "catalogue": source, "installed": installed})


def test_the_parser_is_asked_with_its_help(engine: EngineDefinition, python: Path, tmp_path: Path) -> None:
    found = read_catalogue(engine, python, tmp_path)
    assert found is not None
    assert (found.distribution, found.version, found.device) == ("madeup-engine", "1.2.3", None)
    shown = {flag.name: (flag.flag, flag.off, flag.type, flag.choices, flag.default, flag.help) for flag in found.flags}
    assert shown == {
        "model_path": ("--model-path", None, "str", None, None, ""),
        "page_size": ("--page-size", None, "int", None, 1, "Tokens of a page."),
        "kv_cache_dtype": ("--kv-cache-dtype", None, "str", ("auto", "fp8_e5m2"), "auto", ""),
        "share": ("--share", None, "float", None, None, ""),
        "disable_radix_cache": ("--disable-radix-cache", None, "bool", None, False, ""),
        "overlap": ("--overlap", "--no-overlap", "bool", None, True, ""),
    }
    assert cached_catalogue(engine, python, tmp_path) == found


def test_an_engine_that_is_not_there_is_told_with_its_install_command(engine: EngineDefinition, tmp_path: Path) -> None:
    (finding,) = check_installed(engine, Path(sys.executable))
    assert (finding.code, finding.params["install"]) == ("engine-not-installed", "pip install madeup-engine")
    assert finding.params["variable"] == "LAB_ENGINE_PYTHON_MADEUP"
    with pytest.raises(LabError) as caught:
        read_catalogue(engine, Path(sys.executable), tmp_path)
    assert caught.value.findings[0].code == "engine-not-installed"


def test_a_module_that_it_cannot_serve_without_is_told(engine: EngineDefinition, python: Path) -> None:
    needing = engine.model_copy(
        update={"installed": Installed(distributions=["madeup-engine"], module="madeup.http", hint="x")}
    )
    (finding,) = check_installed(needing, python)
    assert (finding.code, finding.params["module"]) == ("engine-lacks-module", "madeup.http")


def test_the_release_is_asked_once_until_something_is_installed(engine: EngineDefinition, python: Path) -> None:
    """Each start of an interpreter is counted by the interpreter itself."""
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    counted = packages.parent / "starts"
    (packages / "count.pth").write_text(f"import os; open({str(counted)!r}, 'a').write('x')\n", "utf-8")
    assert engine_version(engine, python).version == "1.2.3"  # type: ignore[union-attr]
    once = counted.read_text()
    for _ in range(3):
        assert engine_version(engine, python).version == "1.2.3"  # type: ignore[union-attr]
    assert counted.read_text() == once
    (packages / "madeup_engine-1.2.3.dist-info").rename(packages / "madeup_engine-1.2.4.dist-info")
    metadata = packages / "madeup_engine-1.2.4.dist-info" / "METADATA"
    metadata.write_text(METADATA.replace("1.2.3", "1.2.4"), "utf-8")
    assert engine_version(engine, python).version == "1.2.4"  # type: ignore[union-attr]
    assert len(counted.read_text()) > len(once)
    (packages / "count.pth").unlink()
    (packages / "madeup_engine-1.2.4.dist-info").rename(packages / "madeup_engine-1.2.3.dist-info")
    (packages / "madeup_engine-1.2.3.dist-info" / "METADATA").write_text(METADATA, "utf-8")


def test_a_program_is_looked_for_beside_the_interpreter_and_on_the_path(
    engine: EngineDefinition, python: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = engine.model_copy(update={"installed": Installed(program="madeup-server", hint="x")})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [finding.code for finding in check_installed(program, python)] == ["engine-program-missing"]
    for place in (tmp_path, python.parent):
        (place / "madeup-server").touch(mode=0o755)
        assert engine_version(program, python).distribution == str(place / "madeup-server")  # type: ignore[union-attr]
    (python.parent / "madeup-server").unlink()


def test_each_kind_of_engine_may_have_an_interpreter_of_its_own() -> None:
    env = read_environment({"LAB_ENGINE_PYTHON": "/all/python", "LAB_ENGINE_PYTHON_SGLANG": "/own/python"})
    assert engine_python("sglang", env) == Path("/own/python")
    assert engine_python("vllm", env) == Path("/all/python")


@pytest.fixture(scope="module")
def transformers_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    definition = load_definition("transformers", ROOT / "configs")
    found = read_catalogue(definition, read_environment().engine_python, tmp_path_factory.mktemp("run"))
    assert found is not None
    return found


@pytest.mark.engine
@pytest.mark.timeout(200)
def test_the_flags_of_transformers_are_its_own(transformers_catalogue: Catalogue) -> None:
    definition = load_definition("transformers", ROOT / "configs")
    own = {flag.flag: flag for flag in transformers_catalogue.flags}
    spelled = [each if isinstance(each, str) else each[0] for each in definition.flags.values()]
    assert [flag for flag in spelled if flag not in own] == []
    batching = own["--continuous-batching"]
    assert (batching.type, batching.off, batching.default) == ("bool", "--no-continuous-batching", False)
    assert all(flag.help for flag in transformers_catalogue.flags)

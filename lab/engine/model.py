"""Which model a name means: a folder, one in the Hugging Face cache, a name on the hub, or the lab's default."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab.engine.default_model import DEFAULT_MODEL
from lab.engine.model_config import read_shape
from lab.environment import ROOT, Environment
from lab.findings import Finding

ModelSource = Literal["folder", "cache", "hub", "default"]
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*(/[\w.\-]+)?")


@dataclass(frozen=True, slots=True)
class ModelRef:
    """`path` is the folder (or file) on disk, None for a name that the engine fetches itself.

    `folder` is where its files lie, those of a cached name included. It, `tokenizer_dir` and
    `max_position_embeddings` are None where they are not on this disk; `problem` says why the model cannot be served,
    None where nothing speaks against it.
    """

    name: str
    path: Path | None
    source: ModelSource
    served_name: str
    tokenizer_dir: Path | None = None
    max_position_embeddings: int | None = None
    problem: Finding | None = None
    folder: Path | None = None

    @property
    def argument(self) -> str:
        """What the engine is given: the folder, or the name to fetch."""
        return self.name if self.path is None else str(self.path)


def find_model(name: str, env: Environment) -> ModelRef:
    """The model a name stands for; never raises, `problem` says what is wrong."""
    name = name.strip()
    if not name:
        return ModelRef(name, None, "hub", name, problem=Finding("model-unset", "error"))
    if name == DEFAULT_MODEL:
        return _default(env)
    folder = _folder(name)
    if folder is not None:
        return _on_disk(name, folder, "folder", folder.name)
    if not _HUB_NAME.fullmatch(name):
        problem = Finding("model-name-invalid", "error", {"model": name})
        return ModelRef(name, None, "hub", name, problem=problem)
    return _of_hub(name, env.variables)


def default_model_dir(env: Environment) -> Path:
    """Where the default model lies or is to be made."""
    return env.run_dir.absolute() / "models" / DEFAULT_MODEL


def _default(env: Environment) -> ModelRef:
    folder = default_model_dir(env)
    if not (folder / "config.json").is_file():
        problem = Finding("default-model-missing", "error", {"model": DEFAULT_MODEL, "folder": str(folder)})
        return ModelRef(DEFAULT_MODEL, folder, "default", DEFAULT_MODEL, problem=problem)
    return _on_disk(DEFAULT_MODEL, folder, "default", DEFAULT_MODEL)


def _folder(name: str) -> Path | None:
    """The path a name means where it is written as one, or where such a folder lies beside the lab."""
    path = Path(name).expanduser()
    if path.is_absolute() or name.startswith((".", "~")) or name.endswith("/"):
        return ROOT / path
    return ROOT / path if (ROOT / path).exists() else None


def _on_disk(name: str, path: Path, source: ModelSource, served_name: str) -> ModelRef:
    problem = None
    if not path.exists():
        problem = Finding("model-folder-missing", "error", {"model": name, "folder": str(path)})
    elif path.is_dir() and not (path / "config.json").is_file():
        problem = Finding("model-folder-incomplete", "error", {"model": name, "folder": str(path)})
    folder = path if path.exists() else None
    return ModelRef(
        name, path, source, served_name, _tokenizer_dir(path), _context(path), problem, folder
    )  # fmt: skip


def _of_hub(name: str, variables: Mapping[str, str]) -> ModelRef:
    """A cached copy only tells about the tokenizer and the context: whether it is whole, the engine finds out."""
    snapshot = _snapshot(name, variables)
    if snapshot is None:
        return ModelRef(name, None, "hub", name)
    return ModelRef(
        name, None, "cache", name, _tokenizer_dir(snapshot), _context(snapshot), folder=snapshot
    )  # fmt: skip


def hub_cache_dir(variables: Mapping[str, str]) -> Path:
    """Where downloads from the hub lie: the folder that its own library uses."""
    named = variables.get("HF_HUB_CACHE") or variables.get("HUGGINGFACE_HUB_CACHE")
    base = Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(variables.get("HF_HOME") or base / "huggingface").expanduser()
    return Path(named).expanduser() if named else home / "hub"


def _snapshot(name: str, variables: Mapping[str, str]) -> Path | None:
    folder = hub_cache_dir(variables) / f"models--{name.replace('/', '--')}"
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return snapshot if (snapshot / "config.json").is_file() else None


def _tokenizer_dir(folder: Path) -> Path | None:
    return folder if (folder / "tokenizer.json").is_file() else None


def _context(folder: Path) -> int | None:
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return read_shape(config).context_tokens if isinstance(config, dict) else None

"""The models of this host: the lab's default, folders, and what the hub's cache holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.engine.default_model import DEFAULT_MODEL
from lab.engine.model import ModelSource, default_model_dir, find_model, hub_cache_dir
from lab.engine.model_facts import ModelFacts, read_model_facts
from lab.environment import Environment

FOLDERS_VARIABLE = "LAB_MODEL_DIRS"
# one level for `models/NAME`, two for `models/ORGANISATION/NAME`
_DEEPEST = 2


@dataclass(frozen=True, slots=True)
class FoundModel:
    """`name` is what the knob `model` takes: a folder, or a name of the hub whose files lie in its cache.

    `unfinished_bytes` is what a download has brought so far of files that are not whole, 0 where there are none.
    """

    name: str
    source: ModelSource
    facts: ModelFacts
    unfinished_bytes: int = 0

    @property
    def complete(self) -> bool:
        """Whether an engine can load it without fetching anything."""
        return self.facts.complete


def found_models(env: Environment, named: str = "") -> tuple[FoundModel, ...]:
    """All models that lie on this host's disks, the default first, then by name; never raises.

    `named` is a model that may lie anywhere, the live pair's for one; it is among them where it lies here.
    """
    found: dict[Path, FoundModel] = {}
    default = find_model(DEFAULT_MODEL, env)
    if default.problem is None and default.folder is not None:
        facts = read_model_facts(DEFAULT_MODEL, default.folder)
        found[default.folder.resolve()] = FoundModel(DEFAULT_MODEL, "default", facts)
    for folder in (*_folders(env), *_own_folder(named, env)):
        known = found.get(folder.resolve())
        if known is None:
            found[folder.resolve()] = FoundModel(str(folder), "folder", read_model_facts(folder.name, folder))
    for model in _cached(env.variables):
        found.setdefault(hub_cache_dir(env.variables) / model.name, model)
    return tuple(sorted(found.values(), key=lambda model: (model.source != "default", model.name.lower())))


def model_folders(env: Environment) -> tuple[Path, ...]:
    """Where folders of models are looked for: those of LAB_MODEL_DIRS, and the lab's own."""
    named = [Path(part).expanduser() for part in env.variables.get(FOLDERS_VARIABLE, "").split(os.pathsep) if part]
    return (*named, default_model_dir(env).parent)


def _folders(env: Environment) -> Iterator[Path]:
    for root in model_folders(env):
        yield from _models_below(root, _DEEPEST)


def _own_folder(name: str, env: Environment) -> Iterator[Path]:
    model = find_model(name, env)
    if model.source == "folder" and model.folder is not None and model.folder.is_dir():
        yield model.folder


def _models_below(folder: Path, depth: int) -> Iterator[Path]:
    """The folders below that hold a config.json; nothing is looked for inside of a model."""
    if (folder / "config.json").is_file():
        yield folder
        return
    if depth == 0:
        return
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return
    for path in inner:
        yield from _models_below(path, depth - 1)


def _cached(variables: Mapping[str, str]) -> Iterator[FoundModel]:
    """Models of the hub's cache by the names they have there; of several revisions the one that `main` means."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir(hub_cache_dir(variables)).repos
    except (CacheNotFound, OSError, ValueError):
        return
    for repository in repositories:
        revision = repository.refs.get("main") or next(iter(repository.revisions), None)
        if repository.repo_type != "model" or revision is None:
            continue
        facts = read_model_facts(repository.repo_id, revision.snapshot_path)
        yield FoundModel(repository.repo_id, "cache", facts, unfinished_bytes(repository.repo_path))


def unfinished_bytes(repository: Path) -> int:
    """What a broken download of a repository left in the cache: parts that are gone on with."""
    try:
        return sum(path.stat().st_size for path in (repository / "blobs").glob("*.part"))
    except OSError:
        return 0

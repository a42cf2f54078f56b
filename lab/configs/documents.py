"""Format-preserving documents: read a value, find its place, change it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol, Self

from lab.configs.json_text import open_json
from lab.configs.positions import Path, Position
from lab.configs.toml_text import open_toml

__all__ = ["Document", "Path", "Position", "open_document", "open_json", "open_toml"]


class Document(Protocol):
    """Immutable; `set` and `remove` give a new one. Paths are keys, with indexes inside lists."""

    @property
    def text(self) -> str: ...
    @property
    def file(self) -> str: ...
    def get(self, path: Path) -> object: ...
    def has(self, path: Path) -> bool: ...
    def locate(self, path: Path) -> Position | None: ...
    def literal(self, path: Path) -> str | None: ...
    def leaves(self) -> Iterator[tuple[tuple[str, ...], object]]: ...
    def span(self, path: Path) -> tuple[int, int] | None: ...
    def set(self, path: Path, value: object, literal: str | None = None) -> Self: ...
    def remove(self, path: Path) -> Self: ...


@lru_cache(maxsize=128)
def open_document(text: str, file: str) -> Document:
    """By the file's name: `.json` is JSON, everything else TOML."""
    return open_json(text, file) if file.endswith(".json") else open_toml(text, file)

"""What a model folder's weight files hold, by their headers: bytes and parameters per number type, what lacks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_INDEX = "model.safetensors.index.json"
_TORCH_INDEX = "pytorch_model.bin.index.json"
# a header of 100 MB is what the format allows; longer ones are broken files
_LONGEST_HEADER = 100_000_000
_SAFETENSORS_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
# the same weights again, for other loaders
_DUPLICATES = ("consolidated", "original/")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of one folder. `bytes` and `parameters` are None where no header told them.

    `by_type` counts the bytes of each number type ("bfloat16", "U8" …); `missing` are files that the index names and
    the folder lacks; `broken` are files that are shorter than their own header says, or no such files at all.
    """

    format: str | None = None
    bytes: int | None = None
    parameters: int | None = None
    by_type: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def main_type(self) -> str | None:
        """The number type that most of the bytes have."""
        return max(self.by_type, key=lambda name: self.by_type[name], default=None)


def read_weights(folder: Path) -> Weights:
    """The weights of a model folder, or of one file; never raises."""
    if folder.is_file():
        return Weights(folder.suffix.lstrip("."), folder.stat().st_size, files=(folder.name,))
    wanted = _indexed(folder / _INDEX)
    names = sorted(wanted) if wanted else _present(folder, "*.safetensors")
    if names:
        return _safetensors(folder, names)
    wanted = _indexed(folder / _TORCH_INDEX)
    for kind, found in (("bin", sorted(wanted) or _present(folder, "*.bin")), ("gguf", _present(folder, "*.gguf"))):
        if found:
            return _by_size(folder, kind, found)
    return Weights()


def _indexed(index: Path) -> set[str]:
    """The files an index names; empty where there is none that can be read."""
    try:
        table = json.loads(index.read_text("utf-8"))["weight_map"]
        return {str(name) for name in table.values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def _present(folder: Path, pattern: str) -> list[str]:
    try:
        return sorted(path.name for path in folder.glob(pattern) if not path.name.startswith(_DUPLICATES))
    except OSError:
        return []


def _safetensors(folder: Path, names: Iterable[str]) -> Weights:
    by_type: dict[str, int] = {}
    parameters = 0
    missing, broken, read = [], [], []
    for name in names:
        path = folder / name
        if not path.is_file():
            missing.append(name)
            continue
        header = _header(path)
        if header is None:
            broken.append(name)
            continue
        read.append(name)
        for kind, count, size in header:
            by_type[kind] = by_type.get(kind, 0) + size
            parameters += count
    whole = not missing and not broken
    return Weights(
        "safetensors",
        sum(by_type.values()) if whole else None,
        parameters if whole else None,
        by_type,
        tuple(read),
        tuple(missing),
        tuple(broken),
    )


def _header(path: Path) -> list[tuple[str, int, int]] | None:
    """Type, elements and bytes of each tensor; None where the file is no whole safetensors file."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= _LONGEST_HEADER:
                return None
            table: Mapping[str, Any] = json.loads(file.read(length))
        tensors = [each for name, each in table.items() if name != "__metadata__"]
        end = max((int(each["data_offsets"][1]) for each in tensors), default=0)
        if path.stat().st_size < 8 + length + end:
            return None
        return [
            (
                _SAFETENSORS_TYPES.get(str(each["dtype"]), str(each["dtype"])),
                math.prod(int(side) for side in each["shape"]),
                int(each["data_offsets"][1]) - int(each["data_offsets"][0]),
            )
            for each in tensors
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def _by_size(folder: Path, kind: str, names: Iterable[str]) -> Weights:
    """Files without a header that is cheap to read: their size is about that of the weights."""
    there = [name for name in names if (folder / name).is_file()]
    missing = tuple(name for name in names if name not in there)
    size = sum((folder / name).stat().st_size for name in there)
    return Weights(kind, None if missing else size, None, {}, tuple(there), missing)

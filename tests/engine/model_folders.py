"""Small model folders with real files: the header of a weight file tells all that is read before a launch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def safetensors(path: Path, tensors: dict[str, tuple[str, list[int], int]]) -> None:
    """A file of that format: 8 bytes of length, a JSON header, the bytes of the tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (kind, shape, size) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))


def model_folder(path: Path, config: Mapping[str, Any]) -> Path:
    """A folder with this config.json and weights of a few bytes, as if they were whole."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    safetensors(path / "model.safetensors", {"a": ("BF16", [2], 4)})
    return path

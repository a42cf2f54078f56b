"""Fetches a model of the hub into its cache, with progress, going on where an earlier try ended.

`python -m lab.engine.download MODEL [--progress FILE]` writes how far it is as JSON into FILE about twice a second,
at last with "result" or "problem". It ends with status 0, 1 after a problem; SIGTERM ends it at once, and what has come
so far stays. With `--with-parent` it ends as soon as its standard input is closed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.engine.hub import HubFile, HubModel, endpoint, hub_model, hub_problem, hub_token
from lab.engine.model import hub_cache_dir
from lab.environment import read_environment
from lab.findings import Finding, LabError, Param
from lab.messages import word_finding

PART = ".part"
_TELL_S = 0.5
# larger ones come in parts that are gone on with; the library fetches the small ones, and those its plain way refuses
_LARGE_BYTES = 5_000_000
_LARGEST_PLAIN_BYTES = 50_000_000_000
_SPARE_BYTES = 100_000_000
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is; `bytes_per_s` is the mean since its start, None at first."""

    done_bytes: int
    total_bytes: int
    file: str | None = None
    bytes_per_s: float | None = None


def download(name: str, variables: Mapping[str, str], tell: Callable[[Progress], None]) -> Path:
    """Fetch all that an engine needs; gives the folder. Raises `LabError` with what stands in the way."""
    from huggingface_hub import constants
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    constants.DOWNLOAD_CHUNK_SIZE = _READ_BYTES  # what a kill loses, and how often progress shows
    model = hub_model(name, variables)
    folder = hub_cache_dir(variables) / f"models--{name.replace('/', '--')}"
    blobs = folder / "blobs"
    try:
        blobs.mkdir(parents=True, exist_ok=True)
        _refuse_without_room(model, blobs)
        with _Teller(model, blobs, tell) as teller:
            for file in model.files:
                if file.sha256 and _LARGE_BYTES <= file.size <= _LARGEST_PLAIN_BYTES:
                    teller.file = file.path
                    _fetch(model, file, blobs, variables)
            teller.file = None
            return _finish(model, variables)
    except LabError:
        raise
    except Exception as problem:  # as in lab.engine.hub: whatever the library raises becomes one finding
        raise LabError(hub_problem(name, problem, variables)) from problem


def _refuse_without_room(model: HubModel, blobs: Path) -> None:
    missing = model.total_bytes - _present(model, blobs)
    free = shutil.disk_usage(blobs).free
    if missing + _SPARE_BYTES > free:
        params: dict[str, Param] = {
            "model": model.name,
            "folder": str(blobs.parent.parent),
            "needed_gib": round(missing / 2**30, 2),
            "free_gib": round(free / 2**30, 2),
        }
        raise LabError(Finding("download-no-room", "error", params))


def _fetch(model: HubModel, file: HubFile, blobs: Path, variables: Mapping[str, str]) -> None:
    """One large file: what lies there already is kept, the rest asked for, the whole compared with its checksum."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    whole, part = blobs / str(file.sha256), blobs / f"{file.sha256}{PART}"
    if whole.exists():
        return
    if part.exists() and part.stat().st_size > file.size:
        part.unlink()
    part.touch()
    url = hf_hub_url(model.name, file.path, revision=model.revision, endpoint=endpoint(variables))
    with part.open("r+b") as sink:
        come = sink.seek(0, os.SEEK_END)
        headers = build_hf_headers(token=hub_token(variables))
        http_get(url, sink, resume_size=come, headers=headers, expected_size=file.size)
    if _sha256(part) != file.sha256:
        part.unlink()
        raise LabError(Finding("download-broken", "error", {"model": model.name, "file": file.path}))
    part.rename(whole)


def _finish(model: HubModel, variables: Mapping[str, str]) -> Path:
    """The small files, and the links that make a folder of the parts, are the library's own work."""
    from huggingface_hub import snapshot_download

    folder = snapshot_download(
        model.name,
        cache_dir=hub_cache_dir(variables),
        endpoint=endpoint(variables),
        token=hub_token(variables),
        allow_patterns=[file.path for file in model.files],
        max_workers=2,
    )
    return Path(folder)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _present(model: HubModel, blobs: Path) -> int:
    """Bytes of the wanted files that lie in the cache, unfinished ones included."""
    return sum(_size(blobs, file) for file in model.files)


def _size(blobs: Path, file: HubFile) -> int:
    name = file.sha256 or file.blob
    for path in (blobs / f"{name}", blobs / f"{name}{PART}"):
        try:
            return min(file.size, path.stat().st_size)
        except OSError:
            continue
    return 0


class _Teller:
    """Looks at the files as they grow and tells of it, beside the download."""

    def __init__(self, model: HubModel, blobs: Path, tell: Callable[[Progress], None]) -> None:
        self._model, self._blobs, self._tell = model, blobs, tell
        self._began, self._at_first = time.monotonic(), _present(model, blobs)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self.file: str | None = None

    def __enter__(self) -> _Teller:
        self._say()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._say()

    def _run(self) -> None:
        while not self._done.wait(_TELL_S):
            self._say()

    def _say(self) -> None:
        done, seconds = _present(self._model, self._blobs), time.monotonic() - self._began
        rate = (done - self._at_first) / seconds if seconds > _TELL_S else None
        self._tell(Progress(done, self._model.total_bytes, self.file, rate))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.engine.download", description="Fetch a model from the hub.")
    parser.add_argument("model", help="its name there, organisation/model")
    parser.add_argument("--progress", type=Path, metavar="FILE", help="where to write how far it is")
    parser.add_argument("--with-parent", action="store_true", help="end when the standard input is closed")
    asked = parser.parse_args(arguments)
    if asked.with_parent:
        threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    variables = read_environment().variables
    try:
        folder = download(asked.model, variables, lambda progress: _note(asked.progress, asdict(progress)))
    except LabError as problem:
        finding = problem.findings[0]
        _note(asked.progress, {"problem": {"code": finding.code, **finding.params}})
        sys.stderr.write(f"not downloaded: {word_finding(finding)}\n")
        return 1
    _note(asked.progress, {"result": "done", "folder": str(folder)})
    sys.stdout.write(f"{folder}\n")
    return 0


def _note(file: Path | None, news: Mapping[str, Any]) -> None:
    """Whole or not at all; a full disk must not end a download that goes elsewhere."""
    if file is None:
        return
    unfinished = file.with_suffix(".new")
    try:
        unfinished.write_text(json.dumps(news), "utf-8")
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())

"""What the hub says of a model before anything is fetched: files, sizes, whether a token is needed. One call each."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from lab.engine.model_facts import ModelFacts, facts_of
from lab.engine.weight_files import Weights
from lab.findings import Finding, LabError, Param

DEFAULT_ENDPOINT = "https://huggingface.co"
_PATIENCE_S = 15.0
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NEEDED = ("*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken", "*.py")
# the same weights for other loaders
_LEFT_OUT = ("original/*", "consolidated*", "onnx/*", "openvino/*", "coreml/*", "*/*.bin")


@dataclass(frozen=True, slots=True)
class HubFile:
    """`sha256` is None for a small file that is kept in git itself; it is then known by `blob` alone."""

    path: str
    size: int
    blob: str | None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model on the hub. `files` are those that an engine needs; `gated` says that the hub wants a token with access.

    `facts` has the shape where config.json may be read, and the weights by their size.
    """

    name: str
    revision: str
    gated: bool
    files: tuple[HubFile, ...]
    facts: ModelFacts

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)


def hub_model(name: str, variables: Mapping[str, str]) -> HubModel:
    """Look a model up. Raises `LabError`: unknown, gated, offline, not reachable, or the hub's own words."""
    try:
        return _looked_up(name, variables)
    except LabError:
        raise
    except Exception as problem:  # the library raises errors of several others: all become one finding
        raise LabError(hub_problem(name, problem, variables)) from problem


def endpoint(variables: Mapping[str, str]) -> str:
    return (variables.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def hub_token(variables: Mapping[str, str]) -> str | None:
    """The token of the environment; None leaves it to the library, which may have one of its own."""
    return variables.get("HF_TOKEN") or variables.get("HUGGING_FACE_HUB_TOKEN") or None


def wanted_files(names: list[str]) -> list[str]:
    """The files an engine loads: configuration, tokenizer, and the weights in the best form there is."""
    safe = [name for name in names if name.endswith(".safetensors")]
    weights = safe or [name for name in names if name.endswith(".bin")]
    kept = [name for name in names if name in weights or any(fnmatch(name, each) for each in _NEEDED)]
    return [name for name in kept if not any(fnmatch(name, each) for each in _LEFT_OUT)]


def hub_problem(name: str, problem: BaseException, variables: Mapping[str, str]) -> Finding:
    """What went wrong between this host and the hub, or this host's disk."""
    from huggingface_hub import errors

    where = endpoint(variables)
    params: dict[str, Param] = {"model": name, "endpoint": where, "reason": _first_line(problem)}
    status = getattr(getattr(problem, "response", None), "status_code", None)
    chain = _chain(problem)
    if any(isinstance(each, OSError) and each.errno in _NO_ROOM for each in chain):
        return Finding("download-disk-full", "error", params)
    if any(isinstance(each, errors.GatedRepoError) for each in chain) or status == 403:
        return Finding("hub-model-gated", "error", params)
    if any(isinstance(each, errors.RepositoryNotFoundError) for each in chain):
        return Finding("hub-model-unknown", "error", params)
    if any(isinstance(each, errors.OfflineModeIsEnabled) for each in chain):
        return Finding("hub-offline", "error", params)
    if any(isinstance(each, errors.HFValidationError) for each in chain):
        return Finding("model-name-invalid", "error", params)
    if any(_is_of_the_network(each) for each in chain):
        return Finding("hub-unreachable", "error", params)
    return Finding("hub-refused", "error", {**params, "status": status})


def _looked_up(name: str, variables: Mapping[str, str]) -> HubModel:
    from huggingface_hub import HfApi

    token = hub_token(variables)
    api = HfApi(endpoint=endpoint(variables), token=token)
    info = api.model_info(name, files_metadata=True, timeout=_PATIENCE_S)
    listed = {each.rfilename: each for each in info.siblings or ()}
    files = tuple(_file(listed[path]) for path in wanted_files(list(listed)))
    config = _config(name, info.sha or "main", variables, token) if "config.json" in listed else {}
    return HubModel(name, info.sha or "main", bool(info.gated), files, _facts(name, config, files, info))


def _file(sibling: Any) -> HubFile:
    lfs = sibling.lfs
    sha256 = getattr(lfs, "sha256", None) if lfs is not None else None
    return HubFile(sibling.rfilename, int(sibling.size or 0), sibling.blob_id, sha256)


def _config(name: str, revision: str, variables: Mapping[str, str], token: str | None) -> Mapping[str, Any]:
    """config.json itself, not kept: a cache with nothing but that would look like a model that is here."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    url = hf_hub_url(name, "config.json", revision=revision, endpoint=endpoint(variables))
    answer = get_session().get(url, headers=build_hf_headers(token=token), timeout=_PATIENCE_S, follow_redirects=True)
    hf_raise_for_status(answer)
    table = answer.json()
    return table if isinstance(table, dict) else {}


def _facts(name: str, config: Mapping[str, Any], files: tuple[HubFile, ...], info: Any) -> ModelFacts:
    sizes = [file.size for file in files if file.path.endswith((".safetensors", ".bin"))]
    kind = "safetensors" if any(file.path.endswith(".safetensors") for file in files) else "bin"
    counts = getattr(info.safetensors, "parameters", None) or {}
    weights = Weights(kind if sizes else None, sum(sizes) if sizes else None, sum(counts.values()) or None)
    return facts_of(name, config, weights)


def _chain(problem: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    each: BaseException | None = problem
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def _is_of_the_network(problem: BaseException) -> bool:
    """Connection, time-out, proxy and TLS errors of the library's own HTTP client, by their name."""
    names = {kind.__name__ for kind in type(problem).__mro__}
    return bool(
        names & {"TransportError", "ConnectError", "TimeoutException", "ConnectionError", "gaierror", "SSLError"}
    )


def _first_line(problem: BaseException) -> str:
    text = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {text[0][:200]}" if text else type(problem).__name__

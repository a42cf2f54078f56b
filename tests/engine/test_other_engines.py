"""Engines with names of their own: what of vLLM's knobs they have, and what is said of the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.engine.effective import compare_effective, read_effective
from lab.engine.model import ModelRef
from lab.environment import ROOT
from lab.findings import Finding
from lab.host.facts import HostKind
from lab.messages import word_finding
from lab.records.workload import Scalar

FOLDER = ModelRef("smol", Path("/models/smol"), "folder", "smol")


def definition(kind: str) -> EngineDefinition:
    return load_definition(kind, ROOT / "configs")


FILE = ModelRef("smol", Path(__file__), "folder", "smol")  # one that is there: some engines want a file


def command(
    kind: str, knobs: dict[str, Scalar], *explicit: str, host: HostKind = "cuda", model: ModelRef | None = None
) -> EngineCommand:
    return build_command(
        definition(kind),
        knobs,
        frozenset(explicit),
        host_kind=host,
        model=model or (FILE if kind == "llamacpp" else FOLDER),
        port=8123,
        python=Path("/venv/bin/python"),
        devices=None,
        variables={},
    )


def codes(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in found]


@pytest.mark.parametrize("kind", list_engines(ROOT / "configs"))
def test_every_definition_is_valid_and_named_as_its_file(kind: str) -> None:
    assert definition(kind).kind == kind


@pytest.mark.parametrize("kind", list_engines(ROOT / "configs"))
def test_every_code_of_a_definition_has_words(kind: str) -> None:
    engine = definition(kind)
    codes = [each.code for each in engine.note] + [each.code for each in engine.clash]
    codes += [each.reason for each in engine.overlay] + [each.code for each in engine.absent.values()]
    codes += [remedy for each in engine.failure for remedy in each.remedies]
    for code in codes:
        assert code not in word_finding(Finding(code, "advice", {"engine": "x", "knob": "k", "value": 1}))


def test_transformers_is_named_by_the_folder_it_serves() -> None:
    built = command("transformers", {"model": "smol", "dtype": "bfloat16"}, host="cpu")
    assert built.shown == (
        "/venv/bin/python -c 'from transformers.cli.transformers import app; app()' serve /models/smol "
        "--host 127.0.0.1 --port 8123 --dtype bfloat16 --device cpu"
    )
    assert built.served_name == "/models/smol"
    assert codes(built.findings) == [("engine-serves-one-by-one", "advice")]


def test_with_its_continuous_batching_it_is_not_said_to_serve_one_by_one() -> None:
    built = command("transformers", {"continuous_batching": True, "block_size": 64})
    assert built.argv[-3:] == ("--continuous-batching", "--cb-block-size", "64")
    assert built.findings == ()


@pytest.mark.parametrize(("explicit", "severity"), [((), "warning"), (("block_size",), "error")])
def test_a_knob_that_counts_only_with_a_switch_is_told(explicit: tuple[str, ...], severity: str) -> None:
    built = command("transformers", {"block_size": 64}, *explicit)
    assert ("knob-needs-switch", severity) in codes(built.findings)
    assert "--cb-block-size" not in built.argv


def test_no_cache_beside_a_paged_cache_is_refused() -> None:
    built = command("transformers", {"use_cache": False, "continuous_batching": True}, "use_cache")
    assert ("clash-cache-off-with-paged-cache", "error") in codes(built.findings)


@pytest.mark.parametrize("knob", ["long_prefill_token_threshold", "max_model_len", "async_scheduling"])
@pytest.mark.parametrize(("explicit", "severity"), [(False, "warning"), (True, "error")])
def test_a_vllm_knob_without_a_counterpart_is_never_passed_on(knob: str, explicit: bool, severity: str) -> None:
    built = command("transformers", {knob: 64}, *((knob,) if explicit else ()))
    assert [each for each in codes(built.findings) if each[1] != "advice"] == [("knob-without-counterpart", severity)]
    assert "64" not in built.argv


# an article's pair as each engine writes it: expected values are those of the engines' own documentation
ARTICLE: dict[str, Scalar] = {
    "max_num_batched_tokens": 4096,
    "long_prefill_token_threshold": 512,
    "max_num_seqs": 32,
    "max_model_len": 8192,
    "block_size": 16,
    "kv_cache_dtype": "auto",
}
WRITTEN = {
    "sglang": "--max-prefill-tokens 4096 --chunked-prefill-size 512 --max-running-requests 32 --context-length 8192 "
    "--page-size 16 --kv-cache-dtype auto",
    "lmdeploy": "--max-prefill-token-num 4096 --max-batch-size 32 --session-len 8192 --cache-block-seq-len 16 "
    "--quant-policy 0",
    "llamacpp": "--batch-size 4096 --parallel 32 --ctx-size 262144",  # the context of all 32 slots together
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_knobs_are_written_in_each_engines_own_words(kind: str) -> None:
    assert command(kind, ARTICLE).shown.endswith(WRITTEN[kind])


@pytest.mark.parametrize(
    ("kind", "knobs", "arguments"),
    [
        ("sglang", {"enable_prefix_caching": False}, ("--disable-radix-cache",)),
        ("sglang", {"enable_prefix_caching": True}, ()),
        ("sglang", {"enable_chunked_prefill": False}, ("--chunked-prefill-size=-1",)),
        ("sglang", {"kv_cache_dtype": "fp8"}, ("--kv-cache-dtype", "fp8_e4m3")),
        ("sglang", {"enforce_eager": True}, ("--disable-cuda-graph",)),
        ("lmdeploy", {"kv_cache_dtype": "int8_per_token_head"}, ("--quant-policy", "8")),
        ("lmdeploy", {"dtype": "half"}, ("--dtype", "float16")),
        ("llamacpp", {"kv_cache_dtype": "float16"}, ("--cache-type-k", "f16", "--cache-type-v", "f16")),
        ("llamacpp", {"kv_cache_dtype": "auto"}, ()),
        ("llamacpp", {"enable_prefix_caching": False}, ("--no-cache-prompt",)),
        ("llamacpp", {"max_model_len": 4096}, ("--ctx-size", "4096")),
    ],
)
def test_values_are_written_in_each_engines_own_words(
    kind: str, knobs: dict[str, Scalar], arguments: tuple[str, ...]
) -> None:
    plain = command(kind, {}).argv
    assert command(kind, knobs).argv == (*plain, *arguments)


@pytest.mark.parametrize(
    ("kind", "knob", "value", "code"),
    [
        ("lmdeploy", "kv_cache_dtype", "fp8", "value-without-counterpart"),
        ("llamacpp", "kv_cache_dtype", "fp8", "value-without-counterpart"),
        ("llamacpp", "gpu_memory_utilization", 0.9, "knob-absent"),
        ("sglang", "num_gpu_blocks_override", 64, "knob-absent"),
        ("sglang", "async_scheduling", True, "knob-without-counterpart"),
        ("sglang", "use_cache", False, "knob-no-cache-switch"),
    ],
)
def test_what_has_no_counterpart_is_an_error_in_an_arm(kind: str, knob: str, value: Scalar, code: str) -> None:
    built = command(kind, {knob: value}, knob)
    assert (code, "error") in codes(built.findings)
    assert built.argv == command(kind, {}).argv


@pytest.mark.parametrize(
    ("kind", "knob"),
    [
        ("sglang", "gpu_memory_utilization"),
        ("lmdeploy", "gpu_memory_utilization"),
        ("sglang", "max_num_batched_tokens"),
    ],
)
def test_a_name_that_means_something_near_is_told(kind: str, knob: str) -> None:
    (finding,) = command(kind, {knob: 1}).findings
    assert (finding.code[:8], finding.severity) == ("meaning-", "advice")


def test_a_chunk_size_beside_no_chunks_is_refused_where_one_option_says_both() -> None:
    both = command("sglang", {"enable_chunked_prefill": False, "long_prefill_token_threshold": 512})
    assert ("clash-chunk-size-without-chunks", "error") in codes(both.findings)
    none = command("sglang", {"enable_chunked_prefill": False, "long_prefill_token_threshold": 0})
    assert not any(code.startswith("clash") for code, _ in codes(none.findings))


@pytest.mark.parametrize(
    ("files", "code"), [((), "model-file-missing"), (("a.gguf", "b.gguf"), "model-file-ambiguous")]
)
def test_an_engine_of_one_file_wants_just_one(tmp_path: Path, files: tuple[str, ...], code: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    folder = ModelRef("m", tmp_path, "folder", "m")
    assert (code, "error") in codes(command("llamacpp", {}, model=folder).findings)


def test_the_one_file_of_a_folder_is_served(tmp_path: Path) -> None:
    (tmp_path / "model-q4.gguf").touch()
    built = command("llamacpp", {}, model=ModelRef("m", tmp_path, "folder", "m"))
    assert built.argv[1:5] == ("--model", str(tmp_path / "model-q4.gguf"), "--alias", "m")
    assert built.findings == ()


def test_an_engines_answer_is_read_in_our_words() -> None:
    engine = definition("sglang")
    answer = {"disable_radix_cache": True, "kv_cache_dtype": "fp8_e4m3", "context_length": 4096, "page_size": 1}
    with answering(engine.effective.path or "", answer) as url:
        found = read_effective(url, engine)
    assert found == {"enable_prefix_caching": False, "kv_cache_dtype": "fp8", "max_model_len": 4096, "block_size": 1}
    assert compare_effective({"enable_prefix_caching": False, "kv_cache_dtype": "fp8_e4m3"}, found) == ()


@contextmanager
def answering(path: str, answer: dict[str, Scalar]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            there = self.path == path
            self.send_response(200 if there else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode() if there else b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

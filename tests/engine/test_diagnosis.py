"""Which failure a log shows and which way the cure goes: constructed logs (R37, R45) and logs of a real vLLM 0.32.

`logs/real-*` were said by the real engine (tools/provoke_failures.py); `logs/constructed-*` follow its source.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lab.engine.definition import EngineDefinition
from lab.engine.diagnosis import Diagnosis, diagnose
from lab.messages import messages, word_finding

LOGS = Path(__file__).parent / "logs"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((LOGS / "expected.toml").read_text("utf-8"))

LAST = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
NO_ROOM = (
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing "
    "the engine."
)
TOO_LONG = (
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in "
    "KV cache (86432). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
    "engine."
)
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.71 GiB. GPU 0 has a total capacity of 22.30 GiB "
    "of which 1.52 GiB is free."
)
FP8 = (
    "triton.compiler.errors.CompilationError: type fp8e4nv not supported in this architecture. The supported fp8 "
    "dtypes are ('fp8e4b15', 'fp8e5')"
)
BACKEND = "ValueError: No valid attention backend found for cuda. Reasons: {FLASH_ATTN: [block_size not supported]}."


def in_a_traceback(line: str) -> str:
    frames = [f'(EngineCore_DP0 pid=411) ERROR   File "/venv/vllm/part{n}.py", line {n}, in call' for n in range(30)]
    return "\n".join([*frames, f"(EngineCore_DP0 pid=411) ERROR {line}", *frames, LAST])


def advice(found: Diagnosis) -> str:
    return " ".join(word_finding(remedy) for remedy in found.remedies)


@pytest.mark.parametrize(
    ("line", "failure", "said"),
    [
        (NO_ROOM, "no-kv-room", "raise gpu_memory_utilization"),
        (TOO_LONG, "context-too-long", "max_model_len to at most 86432"),
        (OUT_OF_MEMORY, "out-of-memory", "Lower gpu_memory_utilization"),
        (FP8, "unsupported", "fp8 KV cache is not supported on this GPU (capability 8.6"),
        (BACKEND, "unsupported", "block_size is not supported"),
    ],
)
def test_the_root_line_decides(vllm: EngineDefinition, line: str, failure: str, said: str) -> None:
    found = diagnose(vllm, in_a_traceback(line), 1, {"capability": "8.6"})
    assert (found.failure_class, found.lines) == (failure, (line,))
    assert said in advice(found)


def test_opposite_cures_are_never_mixed(vllm: EngineDefinition) -> None:
    free = (
        "ValueError: Free memory on device cuda:0 (31.4/47.4 GiB) on startup is less than desired GPU memory "
        "utilization (0.95, 45.0 GiB)."
    )
    lower = advice(diagnose(vllm, in_a_traceback(free), 1, {"holders": "process 77 (ann) on GPU 0 with 12.0 GiB"}))
    assert "at most 0.66" in lower
    assert "process 77 (ann)" in lower
    assert "raise" not in lower
    assert "at most" not in advice(diagnose(vllm, in_a_traceback(NO_ROOM), 1))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_log_is_understood(vllm: EngineDefinition, name: str) -> None:
    found = diagnose(vllm, (LOGS / f"{name}.log").read_text("utf-8"), 1)
    wanted = EXPECTED[name]
    assert (found.failure_class, found.moment) == (wanted["class"], wanted.get("moment"))
    assert [remedy.code for remedy in found.remedies] == wanted["remedies"]
    assert wanted["line"] in " ".join(found.lines)


def test_every_log_is_expected_and_names_its_origin() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} == set(EXPECTED)
    assert all(name.startswith(("real-", "constructed-")) for name in EXPECTED)
    for path in LOGS.glob("constructed-*.log"):
        assert path.read_text("utf-8").startswith("# constructed after ")


def test_a_refused_value_is_named_by_the_line_that_follows(vllm: EngineDefinition) -> None:
    found = diagnose(vllm, (LOGS / "real-utilization-1.2.log").read_text("utf-8"), 1)
    assert found.lines[1] == "gpu_memory_utilization"
    assert "less than or equal to 1" in found.lines[2]


def test_an_unknown_reason_shows_the_last_cause_not_its_echo(vllm: EngineDefinition) -> None:
    found = diagnose(vllm, in_a_traceback("KeyError: 'layers.0.weight'"), 1)
    assert (found.failure_class, found.lines) == ("crash", ("KeyError: 'layers.0.weight'",))


def test_a_silent_kill_names_the_signal(vllm: EngineDefinition) -> None:
    found = diagnose(vllm, "loading\n", -9)
    assert (found.failure_class, found.lines) == ("killed", ("loading",))
    assert "SIGKILL" in advice(found)


def test_keys_in_a_log_are_not_shown(vllm: EngineDefinition) -> None:
    found = diagnose(vllm, "ValueError: bad header Bearer abcdef-LEAK-0001 and sk-test-LEAK-0001", 1)
    assert "LEAK-0001" not in " ".join(found.lines)


def test_every_remedy_and_overlay_reason_has_words(vllm: EngineDefinition) -> None:
    codes = {code for failure in vllm.failure for code in failure.remedies}
    codes |= {rule.reason for rule in vllm.overlay} | {absent.code for absent in vllm.absent.values()}
    assert codes <= set(messages())

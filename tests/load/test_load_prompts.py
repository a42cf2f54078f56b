"""Prompts: exact lengths by the real tokenizer, unique starts, the user's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers

from lab.findings import LabError
from lab.load.prompt_file import read_prompt_file
from lab.load.prompts import build_prompts
from lab.load.tokenizer import read_tokenizer
from lab.records.workload import LoadJob, Workload


def job(salt: str = "", seed: int = 0, **workload: object) -> LoadJob:
    return LoadJob(
        base_url="http://x/v1", model="m", salt=salt, seed=seed, workload=Workload(kind="burst", requests=1, **workload)
    )


def texts(asked: LoadJob, *lengths: int, phase: str = "run", count: int = 20, tokenizer=None) -> list[str]:
    prompts = build_prompts(asked, tokenizer, lengths)
    return [prompts.make(phase, number)[0]["content"] for number in range(count)]


def byte_tokenizer(folder: Path) -> Path:
    """A tokenizer in which every byte is a token, so that no word is one."""
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {letter: number for number, letter in enumerate(sorted(alphabet))}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("length", [1, 2, 9, 16, 100, 1000])
@pytest.mark.parametrize("prefix", ["unique", "shared"])
def test_a_prompt_has_exactly_the_tokens_asked_for(smol_model: Path, length: int, prefix: str) -> None:
    judge = tokenizers.Tokenizer.from_file(str(smol_model / "tokenizer.json"))
    tokenizer = read_tokenizer(str(smol_model))
    found = texts(job(prompts="exact", prefix=prefix), length, tokenizer=tokenizer)
    assert {len(judge.encode(text, add_special_tokens=False).ids) for text in found} == {length}


def test_lengths_are_exact_in_a_vocabulary_of_bytes_too(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(str(byte_tokenizer(tmp_path)))
    assert tokenizer is not None
    found = texts(job(prompts="exact"), 50, tokenizer=tokenizer, count=5)
    assert {len(text.encode()) for text in found} == {50}
    assert len(set(found)) == 5


def test_several_lengths_are_taken_in_turn(smol_model: Path) -> None:
    tokenizer = read_tokenizer(str(smol_model))
    assert tokenizer is not None
    found = texts(job(prompts="exact"), 8, 32, tokenizer=tokenizer, count=4)
    assert [tokenizer.count(text) for text in found] == [8, 32, 8, 32]


def test_without_a_tokenizer_lengths_are_approximate_and_marked() -> None:
    prompts = build_prompts(job(prompts="exact"), None, (100,))
    assert prompts.notes == ("prompt-length-approximate",)
    assert len(prompts.make("run", 0)[0]["content"].split()) == 100


@pytest.mark.parametrize("kind", ["mixed", "exact"])
def test_no_two_prompts_start_alike_in_warm_up_run_arm_and_repeat(kind: str) -> None:
    lengths = (40,) if kind == "exact" else ()
    found = [
        text[:60]
        for salt in ("arm 1", "arm 2")
        for phase in ("warmup", "run")
        for text in texts(job(salt, prompts=kind), *lengths, phase=phase, count=200)
    ]
    assert len(set(found)) == 800


def test_the_same_job_makes_the_same_prompts() -> None:
    assert texts(job("a", 7)) == texts(job("a", 7))
    assert texts(job("a", 7)) != texts(job("a", 8))


def test_mixed_prompts_are_five_in_turn_with_a_gradient_of_lengths() -> None:
    found = texts(job(prefix="shared"), count=10)
    assert found[:5] == found[5:]
    assert len(set(found)) == 5
    assert len(min(found, key=len)) < 50 < 150 < len(max(found, key=len))


def test_a_shared_prefix_is_the_same_start_with_a_different_rest() -> None:
    found = texts(job(prompts="exact", prefix="shared"), 64)
    starts = {" ".join(text.split()[:32]) for text in found}
    assert (len(starts), len(set(found))) == (1, 20)


def test_exact_without_a_length_is_refused() -> None:
    with pytest.raises(LabError, match="prompt-length-missing"):
        build_prompts(job(prompts="exact"), None, ())


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_a_file_of_json_lines_gives_prompts_and_names_its_bad_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path / "prompts.jsonl",
        "\ufeff" + json.dumps({"prompt": "one"}),
        "",
        "{broken",
        json.dumps({"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "two"}]}),
        json.dumps({"text": "no"}),
        json.dumps({"messages": [{"role": "user"}]}),
    )
    found = read_prompt_file(path)
    assert found.bad == 3
    assert found.notes == ("prompt-file-bad-lines: 3 (line 3, line 5, line 6)",)
    assert [conversation[-1]["content"] for conversation in found.conversations] == ["one", "two"]


def test_a_share_gpt_file_is_read_up_to_the_last_human_turn(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]
    whole = [{"id": "a", "conversations": turns}, {"id": "b", "conversations": [{"from": "gpt", "value": "x"}]}]
    found = read_prompt_file(write(tmp_path / "share.json", json.dumps(whole)))
    assert found.conversations == [[{"role": "user", "content": "hello"}]]
    assert found.notes == ("prompt-file-bad-lines: 1 (entry 2)",)


def test_a_file_s_prompts_get_a_marker_in_front_unless_a_prefix_is_shared(tmp_path: Path) -> None:
    path = write(tmp_path / "prompts.jsonl", json.dumps({"prompt": "one"}))
    assert texts(job(prompts=str(path), prefix="shared"), count=1) == ["one"]
    marked = texts(job(prompts=str(path)), count=3)
    assert all(text.endswith("] one") for text in marked)
    assert len(set(marked)) == 3


@pytest.mark.parametrize(("text", "code"), [("", "prompt-file-empty"), ("{}", "prompt-file-empty")])
def test_a_file_without_prompts_is_refused(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(LabError, match=code):
        read_prompt_file(write(tmp_path / "p.jsonl", text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="prompt-file-unreadable"):
        read_prompt_file(tmp_path / "none.jsonl")

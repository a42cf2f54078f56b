"""The engine's options as one list: its own flags, ours explained, searched by words."""

from __future__ import annotations

import pytest

from lab.engine.catalogue import Catalogue, Flag
from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.flag_list import option_list, search_options
from lab.environment import ROOT

VLLM = Catalogue(
    distribution="vllm",
    version="0.32.0",
    flags=(
        Flag(name="seed", flag="--seed", type="int", default=0, help="Random seed for reproducibility."),
        Flag(name="block_size", flag="--block-size", type="int", help="Size of a cache block."),
        Flag(name="max_num_seqs", flag="--max-num-seqs", type="int"),
        Flag(name="async_scheduling", flag="--async-scheduling", off="--no-async-scheduling", type="bool"),
        Flag(name="load_format", flag="--load-format", type="str", choices=("auto", "dummy"), default="auto"),
        Flag(name="api_key", flag="--api-key", type="str", help="Keys of clients."),
        Flag(name="model", flag="--model", type="str"),
    ),
)


def test_what_we_explain_stands_first_and_carries_our_words(vllm: EngineDefinition) -> None:
    options = option_list(vllm, VLLM)
    assert [each.name for each in options] == [
        "model", "max_num_seqs", "block_size", "api_key", "async_scheduling", "load_format", "seed",
    ]  # fmt: skip
    (block,) = (each for each in options if each.name == "block_size")
    assert block.explained
    assert (block.knob.phase, block.knob.unit, block.flag.help) == ("kv_cache", "tokens", "Size of a cache block.")


def test_other_options_have_the_kind_choices_and_default_of_the_parser(vllm: EngineDefinition) -> None:
    options = option_list(vllm, VLLM)
    kinds = {
        each.name: (each.knob.kind, each.knob.choices, each.knob.default) for each in options if not each.explained
    }
    assert kinds == {
        "api_key": ("str", (), None),
        "async_scheduling": ("bool", (), None),
        "load_format": ("choice", ("auto", "dummy"), "auto"),
        "seed": ("int", (), 0),
    }


def test_what_the_lab_sets_itself_cannot_be_set(vllm: EngineDefinition) -> None:
    assert [each.name for each in option_list(vllm, VLLM) if not each.settable] == ["model", "api_key"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("--max-num", ["max_num_seqs"]),
        ("block", ["block_size"]),
        ("page size", ["block_size"]),  # the name that SGLang has for it, an alias of ours
        ("RANDOM seed", ["seed"]),
        ("cache blockchain", []),
        ("", ["model", "max_num_seqs", "block_size", "api_key", "async_scheduling", "load_format", "seed"]),
    ],
)
def test_all_words_must_be_there_in_names_or_texts(vllm: EngineDefinition, text: str, names: list[str]) -> None:
    assert [each.name for each in search_options(option_list(vllm, VLLM), text)] == names


def test_another_engines_option_is_found_under_our_name() -> None:
    sglang = load_definition("sglang", ROOT / "configs")
    flags = (
        Flag(name="page_size", flag="--page-size", type="int", default=1),
        Flag(name="disable_radix_cache", flag="--disable-radix-cache", type="bool"),
        Flag(name="log_level", flag="--log-level", type="str"),
    )
    options = option_list(sglang, Catalogue(distribution="sglang", version="0.5", flags=flags))
    assert [(each.name, each.flag.flag) for each in options] == [
        ("block_size", "--page-size"),
        ("enable_prefix_caching", "--disable-radix-cache"),
        ("log_level", "--log-level"),
    ]

"""Knobs become the fields that the engine has for them in a request."""

from __future__ import annotations

import json

import pytest

from lab.configs.pair import ConfigPair
from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.request_fields import check_request, request_fields
from lab.environment import ROOT
from lab.records.workload import Scalar

CONFIG = "[request]\ntemperature = 0.7\ntop_p = 0.9\ntop_k = 50\nmax_tokens = 9\nstream = true\n"


@pytest.fixture(scope="module")
def transformers() -> EngineDefinition:
    return load_definition("transformers", ROOT / "configs")


def pair(**knobs: Scalar) -> ConfigPair:
    return ConfigPair('{"model": "m", "decode": {"max_num_seqs": 8}}', CONFIG).with_knobs(knobs)


def test_vllm_takes_sampling_fields_by_their_own_names(vllm: EngineDefinition) -> None:
    assert request_fields(vllm, pair(), 32) == {"temperature": 0.7, "top_p": 0.9, "top_k": 50}


def test_transformers_takes_the_cache_switch_as_json_text(transformers: EngineDefinition) -> None:
    fields = request_fields(transformers, pair(use_cache=False))
    assert (fields["temperature"], fields["top_p"]) == (0.7, 0.9)
    assert set(fields) == {"temperature", "top_p", "generation_config"}
    assert json.loads(str(fields["generation_config"])) == {"do_sample": True, "use_cache": False, "top_k": 50}


@pytest.mark.parametrize("value", [True, False])
def test_both_sides_of_the_switch_are_sent(transformers: EngineDefinition, value: bool) -> None:
    text = str(request_fields(transformers, pair(use_cache=value))["generation_config"])
    assert json.loads(text)["use_cache"] is value


def test_transformers_is_asked_for_full_length_by_a_field_of_its_own(transformers: EngineDefinition) -> None:
    text = str(request_fields(transformers, pair(), 48)["generation_config"])
    assert json.loads(text)["min_new_tokens"] == 48
    assert transformers.request.ignore_eos is False


@pytest.mark.parametrize(("explicit", "severity"), [((), "warning"), (("presence_penalty",), "error")])
def test_a_request_knob_that_the_engine_lacks_is_told_and_left_out(
    transformers: EngineDefinition, explicit: tuple[str, ...], severity: str
) -> None:
    asked = pair(presence_penalty=0.5)
    assert "presence_penalty" not in request_fields(transformers, asked)
    found = check_request(transformers, asked, frozenset(explicit))
    assert [(each.code, each.severity, each.params["nearest"]) for each in found] == [
        ("knob-absent", severity, "repetition_penalty")
    ]

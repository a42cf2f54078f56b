"""Adding an engine is writing one file: here a toy one, which the runner then launches and measures."""

from __future__ import annotations

from pathlib import Path

from lab.store import list_launches
from tests.runner.labs import STUB, Lab

TOY = f"""
kind = "toy"
label = "Toy"
command = ["{{python}}", "{STUB}", "--served-model-name", "{{served_name}}", "--port", "{{port}}"]
not_flags = ["model", "host", "port", "devices"]

[installed]
distributions = ["pytest"]
hint = "pip install pytest"

[request]
ignore_eos = false
full_length = {{ least = "{{output_tokens}}" }}

[request.fields]
repetition_penalty = "repeat"

[flags]
max_num_seqs = "--slots"
enable_prefix_caching = ["", "--forget"]

[ready]
models_path = "/v1/models"
probe_path = "/v1/chat/completions"
probe_body = {{ messages = [{{ role = "user", content = "Hi" }}], max_tokens = 1 }}
"""
ARMS = """
[[arm]]
name = "vLLM's place"
[[arm]]
name = "toy"
engine = "toy"
set = { max_num_seqs = 3, enable_prefix_caching = false }
"""


def add(lab: Lab, text: str) -> None:
    Path(lab.config_dir, "engines", "toy.toml").write_text(text, "utf-8")


def test_a_definition_file_is_all_that_an_engine_needs(lab: Lab) -> None:
    add(lab, TOY)
    view = lab.run_until_ended(lab.queue(ARMS))
    assert [(trial.arm_name, trial.state) for trial in view.trials] == [("vLLM's place", "done"), ("toy", "done")]
    launch = next(each for each in list_launches(lab.store) if each.engine == "toy")
    assert launch.argv[-3:] == ("--slots", "3", "--forget")
    assert [mark.code for mark in view.measurements[1].summary.marks if mark.code.startswith("effective")] == [
        "effective-unknown"
    ]


def test_an_engine_that_is_not_there_is_told_with_what_installs_it(lab: Lab) -> None:
    add(lab, TOY.replace('["pytest"]', '["no-such-engine"]').replace("pip install pytest", "pip install toy"))
    view = lab.run_until_ended(lab.queue(ARMS))
    assert [trial.state for trial in view.trials] == ["done", "failed"]
    failed = view.trials[1]
    assert failed.failure == "unsupported"
    assert (failed.message or {})["code"] == "engine-not-installed"
    assert (failed.message or {})["install"] == "pip install toy"


def test_a_knob_that_it_lacks_fails_the_arm_before_anything_is_launched(lab: Lab) -> None:
    add(lab, TOY)
    view = lab.run_until_ended(lab.queue(ARMS.replace("max_num_seqs = 3", "kv_cache_dtype = 'fp8'")))
    failed = view.trials[1]
    assert (failed.state, failed.failure) == ("failed", "bad-config")
    assert (failed.message or {})["code"] == "knob-without-counterpart"
    assert all(launch.engine == "vllm" for launch in list_launches(lab.store))

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from lab.configs.experiment_file import check_file, experiment_from_parts, list_presets, read_experiment
from lab.environment import ROOT
from lab.findings import LabError
from lab.messages import word_finding
from lab.records.plan import Arm

BURST = '[workload]\nkind = "burst"\nrequests = 8\noutput_tokens = 16\n'


def read(pair, text):
    return read_experiment(text, "e.toml", pair)


def errors(pair, text):
    return [(f.code, f.line, f.column) for f in read(pair, text)[1] if f.severity == "error"]


def test_every_preset_is_clean(live):
    presets = list_presets(ROOT / "configs")
    assert {p.path.stem for p in presets} >= {"batching", "batching-article", "gateway", "ladder", "open-loop"}
    for preset in presets:
        assert preset.question
        assert check_file(preset.path, live) == ()


def test_first_preset_is_small_and_needs_no_key(live):
    experiment, _ = read(live, (ROOT / "configs/experiments/batching.toml").read_text())
    assert [(a.name, a.target, dict(a.set)) for a in experiment.arms] == [
        ("no batching (1 sequence at a time)", "engine", {"max_num_seqs": 1}),
        ("continuous batching", "engine", {}),
    ]
    assert (experiment.workload.requests, experiment.workload.output_tokens, experiment.repeats) == (24, 32, 2)
    assert (experiment.settings_text, experiment.config_text) == (live.settings_text, live.config_text)


def test_grid_gives_one_named_arm_per_cell(live):
    text = BURST + '[[arm]]\nname = "base"\n[sweep]\nmax_num_seqs = [8, 16]\nkv_cache_dtype = ["auto", "fp8"]\n'
    experiment, findings = read(live, text)
    assert findings == ()
    assert [arm.name for arm in experiment.arms] == [
        "base",
        "max_num_seqs=8, kv_cache_dtype=auto",
        "max_num_seqs=8, kv_cache_dtype=fp8",
        "max_num_seqs=16, kv_cache_dtype=auto",
        "max_num_seqs=16, kv_cache_dtype=fp8",
    ]
    assert dict(experiment.arms[2].set) == {"max_num_seqs": 8, "kv_cache_dtype": "fp8"}


def test_aliases_in_arms_become_canonical_knobs(live):
    text = BURST + '[[arm]]\nset = { chunk_size = 256, "decode.max_num_seqs" = 4, enable_continuous_batching = true }\n'
    experiment, _ = read(live, text)
    assert dict(experiment.arms[0].set) == {"long_prefill_token_threshold": 256, "max_num_seqs": 4}
    off, _ = read(live, BURST + "[[arm]]\nset = { enable_continuous_batching = false }\n")
    assert (off.arms[0].name, dict(off.arms[0].set)) == ("no batching (1 sequence at a time)", {"max_num_seqs": 1})


def test_workload_is_the_pairs_where_the_file_has_none(live):
    experiment, _ = read(live, '[[arm]]\nname = "a"\n')
    assert experiment.workload == live.workload()
    assert experiment.name == "e"


def test_targets(live):
    text = (
        BURST
        + '[[arm]]\ntarget = "gateway"\n[[arm]]\nname = "own"\ntarget = "attach"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    experiment, findings = read(live, text)
    assert findings == ()
    assert [(a.name, a.target, a.engine, a.base_url) for a in experiment.arms] == [
        ("gateway", "gateway", None, None),
        ("own", "attach", None, "http://127.0.0.1:9/v1"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('repeat = 2\n[[arm]]\nname = "a"\n', [("unknown-key", 1, 1)]),
        ("repeats = 0\n[[arm]]\n", [("experiment-invalid", 1, 1)]),
        ('repeats = "2"\n[[arm]]\n', [("wrong-type", 1, 1)]),
        ('order = "shuffled"\n[[arm]]\n', [("experiment-invalid", 1, 1)]),
        (BURST + "requets = 3\n[[arm]]\n", [("unknown-key", 5, 1)]),
        (BURST + "seed = 3\n[[arm]]\n", [("root-key-in-table", 5, 1)]),
        ("[slo]\nttft_p95 = 3\n[[arm]]\n", [("unknown-key", 2, 1)]),
        ("[slo]\nttft_p95_ms = -3\n[[arm]]\n", [("experiment-invalid", 2, 1)]),
        ("[[arm]]\nset = { max_num_seq = 1 }\n", [("unknown-knob", 2, 9)]),
        ('[[arm]]\nset = { max_num_seqs = "1" }\n', [("wrong-type", 2, 9)]),
        ("[[arm]]\nset = { max_num_seqs = 0 }\n", [("out-of-range", 2, 9)]),
        ("[[arm]]\nset = { chunk_size = 1, long_prefill_token_threshold = 2 }\n", [("set-twice-in-arm", 2, 25)]),
        ("[[arm]]\nset = { swap_space = 4 }\n", [("removed-knob", 2, 9)]),
        ("[[arm]]\nset = { requests = 4 }\n", [("arm-workload-knob", 2, 9)]),
        ('[[arm]]\nname = "a"\n[[arm]]\nname = "a"\n', [("arm-name-twice", 4, 1)]),
        ('[[arm]]\nnam = "a"\n', [("unknown-key", 2, 1)]),
        ('[[arm]]\ntarget = "gatway"\n', [("not-a-choice", 2, 1)]),
        ('[[arm]]\ntarget = "attach"\n', [("arm-needs-base-url", 1, 1)]),
        ('[[arm]]\ntarget = "gateway"\nengine = "vllm"\n', [("arm-key-unused", 3, 1)]),
        ('[[arm]]\ntarget = "gateway"\nset = { max_num_seqs = 4 }\n', [("arm-knob-unused", 3, 9)]),
        ('[[arm]]\nengine = "vlm"\n', [("arm-unknown-engine", 2, 1)]),
        ("[sweep]\nmax_num_seqs = 8\n", [("sweep-not-list", 2, 1)]),
        ("[sweep]\nmax_num_seqs = []\n", [("sweep-not-list", 2, 1)]),
        ("[sweep]\nmax_num_seqs = [8, 0]\n", [("out-of-range", 2, 20)]),
        ("[sweep]\nmax_num_seqs = [8, 8]\n", [("sweep-twice", 2, 20), ("arm-name-twice", 1, 1)]),
        ("name = 'x'\n", [("experiment-nothing", 1, 1)]),
        ("repeats = 3\n[limits]\nmax_trials = 2\n[[arm]]\n", [("too-many-trials", 3, 1)]),
        ("repeats = 60\n[[arm]]\n", [("too-many-trials", 1, 1)]),
        ("[[arm]\n", [("toml-invalid", 1, 6)]),
    ],
)
def test_mistakes_are_found_with_their_place(live, text, expected):
    found = sorted(errors(live, text if "[workload]" in text else text + BURST))
    assert found == sorted(expected)
    assert read(live, text)[0] is None


def test_key_in_an_arm_is_refused_and_not_repeated(live):
    _, findings = read(live, BURST + '[[arm]]\nset = { api_key = "sk-made-up-0001" }\n')
    assert [f.code for f in findings] == ["secret-in-file"] and "made-up" not in str(findings)


def test_flag_that_no_release_here_knows_passes_with_a_warning(live):
    experiment, findings = read(live, BURST + "[[arm]]\nset = { flag_of_next_year = 3 }\n")
    assert [(f.code, f.severity) for f in findings] == [("flag-not-in-catalogue", "warning")]
    assert dict(experiment.arms[0].set) == {"flag_of_next_year": 3}


def test_rules_are_checked_for_each_arm(live):
    text = BURST + '[[arm]]\nname = "prefill first"\nset = { chunked_prefill = false }\n[[arm]]\nname = "fine"\n'
    _, findings = read(live, text)
    assert [(f.code, f.params["arm"], f.line) for f in findings if f.severity == "error"] == [
        ("arm-rule", "prefill first", 5)
    ]
    assert "max_num_batched_tokens to 8192" in word_finding(findings[0])


def test_workload_longer_than_the_context_is_refused(live):
    text = "[workload]\nprompt_tokens = [1024]\noutput_tokens = 1025\n[[arm]]\nset.max_model_len = 2048"
    _, findings = read(live, text)
    assert [f.params["rule"] for f in findings if f.severity == "error"] == ["request-too-long"]


def test_kv_cache_off_needs_an_engine_that_can(live):
    assert errors(live, BURST + "[[arm]]\nset = { use_cache = false }\n") == [("arm-rule", 5, 1)]


def test_prompts_from_a_file_are_found_beside_the_experiment(live, tmp_path):
    (tmp_path / "mine.txt").write_text("one\ntwo\n")
    text = BURST + 'prompts = "mine.txt"\n[[arm]]\n'
    experiment, findings = read_experiment(text, str(tmp_path / "e.toml"), live)
    assert findings == () and experiment.workload.prompts == str((tmp_path / "mine.txt").resolve())
    assert errors(live, text) == [("prompts-file-missing", 5, 1)]


@pytest.mark.parametrize("kind", ["closed", "open"])
def test_each_kind_of_load_says_what_it_needs(live, kind):
    found = read(live, f'[workload]\nkind = "{kind}"\nrequests = 4\n[[arm]]\n')[1]
    assert [f.code for f in found] == ["workload-needs"]


def test_pair_that_cannot_be_read_or_holds_a_key_stops_the_experiment(live):
    broken = replace(live, settings_text="{")
    assert read(broken, "[[arm]]\n")[0] is None
    secret = replace(live, config_text=live.config_text.replace("${TAOTOKEN_API_KEY}", "sk-made-up-0001"))
    experiment, findings = read(secret, BURST + "[[arm]]\n")
    assert experiment is None and [f.code for f in findings] == ["secret-in-file"]


def test_parts_of_the_page_go_by_the_same_rules(live):
    experiment = experiment_from_parts(
        "grid", "why?", 2, "random", 3, live.workload(), {"ttft_p95_ms": 500.0},
        [Arm(name="base"), Arm(name="gw", target="gateway", engine=None)], {"max_num_seqs": [8, 16]}, pair=live,
    )  # fmt: skip
    assert [arm.name for arm in experiment.arms] == ["base", "gw", "max_num_seqs=8", "max_num_seqs=16"]
    assert (experiment.repeats, experiment.order, experiment.slo.ttft_p95_ms) == (2, "random", 500.0)
    with pytest.raises(LabError) as caught:
        experiment_from_parts("x", arms=[{"name": "a", "set": {"max_num_seqs": 0}}], sweep={"foo_bar": []}, pair=live)
    assert sorted(f.code for f in caught.value.findings) == ["out-of-range", "sweep-not-list"]


def test_broken_preset_does_not_hide_the_others(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "a.toml").write_text("name = ")
    (tmp_path / "experiments" / "b.toml").write_text('name = "B"\nquestion = "q"\n')
    assert [(p.name, p.question) for p in list_presets(tmp_path)] == [("a", ""), ("B", "q")]


def test_an_experiment_may_have_a_sampling_rate_of_its_own(live):
    experiment, findings = read(live, BURST + "[metrics]\nsample_hz = 10\n[[arm]]\n")
    assert findings == ()
    assert tomllib.loads(experiment.config_text)["metrics"]["sample_hz"] == 10
    assert experiment.settings_text == live.settings_text


def test_a_sampling_rate_outside_its_range_is_found_at_its_line(live):
    assert errors(live, BURST + "[metrics]\nsample_hz = 11\n[[arm]]\n") == [("out-of-range", 6, 1)]
    assert errors(live, BURST + '[metrics]\nsample_hz = "2"\n[[arm]]\n') == [("wrong-type", 6, 1)]
    found = read(live, BURST + "[metrics]\nsample_hertz = 2\n[[arm]]\n")[1]
    assert [(f.code, f.params["key"], f.params["nearest"]) for f in found] == [
        ("unknown-key", "metrics.sample_hertz", "sample_hz")
    ]
    assert errors(live, "metrics = 3\n" + BURST + "[[arm]]\n") == [("not-a-table", 1, 1)]


LADDER = "[workload]\nkind = 'ladder'\nprompt_tokens = [128, 1024, 2048]\noutput_tokens = 64\nrepeat = 2\n"


def test_steps_that_one_arm_cannot_take_are_named_and_the_rest_runs(live):
    text = LADDER + '[[arm]]\nname = "short"\nset.max_model_len = 1024\n[[arm]]\nname = "long"\n'
    experiment, findings = read(live, text)
    assert experiment is not None
    assert [(f.code, f.severity, f.params["arm"], f.params["lengths"]) for f in findings] == [
        ("arm-skips", "warning", "short", "1024, 2048")
    ]


def test_an_arm_of_a_sweep_that_can_take_nothing_does_not_stop_the_others(live):
    text = "[workload]\nkind='burst'\nrequests=4\nprompts='exact'\nprompt_tokens=[1024]\noutput_tokens=1024\n"
    _, findings = read(live, text + "[sweep]\nmax_model_len = [2000, 4096]\n")
    assert [(f.code, f.severity) for f in findings] == [("arm-left-out", "warning")]
    _, findings = read(live, text + "[sweep]\nmax_model_len = [1000, 2000]\n")
    assert [(f.params["rule"], f.severity) for f in findings] == [("request-too-long", "error")] * 2


def test_shrinking_is_said_before(live):
    text = LADDER.replace("repeat = 2", 'repeat = 2\ntoo_long = "shrink"') + "[[arm]]\nset.max_model_len = 600\n"
    experiment, findings = read(live, text)
    assert experiment.workload.too_long == "shrink"
    assert [f.code for f in findings] == ["arm-shrinks"]


def attach(key: str) -> str:
    return f'{BURST}[[arm]]\nname = "own"\ntarget = "attach"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = {key}\n'


def test_a_running_servers_key_is_named_by_its_variable(live):
    experiment, _ = read(live, attach('"MY_SERVER_KEY"'))
    assert experiment.arms[0].api_key_env == "MY_SERVER_KEY"


def test_a_key_written_out_is_refused_and_not_repeated(live):
    experiment, findings = read(live, attach('"sk-test-LEAK-0001"'))
    assert experiment is None
    assert [finding.code for finding in findings] == ["secret-in-file"]
    assert "LEAK-0001" not in str(findings)


def test_only_a_running_server_has_a_key_variable_of_its_own(live):
    text = BURST + '[[arm]]\napi_key_env = "MY_SERVER_KEY"\n'
    assert errors(live, text) == [("arm-key-unused", 6, 1)]


def test_the_long_prompts_of_an_interference_ask_for_one_token_and_its_steady_answers_for_all(live):
    text = '[workload]\nkind = "interference"\nconcurrency = [4]\nrate_per_s = [0.5]\nrequests = 4\n'
    text += "prompt_tokens = [1500]\noutput_tokens = {output}\n[[arm]]\nset.max_model_len = 2048\n"
    assert read(live, text.format(output=600))[1] == ()
    _, findings = read(live, text.format(output=3000))
    assert [(f.code, f.params["rule"]) for f in findings] == [("arm-rule", "request-too-long")]

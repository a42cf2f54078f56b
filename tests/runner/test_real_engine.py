"""One tiny experiment on a real vLLM, from the queue to the verdict."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.environment import ROOT
from lab.host.facts import host_facts
from lab.host.process_identity import group_members
from lab.plan import plan_trials
from lab.store import list_launches, list_requests, list_samples, queue_experiment
from tests.runner.labs import Lab, wait_for

EXPERIMENT = """
name = "Batching, tiny"
question = "Does batching raise the throughput?"
repeats = 1
[workload]
kind = "burst"
requests = 8
output_tokens = 16
prompts = "mixed"
warmup_requests = 1
[[arm]]
name = "no batching (1 sequence at a time)"
set = { max_num_seqs = 1 }
[[arm]]
name = "continuous batching"
"""


@pytest.fixture
def real_lab(separate_lab: Path, smol_model: Path, monkeypatch: pytest.MonkeyPatch):
    models = separate_lab / "models"
    models.mkdir()
    (models / "smollm2-135m-instruct").symlink_to(smol_model.resolve(), target_is_directory=True)
    home = Lab(separate_lab, ROOT / "configs", monkeypatch)
    yield home
    home.close()


@pytest.mark.engine
@pytest.mark.timeout(400)
def test_batching_is_several_times_faster_on_a_real_engine_and_nothing_is_left(real_lab: Lab) -> None:
    experiment, findings = read_experiment(EXPERIMENT, "tiny.toml", read_pair(real_lab.config_dir))
    assert experiment is not None, findings
    queued = queue_experiment(real_lab.store, experiment, plan_trials(experiment), person="tester", host=real_lab.host)
    view = real_lab.run_until_ended(queued, timeout_s=350)
    assert view.row.state == "done", (view.trials, real_lab.log())

    one, many = view.measurements
    assert [row.arm_name for row in view.measurements] == ["no batching (1 sequence at a time)", "continuous batching"]
    for row in view.measurements:
        assert (row.summary.succeeded, row.summary.output_tokens) == (8, 8 * 16)
        assert not row.summary.tokens_estimated and row.summary.prompt_tokens
        assert (row.summary.cache_hit_ratio or 0.0) < 0.01
        assert len(list_requests(real_lab.store, row.id)) == 9
        series = {sample.series for sample in list_samples(real_lab.store, row.id)}
        assert "kv_cache_usage_ratio" in series
        assert any(name.startswith("gpu") for name in series) == bool(host_facts().gpus)
    assert one.summary.output_tokens_per_s and many.summary.output_tokens_per_s
    assert many.summary.output_tokens_per_s > 2 * one.summary.output_tokens_per_s
    assert one.summary.ttft_ms.p95 and many.summary.ttft_ms.p95
    assert many.summary.ttft_ms.p95 < one.summary.ttft_ms.p95

    launches = list_launches(real_lab.store)
    assert [launch.effective["max_num_seqs"] for launch in reversed(launches) if launch.effective] == [1, 32]
    assert all(launch.ready_s and launch.phase for launch in launches)
    real_lab.runners[0].send_signal(signal.SIGTERM)
    assert real_lab.runners[0].wait(60) == 0
    wait_for(lambda: not any(group_members(launch.pgid or 0) for launch in list_launches(real_lab.store)))
    assert {launch.state for launch in list_launches(real_lab.store)} == {"stopped"}
    assert all(Path(launch.log_path).stat().st_mode & 0o777 == 0o600 for launch in list_launches(real_lab.store))

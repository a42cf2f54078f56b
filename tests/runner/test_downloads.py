"""A model that somebody wants is fetched by the runner: seen, cancelled, put aside for a trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lab.engine.model import find_model
from lab.store import IntentRow, add_intent, close_intent, get_intent
from tests.engine.model_configs import LLAMA_3_8B
from tests.engine.model_folders import safetensors
from tests.runner.labs import Lab, wait_for
from tests.servers.hub_server import Hub, serve_hub

NAME = "org/small"
SIZE = 6_000_000


@pytest.fixture
def hub(lab: Lab, tmp_path: Path) -> Iterator[Hub]:
    safetensors(tmp_path / "w", {"a": ("BF16", [SIZE // 2], SIZE)})
    files = {"config.json": json.dumps(LLAMA_3_8B).encode(), "model.safetensors": (tmp_path / "w").read_bytes()}
    with serve_hub(Hub(models={NAME: files})) as served:
        lab.set("HF_ENDPOINT", served.url)
        lab.set("HF_HOME", str(tmp_path / "hf"))
        yield served


def want(lab: Lab, name: str = NAME) -> int:
    return add_intent(lab.store, lab.host, "download", payload={"model": name}, person="tester")


def told(lab: Lab, intent: int) -> IntentRow:
    found = get_intent(lab.store, intent)
    assert found is not None
    return found


def came(lab: Lab, intent: int) -> int:
    return int((told(lab, intent).payload or {}).get("done_bytes") or 0)


def fetchers(runner_pid: int) -> list[int]:
    children = psutil.Process(runner_pid).children()
    return [each.pid for each in children if "lab.engine.download" in each.cmdline()]


def test_a_wanted_model_is_fetched_with_its_progress_seen(lab: Lab, hub: Hub) -> None:
    hub.slow_bytes_per_s = 2_000_000
    intent = want(lab)
    lab.start_runner()
    wait_for(lambda: 0 < came(lab, intent) < SIZE, 60)
    hub.slow_bytes_per_s = None
    wait_for(lambda: told(lab, intent).closed_at is not None, 60)
    done = told(lab, intent)
    assert done.outcome == "done"
    assert (done.payload or {})["model"] == NAME
    model = find_model(NAME, lab.env)
    assert model.folder is not None
    assert (model.folder / "model.safetensors").stat().st_size == len(hub.models[NAME]["model.safetensors"])


def test_a_download_that_is_no_longer_wanted_ends_and_can_be_gone_on_with(lab: Lab, hub: Hub) -> None:
    hub.slow_bytes_per_s = 1_000_000
    intent = want(lab)
    runner = lab.start_runner()
    wait_for(lambda: came(lab, intent) > 1_000_000, 60)
    close_intent(lab.store, intent, "cancelled")
    wait_for(lambda: not fetchers(runner.pid))
    hub.slow_bytes_per_s = None
    again = want(lab)
    wait_for(lambda: told(lab, again).closed_at is not None, 60)
    assert told(lab, again).outcome == "done"
    assert hub.ranges[0] == 0
    assert hub.ranges[-1] > 0


def test_a_trial_has_the_host_to_itself_and_the_download_goes_on_after_it(lab: Lab, hub: Hub) -> None:
    hub.slow_bytes_per_s = 1_000_000
    intent = want(lab)
    runner = lab.start_runner()
    wait_for(lambda: came(lab, intent) > 500_000, 60)
    experiment = lab.queue('[[arm]]\nname = "a"\n', requests=6)
    wait_for(lambda: lab.view(experiment).trials[0].state != "queued")
    assert not fetchers(runner.pid)
    lab.wait_ended(experiment)
    assert lab.view(experiment).row.state == "done"
    hub.slow_bytes_per_s = None
    wait_for(lambda: told(lab, intent).outcome == "done", 60)


def test_a_refused_model_says_why_and_a_killed_runner_leaves_no_process(lab: Lab, hub: Hub) -> None:
    refused = want(lab, "org/none")
    runner = lab.start_runner()
    wait_for(lambda: told(lab, refused).closed_at is not None, 60)
    assert told(lab, refused).outcome == "failed"
    assert (told(lab, refused).payload or {})["problem"]["code"] == "hub-model-unknown"
    hub.slow_bytes_per_s = 200_000
    intent = want(lab)
    wait_for(lambda: came(lab, intent) > 0, 60)
    (fetcher,) = fetchers(runner.pid)
    runner.kill()
    runner.wait()
    wait_for(lambda: not psutil.pid_exists(fetcher) or psutil.Process(fetcher).status() == psutil.STATUS_ZOMBIE)


def test_a_download_that_cannot_be_started_fails_and_the_runner_lives(lab: Lab, hub: Hub) -> None:
    (lab.env.run_dir / "downloads").write_text("a file where the folder belongs")
    intent = want(lab)
    runner = lab.start_runner()
    wait_for(lambda: told(lab, intent).closed_at is not None, 60)
    assert told(lab, intent).outcome == "failed"
    assert (told(lab, intent).payload or {})["problem"]["code"] == "download-not-started"
    assert runner.poll() is None

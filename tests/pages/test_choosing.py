"""Choosing a model and GPUs, the memory forecast, a download that is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lab.configs.pair import ConfigPair, read_pair
from lab.host.facts import Gpu, GpuProcess, HostFacts
from lab.host.lock import hold_lock
from lab.records.workload import Scalar
from lab.store import Store, add_intent, add_launch, close_intent, open_intents, update_intent, update_launch
from pages.components.command import pair_command
from pages.components.context import host_name
from pages.components.gpu_choice import changes, chosen_now, holders
from tests.engine.model_configs import LLAMA_3_8B
from tests.engine.model_folders import model_folder
from tests.pages.test_home import texts

OpenPage = Callable[..., AppTest]
GIB = 2**30


@pytest.fixture
def models(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models on this host: the pair's own, and one in a folder."""
    monkeypatch.setenv("LAB_MODEL_DIRS", str(own_place / "models"))
    monkeypatch.setenv("HF_HOME", str(own_place / "hf"))
    model_folder(own_place / "run" / "models" / "smollm2-135m-instruct", LLAMA_3_8B)
    return model_folder(own_place / "models" / "Other-8B", {**LLAMA_3_8B, "max_position_embeddings": 4096})


def tables(app: AppTest) -> str:
    return "\n".join(table.value.to_csv() for table in app.table)


def test_the_engine_page_forecasts_the_memory_of_the_live_pair(models: Path, open_page: OpenPage) -> None:
    app = open_page("engine")
    assert not app.exception
    assert "Memory forecast" in texts(app)
    assert "131,072 bytes (bfloat16)" in tables(app)
    assert "No launch on this host ran with the same command yet." in texts(app)


def test_what_the_engine_reported_stands_beside_the_forecast(
    models: Path, open_page: OpenPage, store: Store, own_place: Path
) -> None:
    argv = list(pair_command(read_pair(own_place / "configs")).command.argv)
    argv[argv.index("--port") + 1] = "43210"
    launch = add_launch(store, host_name(), "vllm", argv, ["PATH"], "x.log", 1, 1, 1.0, 43210, "smollm2")
    effective = {"kv_cache_size_tokens": 93184, "max_model_len": 8192, "kv_cache_dtype": "auto"}
    update_launch(store, launch, state="ready", effective=effective)
    update_launch(store, launch, state="stopping")
    update_launch(store, launch, state="stopped")
    app = open_page("engine")
    rows = [line for line in tables(app).splitlines() if "Tokens that fit" in line or "at once" in line]
    assert '"93,184"' in rows[0]
    assert rows[1].endswith(",11.4")  # 93,184 / 8,192
    assert f"Reported by launch {launch}" in texts(app)


def test_a_model_is_chosen_looked_at_and_saved_with_nothing_else_changed(
    models: Path, open_page: OpenPage, own_place: Path
) -> None:
    settings = own_place / "configs" / "settings.json"
    before = settings.read_text("utf-8")
    app = open_page("engine")
    choice = next(box for box in app.selectbox if box.label == "Model")
    assert "smollm2-135m-instruct" in choice.options[0]
    assert any("Other-8B" in option for option in choice.options)
    app.session_state["launch-choice:0:model"] = str(models)
    app.run()
    # its own context is shorter than what the pair asks for: said before anything starts
    assert "max_model_len 8192 is more than the 4096 tokens" in texts(app)
    assert settings.read_text("utf-8") == before
    app.button(key="launch-choice:save").click().run()
    assert settings.read_text("utf-8") == before.replace('"smollm2-135m-instruct"', json.dumps(str(models)))


def test_a_model_of_the_hub_is_downloaded_by_the_runner_with_its_progress_shown(
    models: Path, open_page: OpenPage, store: Store, own_place: Path
) -> None:
    settings = own_place / "configs" / "settings.json"
    settings.write_text(settings.read_text("utf-8").replace("smollm2-135m-instruct", "org/far"), "utf-8")
    with hold_lock(own_place / "runner.lock", f"sqlite:///{own_place / 'experiments.db'}"):
        app = open_page("engine")
        app.button(key="download:org/far:start").click().run()
        (wish,) = open_intents(store, host_name())
        assert (wish.kind, wish.payload) == ("download", {"model": "org/far"})
        update_intent(store, wish.id, {"model": "org/far", "done_bytes": 2 * GIB, "total_bytes": 15 * GIB})
        app.run()
        (bar,) = app.get("progress")
        assert "2.0 GiB of 15.0 GiB" in bar.proto.text
        app.button(key=f"download:{wish.id}:stop").click().run()
        assert open_intents(store, host_name()) == ()
        assert any(button.label == "Go on with the download" for button in app.button)


def test_a_download_that_failed_says_why(models: Path, open_page: OpenPage, store: Store, own_place: Path) -> None:
    settings = own_place / "configs" / "settings.json"
    settings.write_text(settings.read_text("utf-8").replace("smollm2-135m-instruct", "org/far"), "utf-8")
    wish = add_intent(store, host_name(), "download", payload={"model": "org/far"}, person="ann")
    problem = {"code": "hub-model-gated", "model": "org/far", "endpoint": "https://hub.example"}
    update_intent(store, wish, {"model": "org/far", "problem": problem})
    close_intent(store, wish, "failed")
    assert "The model org/far is gated" in " ".join(box.value for box in open_page("engine").error)


def host(*gpus: Gpu) -> HostFacts:
    return HostFacts("h", "cuda" if gpus else "cpu", None, 2, 24 * GIB, gpus, "no-gpu", "3.11", "Linux", {})


def gpus(number: int) -> tuple[Gpu, ...]:
    held = GpuProcess(4711, "ann", "python3", 9 * GIB)
    return tuple(
        Gpu(i, "NVIDIA L4", 24 * GIB, 9 * GIB if i == 0 else 0, (held,) if i == 0 else ()) for i in range(number)
    )


@pytest.mark.parametrize(
    ("knobs", "wanted", "expected"),
    [
        ({}, [0], {}),
        ({}, [1], {"devices": "1"}),
        ({}, [1, 3], {"devices": "1,3", "tensor_parallel_size": 2}),
        ({"devices": "1,3", "tensor_parallel_size": 2}, [1], {"devices": "1", "tensor_parallel_size": 1}),
        ({"devices": "1,3", "tensor_parallel_size": 2}, [], {"devices": None, "tensor_parallel_size": None}),
        ({"tensor_parallel_size": 2}, [0, 1], {}),
    ],
)
def test_the_chosen_gpus_become_devices_and_their_number(
    knobs: dict[str, Scalar], wanted: list[int], expected: dict[str, Scalar | None]
) -> None:
    assert changes(knobs, host(*gpus(4)), wanted) == expected


def test_who_holds_a_gpu_is_named() -> None:
    assert holders(gpus(1)[0]) == "4711 python3 (ann): 9.0 GiB"
    assert chosen_now({"devices": "2"}, host(*gpus(4))) == [2]


def _script() -> None:
    import streamlit as st

    from pages.components.gpu_choice import gpu_choice
    from tests.pages.test_choosing import empty_pair, gpus, host

    st.session_state["found"] = gpu_choice(empty_pair(), host(*gpus(2)), "gpus")


def empty_pair() -> ConfigPair:
    return ConfigPair("{}", "")


def test_gpus_are_shown_with_their_occupants_on_constructed_facts() -> None:
    app = AppTest.from_function(_script, default_timeout=60).run()
    assert not app.exception
    assert "4711 python3 (ann): 9.0 GiB" in app.dataframe[0].value.to_csv()
    assert app.session_state["found"] == {}


def test_a_start_that_model_and_host_forbid_is_not_offered(models: Path, open_page: OpenPage, own_place: Path) -> None:
    settings = own_place / "configs" / "settings.json"
    settings.write_text(
        settings.read_text("utf-8").replace('"smollm2-135m-instruct"', json.dumps(str(models))), "utf-8"
    )
    app = open_page("engine")
    assert app.button(key="serve").disabled
    assert "max_model_len 8192 is more than the 4096 tokens" in texts(app)

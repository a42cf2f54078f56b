"""Which engine is started and measured, and what it can be told: chosen and searched on the pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lab.engine.catalogue import Catalogue, Flag, keep_catalogue
from lab.engine.definition import load_definition
from lab.environment import ROOT, read_environment
from lab.host.lock import hold_lock
from lab.store import Store, get_experiment, heartbeat, list_experiments, open_intents
from pages.components.context import host_name
from tests.engine.model_folders import model_folder
from tests.pages.configs_page import fine, texts, view

OpenPage = Callable[..., AppTest]
CATALOGUE = Catalogue(
    distribution="vllm",
    version="0.32.0",
    flags=(
        Flag(name="max_num_seqs", flag="--max-num-seqs", type="int", help="Most sequences of a step."),
        Flag(name="seed", flag="--seed", type="int", default=0, help="Random seed."),
        Flag(name="async_scheduling", flag="--async-scheduling", off="--no-async-scheduling", type="bool"),
        Flag(name="api_key", flag="--api-key", type="str"),
    ),
)


@pytest.fixture
def ready(own_place: Path, store: Store) -> Path:
    """A model on the disk, and a runner that idles."""
    model_folder(own_place / "run" / "models" / "smollm2-135m-instruct", {})
    heartbeat(store, host_name(), runner_pid=1, state="idle", detail=None, trial_id=None, launch_id=None)
    return own_place


def lock(place: Path) -> object:
    return hold_lock(place / "runner.lock", f"sqlite:///{place / 'experiments.db'}")


def test_the_chosen_engine_is_the_one_that_is_started(open_page: OpenPage, store: Store, ready: Path) -> None:
    with lock(ready):
        app = fine(open_page("engine"))
        app.selectbox(key="engine:kind").set_value("transformers").run()
        assert "transformers.cli" in texts(app)
        app.button(key="serve").click().run()
    (wish,) = open_intents(store, host_name())
    assert (wish.payload or {})["engine"] == "transformers"


def test_an_engine_that_is_not_here_cannot_be_started_and_says_what_installs_it(
    open_page: OpenPage, ready: Path
) -> None:
    with lock(ready):
        app = fine(open_page("engine"))
        assert "SGLang (not installed)" in app.selectbox(key="engine:kind").options
        app.selectbox(key="engine:kind").set_value("sglang").run()
        assert app.button(key="serve").disabled
    assert "pip install 'sglang[all]'" in texts(app)
    assert "--context-length 8192" in texts(app)


def test_a_grid_is_run_on_the_engines_that_are_chosen(open_page: OpenPage, store: Store, ready: Path) -> None:
    with lock(ready):
        app = fine(open_page("experiments"))
        app.multiselect(key="build:engines").set_value(["transformers", "vllm"]).run()
        app.multiselect(key="build:knobs").set_value(["temperature"]).run()
        app.text_input(key="build:values:temperature").set_value("0").run()
        app.checkbox(key="build:plain").uncheck().run()
        app.button(key="build:queue").click().run()
    (row,) = list_experiments(store)
    arms = get_experiment(store, row.id).experiment.arms
    assert [(arm.name, arm.engine) for arm in arms] == [
        ("transformers: temperature=0.0", "transformers"),
        ("vllm: temperature=0.0", "vllm"),
    ]


def test_options_that_were_never_read_are_not_made_up(open_page: OpenPage, ready: Path) -> None:
    app = view(fine(open_page("configs")), "flags")
    assert "were not read on this host yet" in texts(fine(app))


def test_every_option_is_searched_and_offered_to_grids(open_page: OpenPage, ready: Path) -> None:
    vllm, env = load_definition("vllm", ROOT / "configs"), read_environment()
    keep_catalogue(CATALOGUE, vllm, env.engine_python, env.run_dir)
    app = view(fine(open_page("configs")), "flags")
    assert "4 of 4 options of vllm 0.32.0" in texts(fine(app))
    table = app.dataframe[0].value
    assert list(table["name"]) == ["max_num_seqs", "api_key", "async_scheduling", "seed"]
    assert list(table["here"]) == ["32", "–", "–", "–"]
    app.text_input(key="flags:text").set_value("random").run()
    assert list(app.dataframe[0].value["name"]) == ["seed"]
    offered = open_page("experiments").multiselect(key="build:knobs").options
    assert "seed" in offered
    assert "api_key" not in offered


def test_an_arm_that_its_engine_cannot_take_is_not_queued(open_page: OpenPage, ready: Path) -> None:
    app = fine(open_page("experiments"))
    app.multiselect(key="build:engines").set_value(["transformers"]).run()
    app.multiselect(key="build:knobs").set_value(["kv_cache_dtype"]).run()
    app.multiselect(key="build:values:kv_cache_dtype").set_value(["auto", "fp8"]).run()
    assert app.button(key="build:queue").disabled
    assert "transformers has no kv\\_cache\\_dtype" in texts(fine(app)) or "has no kv_cache_dtype" in texts(app)

"""The page Export: the files of a measured arm, nothing else changed, no key in them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from lab.export import ExportFile
from lab.store import Store
from pages.components.archive import file_word, zipped
from tests.factories import (
    CONFIG_TEXT,
    SETTINGS_TEXT,
    make_experiment,
    seed_failed_experiment,
    seed_finished_experiment,
)
from tests.pages.test_configs import fine, texts

OpenPage = Callable[..., AppTest]
SERIAL = "no batching (1 sequence at a time)"


def codes(app: AppTest) -> list[str]:
    return [str(code.value) for code in app.code]


def test_without_a_measured_arm_there_is_nothing_to_export(store: Store, open_page: OpenPage) -> None:
    assert "no measured arm yet" in texts(fine(open_page("export")))
    seed_failed_experiment(store)
    assert "no measured arm yet" in texts(fine(open_page("export")))


def test_the_winner_is_proposed_and_not_the_gateway(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store)
    app = fine(open_page("export"))
    assert app.selectbox(key="export:arm:1").value == "continuous batching"
    assert "placeholders" in texts(app)


def test_only_the_arms_value_is_changed(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store)
    app = fine(open_page("export", experiment=number, arm=SERIAL))
    expected = SETTINGS_TEXT.replace('"max_num_seqs": 64', '"max_num_seqs": 1')
    assert expected.rstrip() in [code.rstrip() for code in codes(app)]
    assert CONFIG_TEXT.rstrip() in [code.rstrip() for code in codes(app)]
    assert any("max-num-seqs: 1" in code for code in codes(app))
    assert any(code.startswith("---") and "+" in code for code in codes(app))


def test_a_gateway_arm_has_the_two_files_only(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store)
    app = fine(open_page("export", experiment=1, arm="TaoToken"))
    assert [tab.label for tab in app.tabs] == ["settings.json", "config.toml"]


def test_a_key_in_an_old_record_does_not_leave(store: Store, open_page: OpenPage) -> None:
    leaked = CONFIG_TEXT.replace("[server]", '[server]\napi_key = "sk-test-LEAK"')
    experiment = make_experiment(config_text=leaked)
    seed_finished_experiment(store, config_text=experiment.config_text)
    app = fine(open_page("export"))
    assert not any("sk-test-LEAK" in code for code in codes(app))


def test_the_zip_holds_every_file_as_it_is_shown() -> None:
    files = (ExportFile("settings.json", '{"a": "中"}'), ExportFile("vllm.yaml", "a: 1\n"))
    with zipfile.ZipFile(io.BytesIO(zipped(files))) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {f.name: f.text for f in files}
    assert zipped(files) == zipped(files)


def test_an_arms_name_becomes_a_file_name() -> None:
    assert file_word("no batching (1 sequence at a time)") == "no-batching-1-sequence-at-a-time"
    assert file_word("../../etc") == "etc"
    assert file_word("批处理") == "arm"

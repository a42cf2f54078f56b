"""The page Configs: opens for whatever stands in the files, writes only what somebody changed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.engine.model_folders import model_folder
from tests.pages.configs_page import CONFIG, KEY, SEQUENCES, SETTINGS, Put, everything, field, fine, press, texts


def test_the_live_pair_opens_without_a_change_or_an_error(own_place: Path, open_page: Callable[..., AppTest]) -> None:
    model_folder(own_place / "run" / "models" / "smollm2-135m-instruct", {})
    app = fine(open_page("configs"))
    assert "Nothing is changed" in texts(app)
    assert "Nothing is wrong with these two files" in texts(app)
    assert "--max-num-seqs" in texts(app)
    assert not [button for button in app.button if button.label == "Save"]


def test_saving_changes_the_one_value_and_nothing_else(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put()
    app = fine(open_page("configs"))
    field(app.number_input, SEQUENCES).set_value(64).run()
    assert '+    "max_num_seqs": 64' in texts(app)
    assert (folder / "settings.json").read_text() == SETTINGS
    press(app, "Save")
    assert (folder / "settings.json").read_text() == SETTINGS.replace('"max_num_seqs": 32', '"max_num_seqs": 64')
    assert (folder / "config.toml").read_text() == CONFIG
    assert "Saved" in texts(fine(app)) and "Nothing is changed" in texts(app)


def test_a_changed_workload_keeps_comments_and_spelling(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put()
    app = fine(open_page("configs"))
    field(app.number_input, "Output tokens").set_value(64).run()
    press(app, "Save")
    assert (folder / "config.toml").read_text() == CONFIG.replace("output_tokens = 32", "output_tokens = 64")


def test_an_emptied_field_takes_the_setting_away(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put()
    app = fine(open_page("configs"))
    field(app.number_input, "Context length").set_value(None).run()
    press(fine(app), "Save")
    decode = json.loads((folder / "settings.json").read_text())["decode"]
    assert decode == {"max_num_seqs": 32, "gpu_memory_utilization": 0.9, "kv_cache_dtype": "auto"}


JSON_VALUES = [
    ("gpu_memory_utilization", value) for value in ("1", "1.0", "0.90", '"0.90"', "90", "null", "[0.9]", "true")
] + [
    ("max_num_seqs", value)
    for value in ("64", "64.0", '"64"', "1e3", "null", "true", '"many"', "99999999999999999999", "{}")
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), JSON_VALUES)
def test_every_readable_value_opens_and_is_not_rewritten(
    key: str, value: str, put: Put, open_page: Callable[..., AppTest]
) -> None:
    old = {"max_num_seqs": "32", "gpu_memory_utilization": "0.90"}[key]
    settings = SETTINGS.replace(f'"{key}": {old}', f'"{key}": {value}')
    folder = put(settings)
    app = fine(open_page("configs"))
    assert "Nothing is changed" in texts(app)
    field(app.number_input, "Context length").set_value(4096).run()
    press(fine(app), "Save")
    assert (folder / "settings.json").read_text() == settings.replace("8192", "4096")


@pytest.mark.parametrize("value", ["2_4", '"24"', "24.0", "true", "[24]", "1e3"])
def test_every_readable_workload_value_opens(value: str, put: Put, open_page: Callable[..., AppTest]) -> None:
    config = CONFIG.replace("requests = 2_4", f"requests = {value}")
    folder = put(config=config)
    app = fine(open_page("configs"))
    assert "Nothing is changed" in texts(app)
    field(app.number_input, SEQUENCES).set_value(64).run()
    press(fine(app), "Save")
    assert (folder / "config.toml").read_text() == config


def test_a_wrong_type_is_marked_and_can_be_put_right(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put(SETTINGS.replace("0.90", '"0.90"'))
    app = fine(open_page("configs"))
    assert "another type" in texts(app)
    field(app.checkbox, "Write `0.9` when saving").check().run()
    press(fine(app), "Save")
    assert json.loads((folder / "settings.json").read_text())["decode"]["gpu_memory_utilization"] == 0.9


def test_an_unreadable_value_can_be_typed_anew(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put(SETTINGS.replace("32,", '"many",'))
    app = fine(open_page("configs"))
    repair = field(app.text_input, SEQUENCES)
    assert repair.value == '"many"'
    repair.set_value("48").run()
    press(fine(app), "Save")
    assert json.loads((folder / "settings.json").read_text())["decode"]["max_num_seqs"] == 48


def test_a_change_that_brings_an_error_cannot_be_saved(put: Put, open_page: Callable[..., AppTest]) -> None:
    put()
    app = fine(open_page("configs"))
    app.segmented_control[0].set_value("text").run()
    field(app.text_area, "configs/settings.json").set_value(SETTINGS.replace("32,", "0,")).run()
    assert field(fine(app).button, "Save").disabled
    assert "configs/settings.json\\:5\\:" in texts(app)


@pytest.mark.parametrize(
    ("settings", "config"), [('{"model": ', CONFIG), (SETTINGS, "[workload\nkind = 1\n"), (SETTINGS, "a = “x”\n")]
)
def test_a_broken_file_is_shown_with_its_finding_and_its_text(
    settings: str, config: str, put: Put, open_page: Callable[..., AppTest]
) -> None:
    put(settings, config)
    app = fine(open_page("configs"))
    assert {area.value for area in app.text_area} == {settings, config}
    assert any(mark in texts(app) for mark in ("settings\\.json", "settings.json", "config.toml"))
    assert app.error


def test_a_broken_file_is_repaired_on_the_page(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put(config="[workload\n")
    app = fine(open_page("configs"))
    field(app.text_area, "configs/config.toml").set_value('[workload]\nkind = "burst"\nrequests = 3\n').run()
    press(fine(app), "Save")
    assert tomllib.loads((folder / "config.toml").read_text()) == {"workload": {"kind": "burst", "requests": 3}}
    fine(app).segmented_control[0].set_value("form").run()
    assert field(fine(app).number_input, SEQUENCES).value == 32


def test_line_ends_survive_an_edit_of_the_text(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put(config=CONFIG.replace("\n", "\r\n"))
    app = fine(open_page("configs"))
    app.segmented_control[0].set_value("text").run()
    edited = CONFIG.replace("output_tokens = 32", "output_tokens = 48")
    field(fine(app).text_area, "configs/config.toml").set_value(edited).run()
    press(fine(app), "Save")
    assert (folder / "config.toml").read_bytes() == edited.replace("\n", "\r\n").encode()


def test_edits_survive_the_change_between_form_and_text(put: Put, open_page: Callable[..., AppTest]) -> None:
    put()
    app = fine(open_page("configs"))
    field(app.number_input, SEQUENCES).set_value(64).run()
    app.segmented_control[0].set_value("text").run()
    assert '"max_num_seqs": 64' in field(fine(app).text_area, "configs/settings.json").value
    app.segmented_control[0].set_value("form").run()
    assert field(fine(app).number_input, SEQUENCES).value == 64
    press(app, "Discard")
    assert field(fine(app).number_input, SEQUENCES).value == 32


def test_a_file_changed_meanwhile_is_shown_and_not_overwritten(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put()
    app = fine(open_page("configs"))
    field(app.number_input, SEQUENCES).set_value(64).run()
    other = SETTINGS.replace("8192", "2048")
    (folder / "settings.json").write_text(other)
    press(app, "Save")
    assert "changed on disk" in texts(fine(app))
    assert (folder / "settings.json").read_text() == other
    press(app, "Start again from the files on disk")
    assert field(fine(app).number_input, "Context length").value == 2048
    assert field(app.number_input, SEQUENCES).value == 32


def test_a_file_changed_without_edits_is_simply_shown(put: Put, open_page: Callable[..., AppTest]) -> None:
    folder = put()
    app = fine(open_page("configs"))
    (folder / "settings.json").write_text(SETTINGS.replace("8192", "2048"))
    app.run()
    assert field(fine(app).number_input, "Context length").value == 2048


def test_a_missing_file_is_named(put: Put, open_page: Callable[..., AppTest]) -> None:
    (put() / "settings.json").unlink()
    app = fine(open_page("configs"))
    assert "settings.json" in str(app.error[0].value)


def test_the_key_is_named_but_never_shown(
    put: Put, open_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    app = fine(open_page("configs"))
    assert "the variable `TAOTOKEN_API_KEY` is not set" in texts(app)
    monkeypatch.setenv("TAOTOKEN_API_KEY", "sk-test-LEAK")
    app = fine(open_page("configs"))
    assert "the variable `TAOTOKEN_API_KEY` is set" in texts(app)
    assert "sk-test-LEAK" not in texts(app)


def test_the_page_speaks_chinese(open_page: Callable[..., AppTest]) -> None:
    app = fine(open_page("configs", lang="zh"))
    assert app.title[0].value == "配置"


def test_a_number_out_of_range_is_named_at_its_field_and_cannot_be_saved(
    put: Put, open_page: Callable[..., AppTest]
) -> None:
    put()
    app = fine(open_page("configs"))
    field(app.number_input, "Memory share").set_value(1.7).run()
    assert "1.7 is too high: at most 1." in texts(fine(app))
    assert "is 1.7, outside 0.01 … 1.0" in texts(app)
    assert field(app.button, "Save").disabled
    field(app.number_input, SEQUENCES).set_value(0).run()
    assert "0 is too low: at least 1." in texts(fine(app))


def test_a_model_that_is_not_there_is_a_check_that_fails(put: Put, open_page: Callable[..., AppTest]) -> None:
    put(SETTINGS.replace("smollm2-135m-instruct", "/no/such/model"))
    app = fine(open_page("configs"))
    assert "The model folder /no/such/model does not exist" in texts(app)
    assert "Nothing is wrong" not in texts(app)


def test_a_key_typed_into_a_text_is_taken_out_before_anything_keeps_it(
    put: Put, open_page: Callable[..., AppTest], own_place: Path
) -> None:
    put()
    app = fine(open_page("configs"))
    app.segmented_control[0].set_value("text").run()
    area = field(app.text_area, "configs/config.toml")
    area.set_value(CONFIG.replace("${TAOTOKEN_API_KEY}", KEY).replace("2_4", "2_5")).run()
    assert KEY not in everything(fine(app))
    assert field(app.text_area, "configs/config.toml").value == CONFIG.replace("2_4", "2_5")
    assert "held a key" in texts(app)
    press(app, "Save")
    assert KEY not in everything(fine(app))
    assert not any(KEY.encode() in path.read_bytes() for path in own_place.rglob("*") if path.is_file())


@pytest.mark.parametrize("typed", [KEY, "Bearer " + KEY])
def test_a_key_typed_into_a_field_is_refused_and_forgotten(
    typed: str, put: Put, open_page: Callable[..., AppTest]
) -> None:
    put()
    app = fine(open_page("configs"))
    labels = [each.label for each in app.text_input if "ey" in each.label]
    assert labels, [each.label for each in app.text_input]
    for label in labels:
        field(app.text_input, label).set_value(typed).run()
        assert KEY not in everything(fine(app))
        assert "holds a key written out" in texts(app)
        assert "Nothing is changed" in texts(app)


def test_a_key_that_stands_in_a_file_is_shown_nowhere_and_can_be_saved_away(
    put: Put, open_page: Callable[..., AppTest]
) -> None:
    folder = put(config=CONFIG.replace("${TAOTOKEN_API_KEY}", KEY))
    app = fine(open_page("configs"))
    assert KEY not in texts(app)
    app.segmented_control[0].set_value("text").run()
    assert field(fine(app).text_area, "configs/config.toml").value == CONFIG
    press(app, "Save")
    assert (folder / "config.toml").read_text() == CONFIG
    assert KEY not in everything(fine(app))


def test_a_key_in_a_note_is_masked(put: Put, open_page: Callable[..., AppTest]) -> None:
    put()
    app = fine(open_page("configs"))
    field(app.number_input, SEQUENCES).set_value(64).run()
    field(app.text_input, "Note").set_value(f"with {KEY}").run()
    assert field(fine(app).text_input, "Note").value == "with ***"
    assert KEY not in everything(app)

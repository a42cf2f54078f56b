"""The page Configs: pasted articles, the other form of the files, repairs; nothing is written before a look."""

from __future__ import annotations

import json
import tomllib

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.configs_page import CONFIG, KEY, SETTINGS, Open, Put, everything, field, fine, press, texts, view

# a block as a blog mirror leaves it: no quotes, no colons, no line breaks
STRIPPED = "model smollm2-135m-instruct decode { max_num_seqs 48 max_model_len 4096 gpu_memory_utilization 0.85 }"
ARTICLE_3 = """[kv_cache]
enable = true
block_size = 16
cache_dtype = "fp8"

[batching]
max_num_seqs = 64
"""


def pasted(app: AppTest, text: str) -> AppTest:
    return field(view(app, "paste").text_area, "Text of an article").set_value(text).run()


def test_a_stripped_block_is_read_shown_and_saved(put: Put, open_page: Open) -> None:
    folder = put()
    app = pasted(fine(open_page("configs")), STRIPPED)
    rows = {row["key"]: (row["file"], row["value"]) for row in fine(app).dataframe[0].value.to_dict("records")}
    assert rows["decode.max_num_seqs"] == ("settings.json", "48")
    assert rows["decode.gpu_memory_utilization"] == ("settings.json", "0.85")
    assert '+    "max_num_seqs": 48' in texts(app)
    assert (folder / "settings.json").read_text() == SETTINGS
    press(app, "Save")
    decode = json.loads((folder / "settings.json").read_text())["decode"]
    assert decode == {
        "max_num_seqs": 48,
        "max_model_len": 4096,
        "gpu_memory_utilization": 0.85,
        "kv_cache_dtype": "auto",
    }
    assert field(view(fine(app), "paste").text_area, "Text of an article").value == ""


def test_a_value_that_the_files_cannot_take_says_so(put: Put, open_page: Open) -> None:
    put()
    text = f"prefill {{ batch_size 8 max_prefill_tokens 2048 chunked_prefill true }} {STRIPPED}"
    app = pasted(fine(open_page("configs")), text)
    how = {row["key"]: row["how"] for row in fine(app).dataframe[0].value.to_dict("records")}
    assert "not set" in how["prefill.batch_size"] and "not set" not in how["prefill.max_prefill_tokens"]
    assert "batch_size" not in "".join(line for line in texts(app).splitlines() if line.startswith("+"))


def test_free_text_is_no_configuration(put: Put, open_page: Open) -> None:
    put()
    app = pasted(fine(open_page("configs")), "Dear reader, chunked prefill is a fine thing. See you next week!")
    assert "Nothing in the text belongs" in texts(fine(app))
    assert "Nothing is changed" in texts(app)


def test_a_block_of_another_client_is_named(put: Put, open_page: Open) -> None:
    put()
    text = f"export ANTHROPIC_BASE_URL=https://x.example/api\nexport ANTHROPIC_AUTH_TOKEN={KEY}\n\n{STRIPPED}"
    app = pasted(fine(open_page("configs")), text)
    assert "Not for the lab's two files" in texts(fine(app)) and "ANTHROPIC_BASE_URL" in texts(app)


def test_a_pasted_key_is_blanked_at_once(put: Put, open_page: Open, own_place) -> None:
    put()
    app = pasted(fine(open_page("configs")), f'[server]\nbase_url = "https://x.example/v1"\napi_key = "{KEY}"\n')
    assert KEY not in everything(fine(app))
    assert KEY not in field(app.text_area, "Text of an article").value
    press(app, "Save")
    assert KEY not in everything(fine(app))
    assert not any(KEY.encode() in path.read_bytes() for path in own_place.rglob("*") if path.is_file())


def test_the_rebuilt_files_can_replace_the_old_ones(put: Put, open_page: Open) -> None:
    folder = put()
    app = pasted(fine(open_page("configs")), STRIPPED)
    field(app.segmented_control, "What to do with it").set_value("replaced").run()
    press(fine(app), "Save")
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["decode"]["max_num_seqs"] == 48 and "api_key_env" not in settings


def test_pasted_values_can_be_edited_before_they_are_saved(put: Put, open_page: Open) -> None:
    folder = put()
    app = view(pasted(fine(open_page("configs")), STRIPPED), "form")
    field(fine(app).number_input, "Context length").set_value(2048).run()
    press(app, "Save")
    decode = json.loads((folder / "settings.json").read_text())["decode"]
    assert (decode["max_num_seqs"], decode["max_model_len"]) == (48, 2048)


def test_the_other_form_is_offered_with_what_is_lost(put: Put, open_page: Open) -> None:
    folder = put()
    app = view(fine(open_page("configs")), "convert")
    assert "settings.json is the engine's side" in texts(fine(app))
    press(app, "Take the converted files over")
    assert (folder / "config.toml").read_text() == CONFIG
    press(fine(app), "Save")
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["batching"]["max_num_seqs"] == 32
    assert "config.toml is the engine's side" in texts(fine(view(app, "convert")))


def test_a_pair_in_the_form_of_article_3_opens_in_the_form(put: Put, open_page: Open) -> None:
    put('{"base_url": "https://x.example/v1", "api_key_env": "TAOTOKEN_API_KEY"}\n', ARTICLE_3)
    app = fine(open_page("configs"))
    assert field(app.number_input, "Sequences at once").value == 64
    assert "Nothing is changed" in texts(app)


REPAIRED = [
    (SETTINGS.replace("0.90", "90"), '"gpu_memory_utilization": 0.9'),
    (SETTINGS.replace("0.90", '"0.90"'), '"gpu_memory_utilization": 0.90'),
    (SETTINGS.replace('"auto"\n', '"auto",\n'), '"kv_cache_dtype": "auto"\n'),
    (SETTINGS.replace('"max_num_seqs": 32', '"max_num_seqs"： 32'), '"max_num_seqs": 32'),
]


@pytest.mark.parametrize(("settings", "after"), REPAIRED, ids=["percent", "text", "comma", "full-width"])
def test_a_repair_is_shown_first_and_then_taken_over(settings: str, after: str, put: Put, open_page: Open) -> None:
    folder = put(settings)
    app = fine(open_page("configs"))
    assert after.strip() in texts(app)  # the diff, behind its button
    assert "Nothing is changed" in texts(app)
    press(app, "Take this over")
    assert (folder / "settings.json").read_text() == settings
    press(fine(app), "Save")
    assert after in (folder / "settings.json").read_text()


def test_a_paste_can_replace_a_file_that_cannot_be_read(put: Put, open_page: Open) -> None:
    folder = put('{"model": ')
    app = pasted(fine(open_page("configs")), STRIPPED)
    assert field(fine(app).segmented_control, "What to do with it").value == "replaced"
    press(app, "Save")
    assert json.loads((folder / "settings.json").read_text())["decode"]["max_num_seqs"] == 48

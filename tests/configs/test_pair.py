from __future__ import annotations

import stat
from dataclasses import replace

import pytest

from lab.configs.pair import ConfigPair, diff_pair, pair_hash, read_pair, write_pair
from lab.findings import LabError

ENGINE_1 = {
    "model": "some-model",
    "max_num_batched_tokens": 4096,
    "enable_chunked_prefill": True,
    "long_prefill_token_threshold": 512,
    "max_num_seqs": 32,
    "max_model_len": 8192,
    "gpu_memory_utilization": 0.9,
    "kv_cache_dtype": "auto",
    "block_size": 16,
}


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    before, after = old.split("\n"), new.split("\n")
    assert len(before) == len(after)
    return [(a, b) for a, b in zip(before, after, strict=True) if a != b]


@pytest.fixture
def folder(tmp_path, article_1):
    (tmp_path / "settings.json").write_bytes(article_1.settings_text.encode())
    (tmp_path / "config.toml").write_bytes(article_1.config_text.encode())
    return tmp_path


def test_article_1_is_read_as_knobs(article_1):
    assert article_1.dialect == 1
    assert article_1.engine_knobs() == ENGINE_1
    assert article_1.request_fields() == {"temperature": 0.7}
    assert article_1.workload().prompt_tokens == (128, 512, 2048, 4096)
    assert (article_1.workload().kind, article_1.workload().repeat) == ("ladder", 5)


def test_article_3_is_recognised_and_read_as_knobs(article_3):
    assert article_3.dialect == 3
    knobs = article_3.engine_knobs()
    assert knobs["model"] == "some-model" and knobs["dtype"] == "bfloat16"
    assert (knobs["max_num_seqs"], knobs["max_num_batched_tokens"], knobs["block_size"]) == (64, 4096, 16)
    assert knobs["long_prefill_token_threshold"] == 2048 and knobs["num_gpu_blocks_override"] == 2048
    assert article_3.request_fields() == {
        "temperature": 0.7, "top_p": 0.9, "top_k": 50, "repetition_penalty": 1.05,
    }  # fmt: skip
    assert article_3.knobs()["max_tokens"] == 512


def test_continuous_batching_off_means_one_sequence(article_3):
    off = replace(article_3, config_text=article_3.config_text.replace("batching = true", "batching = false"))
    assert off.knobs()["max_num_seqs"] == 1
    on = off.with_knobs({"max_num_seqs": 8})
    assert on.knobs()["max_num_seqs"] == 8
    assert article_3.with_knobs({"enable_continuous_batching": False}).knobs()["max_num_seqs"] == 1


def test_only_the_changed_values_differ(article_1):
    new = article_1.with_knobs({"max_num_seqs": 64, "temperature": 0.2})
    assert changed_lines(article_1.settings_text, new.settings_text) == [
        ('  "temperature": 0.7,', '  "temperature": 0.2,'),
        ('    "max_num_seqs": 32,', '    "max_num_seqs": 64,'),
    ]
    assert new.config_text == article_1.config_text


def test_setting_the_same_values_changes_no_byte(article_1, article_3, live):
    for pair in (article_1, article_3, live):
        assert pair.with_knobs(pair.knobs()) == pair


def test_missing_knobs_are_put_where_they_belong(article_1):
    new = article_1.with_knobs({"top_p": 0.9, "enforce_eager": True, "attention_backend": "FLASH_ATTN"})
    assert "max_tokens = 512\ntop_p = 0.9\n\n[metrics]" in new.config_text
    assert new.settings_text.endswith(
        '"log_kv_cache_usage": true },\n  "engine": {\n    "args": {\n'
        '      "enforce_eager": true,\n      "attention_backend": "FLASH_ATTN"\n    }\n  }\n}\n'
    )
    assert new.engine_knobs() == {**ENGINE_1, "enforce_eager": True, "attention_backend": "FLASH_ATTN"}


def test_none_takes_a_knob_out(article_1):
    new = article_1.with_knobs({"block_size": None, "max_tokens": None})
    assert "block_size" not in new.knobs() and "max_tokens" not in new.knobs()


def test_binary_noise_of_a_page_does_not_reach_the_file(article_1):
    new = article_1.with_knobs({"gpu_memory_utilization": 0.7 + 0.1})
    assert '"gpu_memory_utilization": 0.8,' in new.settings_text


def test_raw_value_is_what_the_file_says(article_1):
    text = article_1.settings_text.replace("0.90", '"0.90"')
    raw = replace(article_1, settings_text=text).raw_value("gpu_memory_utilization")
    assert (raw.value, raw.file, raw.line) == ("0.90", "settings.json", 12)


def test_workload_edits_keep_the_rest(article_1):
    new = article_1.with_workload({"kind": "closed", "concurrency": (1, 4), "repeat": None, "requests": 8})
    assert new.workload().concurrency == (1, 4)
    assert new.config_text == article_1.config_text.replace(
        "repeat = 5\n", 'kind = "closed"\nconcurrency = [1, 4]\nrequests = 8\n'
    )


def test_wrong_workload_raises_with_its_line(article_1):
    wrong = replace(article_1, config_text=article_1.config_text + 'requets = 3\noutput_tokens = "9"\n')
    with pytest.raises(LabError) as caught:
        wrong.workload()
    assert [(f.code, f.line) for f in caught.value.findings] == [("unknown-key", 19), ("wrong-type", 20)]


@pytest.mark.parametrize("key", ["gateway.api_key", "gateway.api_key_env"])
def test_a_written_out_key_is_refused_and_not_repeated(article_1, key):
    with pytest.raises(LabError) as caught:
        article_1.with_knobs({key: "sk-made-up-0001"})
    assert caught.value.findings[0].code == "secret-in-file"
    assert "made-up" not in str(caught.value.findings)


def test_placeholders_survive_every_edit(article_1, monkeypatch):
    text = (
        article_1.config_text
        + '\n[extra]\nheader = "Bearer ${TAOTOKEN_API_KEY}"\nprice = "$5 and $$"\nother = "{env:X}"\n'
    )
    for value in (None, "made-up"):
        if value:
            monkeypatch.setenv("TAOTOKEN_API_KEY", value)
        new = replace(article_1, config_text=text).with_knobs({"max_tokens": 9})
        assert new.config_text == text.replace("max_tokens = 512", "max_tokens = 9")


def test_write_replaces_only_what_changed_and_keeps_mode_and_link(folder, tmp_path_factory):
    real = tmp_path_factory.mktemp("elsewhere") / "real.toml"
    (folder / "config.toml").rename(real)
    (folder / "config.toml").symlink_to(real)
    (folder / "settings.json").chmod(0o640)
    inode = real.stat().st_ino
    old = read_pair(folder)
    write_pair(folder, old, old.with_knobs({"max_num_seqs": 8}))
    assert read_pair(folder).knobs()["max_num_seqs"] == 8
    assert stat.S_IMODE((folder / "settings.json").stat().st_mode) == 0o640
    assert real.stat().st_ino == inode
    write_pair(folder, read_pair(folder), read_pair(folder).with_knobs({"top_p": 0.5}))
    assert (folder / "config.toml").is_symlink() and "top_p = 0.5" in real.read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["config.toml", "settings.json"]


def test_write_refuses_when_somebody_else_changed_a_file(folder):
    old = read_pair(folder)
    (folder / "config.toml").write_bytes(old.config_text.encode() + b"# mine\n")
    with pytest.raises(LabError) as caught:
        write_pair(folder, old, old.with_knobs({"max_num_seqs": 8}))
    assert caught.value.findings[0].code == "changed-meanwhile"
    assert (folder / "settings.json").read_bytes() == old.settings_text.encode()


def test_line_ends_and_byte_order_mark_survive(folder, article_1):
    text = "\ufeff" + article_1.config_text.replace("\n", "\r\n")
    (folder / "config.toml").write_bytes(text.encode())
    old = read_pair(folder)
    write_pair(folder, old, old.with_knobs({"max_tokens": 9, "top_p": 0.5}))
    expected = text.replace("max_tokens = 512\r\n", "max_tokens = 9\r\ntop_p = 0.5\r\n")
    assert (folder / "config.toml").read_bytes() == expected.encode()


def test_missing_and_undecodable_files_are_told_by_name(folder):
    (folder / "config.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(LabError) as caught:
        read_pair(folder)
    assert caught.value.findings[0].code == "config-not-utf8"
    (folder / "config.toml").unlink()
    with pytest.raises(LabError) as caught:
        read_pair(folder)
    assert caught.value.findings[0].code == "config-missing"


def test_broken_pair_can_be_held_shown_and_repaired(folder, article_1):
    (folder / "settings.json").write_text("{")
    old = read_pair(folder)
    write_pair(folder, old, replace(old, settings_text=article_1.settings_text))
    assert read_pair(folder).knobs()["max_num_seqs"] == 32


def test_diff_shows_changes_and_masks_keys(article_1):
    literal = replace(article_1, config_text=article_1.config_text.replace("${TAOTOKEN_API_KEY}", "sk-made-up-0001"))
    diff = diff_pair(literal, literal.with_knobs({"max_num_seqs": 8, "request.max_tokens": 9}))
    assert '-    "max_num_seqs": 32,\n+    "max_num_seqs": 8,\n' in diff
    assert "made-up" not in diff
    assert diff_pair(article_1, article_1) == ""


def test_hash_tells_pairs_apart(article_1):
    assert pair_hash(article_1) != pair_hash(article_1.with_knobs({"max_num_seqs": 8}))
    assert pair_hash(article_1) == pair_hash(ConfigPair(article_1.settings_text, article_1.config_text, "x", "y"))


def test_a_whole_number_stays_one_where_a_number_of_any_kind_is_taken(article_1):
    new = article_1.with_knobs({"timeout_seconds": 60.0})
    assert changed_lines(article_1.config_text, new.config_text) == [("timeout_seconds = 120", "timeout_seconds = 60")]
    assert "timeout_seconds = 60.5\n" in new.with_knobs({"timeout_seconds": 60.5}).config_text


def test_api_key_is_the_gateway_s_and_no_flag_of_the_engine(article_1):
    new = article_1.with_knobs({"api_key": "${OTHER_KEY}"})
    assert new.settings_text == article_1.settings_text
    assert 'api_key = "${OTHER_KEY}"\n' in new.config_text

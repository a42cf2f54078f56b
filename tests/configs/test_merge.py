"""Two people changed the same pair: both changes come together, and what contradicts is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.configs.merge import ABSENT, merge_three, three_way_rows


def with_config(pair, old, new):
    assert old in pair.config_text
    return replace(pair, config_text=pair.config_text.replace(old, new))


def test_changes_of_different_keys_come_together(article_1):
    theirs = article_1.with_knobs({"max_num_seqs": 64, "max_tokens": 100})
    mine = article_1.with_knobs({"block_size": 32}).with_workload({"repeat": 9})
    merge = merge_three(article_1, theirs, mine)
    assert merge.conflicts == ()
    assert merge.pair == article_1.with_knobs({"max_num_seqs": 64, "max_tokens": 100, "block_size": 32}).with_workload(
        {"repeat": 9}
    )
    assert [(change.path, change.old, change.new) for change in merge.mine] == [
        (("decode", "block_size"), 16, 32),
        (("workload", "repeat"), 5, 9),
    ]
    assert [change.path[-1] for change in merge.theirs] == ["max_num_seqs", "max_tokens"]


def test_the_same_key_changed_differently_is_a_conflict_and_theirs_stays(article_1):
    theirs, mine = article_1.with_knobs({"max_num_seqs": 64}), article_1.with_knobs({"max_num_seqs": 16})
    merge = merge_three(article_1, theirs, mine)
    conflict = merge.conflicts[0]
    assert (conflict.file, conflict.path) == ("settings", ("decode", "max_num_seqs"))
    assert (conflict.base, conflict.theirs, conflict.mine) == (32, 64, 16)
    assert merge.pair == theirs
    chosen = merge_three(article_1, theirs, mine, {("settings", ("decode", "max_num_seqs")): "mine"})
    assert chosen.pair == mine


def test_the_same_change_on_both_sides_is_no_conflict(article_1):
    changed = article_1.with_knobs({"max_num_seqs": 64})
    merge = merge_three(article_1, changed, changed)
    assert merge.conflicts == () and merge.pair == changed


def test_layout_and_comments_of_both_stay(article_1):
    theirs = with_config(article_1, "[request]\n", "# theirs\n[request]\n")
    mine = with_config(article_1, "repeat = 5\n", "repeat = 7   # mine\n")
    merge = merge_three(article_1, theirs, mine)
    assert "# theirs\n[request]" in merge.pair.config_text and "repeat = 7   # mine\n" in merge.pair.config_text


def test_a_key_that_one_took_away_and_the_other_changed_is_a_conflict(article_1):
    theirs, mine = article_1.with_knobs({"block_size": None}), article_1.with_knobs({"block_size": 64})
    conflict = merge_three(article_1, theirs, mine).conflicts[0]
    assert (conflict.base, conflict.theirs, conflict.mine) == (16, ABSENT, 64)
    back = merge_three(article_1, mine, theirs)
    assert back.conflicts[0].mine is ABSENT and back.pair == mine


def test_a_key_that_one_took_away_goes(article_1):
    merge = merge_three(
        article_1, article_1.with_knobs({"max_num_seqs": 64}), article_1.with_knobs({"block_size": None})
    )
    assert merge.conflicts == ()
    assert "block_size" not in merge.pair.knobs() and merge.pair.knobs()["max_num_seqs"] == 64


def test_types_count_as_changes(article_1):
    theirs = replace(
        article_1, settings_text=article_1.settings_text.replace('"max_num_seqs": 32', '"max_num_seqs": "32"')
    )
    merge = merge_three(article_1, theirs, article_1.with_knobs({"max_num_seqs": 64}))
    assert [conflict.theirs for conflict in merge.conflicts] == ["32"]


def test_my_spelling_of_a_number_is_kept(article_1):
    theirs = article_1.with_knobs({"max_num_seqs": 64})
    mine = replace(article_1, settings_text=article_1.settings_text.replace("0.90", "0.850"))
    assert '"gpu_memory_utilization": 0.850' in merge_three(article_1, theirs, mine).pair.settings_text


def test_a_file_that_one_left_unreadable_goes_whole(article_1):
    broken = replace(article_1, config_text="[")
    assert merge_three(article_1, broken, article_1.with_knobs({"max_num_seqs": 8})).pair == replace(
        article_1.with_knobs({"max_num_seqs": 8}), config_text="["
    )
    both = merge_three(article_1, broken, with_config(article_1, "repeat = 5", "repeat = 6"))
    assert [(conflict.file, conflict.path) for conflict in both.conflicts] == [("config", ())]
    assert both.pair.config_text == "["
    mine = merge_three(article_1, broken, with_config(article_1, "repeat = 5", "repeat = 6"), {("config", ()): "mine"})
    assert "repeat = 6" in mine.pair.config_text


def test_new_tables_of_both_come_together(article_1):
    theirs = replace(article_1, config_text=article_1.config_text + "\n[extra]\na = 1\n")
    mine = replace(article_1, config_text=article_1.config_text + "\n[other]\nb = 2\n")
    merge = merge_three(article_1, theirs, mine)
    assert merge.conflicts == ()
    assert merge.pair.config.get(("extra", "a")) == 1 and merge.pair.config.get(("other", "b")) == 2


@pytest.mark.parametrize(
    ("base", "theirs", "mine", "kinds"),
    [
        ("a\nb\nc\n", "a\nb\nc\n", "a\nb\nc\n", ["same"]),
        ("a\nb\nc\n", "a\nX\nc\n", "a\nb\nc\n", ["same", "theirs", "same"]),
        ("a\nb\nc\n", "a\nb\nc\n", "a\nX\nc\n", ["same", "mine", "same"]),
        ("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", ["same", "both", "same"]),
        ("a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", ["same", "conflict", "same"]),
        ("a\nb\nc\n", "X\na\nb\nc\n", "a\nb\nc\nY\n", ["theirs", "same", "mine"]),
        ("a\nb\nc\n", "a\nc\n", "a\nb\nc\n", ["same", "theirs", "same"]),
        ("", "a\n", "b\n", ["conflict"]),
        ("", "", "", []),
    ],
)
def test_rows_of_three_texts(base, theirs, mine, kinds):
    rows = three_way_rows(base, theirs, mine)
    assert [row.kind for row in rows] == kinds
    for side, text in (("base", base), ("theirs", theirs), ("mine", mine)):
        assert [line for row in rows for line in getattr(row, side)] == text.splitlines()


def test_rows_never_show_a_key():
    rows = three_way_rows("a = 1\n", 'api_key = "sk-made-up-0001"\n', "a = 1\n")
    assert "made-up" not in repr(rows)

"""Versions of the config pair: what is saved, what is found on disk, what is refused."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lab.configs.changes import ChangedValue
from lab.configs.pair import ConfigPair, filled_up, missing_files, read_pair
from lab.findings import LabError
from lab.store import (
    ConfigSaveRow,
    Store,
    count_config_saves,
    get_config_save,
    list_config_saves,
    note_disk,
    open_store,
    save_pair,
    stored_pair,
)

HOST = "gpu-1"
SETTINGS = '{\n  "model": "m",\n  "decode": {"max_num_seqs": 32}\n}\n'
CONFIG = '[server]\napi_key = "${TAOTOKEN_API_KEY}"  # a placeholder\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "configs"
    made.mkdir()
    (made / "settings.json").write_text(SETTINGS)
    (made / "config.toml").write_text(CONFIG)
    return made


def with_seqs(number: int) -> ConfigPair:
    return ConfigPair(SETTINGS.replace("32", str(number)), CONFIG)


def save(store: Store, folder: Path, new: ConfigPair, **more: object) -> ConfigSaveRow:
    wanted = {"host": HOST, "person": "Ada", "source": "page", **more}
    row = save_pair(store, folder, read_pair(folder), new, **wanted)  # type: ignore[arg-type]
    assert row is not None
    return row


def test_a_save_is_written_and_kept_with_author_note_and_what_it_changed(store: Store, folder: Path) -> None:
    row = save(store, folder, with_seqs(64), note=" twice as many ")
    assert (folder / "settings.json").read_text() == SETTINGS.replace("32", "64")
    assert (row.person, row.source, row.note) == ("Ada", "page", "twice as many")
    assert row.changes == (ChangedValue("settings", "decode.max_num_seqs", 32, 64),)
    assert stored_pair(store, row.config_hash).settings_text == SETTINGS.replace("32", "64")
    assert row.parent_hash is not None
    assert stored_pair(store, row.parent_hash).settings_text == SETTINGS


def test_what_stood_on_disk_before_the_first_save_is_a_version_too(store: Store, folder: Path) -> None:
    save(store, folder, with_seqs(64))
    newest, first = list_config_saves(store, folder, host=HOST)
    assert (first.source, first.person, first.parent_hash) == ("external", None, None)
    assert newest.parent_hash == first.config_hash


def test_saving_without_a_change_writes_and_keeps_nothing(store: Store, folder: Path) -> None:
    before = (folder / "settings.json").stat().st_mtime_ns
    pair = read_pair(folder)
    assert save_pair(store, folder, pair, pair, host=HOST, person="Ada", source="page") is None
    assert (folder / "settings.json").stat().st_mtime_ns == before
    assert list_config_saves(store, folder, host=HOST) == ()


def test_a_change_made_outside_becomes_a_version_when_it_is_seen(store: Store, folder: Path) -> None:
    save(store, folder, with_seqs(64))
    (folder / "settings.json").write_text(SETTINGS.replace("32", "8"))
    seen = note_disk(store, folder, host=HOST)
    assert seen is not None
    assert (seen.source, seen.person) == ("external", None)
    assert seen.changes == (ChangedValue("settings", "decode.max_num_seqs", 64, 8),)
    assert note_disk(store, folder, host=HOST) == seen
    assert count_config_saves(store, folder, host=HOST) == 3


def test_a_change_of_a_comment_is_a_version_without_changed_values(store: Store, folder: Path) -> None:
    row = save(store, folder, ConfigPair(SETTINGS, CONFIG.replace("a placeholder", "from the environment")))
    assert row.changes == ()


def test_a_text_that_cannot_be_parsed_is_kept_all_the_same(store: Store, folder: Path) -> None:
    (folder / "config.toml").write_text("[server\n")
    seen = note_disk(store, folder, host=HOST)
    assert seen is not None
    mended = save(store, folder, with_seqs(32))
    assert mended.changes is None
    assert stored_pair(store, seen.config_hash).config_text == "[server\n"


def test_files_changed_meanwhile_are_not_overwritten_and_nothing_is_kept(store: Store, folder: Path) -> None:
    mine = read_pair(folder)
    save(store, folder, with_seqs(64), person="Grace")
    with pytest.raises(LabError) as caught:
        save_pair(store, folder, mine, with_seqs(16), host=HOST, person="Ada", source="page")
    assert caught.value.findings[0].code == "changed-meanwhile"
    assert (folder / "settings.json").read_text() == SETTINGS.replace("32", "64")
    assert [row.person for row in list_config_saves(store, folder, host=HOST)] == ["Grace", None]


def test_files_that_cannot_be_written_leave_no_version(store: Store, folder: Path) -> None:
    mine = read_pair(folder)
    (folder / "config.toml").unlink()
    with pytest.raises(LabError):
        save_pair(store, folder, mine, with_seqs(16), host=HOST, person="Ada", source="page")
    assert count_config_saves(store, folder, host=HOST) == 0
    assert (folder / "settings.json").read_text() == SETTINGS


def test_a_database_that_takes_nothing_leaves_the_files_as_they_were(store: Store, folder: Path) -> None:
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
    with pytest.raises(LabError) as caught:
        save(store, folder, with_seqs(64))
    assert caught.value.findings[0].code == "database-read-only"
    assert (folder / "settings.json").read_text() == SETTINGS


KEY = "sk-" + "0" * 8 + "abcdef0123456789"


@pytest.mark.parametrize(
    "new",
    [
        ConfigPair(SETTINGS, f'[server]\napi_key = "{KEY}"\n'),
        ConfigPair(SETTINGS, f"# {KEY}\n{CONFIG}"),
        ConfigPair(SETTINGS, f'[server\napi_key = "{KEY}"\n'),
        ConfigPair(SETTINGS.replace('"m"', '"m", "hf_token": "abcdefgh"'), CONFIG),
    ],
    ids=["value", "comment", "broken file", "other name"],
)
def test_a_key_is_refused_and_reaches_neither_file_nor_database(
    new: ConfigPair, store: Store, folder: Path, database: Path
) -> None:
    with pytest.raises(LabError) as caught:
        save(store, folder, new)
    assert caught.value.findings[0].code == "secret-in-version"
    assert read_pair(folder).settings_text == SETTINGS
    assert not any(KEY.encode() in path.read_bytes() for path in database.parent.glob("experiments.db*"))


def test_a_key_in_a_note_is_refused(store: Store, folder: Path) -> None:
    with pytest.raises(LabError) as caught:
        save(store, folder, with_seqs(64), note=f"now with {KEY}")
    assert caught.value.findings[0].code == "secret-in-version"


def test_a_file_on_disk_with_a_key_is_not_kept(store: Store, folder: Path, database: Path) -> None:
    (folder / "config.toml").write_text(f'[server]\napi_key = "{KEY}"\n')
    assert note_disk(store, folder, host=HOST) is None
    row = save(store, folder, with_seqs(64))
    assert (row.parent_hash, count_config_saves(store, folder, host=HOST)) == (None, 1)
    store.close()
    assert KEY.encode() not in database.read_bytes()


def test_hosts_and_folders_have_histories_of_their_own(store: Store, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("settings.json", "config.toml"):
        (other / name).write_text((folder / name).read_text())
    save(store, folder, with_seqs(64))
    assert note_disk(store, other, host=HOST) is not None
    assert count_config_saves(store, folder, host=HOST) == 2
    assert count_config_saves(store, other, host=HOST) == 1
    assert count_config_saves(store, folder, host="another") == 0


def test_notes_and_names_are_searched(store: Store, folder: Path) -> None:
    save(store, folder, with_seqs(64), note="100% of the memory")
    save(store, folder, with_seqs(65), person="Grace", note="less")
    found = list_config_saves(store, folder, host=HOST, search="grace LESS")
    assert [row.note for row in found] == ["less"]
    assert count_config_saves(store, folder, host=HOST, search="100%") == 1
    assert count_config_saves(store, folder, host=HOST, search="%") == 1


def test_versions_come_newest_first_and_in_pages(store: Store, folder: Path) -> None:
    for number in range(1, 6):
        save(store, folder, with_seqs(number), note=str(number))
    page = list_config_saves(store, folder, host=HOST, limit=2, offset=1)
    assert [row.note for row in page] == ["4", "3"]
    assert [row.note for row in list_config_saves(store, folder, host=HOST, limit=None)] == [
        "5",
        "4",
        "3",
        "2",
        "1",
        "",
    ]


def test_a_version_brought_back_says_which(store: Store, folder: Path) -> None:
    first = save(store, folder, with_seqs(64))
    save(store, folder, with_seqs(16))
    back = save(store, folder, stored_pair(store, first.config_hash), source="restore", restored_id=first.id)
    assert (back.source, back.restored_id, back.config_hash) == ("restore", first.id, first.config_hash)
    assert get_config_save(store, back.id) == back


@pytest.mark.parametrize("number", [0, -1, 999, 2**70])
def test_an_unknown_version_is_named(number: int, store: Store) -> None:
    with pytest.raises(LabError) as caught:
        get_config_save(store, number)
    assert caught.value.findings[0].code == "config-save-unknown"


def test_line_ends_and_the_byte_order_mark_survive_the_database(store: Store, folder: Path) -> None:
    odd = ConfigPair("\ufeff" + SETTINGS.replace("\n", "\r\n").replace("32", "33"), CONFIG.rstrip("\n"))
    row = save(store, folder, odd)
    assert stored_pair(store, row.config_hash).settings_text == odd.settings_text
    assert (folder / "settings.json").read_bytes() == odd.settings_text.encode()
    assert stored_pair(store, row.config_hash).config_text == odd.config_text


def test_a_deleted_file_that_was_empty_comes_back_empty(store: Store, folder: Path) -> None:
    row = save(store, folder, ConfigPair(SETTINGS, ""))
    (folder / "config.toml").unlink()
    missing = missing_files(folder)
    old, new = filled_up(folder, missing, stored_pair(store, row.config_hash))
    back = save_pair(store, folder, old, new, host=HOST, person="Ada", source="restore", missing=missing)
    assert (folder / "config.toml").read_bytes() == b"" and missing_files(folder) == ()
    assert back is not None and (back.source, back.changes, back.config_hash) == ("restore", (), row.config_hash)


def test_a_kill_between_file_and_database_is_found_on_disk_afterwards(
    store: Store, folder: Path, url: str, database: Path
) -> None:
    save(store, folder, with_seqs(64))
    with closing(sqlite3.connect(database)) as outside:
        outside.execute("DELETE FROM config_save WHERE source = 'page'")
        outside.commit()
    again = open_store(url)
    seen = note_disk(again, folder, host=HOST)
    again.close()
    assert seen is not None
    assert (seen.source, seen.changes) == ("external", (ChangedValue("settings", "decode.max_num_seqs", 32, 64),))


def test_versions_of_a_database_of_revision_2_open(database: Path, url: str) -> None:
    shutil.copy(Path(__file__).parent / "assets" / "revision_0002.db", database)
    store = open_store(url)
    newest, first = list_config_saves(store, Path("/lab/configs"), host="h")
    assert (newest.note, newest.person) == ("kept by the second migration", "Ada")
    assert newest.changes == (ChangedValue("settings", "decode.max_num_seqs", 32, 64),)
    assert stored_pair(store, first.config_hash).config_text == "[workload]\nrequests = 24\n"
    store.close()

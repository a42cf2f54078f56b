"""The page Configs: versions, what changed meanwhile, and comparisons to queue."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lab.configs.pair import ConfigPair, pair_hash, read_pair
from lab.host.lock import hold_lock
from lab.store import Store, count_config_saves, get_experiment, list_config_saves, list_experiments, models, save_pair
from pages.components.context import host_name
from tests.engine.model_folders import model_folder
from tests.pages.configs_page import CONFIG, SEQUENCES, SETTINGS, Open, Put, field, fine, press, texts, view


def seqs(number: int) -> ConfigPair:
    return ConfigPair(SETTINGS.replace('"max_num_seqs": 32', f'"max_num_seqs": {number}'), CONFIG)


def save(store: Store, folder: Path, new: ConfigPair, person: str = "Grace", note: str = "") -> int:
    row = save_pair(store, folder, read_pair(folder), new, host=host_name(), person=person, source="page", note=note)
    assert row is not None
    return row.id


def change_seqs(app, number: int):
    return field(app.number_input, SEQUENCES).set_value(number).run()


def test_what_stands_on_disk_is_the_first_version(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    (first,) = list_config_saves(store, folder, host=host_name())
    assert (first.source, first.person) == ("external", None)
    assert f"On disk: version {first.id} · found on disk" in texts(app)


def test_a_save_keeps_its_author_its_note_and_what_it_changed(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    field(app.text_input, "Your name").set_value("Ada").run()
    field(app.text_input, "Note").set_value("twice as many").run()
    press(app, "Save")
    newest = list_config_saves(store, folder, host=host_name())[0]
    assert (newest.person, newest.note, newest.source) == ("Ada", "twice as many", "page")
    assert f"Saved as version {newest.id}" in texts(fine(app))
    assert field(change_seqs(app, 65).text_input, "Note").value == ""


def test_a_version_is_looked_at_compared_and_brought_back(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    older, newer = save(store, folder, seqs(64), note="more"), save(store, folder, seqs(16))
    view(app.run(), "versions")
    field(fine(app).selectbox, "Version").set_value(older).run()
    assert '-    "max_num_seqs": 32' in texts(app) and '+    "max_num_seqs": 64' in texts(app)
    field(app.selectbox, "Compared with").set_value(newer).run()
    assert f"From version {older} to version {newer}" in texts(app)
    assert '-    "max_num_seqs": 64' in texts(app) and '+    "max_num_seqs": 16' in texts(app)
    field(app.selectbox, "Compared with").set_value("disk").run()
    assert '+    "max_num_seqs": 16' in texts(app)
    press(app, f"Bring version {older} back")
    assert json.loads((folder / "settings.json").read_text())["decode"]["max_num_seqs"] == 16  # nothing before a look
    press(fine(app), "Save")
    assert (folder / "settings.json").read_text() == seqs(64).settings_text
    back = list_config_saves(store, folder, host=host_name())[0]
    assert (back.source, back.restored_id) == ("restore", older)
    assert f"version {older} brought back" in str(app.dataframe[0].value["what"][0])


def test_a_deleted_file_is_brought_back_on_the_page(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    older, newest = save(store, folder, seqs(64)), save(store, folder, seqs(16))
    (folder / "settings.json").unlink()
    assert "settings.json does not exist" in texts(fine(app.run()))
    assert '"max_num_seqs": 16' in texts(app)
    field(app.selectbox, "Bring it back from version").set_value(older).run()
    press(app, "Bring settings.json back")
    assert (folder / "settings.json").read_text() == seqs(64).settings_text
    back = list_config_saves(store, folder, host=host_name())[0]
    assert (back.id, back.source, back.restored_id) == (newest + 1, "restore", older)
    assert f"Saved as version {back.id}" in texts(fine(app)) and field(app.number_input, SEQUENCES).value == 64


def test_a_version_brought_back_and_changed_is_an_edit_of_the_page(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    older = save(store, folder, seqs(64))
    save(store, folder, seqs(16))
    view(app.run(), "versions")
    field(app.selectbox, "Version").set_value(older).run()
    press(app, f"Bring version {older} back")
    view(app, "form")
    change_seqs(fine(app), 65)
    press(app, "Save")
    newest = list_config_saves(store, folder, host=host_name())[0]
    assert (newest.source, newest.restored_id) == ("page", None)


def test_versions_are_found_by_note_and_name(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    save(store, folder, seqs(64), note="for the night shift")
    save(store, folder, seqs(16), person="Zoë")
    view(app.run(), "versions")
    field(app.text_input, "Search notes").set_value("NIGHT").run()
    assert list(fine(app).dataframe[0].value["note"]) == ["for the night shift"]
    field(app.text_input, "Search notes").set_value("nobody").run()
    assert "No version matches" in texts(fine(app))


def test_a_note_is_no_markup(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    save(store, folder, seqs(64), note="**bold** :red[x] <b>y</b>")
    assert "\\*\\*bold\\*\\* \\:red\\[x\\] \\<b\\>y\\</b\\>" in texts(app.run())


def test_what_two_people_changed_is_shown_three_ways_and_put_together(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    theirs = ConfigPair(SETTINGS.replace("8192", "2048"), CONFIG + "# theirs\n")
    number = save(store, folder, theirs, note="shorter")
    press(app, "Save")
    assert "Nothing was overwritten" in texts(fine(app)) and f"Version {number} is by Grace" in texts(app)
    assert (folder / "settings.json").read_text() == theirs.settings_text
    keys = app.dataframe[0].value
    assert {tuple(row) for row in keys.to_numpy()} == {
        ("decode.max_model_len", "8192", "2048", "8192"),
        ("decode.max_num_seqs", "32", "32", "64"),
    }
    press(app, "Put your changes on top")
    assert '+    "max_num_seqs": 64' in texts(fine(app)) and "2048" not in "".join(
        line for line in texts(app).splitlines() if line.startswith(("+", "-"))
    )
    press(app, "Save")
    both = theirs.settings_text.replace('"max_num_seqs": 32', '"max_num_seqs": 64')
    assert (folder / "settings.json").read_text() == both
    assert (folder / "config.toml").read_text() == CONFIG + "# theirs\n"


@pytest.mark.parametrize(("side", "expected"), [("theirs", 16), ("mine", 64)])
def test_a_key_that_both_changed_is_decided_by_the_reader(
    side: str, expected: int, put: Put, open_page: Open, store: Store
) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    save(store, folder, ConfigPair(seqs(16).settings_text.replace("8192", "2048"), CONFIG))
    choice = field(fine(app.run()).radio, "Both changed")
    assert choice.value == "theirs"
    choice.set_value(side).run()
    press(app, "Put your changes on top")
    if expected == 64:
        press(fine(app), "Save")
    decode = json.loads((folder / "settings.json").read_text())["decode"]
    assert (decode["max_num_seqs"], decode["max_model_len"]) == (expected, 2048)


def test_the_same_change_by_two_people_needs_no_decision(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    save(store, folder, seqs(64))
    assert "Nothing is changed" in texts(fine(app.run()))


def test_a_key_in_a_file_changed_meanwhile_is_not_shown(put: Put, open_page: Open) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    key = "sk-" + "t3st" * 5
    (folder / "config.toml").write_text(CONFIG.replace("${TAOTOKEN_API_KEY}", key))
    app.run()
    shown = texts(fine(app)) + "".join(str(table.value.to_numpy()) for table in app.dataframe)
    assert key not in shown + "".join(str(html.value) for html in app.get("html"))


def test_a_save_that_fails_says_why_and_keeps_the_draft(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
    press(app, "Save")
    assert "read-only" in texts(fine(app))
    assert (folder / "settings.json").read_text() == SETTINGS
    assert field(app.number_input, SEQUENCES).value == 64


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anything")
def test_a_folder_that_cannot_be_written_says_so_and_keeps_the_draft(put: Put, open_page: Open) -> None:
    folder = put()
    app = change_seqs(fine(open_page("configs")), 64)
    folder.chmod(0o555)
    try:
        press(app, "Save")
    finally:
        folder.chmod(0o755)
    assert "cannot be written" in texts(fine(app))
    assert field(app.number_input, SEQUENCES).value == 64


def with_model(own_place: Path) -> None:
    model_folder(own_place / "run" / "models" / "smollm2-135m-instruct", {})


def test_a_draft_is_queued_against_what_is_on_disk_without_being_saved(
    put: Put, open_page: Open, store: Store, own_place: Path
) -> None:
    folder = put()
    with_model(own_place)
    app = change_seqs(fine(open_page("configs")), 64)
    with hold_lock(own_place / "runner.lock", f"sqlite:///{own_place / 'experiments.db'}"):
        press(app, "Queue this comparison")
    assert "Queued as experiment" in texts(fine(app))
    (row,) = list_experiments(store)
    experiment = get_experiment(store, row.id).experiment
    assert [(arm.name, dict(arm.set)) for arm in experiment.arms] == [
        ("as on disk", {}),
        ("as edited", {"max_num_seqs": 64}),
    ]
    assert (experiment.settings_text, experiment.repeats >= 2) == (SETTINGS, True)
    assert row.name == "Try max_num_seqs 32 → 64"
    assert (folder / "settings.json").read_text() == SETTINGS


def test_a_knob_that_was_taken_away_is_left_to_the_engine_in_one_arm_only(
    put: Put, open_page: Open, store: Store, own_place: Path
) -> None:
    put()
    with_model(own_place)
    app = field(fine(open_page("configs")).number_input, "Context length").set_value(None).run()
    with hold_lock(own_place / "runner.lock", f"sqlite:///{own_place / 'experiments.db'}"):
        press(app, "Queue this comparison")
    experiment = get_experiment(store, list_experiments(store)[0].id).experiment
    assert [dict(arm.set) for arm in experiment.arms] == [{"max_model_len": 8192}, {}]
    assert "max_model_len" not in experiment.settings_text


def test_what_is_on_disk_is_queued_against_an_older_version(
    put: Put, open_page: Open, store: Store, own_place: Path
) -> None:
    folder = put()
    with_model(own_place)
    app = fine(open_page("configs"))
    save(store, folder, seqs(64))
    assert field(app.run().selectbox, "Against").options == [f"1 · found on disk · {app_time(store, folder)}"]
    with hold_lock(own_place / "runner.lock", f"sqlite:///{own_place / 'experiments.db'}"):
        press(app, "Queue this comparison")
    experiment = get_experiment(store, list_experiments(store)[0].id).experiment
    assert [(arm.name, dict(arm.set)) for arm in experiment.arms] == [
        ("version 1", {}),
        ("as on disk", {"max_num_seqs": 64}),
    ]


def app_time(store: Store, folder: Path) -> str:
    first = list_config_saves(store, folder, host=host_name())[-1]
    return first.created_at.astimezone().strftime("%Y-%m-%d %H:%M")


def test_nothing_to_compare_says_what_to_do(put: Put, open_page: Open, own_place: Path) -> None:
    put()
    with_model(own_place)
    assert "Change a knob, or bring a version back" in texts(fine(open_page("configs")))


def test_a_thousand_versions_are_shown(put: Put, open_page: Open, store: Store) -> None:
    folder = put()
    app = fine(open_page("configs"))
    many_versions(store, folder, 1000)
    view(app.run(), "versions")
    assert len(fine(app).dataframe[0].value) == count_config_saves(store, folder, host=host_name()) == 1002
    assert '+    "max_num_seqs": 1000' in texts(app)


def many_versions(store: Store, folder: Path, number: int) -> None:
    """As if saved one by one, which would take a minute; the last one by the real way."""
    first = list_config_saves(store, folder, host=host_name())[0]
    pairs = [seqs(1000 + each) for each in range(number, 0, -1)]
    hashes = [pair_hash(pair) for pair in pairs]
    with store.writing() as session:
        session.add_all(
            models.ConfigVersion(hash=name, **texts_of(pair), created_at=first.created_at)
            for name, pair in zip(hashes, pairs, strict=True)
        )
        session.flush()
        session.add_all(
            models.ConfigSave(
                host=first.host,
                folder=first.folder,
                created_at=first.created_at,
                source="external",
                note=f"try {place}",
                config_hash=name,
                parent_hash=hashes[place - 1] if place else first.config_hash,
                changes=[{"file": "settings", "key": "decode.max_num_seqs", "old": place, "new": place + 1}],
            )
            for place, name in enumerate(hashes)
        )
    (folder / "settings.json").write_text(pairs[-1].settings_text)
    save(store, folder, seqs(1000))


def texts_of(pair: ConfigPair) -> dict[str, str]:
    return {"settings_text": pair.settings_text, "config_text": pair.config_text}

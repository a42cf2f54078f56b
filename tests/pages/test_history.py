"""The history page: found by text, state and person, in the address; notes and tags."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from lab.store import Store, add_note
from tests.factories import seed_failed_experiment, seed_finished_experiment, seed_stopped_experiment
from tests.pages.test_home import texts

OpenPage = Callable[..., AppTest]


def names(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["name"]) if app.dataframe else []


def test_an_empty_history_says_what_will_stand_there(open_page: OpenPage) -> None:
    app = open_page("history")
    assert not app.exception
    assert "There are no experiments yet." in texts(app)


def test_experiments_of_all_people_are_listed(open_page: OpenPage, store: Store) -> None:
    seed_finished_experiment(store, person="Ada", name="first")
    seed_failed_experiment(store, person="Wei")
    app = open_page("history")
    assert names(app) == ["Too much cache", "first"]
    table = app.dataframe[0].value
    assert list(table["person"]) == ["Wei", "Ada"]
    assert list(table["state"]) == ["Failed", "Done"]
    assert list(table["trials"]) == ["0/1 (1)", "6/6"]


def test_filters_come_from_the_address(open_page: OpenPage, store: Store) -> None:
    seed_finished_experiment(store, person="Ada", name="first")
    seed_stopped_experiment(store, person="Ada")
    seed_failed_experiment(store, person="Wei")
    assert names(open_page("history", state="failed")) == ["Too much cache"]
    assert names(open_page("history", who="Ada")) == ["Never mind", "first"]
    assert names(open_page("history", who="Ada", state="stopped")) == ["Never mind"]


def test_a_chosen_filter_goes_into_the_address(open_page: OpenPage, store: Store) -> None:
    seed_finished_experiment(store, name="first")
    seed_stopped_experiment(store)
    app = open_page("history")
    app.selectbox(key="state").set_value("stopped").run()
    assert names(app) == ["Never mind"]
    assert app.query_params["state"] in ("stopped", ["stopped"])
    app.selectbox(key="state").set_value("").run()
    assert len(names(app)) == 2
    assert "state" not in app.query_params


def test_the_search_looks_into_names_and_notes(open_page: OpenPage, store: Store) -> None:
    number = seed_finished_experiment(store, name="first")
    seed_finished_experiment(store, name="second")
    add_note(store, number, "Wei", "needs more memory")
    app = open_page("history")
    app.text_input(key="search").set_value("memory").run()
    assert names(app) == ["first"]
    app.text_input(key="search").set_value("nothing like it").run()
    assert "No experiment matches these filters." in texts(app)


def test_a_new_experiment_is_there_at_once(open_page: OpenPage, store: Store) -> None:
    app = open_page("history")
    seed_finished_experiment(store, name="fresh")
    assert names(app.run()) == ["fresh"]

"""Names of shipped experiments speak the reader's language; names of one's own are left alone."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from lab.records.plan import Arm
from lab.store import Store
from tests.factories import seed_finished_experiment
from tests.pages.test_configs import fine, texts

OpenPage = Callable[..., AppTest]
ARMS = (Arm(name="no batching (1 sequence at a time)", set={"max_num_seqs": 1}), Arm(name="my own arm"))


def test_names_of_a_preset_are_translated_where_they_are_shown(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store, arms=ARMS)
    app = fine(open_page("results", experiment=number, lang="zh"))
    said = texts(app)
    assert "Continuous batching on and off" not in said
    assert "连续批处理" in said
    (arms,) = [table.value["arm"] for table in app.dataframe if "repeats" in table.value]
    assert list(arms) == ["不做批处理（一次一个序列）", "my own arm"]


def test_a_name_of_ones_own_stays_even_where_it_is_a_word_of_the_pages(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store, name="Requests", question="", arms=ARMS)
    assert "Requests" in texts(fine(open_page("results", experiment=number, lang="zh")))


def test_in_english_nothing_changes(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store, arms=ARMS)
    assert "Continuous batching on and off" in texts(fine(open_page("results", experiment=number)))

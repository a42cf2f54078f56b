"""The page Results: one sentence, the table, the chart's data, each measurement down to its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from lab.records.plan import Arm
from lab.records.workload import Workload
from lab.store import Store, get_experiment, list_notes, list_requests
from pages.components.result_chart import chosen_point
from tests.factories import (
    seed_failed_experiment,
    seed_finished_experiment,
    seed_running_experiment,
    seed_stopped_experiment,
)
from tests.pages.test_configs import field, fine, press, texts

OpenPage = Callable[..., AppTest]
SERIAL = "no batching (1 sequence at a time)"


def table(app: AppTest, *columns: str) -> Any:
    """The table on the page that has these columns."""
    return next(each.value for each in app.dataframe if set(columns) <= set(each.value.columns))


def test_an_empty_history_says_what_to_do(open_page: OpenPage) -> None:
    app = fine(open_page("results"))
    assert "Nothing was measured yet" in texts(app)


def test_the_table_pools_the_requests_of_all_repeats(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store)
    app = fine(open_page("results", experiment=number))
    shown = table(app, "arm", "ttft_p95_ms", "wall_s").set_index("arm")
    for arm, target in ((SERIAL, "engine"), ("continuous batching", "engine"), ("TaoToken", "gateway")):
        rows = [row for row in get_experiment(store, number).measurements if row.arm_name == arm]
        requests = [r for row in rows for r in list_requests(store, row.id) if not r.warmup and r.ok]
        ttft = [r.ttft_ms for r in requests]
        line = shown.loc[arm if target == "engine" else f"{arm} (TaoToken gateway)"]
        wall_s = sum(
            (max(r.t0_ms + (r.e2e_ms or 0) for r in part) - min(r.t0_ms for r in part)) / 1000
            for part in ([r for r in list_requests(store, row.id) if not r.warmup] for row in rows)
        )
        tokens = sum(r.completion_tokens or 0 for r in requests)
        assert line["requests"] == 80
        assert line["ttft_mean_ms"] == pytest.approx(np.mean(ttft))
        assert line["ttft_p95_ms"] == pytest.approx(np.percentile(ttft, 95, method="linear"))
        assert line["output_tokens"] == tokens
        assert line["wall_s"] == pytest.approx(wall_s)
        assert line["output_tokens_per_s"] == pytest.approx(tokens / wall_s)


def test_the_verdict_stands_on_top_in_words(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store)
    app = fine(open_page("results"))
    assert len(app.success) == 1
    assert "continuous batching keeps the limit of 3000 ms" in app.success[0].value
    assert "times the throughput" in texts(app)
    assert "× higher" in texts(app)


def test_one_repeat_gives_a_reason_instead_of_a_verdict(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store, repeats=1)
    app = fine(open_page("results"))
    assert not app.success
    assert "a single repeat shows no spread" in app.info[0].value


def test_one_arm_is_told_that_there_is_nothing_to_compare(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store, arms=(Arm(name="alone"),))
    assert "nothing to compare" in fine(open_page("results")).info[0].value


def test_a_failed_experiment_shows_class_reason_and_log(store: Store, open_page: OpenPage) -> None:
    number = seed_failed_experiment(store)
    app = fine(open_page("results", experiment=number))
    assert "Nothing was measured." in app.error[0].value
    assert "Out of memory" in texts(app)
    assert any("Free memory on device cuda:0" in code.value for code in app.code)
    assert not app.dataframe


def test_a_stopped_experiment_says_what_was_not_run(store: Store, open_page: OpenPage) -> None:
    seed_stopped_experiment(store)
    assert "6 of 6 trials were cancelled" in texts(fine(open_page("results")))


def test_a_running_experiment_shows_progress_and_what_is_there(store: Store, open_page: OpenPage) -> None:
    seed_running_experiment(store)
    app = fine(open_page("results"))
    assert "12 of 40 requests" in texts(app)
    assert "The verdict comes when every arm is measured" in texts(app)
    assert list(table(app, "arm", "wall_s")["arm"]) == [SERIAL]


def test_stop_is_asked_for_once(store: Store, open_page: OpenPage) -> None:
    number = seed_running_experiment(store)
    app = press(fine(open_page("results")), "Stop")
    assert get_experiment(store, number).row.stop_requested
    assert not [button for button in fine(app).button if button.label == "Stop"]


def test_the_address_names_the_experiment(store: Store, open_page: OpenPage) -> None:
    first = seed_finished_experiment(store, name="The first")
    seed_finished_experiment(store, name="The second")
    assert "### The second" in texts(fine(open_page("results")))
    for key in ("experiment", "id"):
        assert "### The first" in texts(fine(open_page("results", **{key: first})))


def test_an_unknown_number_is_told_and_the_newest_shown(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store)
    app = fine(open_page("results", experiment=99))
    assert "There is no experiment 99" in app.warning[0].value
    assert app.success


@pytest.mark.parametrize("text", ["abc", "-1", "1e3", "9" * 40])
def test_a_nonsense_number_harms_nothing(text: str, store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store)
    assert fine(open_page("results", experiment=text)).success


def test_a_measurement_opens_down_to_its_requests(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store)
    app = fine(open_page("results", experiment=number))
    row = get_experiment(store, number).measurements[2]
    app.selectbox(key="results:measurement").select(row.id).run()
    requests = list_requests(store, row.id)
    shown = table(fine(app), "index", "ttft_ms", "e2e_ms")
    assert list(shown["ttft_ms"]) == [request.ttft_ms for request in requests]
    assert "Requests (40, and 2 of the warm-up" in texts(app)


def test_reservations_stand_beside_with_their_measurements(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store)
    view = get_experiment(store, number)
    assert any(mark.code == "low-samples-p99" for row in view.measurements for mark in row.marks)
    assert "P99 needs at least 100" in texts(fine(open_page("results")))


def test_baselines_of_other_experiments_can_stand_beside(store: Store, open_page: OpenPage) -> None:
    other = seed_finished_experiment(store, name="With the gateway")
    seed_finished_experiment(store, name="Another workload", workload=Workload(kind="burst", requests=30))
    own = seed_finished_experiment(store, name="Without", arms=(Arm(name="a", set={"max_num_seqs": 1}), Arm(name="b")))
    app = fine(open_page("results", experiment=own))
    choice = app.multiselect(key=f"results:baselines:{own}")
    assert choice.options == [option for option in choice.options if "With the gateway" in option]
    choice.select(other).run()
    rows = table(fine(app), "measurement", "arm", "repeat")
    assert list(rows["arm"]) == ["a", "a", "b", "b", "TaoToken", "TaoToken"]


def test_a_note_is_kept_under_the_name_of_who_wrote_it(store: Store, open_page: OpenPage) -> None:
    number = seed_finished_experiment(store)
    app = fine(open_page("results"))
    field(app.text_area, "New note").set_value("batching wins")
    press(app, "Add note")
    assert [note.text for note in list_notes(store, number)] == ["batching wins"]
    assert "batching wins" in [text.value for text in fine(app).text]


def test_names_of_people_and_arms_are_never_markup(store: Store, open_page: OpenPage) -> None:
    arms = (Arm(name="a_b *bold* [x](http://evil.example)", set={"max_num_seqs": 1}), Arm(name="`tick"))
    seed_finished_experiment(store, name="<b>bold</b> :red[x]", arms=arms)
    app = fine(open_page("results"))
    assert any("\\<b\\>bold" in str(markdown.value) for markdown in app.markdown)
    assert not any("[x](http" in str(markdown.value) for markdown in app.markdown)


def test_the_page_speaks_chinese(store: Store, open_page: OpenPage) -> None:
    seed_finished_experiment(store)
    app = fine(open_page("results", lang="zh"))
    assert app.title[0].value == "结果"


@pytest.mark.parametrize(
    ("event", "chosen"),
    [
        ({"selection": {"points": [{"customdata": [7]}]}}, 7),
        ({"selection": {"points": [{"customdata": {"0": 7}}]}}, None),
        ({"selection": {"points": [{"customdata": 7}]}}, 7),
        ({"selection": {"points": []}}, None),
        (None, None),
    ],
)
def test_a_clicked_point_names_its_measurement(event: Any, chosen: int | None) -> None:
    assert chosen_point(event) == chosen

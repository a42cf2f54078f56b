"""Hosts, intents, launches, notes, baselines, history."""

from __future__ import annotations

import pytest

from lab.findings import LabError
from lab.records.plan import Arm
from lab.records.workload import Workload
from lab.store import (
    Store,
    add_intent,
    add_launch,
    add_note,
    close_intent,
    compare_experiments,
    count_experiments,
    finish_experiment_if_done,
    get_experiment,
    get_host,
    get_intent,
    get_launch,
    heartbeat,
    history_totals,
    list_baselines,
    list_experiments,
    list_hosts,
    list_launches,
    list_notes,
    list_people,
    list_tags,
    open_intents,
    request_stop,
    save_host_facts,
    set_tags,
    unfinished_launches,
    update_launch,
)
from tests.factories import (
    HOST,
    SETTINGS_TEXT,
    make_experiment,
    seed_failed_experiment,
    seed_finished_experiment,
    seed_stopped_experiment,
)


def launch(store: Store, host: str = HOST) -> int:
    return add_launch(store, host, "vllm", ["python", "-m", "x"], ["B", "A"], "engine.log", 7, 7, 1.5, 8001, "m")


def test_a_heartbeat_replaces_the_one_before_and_leaves_the_facts(store: Store) -> None:
    save_host_facts(store, "h", "cpu", {"cores": 2})
    heartbeat(store, "h", runner_pid=11, state="measuring", detail="arm A", trial_id=3, launch_id=4)
    heartbeat(store, "h", runner_pid=11, state="idle")
    host = get_host(store, "h")
    assert host is not None
    assert (host.kind, host.facts, host.runner_state, host.detail, host.trial_id) == (
        "cpu",
        {"cores": 2},
        "idle",
        None,
        None,
    )
    assert [row.name for row in list_hosts(store)] == ["h"]
    assert get_host(store, "nobody") is None


def test_intents_wait_in_order_until_they_are_closed(store: Store) -> None:
    first = add_intent(store, HOST, "serve", payload={"settings_text": "{}"}, person="Ada")
    second = add_intent(store, HOST, "stop-engine", person="Grace")
    add_intent(store, "elsewhere", "shutdown", person="Ada")
    assert [(i.id, i.kind, i.person) for i in open_intents(store, HOST)] == [
        (first, "serve", "Ada"), (second, "stop-engine", "Grace"),
    ]  # fmt: skip
    assert close_intent(store, first, "done")
    assert not close_intent(store, first, "again")
    closed = get_intent(store, first)
    assert closed is not None
    assert (closed.outcome, closed.payload) == ("done", {"settings_text": "{}"})
    assert [i.id for i in open_intents(store, HOST)] == [second]


def test_a_launch_from_start_to_end(store: Store) -> None:
    number = launch(store)
    update_launch(store, number, phase="loading", last_line="Loading weights")
    update_launch(store, number, state="ready", effective={"block_size": 128}, ready_s=28.4)
    assert [row.id for row in unfinished_launches(store, HOST)] == [number]
    update_launch(store, number, state="stopped", ended={"how": "sigterm", "seconds": 1.0, "left": []})
    row = get_launch(store, number)
    assert (row.state, row.phase, row.effective, row.ready_s) == ("stopped", "loading", {"block_size": 128}, 28.4)
    assert (row.argv, row.environment_names) == (("python", "-m", "x"), ("A", "B"))
    assert row.ended == {"how": "sigterm", "seconds": 1.0, "left": []}
    assert row.ended_at is not None
    assert unfinished_launches(store, HOST) == ()


def test_a_launch_that_ended_does_not_come_back(store: Store) -> None:
    number = launch(store)
    update_launch(store, number, state="failed", failure="crash")
    with pytest.raises(LabError, match="transition-refused"):
        update_launch(store, number, state="ready")
    with pytest.raises(LabError, match="launch-unknown"):
        get_launch(store, 404)


def test_launches_are_listed_newest_first(store: Store) -> None:
    numbers = [launch(store), launch(store), launch(store, "elsewhere")]
    assert [row.id for row in list_launches(store, HOST)] == [numbers[1], numbers[0]]
    assert len(list_launches(store)) == 3


def test_notes_keep_who_and_when(store: Store) -> None:
    number = seed_stopped_experiment(store)
    add_note(store, number, "Grace", "  why so slow?  ")
    add_note(store, number, "Ada", "cold cache")
    assert [(n.person, n.text) for n in list_notes(store, number)] == [("Grace", "why so slow?"), ("Ada", "cold cache")]
    (row,) = list_experiments(store)
    assert row.notes == 2
    with pytest.raises(LabError, match="experiment-unknown"):
        add_note(store, 404, "Ada", "x")


def test_tags_are_replaced(store: Store) -> None:
    number = seed_stopped_experiment(store)
    set_tags(store, number, ["fp8", " a100 ", "", "fp8"])
    assert list_tags(store) == ("a100", "fp8")
    set_tags(store, number, ["fp8"])
    assert list_experiments(store)[0].tags == ("fp8",)
    assert list_experiments(store, tag="fp8")
    assert not list_experiments(store, tag="a100")


@pytest.fixture
def history(store: Store) -> dict[str, int]:
    small = Workload(kind="burst", requests=4, output_tokens=4, warmup_requests=0)
    fp8 = (Arm(name="auto"), Arm(name="eight bits", set={"kv_cache_dtype": "fp8"}))
    found = {
        "batching": seed_finished_experiment(store, person="Ada", workload=small),
        "cache": seed_finished_experiment(
            store, person="王伟", name="Cache 100%", question="dtype?", arms=fp8, workload=small
        ),
        "failed": seed_failed_experiment(store, person="Grace"),
    }
    add_note(store, found["batching"], "Grace", "before the driver update")
    return found


@pytest.mark.parametrize(
    ("search", "wanted"),
    [
        ("batching", ["batching"]), ("BATCH", ["batching"]), ("fp8", ["cache"]), ("dtype?", ["cache"]),
        ("王伟", ["cache"]), ("driver", ["batching"]), ("eight auto", ["cache"]), ("eight batching", []),
        ("100%", ["cache"]), ("1_0", []), ("kv_cache_dtype", ["cache"]), ("'; DROP TABLE trial; --", []),
        ("", ["failed", "cache", "batching"]),
    ],
)  # fmt: skip
def test_search_looks_where_people_look(store: Store, history: dict[str, int], search: str, wanted: list[str]) -> None:
    names = {number: name for name, number in history.items()}
    assert [names[row.id] for row in list_experiments(store, search=search)] == wanted
    assert count_experiments(store, search=search) == len(wanted)


def test_filters_and_pages(store: Store, history: dict[str, int]) -> None:
    assert [row.id for row in list_experiments(store, state="failed")] == [history["failed"]]
    assert [row.id for row in list_experiments(store, person="Ada")] == [history["batching"]]
    assert [row.id for row in list_experiments(store, limit=1, offset=1)] == [history["cache"]]
    assert list_experiments(store, host="elsewhere") == ()
    assert list_people(store) == ("Ada", "Grace", "王伟")


def test_a_row_of_the_list_sums_up_its_experiment(store: Store) -> None:
    seed_finished_experiment(store)
    (row,) = list_experiments(store)
    assert (row.state, row.trials_total, row.trials_done, row.trials_failed) == ("done", 6, 6, 0)
    assert row.arms == ("no batching (1 sequence at a time)", "continuous batching", "TaoToken")
    assert row.best is not None
    assert row.best.arm == "continuous batching"


def test_totals(store: Store, history: dict[str, int]) -> None:
    totals = history_totals(store)
    # 6 + 4 measurements of 4 requests of 4 tokens; one failed trial
    assert (totals.experiments, totals.trials, totals.trials_failed) == (3, 11, 1)
    assert (totals.measurements, totals.requests, totals.output_tokens) == (10, 40, 160)


def test_an_empty_history(store: Store) -> None:
    assert list_experiments(store) == ()
    assert history_totals(store).requests == 0


def test_baselines_are_those_of_the_same_workload(store: Store, history: dict[str, int]) -> None:
    small = Workload(kind="burst", requests=4, output_tokens=4, warmup_requests=0)
    (baseline,) = list_baselines(store, small)
    assert (baseline.experiment_id, len(baseline.rows)) == (history["batching"], 2)
    assert {row.target for row in baseline.rows} == {"gateway"}
    assert list_baselines(store, small, besides=history["batching"]) == ()
    assert list_baselines(store, make_experiment().workload) == ()


def test_experiments_are_compared_by_what_differs_only(store: Store) -> None:
    small = Workload(kind="burst", requests=4, output_tokens=4, warmup_requests=0)
    larger = Workload(kind="burst", requests=8, output_tokens=4, warmup_requests=0)
    arms = (Arm(name="batching", set={"max_num_seqs": 32}), Arm(name="off", set={"max_num_seqs": 1}))
    other_arms = (Arm(name="batching", set={"max_num_seqs": 64}), Arm(name="off", set={"max_num_seqs": 1}))
    first = seed_finished_experiment(store, workload=small, arms=arms)
    second = seed_finished_experiment(
        store, workload=larger, arms=other_arms, settings_text=SETTINGS_TEXT.replace("4096", "2048")
    )
    found = {row.field: row.values for row in compare_experiments(store, [first, second])}
    assert found == {
        "workload.requests": ("4", "8"),
        "max_model_len": ("4096", "2048"),
        "arm batching: max_num_seqs": ("32", "64"),
    }
    assert compare_experiments(store, [first, first]) == ()


@pytest.mark.parametrize("number", [2**31, 2**63, 10**40])
def test_a_number_beyond_every_experiment_is_unknown_wherever_it_is_used(store: Store, number: int) -> None:
    for use in (
        lambda: get_experiment(store, number),
        lambda: request_stop(store, number, "Ada"),
        lambda: add_note(store, number, "Ada", "x"),
        lambda: set_tags(store, number, ["a"]),
        lambda: finish_experiment_if_done(store, number),
    ):
        with pytest.raises(LabError, match="experiment-unknown"):
            use()

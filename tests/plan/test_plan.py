from __future__ import annotations

import pytest

from lab.configs.experiment_file import experiment_from_parts
from lab.configs.pair import read_pair
from lab.environment import ROOT
from lab.plan import TrialTime, arm_pair, estimate_s, plan_trials, stages
from lab.records.workload import Stage, Workload


@pytest.fixture
def pair():
    return read_pair(ROOT / "configs")


def order(pair, arms, repeats, kind, seed=7):
    made = experiment_from_parts(
        "x", repeats=repeats, order=kind, seed=seed, arms=[{"name": name} for name in arms], pair=pair
    )
    planned = plan_trials(made)
    assert [trial.position for trial in planned] == list(range(len(planned)))
    return "".join(arms[trial.arm] for trial in planned), [trial.block for trial in planned]


def test_balanced_turns_every_second_block(pair):
    assert order(pair, "AB", 2, "balanced") == ("ABBA", [1, 1, 2, 2])
    assert order(pair, "ABC", 3, "balanced")[0] == "ABCCBAABC"


def test_listed_keeps_the_order_of_the_file(pair):
    assert order(pair, "AB", 2, "listed")[0] == "ABAB"


def test_random_is_whole_blocks_and_repeats_with_its_seed(pair):
    first, _ = order(pair, "ABCDEF", 3, "random", 1)
    assert [sorted(first[i : i + 6]) for i in (0, 6, 12)] == [list("ABCDEF")] * 3
    assert first == order(pair, "ABCDEF", 3, "random", 1)[0]
    assert first != order(pair, "ABCDEF", 3, "random", 2)[0]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (Workload(kind="burst", requests=4, prompt_tokens=(1, 2)), [Stage()]),
        (Workload(kind="closed", requests=4, concurrency=(1, 4)), [("concurrency", 1), ("concurrency", 4)]),
        (Workload(kind="open", requests=4, rate_per_s=(0.5,)), [("rate", 0.5)]),
        (Workload(kind="ladder", prompt_tokens=(128, 512)), [("prompt_tokens", 128), ("prompt_tokens", 512)]),
    ],
)
def test_stages_by_kind_of_load(workload, expected):
    assert list(stages(workload)) == [
        each if isinstance(each, Stage) else Stage(kind=each[0], value=each[1]) for each in expected
    ]


def test_arm_sets_its_knobs_and_nothing_else(pair):
    made = experiment_from_parts("x", arms=[{"name": "a", "set": {"chunk_size": 256, "temperature": 0.5}}], pair=pair)
    changed = arm_pair(made, made.arms[0])
    assert changed.settings_text == pair.settings_text.replace('"chunk_size": 512', '"chunk_size": 256').replace(
        '"temperature": 0.0', '"temperature": 0.5'
    )
    assert changed.config_text == pair.config_text


def test_model_of_a_gateway_arm_is_the_one_asked_for(pair):
    made = experiment_from_parts("x", arms=[{"name": "g", "target": "gateway", "set": {"model": "other"}}], pair=pair)
    changed = arm_pair(made, made.arms[0])
    assert changed.gateway({}).model == "other"
    assert changed.engine_knobs()["model"] == pair.engine_knobs()["model"]


def test_estimate_uses_the_same_arm_first_then_all():
    done = [TrialTime(0, 10.0), TrialTime(1, 30.0)]
    assert estimate_s([]) is None
    assert estimate_s([TrialTime(0), TrialTime(1)]) is None
    assert estimate_s(done) == 0.0
    assert estimate_s([*done, TrialTime(1), TrialTime(0)]) == 40.0
    assert estimate_s([*done, TrialTime(2)]) == 20.0
    assert estimate_s([*done, TrialTime(1, elapsed_s=12.0)]) == 18.0
    assert estimate_s([*done, TrialTime(0, elapsed_s=99.0)]) == 0.0

"""Requests longer than the target takes: left out or shortened stage by stage, said, and never a zero."""

from __future__ import annotations

from typing import Any

from lab.cli.result_table import result_text
from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.plan import plan_trials
from lab.store import ExperimentView, queue_experiment, result_document
from tests.runner.labs import Lab

LADDER = """
name = "ladder"
[workload]
kind = "ladder"
prompt_tokens = {lengths}
repeat = 2
output_tokens = 64
warmup_requests = 1
too_long = "{too_long}"
[[arm]]
name = "running"
target = "attach"
base_url = "{address}"
"""


def run(lab: Lab, server: Any, lengths: list[int], too_long: str = "skip") -> ExperimentView:
    return run_text(lab, LADDER.format(lengths=lengths, too_long=too_long, address=server.root_url))


def run_text(lab: Lab, text: str) -> ExperimentView:
    experiment, findings = read_experiment(text, "test.toml", read_pair(lab.config_dir))
    assert experiment is not None, findings
    return lab.run_until_ended(
        queue_experiment(lab.store, experiment, plan_trials(experiment), person="tester", host=lab.host)
    )


def rows(view: ExperimentView) -> list[tuple[Any, ...]]:
    return [
        (row["stage_value"], row["state"], row["succeeded"], row["ttft_mean_ms"] is None)
        for row in result_document(view)["rows"]
    ]


def test_a_length_beyond_the_context_that_the_server_names_is_left_out(lab: Lab, start_stub) -> None:
    server = start_stub(first_ms=5, gap_ms=1, context_tokens=256, tells_context=True)
    view = run(lab, server, [32, 200])
    assert view.row.state == "done", (view.trials, lab.log())
    assert rows(view) == [(32, "done", 2, False), (200, "not-applicable", None, True)]
    (mark,) = view.trials[0].marks
    assert (mark.code, mark.params["limit"], mark.params["prompt_tokens"]) == ("stage-too-long", 256, 200)
    assert "stage-too-long" not in [each.code for each in view.measurements[0].marks]
    assert max(len(each["prompt"].split()) for each in server.stats()) == 32
    assert "prompt_tokens 200: Not measured, because it does not fit" in result_text(view)


def test_near_the_limit_one_request_of_full_size_decides(lab: Lab, start_stub) -> None:
    # 170 + 64 are within 256, the template's 30 are not: only the server knows
    server = start_stub(first_ms=5, gap_ms=1, context_tokens=256, tells_context=True)
    view = run(lab, server, [150, 170])
    assert rows(view) == [(150, "done", 2, False), (170, "not-applicable", None, True)]
    assert [len(each["prompt"].split()) for each in server.stats()].count(170) == 1


def test_a_server_that_names_no_limit_is_asked_and_its_refusal_believed(lab: Lab, start_stub) -> None:
    server = start_stub(first_ms=5, gap_ms=1, context_tokens=256)
    view = run(lab, server, [32, 1024])
    assert rows(view) == [(32, "done", 2, False), (1024, "not-applicable", None, True)]
    assert view.trials[0].marks[0].params["limit"] == 256


def test_where_nothing_fits_the_trial_is_not_applicable(lab: Lab, start_stub) -> None:
    server = start_stub(first_ms=5, gap_ms=1, context_tokens=256, tells_context=True)
    view = run(lab, server, [512, 1024])
    assert (view.row.state, view.trials[0].state, view.trials[0].failure) == ("failed", "failed", "not-applicable")
    assert [row[:2] for row in rows(view)] == [(512, "not-applicable"), (1024, "not-applicable")]
    assert view.trials[0].message is not None and view.trials[0].message["limit"] == 256


def test_shrinking_sends_what_fits_and_says_so(lab: Lab, start_stub) -> None:
    server = start_stub(first_ms=5, gap_ms=1, context_tokens=256, tells_context=True)
    view = run(lab, server, [512], too_long="shrink")
    assert view.row.state == "done", (view.trials, lab.log())
    (measurement,) = view.measurements
    (shrunk,) = [mark for mark in measurement.marks if mark.code == "workload-shrunk"]
    # 256 less 64 of the answer and 64 kept for a chat template
    assert (shrunk.params["sent_prompt_tokens"], shrunk.params["sent_output_tokens"]) == (128, 64)
    assert (measurement.summary.succeeded, measurement.stage.value) == (2, 512)
    assert measurement.summary.prompt_tokens == 2 * 128


def test_a_gateway_gets_no_request_but_those_asked_for_and_its_refusals_are_recorded(lab: Lab, start_stub) -> None:
    # a request of full size would cost money there and might warm a prefix cache
    server = start_stub(first_ms=5, gap_ms=1, context_tokens=256, tells_context=True)
    lab.set("TAOTOKEN_BASE_URL", f"{server.root_url}/v1")
    lab.set("TAOTOKEN_API_KEY", "a-key")
    ladder, _, _ = LADDER.format(lengths=[32, 1024], too_long="skip", address="").partition("[[arm]]")
    view = run_text(lab, ladder + '[[arm]]\nname = "gateway"\ntarget = "gateway"\n')
    short, long = view.measurements
    assert (short.summary.succeeded, long.summary.requests) == (2, 2)
    assert dict(long.summary.failed) == {"too-long": 2}
    assert (long.summary.ttft_ms.mean, long.summary.output_tokens_per_s) == (None, None)
    sizes = [len(each["prompt"].split()) for each in server.stats()]
    assert (sizes.count(32), sizes.count(1024)) == (3, 3)  # one each to warm up, two measured

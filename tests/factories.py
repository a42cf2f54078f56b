"""Plausible values for tests: requests, summaries, experiments stored through the store's own functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from lab.metrics import summarise
from lab.records.plan import Arm, Experiment, PlannedTrial, Slo
from lab.records.request import ClientUsage, LoadResult, RequestRecord
from lab.records.sample import Sample
from lab.records.summary import Mark, Summary
from lab.records.workload import Stage, Workload
from lab.store import (
    Store,
    add_launch,
    finish_experiment_if_done,
    next_trial,
    queue_experiment,
    request_stop,
    save_measurement,
    set_trial_progress,
    set_trial_state,
    update_launch,
)
from lab.store.views import TrialWork

HOST = "test-host"
PERSON = "Ada"
SINGLE = Stage()
SETTINGS_TEXT = """{
  "model": "smollm2-135m-instruct",
  "api_base": "http://127.0.0.1:8000/v1",
  "api_key_env": "TAOTOKEN_API_KEY",
  "max_tokens": 64,
  "temperature": 0.0,
  "stream": true,
  "prefill": {"max_prefill_tokens": 2048, "chunked_prefill": true, "chunk_size": 512},
  "decode": {"max_num_seqs": 64, "max_model_len": 4096, "gpu_memory_utilization": 0.9, "kv_cache_dtype": "auto"}
}
"""
CONFIG_TEXT = """[server]
base_url = "https://taotoken.example/v1"

[request]
model = "smollm2-135m-instruct"

[workload]
prompt_tokens = [128, 512]
repeat = 3
"""


def make_request(
    index: int = 0,
    *,
    t0_ms: float = 0.0,
    ttft_ms: float | None = 100.0,
    tpot_ms: float = 20.0,
    tokens: int = 5,
    **changes: object,
) -> RequestRecord:
    """A successful request that brought `tokens` tokens, one per chunk, evenly; `changes` set any other field."""
    times = () if ttft_ms is None else tuple(ttft_ms + i * tpot_ms for i in range(tokens))
    fields: dict[str, object] = {
        "index": index,
        "warmup": False,
        "t0_ms": t0_ms,
        "sent_ms": t0_ms,
        "client_wait_ms": 0.1,
        "first_byte_ms": ttft_ms,
        "ttft_ms": ttft_ms,
        "first_answer_ms": ttft_ms,
        "e2e_ms": times[-1] if times else None,
        "tpot_ms": tpot_ms if len(times) >= 2 else None,
        "chunk_times_ms": times,
        "prompt_tokens": 48,
        "completion_tokens": tokens,
        "finish_reason": "length",
        "http_status": 200,
        "text": "word " * tokens,
    }
    return RequestRecord(**{**fields, **changes})  # type: ignore[arg-type]


def make_failure(index: int = 0, failure: str = "timeout", **changes: object) -> RequestRecord:
    """A request that failed before any output."""
    nothing: dict[str, object] = {
        "ttft_ms": None, "tokens": 0, "completion_tokens": None, "finish_reason": None, "http_status": None, "text": "",
    }  # fmt: skip
    return make_request(index, **{**nothing, "failure": failure, "message": "no answer", **changes})  # type: ignore[arg-type]


def make_result(records: Sequence[RequestRecord], **changes: object) -> LoadResult:
    fields: dict[str, object] = {
        "records": tuple(records),
        "client": ClientUsage(cpu_s=0.05, lag_p99_ms=0.4, lag_max_ms=1.2),
        "requests_asked": len(records),
        "concurrency_asked": None,
        "rate_asked_per_s": None,
        "window_s": None,
        "output_tokens_asked": None,
    }
    return LoadResult(**{**fields, **changes})  # type: ignore[arg-type]


def make_summary(
    records: Sequence[RequestRecord] | None = None, *, slo: Slo | None = None, **changes: object
) -> Summary:
    """A real summary of the records (default: 30 successful requests); `changes` set fields of the load result."""
    given = [make_request(i, t0_ms=i * 10.0) for i in range(30)] if records is None else records
    return summarise(
        make_result(given, **changes), slo=slo or Slo(), workload=Workload(kind="burst", requests=len(given))
    )


BATCHING_ARMS = (
    Arm(name="no batching (1 sequence at a time)", set={"max_num_seqs": 1}),
    Arm(name="continuous batching"),
    Arm(name="TaoToken", target="gateway", engine=None),
)


def make_experiment(**changes: object) -> Experiment:
    fields: dict[str, object] = {
        "name": "Continuous batching on and off",
        "question": "What does continuous batching bring, and what does it cost?",
        "repeats": 2,
        "order": "balanced",
        "seed": 7,
        "workload": Workload(kind="burst", requests=40, output_tokens=64, warmup_requests=2),
        "slo": Slo(ttft_p95_ms=3000),
        "arms": BATCHING_ARMS,
        "settings_text": SETTINGS_TEXT,
        "config_text": CONFIG_TEXT,
    }
    return Experiment.model_validate({**fields, **changes})


def make_trials(experiment: Experiment) -> tuple[PlannedTrial, ...]:
    """A B C, then C B A: the balanced order."""
    order = list(range(len(experiment.arms)))
    blocks = [order if block % 2 == 0 else order[::-1] for block in range(experiment.repeats)]
    pairs = [(arm, block + 1) for block, arms in enumerate(blocks) for arm in arms]
    return tuple(PlannedTrial(arm=arm, block=block, position=i) for i, (arm, block) in enumerate(pairs))


def serial_records(requests: int, tokens: int, rng: random.Random) -> list[RequestRecord]:
    """One sequence at a time, 29 tokens per second: each request waits for all before it."""
    service_ms = tokens / 29 * 1000
    return [
        make_request(i, ttft_ms=i * service_ms + rng.uniform(60, 90), tpot_ms=service_ms / tokens * 0.96, tokens=tokens)
        for i in range(requests)
    ]


def batched_records(requests: int, tokens: int, rng: random.Random) -> list[RequestRecord]:
    """All in one batch: P95 TTFT about 2.5 s, about 300 tokens per second for 40 requests of 64 tokens."""
    return [
        make_request(
            i, ttft_ms=300 + i * 2300 / requests + rng.uniform(0, 80), tpot_ms=rng.uniform(91, 96), tokens=tokens
        )
        for i in range(requests)
    ]


def gateway_records(requests: int, tokens: int, rng: random.Random) -> list[RequestRecord]:
    """A remote service: quick, with a few slow starts."""
    return [
        make_request(
            i, ttft_ms=rng.uniform(420, 700) + (900 if i % 12 == 0 else 0), tpot_ms=rng.uniform(22, 28), tokens=tokens
        )
        for i in range(requests)
    ]


def make_samples(seconds: int = 9) -> tuple[Sample, ...]:
    """Telemetry once a second: the cache fills and empties, with one gap."""
    samples: list[Sample] = []
    for second in range(seconds):
        use = None if second == 4 else 0.08 * min(second, seconds - 1 - second)
        samples += [
            Sample(second * 1000.0, "kv_cache_usage_ratio", use),
            Sample(second * 1000.0, "requests_running", float(min(40, 10 * second))),
            Sample(second * 1000.0, "requests_waiting", float(max(0, 40 - 10 * second))),
            Sample(second * 1000.0, "host_cpu_ratio", 0.93),
        ]
    return tuple(samples)


def record_warmup(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    warmup = [make_request(1000 + i, t0_ms=-500.0, sent_ms=-500.0, warmup=True) for i in range(2)]
    return [*warmup, *records]


def measure(
    store: Store,
    work: TrialWork,
    records: Sequence[RequestRecord],
    stage: Stage = SINGLE,
    marks: Sequence[Mark] = (),
) -> int:
    """Stores one measurement of a claimed trial, summarised for real."""
    workload = work.experiment.workload
    result = make_result(record_warmup(records), output_tokens_asked=workload.output_tokens)
    summary = summarise(result, slo=work.experiment.slo, workload=workload, extra_marks=marks)
    ended_at = datetime.now(UTC)
    started_at = ended_at - timedelta(seconds=summary.wall_s or 0)
    samples = () if work.arm.target == "gateway" else make_samples()
    return save_measurement(store, work.trial_id, stage, result, summary, samples, started_at, ended_at)


def seed_launch(store: Store, work: TrialWork, host: str = HOST) -> int | None:
    """The stopped launch of an engine arm; None for the others."""
    if work.arm.target != "engine":
        return None
    argv = [
        "python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--max-num-seqs",
        str(work.arm.set.get("max_num_seqs", 64)),
    ]
    launch_id = add_launch(store, host, "vllm", argv, ["VLLM_API_KEY"], "engine.log", 4242, 4242, 1.0, 8123, "smollm2")
    effective = {"max_num_seqs": work.arm.set.get("max_num_seqs", 64), "block_size": 128, "kv_cache_dtype": "auto"}
    update_launch(store, launch_id, state="ready", phase="ready", effective=effective, ready_s=28.4)
    update_launch(store, launch_id, state="stopped", ended={"how": "sigterm", "seconds": 1.1, "left": []})
    return launch_id


def run_trial(store: Store, work: TrialWork, records: Sequence[RequestRecord], host: str = HOST) -> None:
    """Takes a claimed trial to its end."""
    set_trial_state(store, work.trial_id, "warming", launch_id=seed_launch(store, work, host))
    set_trial_state(store, work.trial_id, "measuring")
    measure(store, work, records)
    set_trial_state(store, work.trial_id, "done")


Maker = Callable[[int, int, random.Random], list[RequestRecord]]


def _maker(work: TrialWork) -> Maker:
    if work.arm.target == "gateway":
        return gateway_records
    return serial_records if work.arm.set.get("max_num_seqs") == 1 else batched_records


def run_all(store: Store, experiment_id: int, host: str = HOST) -> None:
    """Runs every queued trial of the host with plausible numbers."""
    while (work := next_trial(store, host)) is not None:
        workload = work.experiment.workload
        rng = random.Random(work.position)
        run_trial(store, work, _maker(work)(workload.requests or 40, workload.output_tokens, rng), host)
    finish_experiment_if_done(store, experiment_id)


def seed_finished_experiment(store: Store, *, host: str = HOST, person: str = PERSON, **changes: object) -> int:
    """Two arms and the gateway, twice each, in balanced order, all done; returns the experiment's number."""
    experiment = make_experiment(**changes)
    experiment_id = queue_experiment(store, experiment, make_trials(experiment), person=person, host=host)
    run_all(store, experiment_id, host)
    return experiment_id


def seed_failed_experiment(store: Store, *, host: str = HOST, person: str = PERSON) -> int:
    """One arm whose engine had no memory: nothing measured."""
    experiment = make_experiment(
        name="Too much cache",
        question="How much memory can it take?",
        arms=(Arm(name="0.98", set={"gpu_memory_utilization": 0.98}),),
        repeats=1,
    )
    experiment_id = queue_experiment(store, experiment, make_trials(experiment), person=person, host=host)
    work = next_trial(store, host)
    assert work is not None
    tail = "ValueError: Free memory on device cuda:0 (31.4/47.4 GiB) on startup is less than desired"
    launch_id = add_launch(store, host, "vllm", ["python"], [], "engine.log", 4343, 4343, 2.0, 8124, "smollm2")
    update_launch(store, launch_id, state="failed", failure="out-of-memory", last_line=tail, ended={"how": "exited"})
    message: Mapping[str, object] = {"code": "trial-out-of-memory"}
    set_trial_state(
        store, work.trial_id, "failed", failure="out-of-memory", message=message, log_tail=tail, launch_id=launch_id
    )
    finish_experiment_if_done(store, experiment_id)
    return experiment_id


def seed_running_experiment(store: Store, *, host: str = HOST, person: str = PERSON) -> int:
    """The first trial done, the second measuring with progress, the rest queued."""
    experiment = make_experiment(name="Batching, in progress")
    experiment_id = queue_experiment(store, experiment, make_trials(experiment), person=person, host=host)
    first = next_trial(store, host)
    assert first is not None
    run_trial(store, first, serial_records(40, 64, random.Random(1)), host)
    second = next_trial(store, host)
    assert second is not None
    set_trial_state(store, second.trial_id, "measuring")
    progress = {"done": 12, "total": 40, "in_flight": 28, "elapsed_s": 4.2, "eta_s": 95.0, "stage": 1, "stages": 1}
    set_trial_progress(store, second.trial_id, progress)
    return experiment_id


def seed_stopped_experiment(store: Store, *, host: str = HOST, person: str = PERSON) -> int:
    """Stopped before anything ran."""
    experiment = make_experiment(name="Never mind")
    experiment_id = queue_experiment(store, experiment, make_trials(experiment), person=person, host=host)
    request_stop(store, experiment_id, person)
    return experiment_id


def seed_many(store: Store, experiments: int, *, host: str = HOST) -> list[int]:
    """A long history: small finished experiments (4 trials each) by a few people."""
    names = ("Ada", "Grace", "Linus", "Wei")
    small = Workload(kind="burst", requests=6, output_tokens=8, warmup_requests=0)
    ids = []
    for number in range(experiments):
        arms = (
            Arm(name="one at a time", set={"max_num_seqs": 1}),
            Arm(name=f"{number % 60 + 2} at a time", set={"max_num_seqs": number % 60 + 2}),
        )
        ids.append(
            seed_finished_experiment(
                store, host=host, person=names[number % len(names)], name=f"Sweep {number}", workload=small, arms=arms
            )
        )
    return ids

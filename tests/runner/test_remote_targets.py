"""Trials against a gateway or a running server: the same workload, the same loader, nothing launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.messages import word_message
from lab.store import list_launches
from tests.runner.labs import Lab

KEY = "test-LEAK-0001"
GATEWAY = '[[arm]]\nname = "gateway"\ntarget = "gateway"\n'


def at_gateway(lab: Lab, port: int, key: str | None = KEY) -> None:
    lab.set("TAOTOKEN_BASE_URL", f"http://127.0.0.1:{port}/v1")
    lab.set("TAOTOKEN_MODEL", "stub-model")
    if key is not None:
        lab.set("TAOTOKEN_API_KEY", key)


def test_a_gateway_arm_is_measured_with_the_key_of_the_environment(lab: Lab, start_stub) -> None:
    server = start_stub(key=KEY, first_ms=100, gap_ms=10)
    at_gateway(lab, server.port)
    view = lab.run_until_ended(lab.queue(GATEWAY, requests=6, tokens=5))
    assert view.row.state == "done", (view.trials, lab.log())
    summary = view.measurements[0].summary
    assert (summary.requests, summary.succeeded, summary.output_tokens) == (6, 6, 30)
    assert summary.ttft_ms.p50 is not None and 95 <= summary.ttft_ms.p50 <= 250
    assert view.measurements[0].target == "gateway"
    assert list_launches(lab.store) == ()
    asked = server.stats()
    assert {each["authorization"] for each in asked} == {f"Bearer {KEY}"}
    assert len([each for each in asked if each["max_tokens"] == 5]) == 7  # six measured, one to warm up


def test_the_key_stands_nowhere_on_disk(lab: Lab, start_stub) -> None:
    server = start_stub(key="another-key")
    at_gateway(lab, server.port)
    view = lab.run_until_ended(lab.queue(GATEWAY))
    assert (view.trials[0].state, view.trials[0].failure) == ("failed", "gateway-auth")
    files = [path for path in lab.run_dir.rglob("*") if path.is_file()]
    assert files and not [path for path in files if KEY.encode() in path.read_bytes()]


def test_an_unset_key_fails_the_trial_by_the_name_of_its_variable(lab: Lab, start_stub) -> None:
    server = start_stub()
    at_gateway(lab, server.port, key=None)
    view = lab.run_until_ended(lab.queue(GATEWAY), timeout_s=60)
    assert (view.row.state, view.trials[0].failure) == ("failed", "gateway-unset")
    assert view.trials[0].message is not None
    assert "TAOTOKEN_API_KEY" in word_message(view.trials[0].message)


def test_a_refused_extension_is_left_out_and_marked(lab: Lab, start_stub) -> None:
    server = start_stub(refused_fields=["ignore_eos"])
    at_gateway(lab, server.port)
    view = lab.run_until_ended(lab.queue(GATEWAY))
    assert view.row.state == "done", view.trials
    assert "ignore-eos-refused" in [mark.code for mark in view.measurements[0].marks]
    assert view.measurements[0].summary.succeeded == 4


def test_when_every_request_fails_the_trial_fails_and_its_measurement_stays(lab: Lab, start_stub) -> None:
    server = start_stub(fail_status=500)
    at_gateway(lab, server.port)
    view = lab.run_until_ended(lab.queue(GATEWAY))
    assert (view.trials[0].state, view.trials[0].failure) == ("failed", "all-requests-failed")
    assert dict(view.measurements[0].summary.failed) == {"server": 4}
    assert view.measurements[0].summary.ttft_ms.p95 is None


def attach(server: Any, variable: str) -> str:
    return f'[[arm]]\nname = "running"\ntarget = "attach"\nbase_url = "{server.root_url}"\napi_key_env = "{variable}"\n'


def test_a_running_server_is_asked_with_the_key_of_its_own_variable(lab: Lab, start_stub) -> None:
    server = start_stub(key=KEY)
    lab.set("MY_SERVER_KEY", KEY)
    lab.set("TAOTOKEN_API_KEY", "another-key")
    view = lab.run_until_ended(lab.queue(attach(server, "MY_SERVER_KEY")))
    assert view.row.state == "done", (view.trials, lab.log())
    assert {each["authorization"] for each in server.stats()} == {f"Bearer {KEY}"}
    assert not [path for path in lab.run_dir.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_an_unset_variable_of_a_running_server_fails_the_trial_by_name(lab: Lab, start_stub) -> None:
    server = start_stub(key=KEY)
    view = lab.run_until_ended(lab.queue(attach(server, "MY_SERVER_KEY")), timeout_s=60)
    assert view.trials[0].failure == "bad-config"
    assert view.trials[0].message is not None
    assert "MY_SERVER_KEY" in word_message(view.trials[0].message)


def test_no_two_requests_of_an_experiment_begin_alike(lab: Lab, start_stub) -> None:
    server = start_stub()
    arms = "".join(
        f'[[arm]]\nname = "{name}"\ntarget = "attach"\nbase_url = "{server.root_url}"\n' for name in ("one", "two")
    )
    view = lab.run_until_ended(lab.queue(arms, head='name = "test"\nrepeats = 2\n'))
    assert view.row.state == "done", (view.trials, lab.log())
    beginnings = [each["prompt"][:24] for each in server.stats() if each["max_tokens"] == 4]
    assert len(beginnings) == 4 * 5 == len(set(beginnings))


def test_an_attached_server_is_never_stopped(lab: Lab, start_stub) -> None:
    server = start_stub()
    arm = f'[[arm]]\nname = "running"\ntarget = "attach"\nbase_url = "{server.root_url}/v1"\n'
    view = lab.run_until_ended(lab.queue(arm))
    assert view.row.state == "done", (view.trials, lab.log())
    lab.close()
    assert server.running() == 0
    assert list_launches(lab.store) == ()


def test_each_trial_leaves_a_log_that_only_its_owner_can_read(lab: Lab, start_stub) -> None:
    server = start_stub()
    at_gateway(lab, server.port)
    view = lab.run_until_ended(lab.queue(GATEWAY))
    log: Path = lab.run_dir / "logs" / f"trial-{view.trials[0].id}-1.log"
    assert log.stat().st_mode & 0o777 == 0o600


def test_what_the_warm_up_found_in_the_cache_is_no_hit_of_the_measurement(lab: Lab, start_stub) -> None:
    # the first request is the probe, the next two warm up; all three come from the server's cache, none of the others
    server = start_stub(cached_requests=3)
    arm = f'[[arm]]\nname = "running"\ntarget = "attach"\nbase_url = "{server.root_url}"\n'
    view = lab.run_until_ended(lab.queue(arm, warmup=2))
    assert view.measurements[0].summary.cache_hit_ratio == 0.0
    again = start_stub(cached_requests=4)
    arm = f'[[arm]]\nname = "running"\ntarget = "attach"\nbase_url = "{again.root_url}"\n'
    view = lab.run_until_ended(lab.queue(arm, warmup=2))
    assert view.measurements[0].summary.cache_hit_ratio > 0.0

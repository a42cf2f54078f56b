"""What a probe finds out about a server, in how many requests."""

from __future__ import annotations

import pytest

from lab.load.doctor import connection_doctor
from lab.load.probe import probe_server
from tests.load.streams import DONE, STOP, content
from tests.servers.gateway_server import Manners, gateway
from tests.servers.scripted_server import ScriptedServer, page, stream

KEY = "sk-test-LEAK-0001"


def test_a_plain_server_takes_everything_in_one_request() -> None:
    with gateway(Manners(key=KEY)) as server:
        report = probe_server(server.base_url, KEY, None, use_proxy=False)
        assert len(server.posts) == 1
    assert (report.failure, report.model, report.models) == (None, "m", ("m",))
    assert (report.include_usage, report.ignore_eos, report.max_tokens_field) == (True, True, "max_tokens")
    assert (report.usage_given, report.streamed, report.checked) == (True, True, True)


def test_without_a_request_only_the_models_are_asked() -> None:
    with gateway(Manners()) as server:
        report = probe_server(server.base_url, None, "m", send_request=False, use_proxy=False)
        assert server.posts == []
    assert (report.failure, report.checked) == (None, False)


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("names", [True, False])
def test_a_refused_stream_options_is_dropped(status: int, names: bool) -> None:
    with gateway(Manners(refuses={"stream_options": status}, names_field=names)) as server:
        report = probe_server(server.base_url, None, "m", use_proxy=False)
        assert len(server.posts) == 2
    assert (report.failure, report.include_usage, report.ignore_eos) == (None, False, names)
    assert "stream-options-refused" in report.notes


def test_both_fields_refused_by_name_are_dropped_one_after_the_other() -> None:
    with gateway(Manners(refuses={"stream_options": 400, "ignore_eos": 400})) as server:
        report = probe_server(server.base_url, None, "m", use_proxy=False)
    assert (report.failure, report.include_usage, report.ignore_eos) == (None, False, False)


def test_one_request_at_most_is_kept_to() -> None:
    with gateway(Manners(refuses={"ignore_eos": 400})) as server:
        report = probe_server(server.base_url, None, "m", use_proxy=False, most_requests=1)
        assert len(server.posts) == 1
    assert (report.failure, report.include_usage, report.ignore_eos) == (None, True, False)
    assert "drop-not-tried" in report.notes


def test_a_server_that_wants_the_newer_length_field_gets_it() -> None:
    def answer(asked):
        if "max_tokens" in asked.json:
            text = b'{"error":{"message":"Unsupported parameter: use max_completion_tokens instead"}}'
            return page(text, 400)
        return stream((1, content("a") + STOP + DONE))

    with ScriptedServer(answer) as server:
        report = probe_server(server.base_url, None, "m", use_proxy=False)
    assert (report.failure, report.max_tokens_field, report.ignore_eos) == (None, "max_completion_tokens", True)


def test_a_server_that_drops_stream_options_silently_is_noticed() -> None:
    with gateway(Manners(gives_usage=False)) as server:
        report = probe_server(server.base_url, None, "m", use_proxy=False)
    assert (report.failure, report.include_usage, report.usage_given) == (None, True, False)


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/v1", "{}/v1/", "  {}/v1/chat/completions  "])
def test_every_form_of_an_address_leads_to_the_same(form: str) -> None:
    with gateway(Manners()) as server:
        root = server.base_url.removesuffix("/v1")
        for start in (root, root.removeprefix("http://")):
            report = probe_server(form.format(start), None, "m", use_proxy=False)
            assert (report.base_url, report.failure) == (server.base_url, None)
        assert {asked.path for asked in server.posts} == {"/v1/chat/completions"}


@pytest.mark.parametrize("path", ["/v1beta/openai", "/api/paas/v4"])
def test_a_prefix_of_its_own_is_used_as_it_is(path: str) -> None:
    with gateway(Manners(base_path=path)) as server:
        base_url = server.base_url.removesuffix("/v1") + path
        report = probe_server(base_url, None, "m", use_proxy=False)
    assert (report.base_url, report.failure) == (base_url, None)


def test_a_prefix_that_lacks_its_v1_is_found() -> None:
    with gateway(Manners(base_path="/proxy/v1")) as server:
        report = probe_server(server.base_url.replace("/v1", "/proxy"), None, "m", use_proxy=False)
    assert report.base_url.endswith("/proxy/v1")


def test_a_web_page_is_no_api() -> None:
    console = page(b"<!doctype html><title>Gateway console</title>", content_type="text/html")
    with ScriptedServer(lambda _: console, lambda _: console) as server:
        report = probe_server(server.base_url, None, "m", use_proxy=False)
        assert server.posts == []
    assert report.failure == "not-json"
    assert "web page" in str(report.message)
    assert "console" not in str(report.message)


def test_a_wrong_key_is_named_and_never_shown() -> None:
    with gateway(Manners(key="another")) as server:
        report = probe_server(server.base_url, KEY, "m", use_proxy=False)
        assert server.posts == []
    assert report.failure == "auth"
    assert "无效的令牌" in str(report.message)
    with gateway(Manners(key="another", lists_models=False)) as server:
        report = probe_server(server.base_url, KEY, "m", use_proxy=False)
    assert report.failure == "auth"
    assert "LEAK" not in repr(report)


def test_a_wrong_model_says_which_there_are() -> None:
    with gateway(Manners()) as server:
        report = probe_server(server.base_url, None, "qwen-x", use_proxy=False)
    assert report.failure == "model"
    assert "无可用渠道" in str(report.message)
    assert "lists: m" in str(report.message)


@pytest.mark.parametrize("name", ["m ", "m\u200b", "\ufeffm"])
def test_blanks_and_invisible_characters_are_taken_off_a_model(name: str) -> None:
    with gateway(Manners()) as server:
        report = probe_server(server.base_url, None, name, use_proxy=False)
    assert (report.failure, report.model, report.notes) == (None, "m", ("model-name-cleaned",))


def test_a_dead_address_is_refused() -> None:
    with gateway(Manners()) as server:
        base_url = server.base_url
    report = probe_server(base_url, None, "m", use_proxy=False)
    assert report.failure == "refused"


def test_a_socks_proxy_is_named_for_a_gateway_and_ignored_on_loopback() -> None:
    variables = {"ALL_PROXY": "socks5://127.0.0.1:1", "NO_PROXY": "localhost"}
    report = probe_server("https://gateway.invalid/v1", None, "m", use_proxy=True, variables=variables)
    assert report.failure == "proxy"
    assert "ALL_PROXY" in str(report.message)
    with gateway(Manners()) as server:
        assert probe_server(server.base_url, None, "m", use_proxy=True, variables=variables).failure is None


def test_a_dead_proxy_is_named_with_its_variable() -> None:
    variables = {"https_proxy": "http://127.0.0.1:9"}
    report = probe_server("https://gateway.invalid/v1", None, "m", use_proxy=True, variables=variables)
    assert report.failure == "proxy"
    assert "https_proxy" in str(report.message)


def test_the_doctor_goes_step_by_step() -> None:
    with gateway(Manners(key=KEY)) as server:
        found = connection_doctor(server.base_url, KEY, None, key_variable="SOME_KEY", variables={})
    assert found.ok
    assert [step.name for step in found.steps] == [
        "address", "key", "route", "connection", "models", "request", "stream", "usage"
    ]  # fmt: skip


def test_the_doctor_stops_where_it_hurts() -> None:
    with gateway(Manners(key="another")) as server:
        found = connection_doctor(server.base_url, KEY, None, key_variable="SOME_KEY", variables={})
    assert not found.ok
    assert (found.steps[-1].name, found.steps[-1].ok) == ("models", False)
    assert found.steps[-1].params["failure"] == "auth"
    assert not connection_doctor("ftp://x", None, None).ok


def test_the_doctor_asks_for_a_name_where_none_is_listed() -> None:
    with gateway(Manners(lists_models=False)) as server:
        found = connection_doctor(server.base_url, None, None, use_proxy=False)
        assert server.posts == []
    assert [(step.name, step.ok, step.code) for step in found.steps[-2:]] == [
        ("models", None, "probe-models-not-listed"),
        ("request", False, "probe-model-unnamed"),
    ]

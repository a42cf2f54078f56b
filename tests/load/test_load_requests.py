"""What goes out: unique prompts, fields, keys, routes; and what ends a run early."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from lab.load.supervisor import run_load
from lab.records.workload import LoadJob, Workload
from tests.load.proxies import TunnelProxy
from tests.load.streams import DONE, STOP, content, usage
from tests.servers.gateway_server import Manners, error, gateway
from tests.servers.scripted_server import Answer, Asked, ScriptedServer, stream

KEY = "sk-test-LEAK-0001"
QUICK = stream((5, content("a")), (10, content("b") + STOP + usage(5, 2) + DONE))


def caching() -> ScriptedServer:
    """Answers at once where the first 200 characters of a prompt were seen before, else after 200 ms."""
    seen: set[str] = set()

    def answer(asked: Asked) -> Answer:
        start = asked.json["messages"][0]["content"][:200]
        first_ms = 5.0 if start in seen else 200.0
        seen.add(start)
        return stream((first_ms, content("a") + STOP + usage(5, 1) + DONE))

    return ScriptedServer(answer)


def test_a_prefix_cache_cannot_answer_a_second_run(measure) -> None:
    with caching() as server:
        for salt in ("arm A", "arm B"):
            result = measure(
                server.base_url, kind="burst", requests=20, warmup_requests=5, job={"salt": salt}, output_tokens=1
            )
            assert min(record.ttft_ms for record in result.records) > 190


def test_a_shared_prefix_is_answered_by_the_cache(measure) -> None:
    with caching() as server:
        result = measure(server.base_url, requests=10, prefix="shared", output_tokens=1)
        assert sum(record.ttft_ms < 150 for record in result.records) == 5  # five prompts, each seen once before


def test_the_request_carries_what_was_asked_for(measure) -> None:
    with ScriptedServer(lambda _: QUICK) as server:
        measure(server.base_url, requests=1, output_tokens=7, job={"request_fields": {"temperature": 0.5}})
        measure(
            server.base_url, requests=1, ignore_eos=False,
            job={"include_usage": False, "max_tokens_field": "max_completion_tokens"},
        )  # fmt: skip
        first, second = (asked.json for asked in server.posts)
        headers = server.posts[0].headers
    assert first["stream"] is True
    assert first["stream_options"] == {"include_usage": True}
    assert (first["max_tokens"], first["ignore_eos"], first["temperature"]) == (7, True, 0.5)
    assert "stream_options" not in second
    assert "ignore_eos" not in second
    assert (second["max_completion_tokens"], second.get("max_tokens")) == (10, None)
    assert headers["host"] == server.base_url.removeprefix("http://").removesuffix("/v1")
    assert "authorization" not in headers


def test_connections_are_reused(measure) -> None:
    with ScriptedServer(lambda _: QUICK) as server:
        measure(server.base_url, concurrency=(3,), requests=30)
        assert server.most_sockets == 3


def test_a_key_comes_from_the_environment_and_appears_nowhere_else(
    measure, separate_lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with gateway(Manners(key=KEY)) as server:
        result = measure(server.base_url, requests=2, job={"api_key_env": "SOME_KEY"})
        assert [record.ok for record in result.records] == [True, True]
        assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"
    with gateway(Manners(key="another")) as server:
        result = measure(server.base_url, requests=2, job={"api_key_env": "SOME_KEY"})
    assert result.records[0].failure == "auth"
    assert "LEAK" not in repr(result)
    assert "无效的令牌: ***" in str(result.records[0].message)


@pytest.mark.parametrize(
    ("status", "message", "note"),
    [
        (401, "无效的令牌", "aborted-auth"),
        (403, "用户额度不足", "aborted-quota"),
        (503, "当前分组 default 下对于模型 qwen-x 无可用渠道", "aborted-model"),
    ],
)
def test_a_refusal_that_awaits_every_request_ends_the_run(measure, status: int, message: str, note: str) -> None:
    with ScriptedServer(lambda _: error(status, message)) as server:
        result = measure(server.base_url, concurrency=(1,), requests=50)
        assert len(server.posts) == 1
    assert result.notes == (note,)
    assert result.records[0].message is not None
    assert message in result.records[0].message


def test_a_refusal_in_the_warm_up_keeps_the_run_from_starting(measure) -> None:
    with ScriptedServer(lambda _: error(401, "no")) as server:
        result = measure(server.base_url, concurrency=(1,), requests=50, warmup_requests=1)
        assert len(server.posts) == 1
    assert [record.warmup for record in result.records] == [True]


def test_other_failures_are_counted_and_never_retried(measure) -> None:
    with ScriptedServer(lambda asked: error(500, "boom") if asked.number % 2 else QUICK) as server:
        result = measure(server.base_url, concurrency=(2,), requests=10)
        assert len(server.posts) == 10
    assert [record.failure for record in result.records].count("server") == 5


def test_a_dead_port_is_refused_for_each_request(measure) -> None:
    with ScriptedServer(lambda _: QUICK) as server:
        base_url = server.base_url
    result = measure(base_url, concurrency=(2,), requests=4)
    assert [record.failure for record in result.records] == ["refused"] * 4
    assert "connection refused" in str(result.records[0].message)


def test_a_name_that_does_not_exist_is_dns(measure) -> None:
    result = measure("http://does-not-exist.invalid/v1", requests=1)
    assert result.records[0].failure == "dns"


def test_proxy_variables_never_touch_loopback(measure, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "localhost")
    with ScriptedServer(lambda _: QUICK) as server:
        result = measure(server.base_url, requests=2, job={"use_proxy": True})
    assert all(record.ok for record in result.records)


def test_a_gateway_s_dead_proxy_is_named_with_its_variable(measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    result = measure("https://gateway.invalid/v1", requests=1, job={"use_proxy": True})
    record = result.records[0]
    assert record.failure == "proxy"
    assert "HTTPS_PROXY" in str(record.message)
    assert "127.0.0.1:9" in str(record.message)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("openssl is needed to make a certificate for the test")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gateway.test",
         "-addext", "subjectAltName=DNS:gateway.test,IP:127.0.0.1",
         "-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    return tmp_path / "cert.pem"


def secure(certificate: Path) -> ScriptedServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return ScriptedServer(lambda _: QUICK, tls=context)


def load(base_url: str, run_dir: Path, variables: dict[str, str], **job: object):
    workload = Workload(kind="closed", concurrency=(2,), requests=4, warmup_requests=0, output_tokens=2)
    asked = LoadJob(base_url=base_url, model="m", workload=workload, **job)
    return run_load(asked, run_dir=run_dir, variables={**os.environ, **variables})


def test_tls_works_with_a_certificate_that_is_trusted(certificate: Path, separate_lab: Path) -> None:
    with secure(certificate) as server:
        result = load(server.base_url, separate_lab, {"SSL_CERT_FILE": str(certificate)})
        assert [record.failure for record in result.records] == [None] * 4
        assert server.most_sockets == 2
        refused = load(server.base_url, separate_lab, {})
    assert {record.failure for record in refused.records} == {"tls"}
    assert "certificate" in str(refused.records[0].message)


def test_a_gateway_is_reached_through_a_tunnel(certificate: Path, separate_lab: Path) -> None:
    with secure(certificate) as server, TunnelProxy(server.port) as proxy:
        variables = {"SSL_CERT_FILE": str(certificate), "HTTPS_PROXY": f"http://me:secret@127.0.0.1:{proxy.port}"}
        result = load("https://gateway.test/v1", separate_lab, variables, use_proxy=True)
        assert [record.failure for record in result.records] == [None] * 4
        assert proxy.asked[0].startswith("CONNECT gateway.test:443 HTTP/1.1")
        assert "Proxy-Authorization: Basic bWU6c2VjcmV0" in proxy.asked[0]
        proxy.refuse_with = "403 Forbidden"
        refused = load("https://gateway.test/v1", separate_lab, variables, use_proxy=True)
    assert {record.failure for record in refused.records} == {"proxy"}
    assert "403" in str(refused.records[0].message)

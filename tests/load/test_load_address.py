"""Addresses, routes and the head of a request."""

from __future__ import annotations

import pytest

from lab.findings import LabError
from lab.load.address import DIRECT, find_route, read_address
from lab.load.body import RequestWriter
from lab.records.workload import LoadJob, Workload

PROXY = {"HTTPS_PROXY": "http://me:se%40cret@proxy.test:3128", "http_proxy": "plain.test:80"}
JOB = LoadJob(base_url="http://gw.test/v1", model="m", workload=Workload())


def route(base_url: str, **variables: str):
    return find_route(read_address(base_url), {**PROXY, **variables}, use_proxy=True)


@pytest.mark.parametrize(
    ("base_url", "host", "port", "authority"),
    [
        ("https://gw.test/v1", "gw.test", 443, "gw.test"),
        ("http://gw.test:8000/v1/", "gw.test", 8000, "gw.test:8000"),
        ("http://[::1]:8000/v1", "::1", 8000, "[::1]:8000"),
        ("http://bücher.test/v1", "xn--bcher-kva.test", 80, "xn--bcher-kva.test"),
    ],
)
def test_an_address_is_taken_apart(base_url: str, host: str, port: int, authority: str) -> None:
    address = read_address(base_url)
    assert (address.host, address.port, address.authority, address.path) == (host, port, authority, "/v1")


@pytest.mark.parametrize("text", ["ftp://x", "http://", "http://x:99999/", "http://[::1/v1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="address-unreadable"):
        read_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.8.8"])
def test_loopback_is_direct_whatever_the_variables_say(host: str) -> None:
    assert route(f"http://{host}:8000/v1") == DIRECT


def test_the_scheme_chooses_the_variable_and_the_route_names_it() -> None:
    secure, plain = route("https://gw.test/v1"), route("http://gw.test/v1")
    assert secure.proxy is not None and plain.proxy is not None
    assert (secure.variable, secure.proxy.authority) == ("HTTPS_PROXY", "proxy.test:3128")
    assert secure.authorization == "Basic bWU6c2VAY3JldA=="
    assert (plain.variable, plain.proxy.authority) == ("http_proxy", "plain.test")


@pytest.mark.parametrize("no_proxy", ["gw.test", ".test", "a,gw.test:443", "*"])
def test_no_proxy_takes_a_host_out(no_proxy: str) -> None:
    assert route("https://gw.test/v1", NO_PROXY=no_proxy) == DIRECT


def test_without_leave_no_proxy_is_used() -> None:
    assert find_route(read_address("https://gw.test/v1"), PROXY, use_proxy=False) == DIRECT


def test_a_socks_proxy_is_refused_by_name() -> None:
    with pytest.raises(LabError) as refused:
        find_route(read_address("https://gw.test/v1"), {"ALL_PROXY": "socks5://x:1"}, use_proxy=True)
    assert refused.value.findings[0].params["variable"] == "ALL_PROXY"


def head(base_url: str, **variables: str) -> list[str]:
    address = read_address(base_url)
    found = find_route(address, variables, use_proxy=True)
    raw = RequestWriter(JOB, address, found, "key").write([{"role": "user", "content": "hi"}])
    text, _, body = raw.decode().partition("\r\n\r\n")
    lines = text.split("\r\n")
    assert f"Content-Length: {len(body.encode())}" in lines
    return lines


def test_a_direct_request_names_the_path_and_a_proxied_one_the_whole_address() -> None:
    direct = head("http://gw.test:81/v1")
    assert direct[0] == "POST /v1/chat/completions HTTP/1.1"
    assert "Host: gw.test:81" in direct
    assert "Authorization: Bearer key" in direct
    proxied = head("http://gw.test:81/v1", HTTP_PROXY="http://u:p@proxy.test:1")
    assert proxied[0] == "POST http://gw.test:81/v1/chat/completions HTTP/1.1"
    assert "Proxy-Authorization: Basic dTpw" in proxied


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "ключ"])
def test_a_key_that_cannot_stand_in_a_header_is_refused(key: str) -> None:
    address = read_address("http://gw.test/v1")
    with pytest.raises(LabError, match="key-unusable"):
        RequestWriter(JOB, address, DIRECT, key)

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.configs.gateway import expand, is_loopback, resolve_base_url
from lab.findings import LabError


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("http://127.0.0.1:7001", "http://127.0.0.1:7001/v1"),
        ("http://127.0.0.1:7001/", "http://127.0.0.1:7001/v1"),
        ("http://127.0.0.1:7001/v1", "http://127.0.0.1:7001/v1"),
        ("http://127.0.0.1:7001/v1/", "http://127.0.0.1:7001/v1"),
        (" http://127.0.0.1:7001/v1/chat/completions ", "http://127.0.0.1:7001/v1"),
        ("127.0.0.1:7001", "http://127.0.0.1:7001/v1"),
        ("http://h/v1/v1/chat/completions/chat/completions", "http://h/v1"),
        ("http://h/v1beta/openai/", "http://h/v1beta/openai"),
        ("http://h/api/paas/v4", "http://h/api/paas/v4"),
        ("https://taotoken.net/api", "https://taotoken.net/api/v1"),
        ("https://taotoken.net/api?utm_source=blog#x", "https://taotoken.net/api/v1"),
        ("taotoken.net/api", "https://taotoken.net/api/v1"),
        ("\u200bhttps://taotoken.net/api\u00a0", "https://taotoken.net/api/v1"),
        ("http://[::1]:7001", "http://[::1]:7001/v1"),
    ],
)
def test_base_url_in_all_spellings(given, resolved):
    assert resolve_base_url(given) == resolved


@pytest.mark.parametrize("given", ["", "ftp://h/v1", "https://name:secret-word@h/v1", "http://", "http://h:99999999"])
def test_no_address_is_refused_without_repeating_a_password(given):
    with pytest.raises(LabError) as caught:
        resolve_base_url(given)
    assert caught.value.findings[0].code == "bad-base-url"
    assert "secret-word" not in str(caught.value.findings)


def test_environment_wins_over_the_files(article_1, article_3):
    for pair in (article_1, article_3):
        plain = pair.gateway({})
        assert (plain.base_url, plain.model) == ("https://taotoken.net/api/v1", "gateway-model")
        assert (plain.api_key_env, plain.has_key) == ("TAOTOKEN_API_KEY", False)
        variables = {"TAOTOKEN_BASE_URL": "http://h/v1", "TAOTOKEN_MODEL": " m\u200b ", "TAOTOKEN_API_KEY": "made-up"}
        set_up = pair.gateway(variables)
        assert (set_up.base_url, set_up.model, set_up.has_key) == ("http://h/v1", "m", True)
        assert "made-up" not in repr(set_up)


def test_key_variable_is_the_one_the_placeholder_names(article_1):
    other = replace(article_1, config_text=article_1.config_text.replace("${TAOTOKEN_API_KEY}", "${OTHER_KEY}"))
    assert other.gateway({"OTHER_KEY": "x"}).api_key_env == "OTHER_KEY"
    assert other.gateway({"OTHER_KEY": "x"}).has_key


def test_unset_variable_in_the_address_is_named(article_1):
    text = article_1.config_text.replace("https://taotoken.net/api", "https://${HOST}/v1")
    pair = replace(article_1, config_text=text)
    assert pair.gateway({"HOST": "h.example"}).base_url == "https://h.example/v1"
    missing = pair.gateway({})
    assert missing.base_url is None and missing.problem.params == {"name": "HOST"}


def test_dollar_signs_that_are_no_placeholder_stay():
    assert expand("$5 and $$ and ${A}", {"A": "b"}) == "$5 and $$ and b"


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True),
    ("::1", True), ("[::1]", True), ("192.168.1.1", False), ("::", False), ("box", False)])  # fmt: skip
def test_loopback(host, expected):
    assert is_loopback(host) is expected

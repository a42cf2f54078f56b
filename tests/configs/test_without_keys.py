"""A key typed into a file's text never stays there."""

from __future__ import annotations

import pytest

from lab.configs.without_keys import without_keys

KEY = "sk-" + "ab12" * 6
CASES = {
    "a value in TOML": (
        f'[server]\napi_key = "{KEY}"  # mine\n',
        '[server]\napi_key = "${TAOTOKEN_API_KEY}"  # mine\n',
    ),
    "not key-like, but under a key's name": (
        'api_key = "hunter2"\ntimeout = 3\n',
        'api_key = "${TAOTOKEN_API_KEY}"\ntimeout = 3\n',
    ),
    "in place of a variable's name": (f'api_key_env = "{KEY}"\n', 'api_key_env = "TAOTOKEN_API_KEY"\n'),
    "a token of another service": ('hf_token = "abcdef"\n', 'hf_token = "${HF_TOKEN}"\n'),
    "a comment": (f"# once {KEY}\nx = 1\n", "# once ${TAOTOKEN_API_KEY}\nx = 1\n"),
    "a list": (f'keys = ["{KEY}"]\n', 'keys = ["${TAOTOKEN_API_KEY}"]\n'),
    "a password in an address": (
        'url = "https://me:hunter2@gw.example:8443/v1?key=abc"\n',
        'url = "https://me:${TAOTOKEN_API_KEY}@gw.example:8443/v1?key=${TAOTOKEN_API_KEY}"\n',
    ),
    "tables in a list": ('[[server]]\napi_key = "hunter2"\n', '[[server]]\napi_key = "${TAOTOKEN_API_KEY}"\n'),
    "a bearer": (f'header = "Bearer {KEY}"\n', 'header = "Bearer ${TAOTOKEN_API_KEY}"\n'),
    "a text that cannot be parsed": (
        f'[server\napi_key = "hunter2"\nother: {KEY}\n',
        '[server\napi_key = "${TAOTOKEN_API_KEY}"\nother: ${TAOTOKEN_API_KEY}\n',
    ),
    "a placeholder": ('api_key = "${MY_KEY}"\n', 'api_key = "${MY_KEY}"\n'),
    "a name": ('api_key_env = "MY_KEY"\n', 'api_key_env = "MY_KEY"\n'),
    "nothing": ("max_tokens = 512\r\n# api_key = \"see .env\"\r\n", "max_tokens = 512\r\n# api_key = \"see .env\"\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_placeholder_stands_where_a_key_was(case: str) -> None:
    text, expected = CASES[case]
    assert without_keys(text, "config.toml") == expected
    assert without_keys(expected, "config.toml") == expected


def test_json_keeps_its_form() -> None:
    text = '{"api_key" : "hunter2",\n\t"max_tokens": 5.0}'
    assert without_keys(text, "settings.json") == '{"api_key" : "${TAOTOKEN_API_KEY}",\n\t"max_tokens": 5.0}'


def test_the_variable_may_have_another_name() -> None:
    assert without_keys('api_key = "hunter2"', "config.toml", "MY_KEY") == 'api_key = "${MY_KEY}"'

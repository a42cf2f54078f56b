"""Which of the closed list of failure classes an error is, and what it says in one readable line."""

from __future__ import annotations

import re
import socket
import ssl
from typing import Any

from lab.load.chunks import error_text, parse
from lab.records.states import RequestFailure

MESSAGE_LIMIT = 300
FATAL: frozenset[RequestFailure] = frozenset({"auth", "quota", "model"})  # the same answer awaits every other request
WEB_PAGE = "the address serves a web page, not the API; did you mean …/v1?"

_TOO_LONG = re.compile(
    r"context[ _-]?length|maximum context|max_model_len|too long|longer than|too many tokens|reduce the length"
    r"|上下文长度|超出.{0,8}长度|超过.{0,12}(长度|token)",
    re.I,
)
_QUOTA = re.compile(
    r"quota|insufficient[ _](balance|credit|fund)|billing|credit balance|out of credits?"
    r"|额度|余额|欠费|充值",
    re.I,
)
_MODEL = re.compile(
    r"no available channel|无可用渠道|model[_ ]not[_ ]found|unknown model|unsupported model|invalid model"
    r"|模型.{0,40}不存在|不存在.{0,10}模型|不支持.{0,10}模型"
    r"|\bmodel\b.{0,120}?(does not exist|not exist|not found|not available|is not supported|not allowed|no access)"
    r"|no access to.{0,10}model",
    re.I | re.S,
)
_RATE = re.compile(r"rate.?limit|too many requests|per minute|请求过于频繁|限流", re.I)
_WORN_OUT = re.compile(
    r"insufficient[ _](quota|balance|credit|fund)|额度不足|余额|欠费|exceeded your current quota", re.I
)


def classify_answer(status: int, body: bytes) -> RequestFailure:
    """The class of an HTTP answer that is not 200."""
    text = body[:4000].decode("utf-8", "replace")
    text += " " + body_text(body)
    if status == 401:
        return "auth"
    if status == 402:
        return "quota"
    if status == 407:
        return "proxy"
    if status == 429:
        return "quota" if _WORN_OUT.search(text) else "rate"
    if status == 413 or (400 <= status < 500 and status not in (403, 404) and _TOO_LONG.search(text)):
        return "too-long"
    if status == 403:
        return _first(text, (_QUOTA, "quota"), (_MODEL, "model"), (_RATE, "rate")) or "auth"
    if status in (404, 405, 410) or 300 <= status < 400:
        return "model" if _MODEL.search(text) else "not-found"
    if 400 <= status < 500:
        return _first(text, (_MODEL, "model"), (_WORN_OUT, "quota")) or "bad-request"
    return _first(text, (_MODEL, "model"), (_WORN_OUT, "quota")) or "server"


def _first(text: str, *rules: tuple[re.Pattern[str], RequestFailure]) -> RequestFailure | None:
    return next((found for pattern, found in rules if pattern.search(text)), None)


def classify_connecting(reason: BaseException) -> RequestFailure:
    """The class of an error met before a connection stood."""
    if isinstance(reason, ssl.SSLError | ssl.CertificateError):
        return "tls"
    if isinstance(reason, socket.gaierror):
        return "dns"
    if isinstance(reason, TimeoutError):
        return "timeout"
    return "refused"


def describe_answer(status: int, body: bytes, location: str | None = None) -> str:
    """One line for an HTTP answer that is not 200; a web page is named, never repeated."""
    if location is not None:
        return f"HTTP {status}: the address redirects to {location}"
    if looks_like_html(body):
        return f"HTTP {status}: {WEB_PAGE}" if status < 500 else f"HTTP {status}: a web page instead of the API's error"
    said = body_text(body)
    return f"HTTP {status}: {said}" if said else f"HTTP {status} with an empty body"


def body_text(body: bytes) -> str:
    """What an error body says, readable: the message of a JSON error, else the text itself."""
    if not body.strip():
        return ""
    try:
        return error_text(_unwrapped(parse(body)))
    except ValueError:
        return body[:2000].decode("utf-8", "replace")


def _unwrapped(value: Any) -> Any:
    return value["error"] if isinstance(value, dict) and value.get("error") else value


def looks_like_html(body: bytes) -> bool:
    start = body[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<title"))


def one_line(text: str, secret: str | None = None) -> str:
    """Short, printable, without line breaks and without the key."""
    if secret:
        text = text.replace(secret, "***")
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"

"""What one JSON object of an answer says: generated text, usage, finish reason, error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Usage:
    """The server's own counts; None where a field was absent or null."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None

    def updated(self, newer: Usage) -> Usage:
        """The last value that is not null wins, field by field."""
        return Usage(
            self.prompt_tokens if newer.prompt_tokens is None else newer.prompt_tokens,
            self.completion_tokens if newer.completion_tokens is None else newer.completion_tokens,
            self.cached_tokens if newer.cached_tokens is None else newer.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """`generated` is true when the object carries output of any channel; only such a chunk moves a token clock."""

    generated: bool = False
    answer: str = ""
    aside: str = ""  # reasoning and the text of tool calls: generated, but not the answer
    finish_reason: str | None = None
    usage: Usage | None = None
    error: str | None = None
    queue_ms: float | None = None
    prefill_ms: float | None = None


NOTHING = Chunk()


def is_done(data: bytes) -> bool:
    return data.strip() == DONE


def parse(data: bytes) -> Any:
    """The JSON value of an event; bad bytes cost one character each. Raises ValueError when it is no JSON."""
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data.decode("utf-8", "replace"), strict=False)


def read_chunk(value: Any, event_name: bytes = b"") -> Chunk:
    """Read a chunk of a stream or a whole answer; anything that is not one is `NOTHING`."""
    if not isinstance(value, dict):
        return NOTHING
    error = _error(value, event_name)
    if error is not None:
        return Chunk(error=error)
    choices = value.get("choices")
    parts = [_read_choice(choice) for choice in choices if isinstance(choice, dict)] if _is_list(choices) else []
    metrics = value.get("metrics")
    usage = _usage(value, choices)
    if not parts and usage is None and not metrics:
        return NOTHING
    return Chunk(
        generated=any(part.generated for part in parts),
        answer="".join(part.answer for part in parts),
        aside="".join(part.aside for part in parts),
        finish_reason=next((part.finish_reason for part in parts if part.finish_reason), None),
        usage=usage,
        queue_ms=_number(metrics, "queue_time_ms"),
        prefill_ms=_number(metrics, "time_to_first_token_ms"),
    )


def _read_choice(choice: dict[str, Any]) -> Chunk:
    source = choice.get("delta")
    if not isinstance(source, dict):
        source = choice.get("message")
    if not isinstance(source, dict):
        source = {"content": choice.get("text")}
    answer = _text(source.get("content"))
    reasoning, other = _text(source.get("reasoning_content")), _text(source.get("reasoning"))
    aside = reasoning if reasoning == other else reasoning + other  # some servers send one text under both names
    calls = source.get("tool_calls")
    called = calls if _is_list(calls) else []
    legacy = source.get("function_call")
    aside += "".join(_call_text(call) for call in called)
    if isinstance(legacy, dict):
        aside += _function_text(legacy)
    finish = choice.get("finish_reason")
    return Chunk(
        generated=bool(answer or aside or called or legacy),
        answer=answer,
        aside=aside,
        finish_reason=finish if isinstance(finish, str) and finish else None,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not _is_list(content):
        return ""
    return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))


def _call_text(call: Any) -> str:
    return _function_text(call.get("function")) if isinstance(call, dict) else ""


def _function_text(function: Any) -> str:
    if not isinstance(function, dict):
        return ""
    return _text(function.get("name")) + _text(function.get("arguments"))


def _error(value: dict[str, Any], event_name: bytes) -> str | None:
    error = value.get("error")
    if error:
        return error_text(error)
    if value.get("object") == "error" or event_name == b"error":
        return error_text(value)
    return None


def error_text(error: Any) -> str:
    """The readable part of an error of any shape that servers send."""
    if isinstance(error, str):
        return error
    if _is_list(error):
        return "; ".join(error_text(part) for part in error)
    if not isinstance(error, dict):
        return json.dumps(error, ensure_ascii=False)
    for name in ("message", "error", "detail", "msg", "error_msg"):
        if error.get(name):
            text = error_text(error[name])
            place = error.get("loc")
            return f"{'.'.join(map(str, place))}: {text}" if _is_list(place) else text
    return json.dumps(error, ensure_ascii=False)


def _usage(value: dict[str, Any], choices: Any) -> Usage | None:
    found = value.get("usage")
    if isinstance(found, dict):
        return _read_usage(found)
    extra = value.get("x_groq")
    holders = [extra, *(choices if _is_list(choices) else ())]
    for holder in holders:
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            return _read_usage(holder["usage"])
    return None


def _read_usage(found: dict[str, Any]) -> Usage:
    details = found.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(_count(found.get("prompt_tokens")), _count(found.get("completion_tokens")), _count(cached))


def _count(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(holder: Any, name: str) -> float | None:
    value = holder.get(name) if isinstance(holder, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)

"""An OpenAI-compatible gateway that wants a key, with the manners of real ones: refusals, prefixes, lost fields."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.servers.scripted_server import Answer, Asked, ScriptedServer, models, page


@dataclass
class Manners:
    """`refuses` maps a request field to the status it is refused with; `names_field` says whether the message tells."""

    key: str | None = None
    base_path: str = "/v1"
    model: str = "m"
    tokens: int = 4
    first_ms: float = 20.0
    gap_ms: float = 5.0
    refuses: dict[str, int] = field(default_factory=dict)
    names_field: bool = True
    gives_usage: bool = True
    lists_models: bool = True


def error(status: int, message: str, kind: str = "one_api_error") -> Answer:
    return page(json.dumps({"error": {"message": message, "type": kind}}).encode(), status)


def gateway(manners: Manners) -> ScriptedServer:
    def allowed(asked: Asked) -> bool:
        return manners.key is None or asked.headers.get("authorization") == f"Bearer {manners.key}"

    def get(asked: Asked) -> Answer:
        if asked.path != f"{manners.base_path}/models" or not manners.lists_models:
            return page(b'{"detail":"Not Found"}', 404)
        return models(manners.model) if allowed(asked) else error(401, "无效的令牌")

    def post(asked: Asked) -> Answer:
        if asked.path != f"{manners.base_path}/chat/completions":
            return page(b'{"detail":"Not Found"}', 404)
        if not allowed(asked):
            return error(401, f"无效的令牌: {asked.headers.get('authorization', '').removeprefix('Bearer ')}")
        body = asked.json
        if body["model"] != manners.model:
            return error(503, f"当前分组 default 下对于模型 {body['model']} 无可用渠道")
        for name, status in manners.refuses.items():
            if name in body:
                return error(
                    status, f"Unrecognized request argument supplied: {name}" if manners.names_field else "bad"
                )
        return _stream(manners, body)

    return ScriptedServer(post, get)


def _stream(manners: Manners, body: dict[str, Any]) -> Answer:
    count = min(manners.tokens, body.get("max_tokens") or body.get("max_completion_tokens") or manners.tokens)
    steps = [(manners.first_ms + manners.gap_ms * n, _chunk({"content": f" w{n}"})) for n in range(count)]
    last = steps[-1][0]
    steps.append((last, _chunk({}, "length")))
    if manners.gives_usage and body.get("stream_options", {}).get("include_usage"):
        steps.append((last, _event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": count}})))
    return Answer((*steps, (last, b"data: [DONE]\n\n")))


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _event({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"

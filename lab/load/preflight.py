"""One request of full size, closed as soon as the server takes or refuses it; never part of a measurement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from lab.load.address import COMPLETIONS, find_route, read_address
from lab.load.body import request_body
from lab.load.failures import classify_answer, describe_answer, one_line
from lab.load.probe import CONNECT_TIMEOUT_S, classify_transport, httpx_proxy
from lab.load.prompts import build_prompts
from lab.load.shape import read_shape
from lab.load.tokenizer import read_tokenizer
from lab.load.words import MIXED_PROMPTS
from lab.records.states import RequestFailure
from lab.records.workload import LoadJob

STATUS_TIMEOUT_S = 60.0
_LIMIT = re.compile(
    r"(?:(?:context|model|sequence)[ _-]length|max_model_len|context window|limit(?:ed)?|at most|上下文长度|上限)"
    r"\D{0,24}?(\d{2,9})",
    re.I,
)


@dataclass(frozen=True, slots=True)
class FullSizeAnswer:
    """`failure` None: the server took it. `limit_tokens` is what its refusal names, None where it names none."""

    failure: RequestFailure | None = None
    message: str | None = None
    limit_tokens: int | None = None


def try_full_size(job: LoadJob, variables: Mapping[str, str]) -> FullSizeAnswer:
    """Send the longest prompt of the job with its whole output length and hang up at the status line.

    Raises LabError where the job cannot be run at all.
    """
    shape = read_shape(job)
    longest = (max(shape.lengths),) if shape.lengths else ()
    messages = build_prompts(job, read_tokenizer(job.tokenizer_dir), longest).make("preflight", _longest_mixed())
    address = read_address(job.base_url)
    route = find_route(address, variables, use_proxy=job.use_proxy)
    key = variables.get(job.api_key_env, "").strip() if job.api_key_env else ""
    url = job.base_url.rstrip("/") + COMPLETIONS
    timeout = httpx.Timeout(STATUS_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body = request_body(job, messages, 1 if shape.kind == "interference" else None)
    try:
        with (
            httpx.Client(proxy=httpx_proxy(route), trust_env=False, timeout=timeout) as client,
            client.stream("POST", url, headers=headers, json=body) as response,
        ):
            if response.is_success:
                return FullSizeAnswer()
            said = response.read()
            failure = classify_answer(response.status_code, said)
            message = one_line(describe_answer(response.status_code, said), key)
            return FullSizeAnswer(failure, message, limit_in(message))
    except httpx.HTTPError as reason:
        failure, message = classify_transport(reason, route, url)
        return FullSizeAnswer(failure, one_line(message, key))


def limit_in(message: str) -> int | None:
    """The number of tokens that a refusal names as its limit; None where it names none."""
    found = _LIMIT.search(message)
    return int(found.group(1)) if found else None


def longest_mixed_characters() -> int:
    """More than the tokens of any of the ready prompts: no token of their plain text is shorter than a character."""
    return max(map(len, MIXED_PROMPTS))


def _longest_mixed() -> int:
    lengths: Sequence[int] = [len(text) for text in MIXED_PROMPTS]
    return lengths.index(max(lengths))

"""Whether a call succeeded, and if not, which failure of the closed list it was."""

from __future__ import annotations

from lab.load.answer import Answer
from lab.load.call import Call, End
from lab.load.failures import WEB_PAGE, classify_answer, describe_answer
from lab.load.sse import BOM
from lab.records.states import RequestFailure

Verdict = tuple[RequestFailure | None, str | None]
SUCCESS: Verdict = (None, None)
_SHOWN_BYTES = 80
# ended by the client: an answer that had already said its end counts all the same
_CUT_SHORT: dict[End, tuple[RequestFailure, str]] = {
    "timeout": ("timeout", "no whole answer within the time limit"),
    "cancelled": ("cancelled", "stopped before the answer was whole"),
}


def judge(call: Call, answer: Answer, *, json_ok: bool, marks: list[str]) -> Verdict:
    """The failure class with one line, or `SUCCESS`; reservations go to `marks`."""
    if call.failure is not None:
        return call.failure, call.error
    if call.end in _CUT_SHORT and not answer.is_over:
        failure, said = _CUT_SHORT[call.end]
        return failure, call.error or said
    if is_incomplete(call, answer):
        return SUCCESS
    if call.status is None:
        return "connection-lost", call.error or "the connection ended before an answer began"
    if not 200 <= call.status < 300:
        body = answer.body
        return classify_answer(call.status, body), describe_answer(call.status, body, call.location)
    if answer.error is not None:
        return "stream-error", answer.error
    if answer.kind == "sse":
        return _judge_stream(call, answer, marks)
    return _judge_body(call, answer, json_ok)


def is_incomplete(call: Call, answer: Answer) -> bool:
    """Under way when the measurement's duration was over."""
    return call.end == "window" and not answer.is_over


def _judge_stream(call: Call, answer: Answer, marks: list[str]) -> Verdict:
    if answer.finish_reason == "error":
        return "stream-error", "the server ended the answer with finish_reason error"
    if answer.bad_events:
        marks.append("bad-chunk")
    if not answer.is_over:
        return _judge_unfinished(call, answer)
    if answer.events and answer.events == answer.bad_events:
        return "not-json", "the stream's events are no JSON"
    if not answer.times:
        return "empty-answer", "the answer holds no generated text"
    if answer.finish_reason is None:
        marks.append("no-finish-reason")
    if call.end == "lost":
        marks.append("cut-after-finish")
    return SUCCESS


def _judge_unfinished(call: Call, answer: Answer) -> Verdict:
    """The stream has said neither a finish reason nor [DONE]."""
    if call.end == "lost":
        return "connection-lost", call.error or "the connection was lost in the middle of the answer"
    if answer.events and answer.events == answer.bad_events:
        return "not-json", "the stream's events are no JSON"
    if not answer.events and not _looks_like_events(answer.head):
        return "not-json", f"the answer is neither an event stream nor JSON; it begins: {_start(answer.head)}"
    if answer.events:
        return "truncated", "the stream ended without a finish reason and without [DONE]"
    return "empty-answer", "the answer holds no generated text"


def _judge_body(call: Call, answer: Answer, json_ok: bool) -> Verdict:
    if answer.kind == "html":
        return "not-json", WEB_PAGE
    if call.end == "lost":
        return "connection-lost", call.error or "the connection was lost in the middle of the answer"
    if answer.kind == "unknown":  # nothing, or nothing but blanks
        return "empty-answer", f"status {call.status} with an empty body"
    if answer.kind != "json" or not json_ok:
        return "not-json", f"the answer is no whole JSON; it begins: {_start(answer.head)}"
    return SUCCESS if answer.times else ("empty-answer", "the answer holds no generated text")


def _looks_like_events(head: bytes) -> bool:
    names = {line.split(b":", 1)[0] for line in head.removeprefix(BOM).splitlines() if line}
    return not names or bool(names & {b"", b"data", b"event", b"id", b"retry"})


def _start(head: bytes) -> str:
    return head[:_SHOWN_BYTES].decode("utf-8", "replace")

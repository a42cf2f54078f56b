"""One call's bytes and times to one record: the cases of streams and gateways, with constructed times."""

from __future__ import annotations

import gzip
import json

import pytest

from lab.load.call import Call
from lab.load.decode import decode
from tests.load.streams import DONE, LENGTH, ROLE, STOP, content, envelope, event, read, reasoning, usage


def words(text: str) -> int:
    return len(text.split())


# tokens and clocks


def test_several_tokens_in_a_chunk_are_counted_by_the_server_not_by_chunks() -> None:
    record = read(
        [
            (50, ROLE),
            (100, content("a b c d")),
            (200, content("e f g h")),
            (300, content("i j")),
            (300, STOP + usage(5, 10) + DONE),
        ]
    )
    assert record.ok
    assert (record.completion_tokens, record.prompt_tokens, record.tokens_estimated) == (10, 5, False)
    assert record.ttft_ms == 100
    assert record.tpot_ms == pytest.approx(200 / 9)
    assert record.chunk_times_ms == (100, 200, 300)


@pytest.mark.parametrize(
    "role", [ROLE, event(envelope({"role": "assistant", "content": None})), b""], ids=["empty", "null", "missing"]
)
def test_a_role_chunk_does_not_start_the_token_clock(role: bytes) -> None:
    record = read([(50, role), (900, content("Hi")), (950, content("!")), (950, STOP + usage(5, 2) + DONE)])
    assert (record.ttft_ms, record.tpot_ms) == (900, 50)
    assert record.first_byte_ms == (50 if role else 900)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_starts_the_clock_and_the_answer_has_its_own_time(name: str) -> None:
    thinking = [(100.0 * n, reasoning("w", name)) for n in range(1, 11)]
    record = read([*thinking, (1100, content("ans")), (1100, STOP + usage(5, 11) + DONE)])
    assert (record.ttft_ms, record.first_answer_ms, record.tpot_ms) == (100, 1100, 100)
    assert (record.completion_tokens, record.text) == (11, "ans")


def test_an_answer_that_never_left_reasoning_is_a_success_without_answer_text() -> None:
    thinking = [(100.0 * n, reasoning("w")) for n in range(1, 11)]
    record = read([*thinking, (1000, LENGTH + usage(5, 10) + DONE)])
    assert record.ok
    assert (record.ttft_ms, record.first_answer_ms, record.text, record.finish_reason) == (100, None, "", "length")


def test_a_chunk_with_both_channels_has_one_time_and_each_text_once() -> None:
    both = event(envelope({"reasoning_content": "think", "content": "say"}))
    record = read([(100, both), (100, STOP + DONE)], count_tokens=words)
    assert (record.chunk_times_ms, record.text, record.completion_tokens) == ((100,), "say", 2)


def test_one_reasoning_text_under_two_names_counts_once() -> None:
    both = event(envelope({"reasoning_content": "one two", "reasoning": "one two"}))
    record = read([(100, both), (200, STOP + DONE)], count_tokens=words)
    assert record.completion_tokens == 2


def test_a_tool_call_is_generated_output() -> None:
    call = event(envelope({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}))
    record = read([(50, ROLE), (300, call), (400, event(envelope({}, "tool_calls")) + usage(5, 8) + DONE)])
    assert record.ok
    assert (record.ttft_ms, record.finish_reason, record.completion_tokens) == (300, "tool_calls", 8)


def test_odd_chunks_neither_start_a_clock_nor_break_the_request() -> None:
    stream = [
        (10, event({"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []})),
        (100, content("ok")),
        (150, event({"id": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_results": {}}]})),
        (160, event({"id": "c1", "choices": [{"index": 0, "delta": None, "finish_reason": None}]})),
        (170, STOP),
        (180, event({"id": "c1", "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}})),
        (190, DONE),
    ]
    record = read(stream)
    assert record.ok
    assert (record.ttft_ms, record.e2e_ms, record.completion_tokens, record.text) == (100, 100, 1, "ok")


@pytest.mark.parametrize(
    "odd",
    [b"[]", b"null", b"7", b'"text"', b'{"choices":null}', b'{"choices":{}}', b'{"choices":[null]}',
     b'{"choices":[{"delta":[]}]}', b'{"choices":[{"delta":{"content":5}}]}', b'{"usage":5}', b'{"usage":[]}',
     b'{"usage":{"completion_tokens":-1}}', b'{"usage":{"completion_tokens":"9"}}',
     b'{"usage":{"completion_tokens":NaN}}',
     b'{"usage":{"completion_tokens":true}}', b'{"choices":[{"delta":{"tool_calls":{}}}]}', b'{"error":null}'],
)  # fmt: skip
def test_values_of_any_type_are_survived(odd: bytes) -> None:
    record = read([(10, b"data: " + odd + b"\n\n"), (100, content("a")), (200, STOP + usage(5, 1) + DONE)])
    assert record.ok
    assert (record.ttft_ms, record.completion_tokens) == (100, 1)


def test_without_usage_the_joined_text_is_tokenised_and_marked() -> None:
    stream = [(10, content("Hel")), (20, content("lo")), (30, content(" world")), (40, STOP + DONE)]
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return 2

    record = read(stream, count_tokens=count)
    assert seen == ["Hello world"]
    assert (record.completion_tokens, record.tokens_estimated) == (2, True)
    without = read(stream)
    assert (without.ok, without.completion_tokens, without.tokens_estimated) == (True, None, False)
    assert (without.ttft_ms, without.e2e_ms, without.tpot_ms) == (10, 30, None)


def test_the_last_usage_that_is_not_null_wins() -> None:
    growing = [
        event({**envelope({"content": "x"}), "usage": {"prompt_tokens": 5, "completion_tokens": n}}) for n in (1, 2)
    ]
    record = read([(10, growing[0]), (20, growing[1]), (30, event({**envelope({}, "stop"), "usage": None}) + DONE)])
    assert (record.completion_tokens, record.prompt_tokens) == (2, 5)


def test_cached_tokens_and_the_engine_s_own_times_are_kept() -> None:
    last = event(
        {
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            "metrics": {"queue_time_ms": 12.5, "time_to_first_token_ms": 30.0},
        }
    )
    record = read([(100, content("a")), (150, content("b")), (150, STOP + last + DONE)])
    assert (record.cached_tokens, record.engine_queue_ms, record.engine_prefill_ms) == (4, 12.5, 30.0)


def test_one_token_has_no_time_per_token() -> None:
    record = read([(20, ROLE), (120, content("ok") + STOP + usage(5, 1) + DONE)])
    assert record.ok
    assert (record.ttft_ms, record.e2e_ms, record.tpot_ms, record.chunk_times_ms) == (120, 120, None, (120,))


def test_a_usage_of_zero_beside_text_is_taken_and_marked() -> None:
    record = read([(20, ROLE), (120, content("ok") + STOP + usage(5, 0) + DONE)])
    assert (record.completion_tokens, record.tpot_ms) == (0, None)
    assert "usage-contradicts-text" in record.marks


def test_a_stream_without_a_token_is_an_empty_answer() -> None:
    record = read([(50, ROLE), (60, STOP + usage(5, 0) + DONE)])
    assert record.failure == "empty-answer"
    assert (record.ttft_ms, record.e2e_ms) == (None, None)


def test_a_scheduled_request_counts_from_its_moment_however_late_it_left() -> None:
    reads = [(150_000_000, content("a") + STOP + usage(1, 1) + DONE)]
    call = Call(0, False, 20_000_000, 150_000_000, "complete", sent_ns=50_000_000, scheduled_ns=20_000_000, status=200)
    record = decode(reads, call, clock_ns=10_000_000)
    assert (record.t0_ms, record.scheduled_ms, record.sent_ms) == (10, 10, 40)
    assert (record.ttft_ms, record.client_wait_ms) == (130, 30)


# how it came through the network


def test_pings_and_empty_events_do_nothing() -> None:
    pings = [b": ping\n\n", b":\n\n", b": OPENROUTER PROCESSING\n\n", b"data:\n\n", b"data: \n\n",
             b'event: ping\ndata: {"type":"ping"}\n\n', b"retry: 3000\n\n", b"id: 7\n\n", b"\n\n\n"]  # fmt: skip
    noise = b"".join(pings)
    record = read([(50, noise), (800, content("a")), (810, noise), (820, STOP + usage(5, 1) + noise + DONE)])
    assert record.ok
    assert (record.ttft_ms, record.completion_tokens, record.marks) == (800, 1, ())


BASE = [ROLE, content("he"), content("llo 好"), STOP, usage(5, 2), DONE]


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw,
        lambda raw: raw.replace(b"data: ", b"data:"),
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw.replace(b"\n", b"\r"),
        lambda raw: raw.replace(b"[DONE]", b"[DONE] "),
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.replace(b'"delta"', b'\ndata: "delta"'),
    ],
    ids=["plain", "no-space", "crlf", "cr", "done-space", "bom", "two-data-lines"],
)
@pytest.mark.parametrize("size", [1, 2, 7, 100_000])
def test_framing_and_cutting_change_nothing(change, size: int) -> None:
    raw = change(b"".join(BASE))
    record = read([(100, raw[at : at + size]) for at in range(0, len(raw), size)])
    assert record.failure is None
    assert (record.text, record.completion_tokens, len(record.chunk_times_ms)) == ("hello 好", 2, 2)


def test_a_chunk_has_the_time_of_the_read_that_completed_it() -> None:
    raw = content("hi")
    reads = [(10.0 + n, raw[n : n + 1]) for n in range(len(raw))]
    record = read([*reads, (900, STOP + usage(5, 1) + DONE)])
    assert record.ttft_ms == 10 + len(raw) - 1


def test_a_character_split_between_reads_is_whole() -> None:
    raw = content("好中🌍")
    cuts = [raw.index(b"\xe5\xa5") + 2, raw.index(b"\xbd\xe4") + 2, raw.index(b"\xb8\xad\xf0\x9f") + 4]
    pieces = [raw[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    record = read([*((20.0 * n, piece) for n, piece in enumerate(pieces)), (100, STOP + usage(5, 3) + DONE)])
    assert (record.text, record.chunk_times_ms) == ("好中🌍", (60,))


def test_a_lone_bad_byte_costs_one_character() -> None:
    raw = content("aXb").replace(b"X", b"\xff")
    record = read([(10, raw), (20, content("c")), (30, STOP + usage(5, 2) + DONE)])
    assert record.ok
    assert record.text == "a\ufffdbc"


def test_a_bad_byte_after_learnt_chunks_costs_one_character_too() -> None:
    raw = content("aXb").replace(b"X", b"\xff")
    record = read([(5, content("1")), (7, content("2")), (10, raw), (20, content("c")), (30, STOP + DONE)])
    assert record.text == "12a\ufffdbc"


def test_surrogate_halves_escaped_in_two_chunks_are_one_character() -> None:
    raw = [event(envelope({"content": "X"})).replace(b"X", half) for half in (b"\\ud83c", b"\\udf0d")]
    record = read([(10, raw[0]), (20, raw[1]), (30, STOP + DONE)])
    assert record.text == "🌍"


def test_escapes_in_the_text_are_read_as_json_says() -> None:
    parts = ["plain", 'qu"ote', "back\\slash", "line\nbreak", "tab\t", "\u0001", "plain"]
    record = read([*((10.0 * n, content(part)) for n, part in enumerate(parts, 1)), (90, STOP + DONE)])
    assert record.text == "".join(parts)
    assert len(record.chunk_times_ms) == len(parts)


def test_a_compressed_stream_is_read() -> None:
    raw = gzip.compress(b"".join(BASE))
    record = read([(100, raw[:20]), (200, raw[20:])])
    assert (record.failure, record.text) == (None, "hello 好")


# endings

HELLO = [(10, ROLE), (20, content("Hel")), (30, content("lo"))]


def test_a_finish_reason_and_done_is_complete() -> None:
    record = read([*HELLO, (40, STOP + DONE)])
    assert (record.ok, record.marks) == (True, ())


def test_a_finish_reason_and_a_clean_close_is_complete() -> None:
    assert read([*HELLO, (40, STOP)], end="closed").ok


def test_done_without_a_finish_reason_is_complete_with_a_note() -> None:
    record = read([*HELLO, (40, DONE)])
    assert (record.ok, record.finish_reason, record.marks) == (True, None, ("no-finish-reason",))


def test_a_clean_close_with_neither_is_truncated() -> None:
    record = read(HELLO, end="closed")
    assert (record.failure, record.text, record.ttft_ms) == ("truncated", "Hello", 20)


def test_a_reset_keeps_partial_text_and_first_token_time() -> None:
    record = read(HELLO, end="lost")
    assert (record.failure, record.text, record.ttft_ms, record.e2e_ms) == ("connection-lost", "Hello", 20, None)


def test_a_server_that_holds_the_socket_open_does_not_lengthen_the_answer() -> None:
    reads = [*HELLO, (40, STOP + usage(5, 2))]
    call = Call(0, False, 0, 60_000_000_000, "finished", sent_ns=0, status=200)
    record = decode([(round(at * 1e6), data) for at, data in reads], call, clock_ns=0)
    assert (record.ok, record.e2e_ms) == (True, 30)


def test_bytes_after_done_are_ignored() -> None:
    record = read([*HELLO, (40, STOP + usage(5, 2) + DONE), (90, content("more") + usage(9, 9))])
    assert (record.ok, record.text, record.completion_tokens, record.e2e_ms) == (True, "Hello", 2, 30)


def test_a_reset_after_the_finish_reason_is_complete_with_a_note() -> None:
    record = read([*HELLO, (40, STOP)], end="lost")
    assert (record.ok, record.marks) == (True, ("cut-after-finish",))


def test_a_timeout_keeps_what_came() -> None:
    record = read(HELLO, end="timeout")
    assert (record.failure, record.ttft_ms, record.text) == ("timeout", 20, "Hello")


def test_an_answer_that_was_over_is_no_timeout() -> None:
    assert read([*HELLO, (40, STOP)], end="timeout").ok


def test_the_end_of_the_duration_is_incomplete_and_no_failure() -> None:
    record = read(HELLO, end="window", count_tokens=words)
    assert (record.failure, record.incomplete, record.ok) == (None, True, False)
    assert (record.ttft_ms, record.e2e_ms, record.tpot_ms) == (20, None, None)
    assert (record.completion_tokens, record.tokens_estimated) == (1, True)


def test_stopping_is_a_class_of_its_own() -> None:
    assert read(HELLO, end="cancelled").failure == "cancelled"


def test_a_stream_that_came_at_once_was_buffered() -> None:
    burst = b"".join(content(f"w{n}") for n in range(40))
    record = read([(2000, burst[:3000]), (2000.4, burst[3000:] + STOP + usage(5, 40) + DONE)])
    assert record.ok
    assert (record.ttft_ms, record.tpot_ms) == (2000, None)
    assert "buffered" in record.marks


def test_a_fast_stream_is_not_called_buffered() -> None:
    record = read([(100, content("a")), (101, content("b")), (102, content("c") + STOP + usage(5, 3) + DONE)])
    assert (record.tpot_ms, record.marks) == (1, ())


def test_many_tokens_in_a_single_chunk_have_no_time_per_token() -> None:
    record = read([(100, content("a b c")), (110, STOP + usage(5, 3) + DONE)])
    assert (record.tpot_ms, record.marks) == (None, ("one-chunk",))


# errors and answers of another form


def test_an_error_in_the_stream_fails_the_request_and_keeps_its_text() -> None:
    record = read([*HELLO, (40, event({"error": {"message": "engine died", "code": 500}}) + DONE)])
    assert (record.failure, record.message, record.text) == ("stream-error", "engine died", "Hello")


@pytest.mark.parametrize(
    "raw",
    [
        event({"object": "error", "message": "no room", "code": 400}),
        b'event: error\ndata: {"message":"no room"}\n\n',
        event({"error": "no room"}),
        b'{"error":{"message":"no room"}}',
    ],
)
def test_errors_under_status_200_have_many_forms(raw: bytes) -> None:
    record = read([(40, raw)])
    assert (record.failure, record.message) == ("stream-error", "no room")


def test_a_json_body_for_a_stream_has_tokens_and_an_end_but_no_first_token() -> None:
    answer = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi there"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    raw = json.dumps(answer).encode()
    record = read([(100, raw[:30]), (150, raw[30:])])
    assert record.ok
    assert (record.e2e_ms, record.completion_tokens, record.text) == (150, 2, "hi there")
    assert (record.ttft_ms, record.first_answer_ms, record.tpot_ms, record.chunk_times_ms) == (None, None, None, ())
    assert record.marks == ("not-streamed",)


@pytest.mark.parametrize(
    "raw", [b"<!doctype html><title>Gateway console</title>", b"\n<html><body>Login</body></html>"]
)
def test_a_web_page_is_named_not_repeated(raw: bytes) -> None:
    record = read([(40, raw)])
    assert record.failure == "not-json"
    assert record.message is not None
    assert "web page" in record.message
    assert "/v1" in record.message
    assert "console" not in record.message


def test_a_gateway_s_error_page_is_a_server_error() -> None:
    record = read([(40, b"<html><head><title>502 Bad Gateway</title></head></html>")], status=502)
    assert record.failure == "server"
    assert record.message is not None
    assert "<" not in record.message


@pytest.mark.parametrize(
    ("raw", "failure"),
    [
        (b"", "empty-answer"),
        (b"\xef\xbb\xbf \n", "empty-answer"),
        (b"hello", "not-json"),
        (b'{"choices": [{"index"', "not-json"),
        (b"data: {broken\n\ndata: [DONE]\n\n", "not-json"),
        (b": ping\n\n", "empty-answer"),
        (b'{"status":"ok"}', "empty-answer"),
    ],
)
def test_answers_that_are_no_answers(raw: bytes, failure: str) -> None:
    assert read([(40, raw)] if raw else []).failure == failure


def test_one_broken_event_among_good_ones_is_a_mark() -> None:
    record = read([(10, content("a")), (20, b"data: {broken\n\n"), (30, content("b") + STOP + usage(1, 2) + DONE)])
    assert (record.ok, record.text, record.marks) == (True, "ab", ("bad-chunk",))


# which failure


@pytest.mark.parametrize(
    ("status", "body", "failure", "said"),
    [
        (
            401,
            '{"error":{"message":"\\u65e0\\u6548\\u7684\\u4ee4\\u724c","type":"one_api_error"}}',
            "auth",
            "无效的令牌",
        ),
        (403, '{"error":{"message":"用户额度不足","type":"one_api_error"}}', "quota", "用户额度不足"),
        (403, '{"error":{"message":"forbidden"}}', "auth", "forbidden"),
        (402, '{"error":{"message":"Insufficient Balance"}}', "quota", "Insufficient Balance"),
        (404, '{"error":{"message":"The model `qwen-x` does not exist.","code":404}}', "model", "qwen-x"),
        (404, '{"detail":"Not Found"}', "not-found", "Not Found"),
        (404, "", "not-found", "empty body"),
        (405, '{"detail":"Method Not Allowed"}', "not-found", "Method Not Allowed"),
        (
            503,
            '{"error":{"message":"当前分组 default 下对于模型 qwen-x 无可用渠道","type":"one_api_error"}}',
            "model",
            "无可用渠道",
        ),
        (503, '{"error":{"message":"No available channel for model qwen-x"}}', "model", "qwen-x"),
        (503, '{"error":{"message":"overloaded"}}', "server", "overloaded"),
        (500, "boom", "server", "boom"),
        (429, "", "rate", "empty body"),
        (429, '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}', "quota", "quota"),
        (429, '{"error":{"message":"Rate limit reached: quota 3 requests per minute"}}', "rate", "minute"),
        (
            400,
            '{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}',
            "bad-request",
            "body.stream_options: extra fields not permitted",
        ),
        (
            400,
            '{"error":{"message":"This model\'s maximum context length is 2048 tokens. However, you requested 2078 '
            'tokens (1054 in the messages, 1024 in the completion).","code":400}}',
            "too-long",
            "2078",
        ),
        (413, "", "too-long", "413"),
        (422, '{"detail":"nope"}', "bad-request", "nope"),
        (407, "", "proxy", "407"),
    ],
)
def test_the_class_of_an_error_answer(status: int, body: str, failure: str, said: str) -> None:
    record = read([(40, body.encode())] if body else [], status=status)
    assert record.failure == failure
    assert record.message is not None
    assert said in record.message
    assert record.http_status == status


def test_a_message_is_one_short_line_without_the_key() -> None:
    key = "sk-test-LEAK-0001"
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {key}.\nSee " + "x" * 900}}).encode()
    record = read([(40, body)], status=401, secret=key)
    assert record.message is not None
    assert "LEAK" not in record.message
    assert "\n" not in record.message
    assert len(record.message) <= 300

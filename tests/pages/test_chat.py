"""Talking to a server on the engine page: figures of each answer, what is sent, what forbids it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lab.host.lock import hold_lock
from lab.store import Store, add_launch, heartbeat, update_launch
from pages.components.chat import Turn, figures
from pages.components.context import host_name
from tests.factories import make_request
from tests.load.streams import DONE, STOP, content, reasoning, usage
from tests.pages.test_home import texts
from tests.servers.gateway_server import Manners, gateway
from tests.servers.scripted_server import ScriptedServer, page, stream

OpenPage = Callable[..., AppTest]
KEY = "test-LEAK-0001"
ANSWER = stream((100, content("Paris")), (140, content(" is")), (180, content(" it.")), (180, STOP),
                (180, usage(9, 3)), (180, DONE))  # fmt: skip


def serving(store: Store, port: int, trial_id: int | None = None) -> None:
    launch = add_launch(store, host_name(), "vllm", ["py"], ["PATH"], "x.log", 1, 1, 1.0, port, "m")
    update_launch(store, launch, state="ready", ready_s=28.4, effective={"max_num_seqs": 64})
    state = "serving" if trial_id is None else "measuring"
    heartbeat(store, host_name(), runner_pid=1, state=state, detail=None, trial_id=trial_id, launch_id=launch)


def runner(place: Path) -> Any:
    return hold_lock(place / "runner.lock", f"sqlite:///{place / 'experiments.db'}")


def ask(app: AppTest, question: str) -> AppTest:
    app.chat_input(key="chat:question").set_value(question).run()
    return app.run()


def test_an_answer_comes_with_its_figures(open_page: OpenPage, store: Store, own_place: Path) -> None:
    with ScriptedServer(lambda _asked: ANSWER) as server, runner(own_place):
        serving(store, server.port)
        app = ask(open_page("engine"), "What is the capital of France?")
        body = server.posts[0].json
    said = texts(app)
    assert "Paris is it." in said
    assert "3 tokens" in said
    assert "prompt 9" in said
    assert "TTFT" in said
    assert body["model"] == "m"
    assert body["messages"] == [{"role": "user", "content": "What is the capital of France?"}]
    settings = json.loads((own_place / "configs" / "settings.json").read_text("utf-8"))
    assert (body["temperature"], body["max_tokens"]) == (settings["temperature"], settings["max_tokens"])
    assert not app.exception


def test_the_conversation_goes_on_and_failed_turns_are_left_out(
    open_page: OpenPage, store: Store, own_place: Path
) -> None:
    answers = [ANSWER, page(b'{"error":{"message":"CUDA out of memory"}}', 500), ANSWER]
    with ScriptedServer(lambda asked: answers[asked.number]) as server, runner(own_place):
        serving(store, server.port)
        app = open_page("engine")
        app.text_area(key="chat:system").set_value("Answer briefly.").run()
        for question in ("你好", "second", "third"):
            ask(app, question)
        last = server.posts[2].json["messages"]
    assert [(message["role"], message["content"]) for message in last] == [
        ("system", "Answer briefly."),
        ("user", "你好"),
        ("assistant", "Paris is it."),
        ("user", "third"),
    ]
    assert any("CUDA out of memory" in error.value for error in app.error)


def test_parameters_are_the_pairs_and_can_be_changed_for_the_talk(
    open_page: OpenPage, store: Store, own_place: Path
) -> None:
    before = (own_place / "configs" / "settings.json").read_bytes()
    with ScriptedServer(lambda _asked: ANSWER) as server, runner(own_place):
        serving(store, server.port)
        app = open_page("engine")
        app.number_input(key="chat:temperature").set_value(0.0).run()
        app.number_input(key="chat:max-tokens").set_value(7).run()
        ask(app, "hi")
        body = server.posts[0].json
    assert (body["temperature"], body["max_tokens"]) == (0.0, 7)
    assert (own_place / "configs" / "settings.json").read_bytes() == before


def test_thinking_is_shown_apart(open_page: OpenPage, store: Store, own_place: Path) -> None:
    thought = stream((50, reasoning("hmm")), (90, content("42")), (90, STOP), (90, usage(9, 5)), (90, DONE))
    with ScriptedServer(lambda _asked: thought) as server, runner(own_place):
        serving(store, server.port)
        app = ask(open_page("engine"), "hi")
    assert [each.label for each in app.expander if each.label == "Thinking"]
    assert "42" in texts(app)


def test_nobody_talks_while_a_trial_measures(open_page: OpenPage, store: Store, own_place: Path) -> None:
    with gateway(Manners()) as server, runner(own_place), pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAOTOKEN_BASE_URL", server.base_url)
        patch.setenv("TAOTOKEN_API_KEY", KEY)
        patch.setenv("TAOTOKEN_MODEL", "m")
        serving(store, server.port)
        app = open_page("engine")
        assert not app.chat_input(key="chat:question").disabled
        serving(store, server.port, trial_id=7)  # a trial begins between two looks at the page
        ask(app, "hi")
        assert app.chat_input(key="chat:question").disabled
        assert server.posts == []


def test_the_gateway_is_talked_to_with_the_key_of_the_environment(
    open_page: OpenPage, store: Store, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(Manners(key=KEY)) as server, runner(own_place):
        monkeypatch.setenv("TAOTOKEN_BASE_URL", server.base_url)
        monkeypatch.setenv("TAOTOKEN_API_KEY", KEY)
        monkeypatch.setenv("TAOTOKEN_MODEL", "m")
        app = ask(open_page("engine"), "hi")
        assert server.posts[0].headers["authorization"] == f"Bearer {KEY}"
    assert "4 tokens" in texts(app)
    assert KEY not in texts(app)


def test_without_anybody_to_talk_to_it_says_so(open_page: OpenPage) -> None:
    app = open_page("engine")
    assert not app.chat_input
    assert "attach a running server" in texts(app)


def test_a_running_server_is_checked_then_talked_to(
    open_page: OpenPage, store: Store, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", KEY)
    with gateway(Manners(key=KEY)) as server:
        app = open_page("engine")
        app.text_input(key="attach:address").set_value(f"127.0.0.1:{server.port}")
        app.text_input(key="attach:variable").set_value("MY_SERVER_KEY")
        next(button for button in app.button if button.label == "Check the connection").click().run()
        assert not app.exception
        app.run()
        ask(app, "hi")
        assert [asked.headers["authorization"] for asked in server.posts] == [f"Bearer {KEY}"] * len(server.posts)
    assert "4 tokens" in texts(app)


def test_a_key_typed_for_a_name_is_refused_and_sent_nowhere(open_page: OpenPage, own_place: Path) -> None:
    with gateway(Manners()) as server:
        app = open_page("engine")
        app.text_input(key="attach:address").set_value(server.base_url)
        app.text_input(key="attach:variable").set_value("sk-test-LEAK-0001")
        next(button for button in app.button if button.label == "Check the connection").click().run()
        assert server.asked == []
    assert any("no name of a variable" in error.value for error in app.error)
    assert "LEAK-0001" not in texts(app)


def test_what_an_answer_has_not_is_an_en_dash() -> None:
    record = replace(make_request(), ttft_ms=None, tpot_ms=None, completion_tokens=None)
    line = figures(record)
    assert "TTFT –" in line
    assert "TPOT –" in line
    assert "– tokens" in line


def test_a_very_long_question_is_shown_by_its_beginning(open_page: OpenPage, store: Store, own_place: Path) -> None:
    with ScriptedServer(lambda _asked: ANSWER) as server, runner(own_place):
        serving(store, server.port)
        app = ask(open_page("engine"), "word " * 9000)
        sent = server.posts[0].json["messages"][0]["content"]
    assert len(sent) == len(("word " * 9000).strip()) or len(sent) == 45_000
    shown = [line.value for line in app.markdown if "word word" in line.value]
    assert len(shown) == 1
    assert len(shown[0]) < 2_200
    assert "characters in all" in shown[0]


def test_a_question_stopped_before_it_was_sent_stays(open_page: OpenPage, store: Store, own_place: Path) -> None:
    with ScriptedServer(lambda _asked: ANSWER) as server, runner(own_place):
        serving(store, server.port)
        app = open_page("engine")
        app.session_state[f"chat:http://127.0.0.1:{server.port}/v1"] = [Turn("never sent")]
        app.run()
        ask(app, "and now?")
        sent = [message["content"] for message in server.posts[0].json["messages"]]
    assert "never sent" in texts(app)
    assert "Stopped before anything came." in texts(app)
    assert sent == ["and now?"]

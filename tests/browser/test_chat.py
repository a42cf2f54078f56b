"""Talking to a served engine in a real browser: the answer grows, it can be stopped, it stays over live redraws."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from lab.store import add_launch, heartbeat, update_launch
from pages.components.context import host_name
from tests.browser.conftest import SHOWN_WITHIN_MS, OpenTab, Site
from tests.load.conftest import until
from tests.load.streams import DONE, STOP, content, usage
from tests.servers.scripted_server import Answer, Asked, ScriptedServer, stream

pytestmark = pytest.mark.browser
expect.set_options(timeout=SHOWN_WITHIN_MS)
SHORT = stream((50, content("Paris")), (90, content(" it is.")), (90, STOP), (90, usage(9, 3)), (90, DONE))
LONG = stream(*[(100.0 * n, content(f"w{n} ")) for n in range(2000)])


def answer(asked: Asked) -> Answer:
    return LONG if "long" in asked.json["messages"][-1]["content"] else SHORT


@pytest.fixture
def engine() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as server:
        yield server


@contextmanager
def served(site: Site, port: int) -> Iterator[None]:
    """As if a runner kept an engine up on this port: its heartbeat goes on, however slow the browser is."""
    launch = add_launch(site.store, host_name(), "vllm", ["py"], ["PATH"], "x.log", 1, 1, 1.0, port, "m")
    update_launch(site.store, launch, state="ready", ready_s=28.4)
    over = threading.Event()

    def beat() -> None:
        while not over.wait(1.0):
            alive()

    def alive() -> None:
        heartbeat(site.store, host_name(), runner_pid=1, state="serving", detail=None, trial_id=None, launch_id=launch)

    alive()
    beating = threading.Thread(target=beat)
    beating.start()
    try:
        with site.runner_there():
            yield
    finally:
        over.set()
        beating.join()


def ask(page: Page, question: str) -> None:
    field = page.get_by_test_id("stChatInputTextArea")
    expect(field).to_be_enabled()
    # Streamlit's field takes the end of a run under way when Enter is pressed for the end of its own: no stop button
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    field.fill(question)
    field.press("Enter")


def test_an_answer_comes_with_its_figures_and_a_long_one_can_be_stopped(
    site: Site, engine: ScriptedServer, open_tab: OpenTab
) -> None:
    with served(site, engine.port):
        page = open_tab(site, "engine")
        ask(page, "What is the capital of France?")
        expect(page.get_by_text("Paris it is.")).to_be_visible()
        expect(page.get_by_text(re.compile(r"TTFT .* · TPOT .* · 3 tokens"))).to_be_visible()
        ask(page, "Now a long one")
        expect(page.get_by_text("w3 ")).to_be_visible()
        page.get_by_test_id("stChatInputStopButton").click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
        until(lambda: engine.under_way == 0)
        expect(page.get_by_text("Paris it is.")).to_be_visible()

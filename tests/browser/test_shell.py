"""The frame around the pages in a real browser: navigation, language, name, live parts, width, nothing from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lab.store import get_experiment, heartbeat, list_experiments, set_trial_state
from pages.components.context import host_name
from tests.browser.conftest import SHOWN_WITHIN_MS, Site
from tests.factories import run_all, seed_running_experiment

pytestmark = pytest.mark.browser
OpenTab = Callable[..., Page]
expect.set_options(timeout=SHOWN_WITHIN_MS)
PAGES = ("home", "configs", "engine", "experiments", "results", "history", "export")


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", name=text, exact=True)).to_be_visible()


def test_the_first_visitor_of_a_fresh_server_gets_the_frame_around_any_page(site: Site, open_tab: OpenTab) -> None:
    page = open_tab(site, "history")
    heading(page, "History")
    expect(page.get_by_role("link", name="Configs")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your name")).to_be_visible()
    page.get_by_role("link", name="Engine").click()
    heading(page, "Engine")


def test_the_first_page_is_found_under_its_name_too(filled_site: Site, open_tab: OpenTab) -> None:
    page = open_tab(filled_site, "home?lang=zh")
    heading(page, "首页")
    expect(page.get_by_text("Page not found")).to_have_count(0)
    assert page.url.rstrip("/") in (filled_site.url, f"{filled_site.url}/?lang=zh")


def test_the_language_follows_the_browser_and_the_switch(filled_site: Site, open_tab: OpenTab) -> None:
    page = open_tab(filled_site, "", locale="zh-CN")
    heading(page, "首页")
    page.get_by_test_id("stSidebar").get_by_test_id("stSelectbox").click()
    page.get_by_role("option", name="English").click()
    heading(page, "Home")
    page.get_by_role("link", name="History").click()
    heading(page, "History")
    page.reload()
    heading(page, "History")
    assert "lang=en" in page.url


def test_a_name_is_kept_over_a_reload(filled_site: Site, open_tab: OpenTab) -> None:
    page = open_tab(filled_site, "results")
    page.get_by_role("textbox", name="Your name").fill('Zoë "O\'Neil"; 王')
    page.get_by_role("textbox", name="Your name").press("Enter")
    expect(page.get_by_role("button", name="Add note as Zoë")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name='Add note as Zoë "O\'Neil"; 王')).to_be_visible()


def test_the_first_experiment_is_queued_once_and_seen_from_every_tab(site: Site, open_tab: OpenTab) -> None:
    with site.runner_there():
        page = open_tab(site, "")
        page.get_by_role("button", name="Start the first experiment").dblclick()
        expect(page.get_by_text("Continuous batching on and off").first).to_be_visible()
        expect(page.get_by_role("button", name="Start the first experiment")).to_have_count(0)
        page.close()
        other = open_tab(site, "")
        expect(other.get_by_text("Continuous batching on and off").first).to_be_visible()
    assert len(list_experiments(site.store)) == 1


def test_progress_moves_without_a_reload(site: Site, open_tab: OpenTab) -> None:
    store = site.store
    with site.runner_there() as runner:
        page = open_tab(site, "")
        expect(page.get_by_text("Nothing runs and nothing is queued.").first).to_be_visible()
        seed_running_experiment(store, host=host_name())
        heartbeat(store, host_name(), runner_pid=runner.pid, state="measuring", detail=None, trial_id=1, launch_id=None)
        expect(page.get_by_text("12 of 40 requests").first).to_be_visible()
        page.get_by_role("button", name="Stop").first.click()
        expect(page.get_by_text("Stopping …").first).to_be_visible()
    assert list_experiments(store)[0].stop_requested


def test_a_result_that_comes_in_is_listed_without_a_reload(site: Site, open_tab: OpenTab) -> None:
    store = site.store
    number = seed_running_experiment(store, host=host_name())
    page = open_tab(site, "")
    expect(page.get_by_text("12 of 40 requests").first).to_be_visible()
    expect(page.get_by_text("No experiment has ended yet.")).to_be_visible()
    set_trial_state(store, get_experiment(store, number).trials[1].id, "done")
    run_all(store, number, host=host_name())
    expect(page.get_by_text("Nothing runs and nothing is queued.").first).to_be_visible()
    expect(page.get_by_text("No experiment has ended yet.")).to_have_count(0)
    expect(page.get_by_text("Click a row for its results.")).to_be_visible()


def test_no_page_fetches_anything_from_outside_or_overflows_a_phone(filled_site: Site, open_tab: OpenTab) -> None:
    page = open_tab(filled_site, "", width=420, color_scheme="dark")
    foreign: list[str] = []
    broken: list[str] = []
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith((filled_site.url, "data:", "blob:")) else foreign.append(request.url)
        ),
    )
    page.on("pageerror", lambda problem: broken.append(str(problem)))
    for name in PAGES:
        page.goto(f"{filled_site.url}/{name}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert not page.get_by_text("This part of the page failed").count(), name
        assert not page.get_by_text("Traceback").count(), name
    assert not foreign
    assert not broken

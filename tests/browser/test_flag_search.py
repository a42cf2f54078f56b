"""Every option of the engine, in a real browser: found, read, put into the draft, saved."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from lab.engine.catalogue import keep_catalogue
from lab.engine.definition import load_definition
from lab.environment import ROOT, read_environment
from tests.browser.conftest import SHOWN_WITHIN_MS, Site
from tests.pages.test_engines import CATALOGUE

pytestmark = pytest.mark.browser
OpenTab = Callable[..., Page]
expect.set_options(timeout=SHOWN_WITHIN_MS)
FIRST_ROW = {"x": 14, "y": 52}


def test_an_option_without_a_table_of_ours_is_found_and_set(site: Site, open_tab: OpenTab) -> None:
    definition = load_definition("vllm", ROOT / "configs")
    keep_catalogue(CATALOGUE, definition, read_environment().engine_python, site.place / "run")
    page = open_tab(site, "configs")
    page.get_by_role("radio", name="All options", exact=True).click()
    search = page.get_by_role("textbox", name="Search")
    search.fill("random")
    search.press("Enter")
    expect(page.get_by_text("1 of 4 options")).to_be_visible()
    page.get_by_test_id("stDataFrame").locator("canvas").first.click(position=FIRST_ROW, force=True)
    field = page.get_by_role("spinbutton", name="seed")
    field.fill("7")
    field.press("Enter")
    page.get_by_role("button", name="Put into the draft").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version")).to_be_visible()
    saved = json.loads((site.place / "configs" / "settings.json").read_text("utf-8"))
    assert saved["engine"]["args"]["seed"] == 7

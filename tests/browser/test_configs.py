"""The page Configs in real browsers: two people at once, a file changed by hand, keys, narrow screens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from lab.store import list_config_saves
from pages.components.context import host_name
from tests.browser.conftest import SHOWN_WITHIN_MS, Site

pytestmark = pytest.mark.browser
OpenTab = Callable[..., Page]
expect.set_options(timeout=SHOWN_WITHIN_MS)


def decode(site: Site) -> dict[str, object]:
    found: dict[str, object] = json.loads((site.place / "configs" / "settings.json").read_text())["decode"]
    return found


def type_number(page: Page, label: str, value: int) -> None:
    page.get_by_role("tab", name="Decode").click()
    number = page.get_by_role("spinbutton", name=label)
    number.fill(str(value))
    number.press("Enter")
    expect(page.get_by_text(f": {value},").first).to_be_visible()  # the diff
    expect(page.get_by_role("button", name="Save")).to_be_visible()
    idle(page)


def idle(page: Page) -> None:
    """Until the page is drawn to its end."""
    expect(page.locator("[data-test-script-state=running]")).to_have_count(0)
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)


def signed_in(page: Page, name: str) -> Page:
    field = page.get_by_role("textbox", name="Your name")
    field.fill(name)
    field.press("Enter")
    return page


def text_of(page: Page, file: str) -> None:
    page.get_by_role("radio", name="Text", exact=True).click()
    expect(page.get_by_role("textbox", name=f"configs/{file}")).to_be_visible()


def test_of_two_browsers_saving_at_once_one_wins_and_the_other_loses_nothing(site: Site, open_tab: OpenTab) -> None:
    ada = signed_in(open_tab(site, "configs"), "Ada")
    grace = signed_in(open_tab(site, "configs"), "Grace")
    type_number(ada, "Sequences at once", 64)
    type_number(grace, "Context length", 4096)
    ada.get_by_role("button", name="Save").click()
    grace.get_by_role("button", name="Save").click()
    expect(ada.get_by_text("Saved as version").or_(ada.get_by_text("Nothing was overwritten"))).to_be_visible()
    expect(grace.get_by_text("Saved as version").or_(grace.get_by_text("Nothing was overwritten"))).to_be_visible()
    winner, loser = (ada, grace) if ada.get_by_text("Saved as version").is_visible() else (grace, ada)
    expect(winner.get_by_text("Saved as version")).to_be_visible()
    expect(loser.get_by_text("Nothing was overwritten")).to_be_visible()
    changed = {"max_num_seqs": 64} if winner is ada else {"max_model_len": 4096}
    assert decode(site) == {**ORIGINAL, **changed}
    loser.get_by_role("button", name="Put your changes on top").click()
    loser.get_by_role("button", name="Save").click()
    expect(loser.get_by_text("Saved as version")).to_be_visible()
    assert decode(site) == {**ORIGINAL, "max_num_seqs": 64, "max_model_len": 4096}
    saves = list_config_saves(site.store, site.place / "configs", host=host_name())
    assert sorted(str(row.person) for row in saves) == ["Ada", "Grace", "None"]


def test_a_change_by_an_editor_is_noticed_shown_and_kept(site: Site, open_tab: OpenTab) -> None:
    page = open_tab(site, "configs")
    type_number(page, "Sequences at once", 64)
    file = site.place / "configs" / "settings.json"
    file.write_text(file.read_text().replace('"max_num_seqs": 32', '"max_num_seqs": 8'))
    note = page.get_by_role("textbox", name="Note")
    note.fill("more at once")
    note.press("Enter")
    expect(page.get_by_text("Nothing was overwritten")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    assert decode(site)["max_num_seqs"] == 8
    page.get_by_text("as you have it: 64").click()
    page.get_by_role("button", name="Put your changes on top").click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version")).to_be_visible()
    idle(page)
    page.get_by_role("radio", name="Versions").click()
    expect(page.get_by_text("Choose one row")).to_be_visible()
    newest, by_hand, _first = list_config_saves(site.store, site.place / "configs", host=host_name())
    assert (by_hand.source, by_hand.person, newest.changes and newest.changes[0].old) == ("external", None, 8)


def test_a_key_typed_into_the_text_reaches_nothing(site: Site, open_tab: OpenTab) -> None:
    key = "sk-" + "br0w" * 5
    page = open_tab(site, "configs")
    text_of(page, "config.toml")
    area = page.get_by_role("textbox", name="configs/config.toml")
    area.fill(area.input_value().replace("${TAOTOKEN_API_KEY}", key).replace("requests = 24", "requests = 12"))
    area.press("Control+Enter")
    expect(page.get_by_text("held a key")).to_be_visible()
    expect(area).not_to_have_value(key)
    assert key not in area.input_value() and key not in page.content()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version")).to_be_visible()
    config = (site.place / "configs" / "config.toml").read_text()
    assert "${TAOTOKEN_API_KEY}" in config and "requests = 12" in config
    assert not any(key.encode() in path.read_bytes() for path in files_of(site))


def test_the_page_fits_a_narrow_screen_in_chinese(filled_site: Site, open_tab: OpenTab) -> None:
    page = open_tab(filled_site, "configs?lang=zh", width=420)
    expect(page.get_by_role("heading", name="配置", exact=True)).to_be_visible()
    for view in ("文本", "粘贴", "转换", "版本"):
        page.get_by_role("radio", name=view).click()
        expect(page.get_by_role("radio", name=view)).to_be_checked()
        page.get_by_role("heading", name="检查").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 420


def files_of(site: Site) -> list[Path]:
    return [path for path in site.place.rglob("*") if path.is_file()]


ORIGINAL: dict[str, object] = {
    "max_num_seqs": 32,
    "max_model_len": 8192,
    "gpu_memory_utilization": 0.9,
    "kv_cache_dtype": "auto",
    "block_size": 16,
}

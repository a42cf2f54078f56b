"""The work of an engineer in a real browser: edit a knob, build a grid, read a result, export the winner."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from lab.store import (
    get_experiment,
    give_back_trial,
    list_experiments,
    list_requests,
    next_trial,
    set_trial_progress,
)
from pages.components.context import host_name
from tests.browser.conftest import SHOWN_WITHIN_MS, OpenTab, Site
from tests.factories import batched_records, run_trial, seed_running_experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=SHOWN_WITHIN_MS)


def test_a_knob_is_edited_and_only_its_value_changes_on_disk(site: Site, open_tab: OpenTab) -> None:
    settings, config = site.place / "configs" / "settings.json", site.place / "configs" / "config.toml"
    before, config_before = settings.read_text(), config.read_text()
    assert json.loads(before)["decode"]["max_num_seqs"] == 32
    page = open_tab(site, "configs")
    page.get_by_role("tab", name="Decode").click()
    field = page.get_by_role("spinbutton", name="Sequences at once")
    expect(field).to_have_value("32")
    field.fill("48")
    field.press("Enter")
    expect(page.get_by_text('+    "max_num_seqs": 48,')).to_be_visible()
    assert settings.read_text() == before
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version")).to_be_visible()
    assert settings.read_text() == before.replace('"max_num_seqs": 32', '"max_num_seqs": 48')
    assert config.read_text() == config_before


def test_a_field_can_be_emptied_and_steps_bring_no_noise(site: Site, open_tab: OpenTab) -> None:
    settings = site.place / "configs" / "settings.json"
    page = open_tab(site, "configs")
    page.get_by_role("tab", name="KV cache").click()
    share = page.get_by_role("spinbutton", name="Memory share")
    expect(share).to_have_value("0.9")
    share.press("ArrowUp")
    share.press("Enter")
    expect(page.get_by_text('+    "gpu_memory_utilization": 0.91,')).to_be_visible()
    block = page.get_by_role("spinbutton", name="Block size")
    block.fill("")
    block.press("Enter")
    expect(page.get_by_text('-    "block_size": 16')).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as version")).to_be_visible()
    decode = json.loads(settings.read_text())["decode"]
    assert "block_size" not in decode
    assert decode["gpu_memory_utilization"] == 0.91


def test_a_grid_is_built_and_queued_once_however_often_it_is_pressed(site: Site, open_tab: OpenTab) -> None:
    with site.runner_there():
        page = open_tab(site, "experiments")
        page.get_by_role("tab", name="Build your own").click()
        choose(page, "Knobs to vary", "max_num_seqs")
        values = page.get_by_role("textbox", name="Values of Sequences at once")
        values.fill("8, 16")
        values.press("Enter")
        expect(page.get_by_role("tabpanel").get_by_text("3 arms × 2 repeats = 6 trials")).to_be_visible()
        page.get_by_role("button", name="Queue this experiment").dblclick()
        expect(page.get_by_text("as experiment 1").or_(page.get_by_text("as number 1"))).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        (row,) = list_experiments(site.store)
        assert (row.state, row.host, row.trials_total) == ("queued", host_name(), 6)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Nothing runs and nothing is queued.")).to_be_visible()
        assert get_experiment(site.store, row.id).row.state == "stopped"


def choose(page: Page, label: str, option: str) -> None:
    """Type into a list with several choices and take the option."""
    box = page.get_by_role("combobox", name=label)
    box.fill(option)
    page.get_by_role("option", name=option).first.click()
    page.keyboard.press("Escape")


def test_a_click_on_a_point_opens_its_requests(filled_site: Site, open_tab: OpenTab) -> None:
    view = get_experiment(filled_site.store, 1)
    page = open_tab(filled_site, "results?experiment=1")
    expect(page.get_by_text("keeps the limit of 3000 ms")).to_be_visible()
    points = page.locator(".js-plotly-plot .scatterlayer .points path")
    expect(points).to_have_count(len(view.measurements))
    points.nth(2).click(force=True)
    expect(page.get_by_text("Requests (40, and 2 of the warm-up")).to_be_visible()
    # the two repeats lie almost on one another: either is right
    repeats = [row for row in view.measurements if row.arm_name == "continuous batching"]
    names = "|".join(f"#{row.id} · {row.arm_name} · repeat {row.repeat}" for row in repeats)
    expect(page.get_by_role("combobox", name="Measurement")).to_have_value(re.compile(f"^({names})$"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Requests as CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 1 + len(list_requests(filled_site.store, repeats[0].id))


def test_a_selected_point_stays_while_the_page_lives_on(site: Site, open_tab: OpenTab) -> None:
    number = seed_running_experiment(site.store, host=host_name())
    page = open_tab(site, f"results?experiment={number}")
    expect(page.get_by_text("12 of 40 requests")).to_be_visible()
    page.locator(".js-plotly-plot .scatterlayer .points path").first.click(force=True)
    detail = page.get_by_text("Requests (40, and 2 of the warm-up")
    expect(detail).to_be_visible()
    running = get_experiment(site.store, number).trials[1]
    set_trial_progress(site.store, running.id, {"done": 31, "total": 40, "stage": 1, "stages": 1})
    expect(page.get_by_text("31 of 40 requests")).to_be_visible()
    expect(detail).to_be_visible()


def test_the_winner_is_exported_as_a_zip(filled_site: Site, open_tab: OpenTab) -> None:
    page = open_tab(filled_site, "export?experiment=1")
    expect(page.get_by_text("Keys are placeholders")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="All files as a zip").click()
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        names = set(archive.namelist())
        assert {"settings.json", "config.toml", "vllm.yaml"} <= names
        assert json.loads(archive.read("settings.json"))["decode"]["max_num_seqs"] == 64


@pytest.mark.parametrize("width", [420, 1440])
@pytest.mark.parametrize("name", ["configs", "experiments", "results?experiment=1", "export?experiment=1"])
def test_no_page_scrolls_sideways(filled_site: Site, open_tab: OpenTab, name: str, width: int) -> None:
    page = open_tab(filled_site, name, width=width)
    expect(page.locator("h1")).to_be_visible()
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert wide <= page.evaluate("document.querySelector('[data-testid=stMain]').clientWidth")


def test_a_measurement_that_lands_meanwhile_appears_by_itself(site: Site, open_tab: OpenTab) -> None:
    number = seed_running_experiment(site.store, host=host_name())
    page = open_tab(site, f"results?experiment={number}")
    points = page.locator(".js-plotly-plot .scatterlayer .points path")
    expect(points).to_have_count(1)
    running = get_experiment(site.store, number).trials[1]
    give_back_trial(site.store, running.id)
    work = next_trial(site.store, host_name())
    assert work is not None
    run_trial(site.store, work, batched_records(40, 64, random.Random(2)), host_name())
    expect(points).to_have_count(2)

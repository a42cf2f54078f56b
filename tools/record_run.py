"""Runs an experiment in a lab of its own and keeps what README and docs lean on.

    python tools/record_run.py ladder --to docs/results/ladder-2-cores [--repeats N]

Writes show.json (what `run --wait --json` printed), host.json (processor, memory, versions), README.md (the command,
how long it took, the table and the sentences) and a PNG of each chart that the kind of load calls for. The configs are
the live ones, the model folder is shared; database, logs and lock are new and go away again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.charts import (
    StallPanel,
    cache_points,
    cache_use,
    knees,
    ladder,
    ladder_points,
    stalls,
    throughput_ttft,
    throughput_ttft_points,
)
from lab.cli.result_table import result_text
from lab.environment import ROOT, read_environment
from lab.host.facts import host_facts
from lab.metrics.interference import interference_course
from lab.store import ExperimentView, Store, get_experiment, list_launches, list_requests, open_store
from tools.chromium import find_chromium

WIDTH = 1000
LEFT_OUT = ("name", "memory_available_bytes", "node_memory_bytes", "kind", "gpu_note")


@dataclass(frozen=True)
class Run:
    """A finished `lab run --wait`."""

    command: tuple[str, ...]
    began: datetime
    seconds: float
    status: int
    printed: str


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="an experiment file, or the name of a preset")
    parser.add_argument("--to", type=Path, required=True, help="the folder to write")
    parser.add_argument("--repeats", type=int, help="instead of the file's own")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lab-record-") as place:
        run, store = _run(given.experiment, given.repeats, Path(place))
        if run.status != 0:
            print(run.printed, file=sys.stderr)
            return run.status
        view = get_experiment(store, json.loads(run.printed)["experiment"]["id"])
        given.to.mkdir(parents=True, exist_ok=True)
        _write(given.to, run, view, store)
        store.close()
    print(f"written: {given.to}")
    return 0


def _run(experiment: str, repeats: int | None, place: Path) -> tuple[Run, Store]:
    """The experiment through the command line; its runner and engine are gone afterwards."""
    (place / "run").mkdir()
    models = read_environment().run_dir / "models"
    if models.exists():
        (place / "run" / "models").symlink_to(models.resolve())
    database_url = f"sqlite:///{place / 'experiments.db'}"
    own = {"LAB_RUN_DIR": place / "run", "LAB_LOCK_FILE": place / "runner.lock", "LAB_DATABASE_URL": database_url}
    environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
    command = ["run", experiment, "--wait", "--json"]
    command += ["--repeats", str(repeats)] if repeats is not None else []
    began, start = datetime.now(UTC), time.monotonic()
    try:
        ended = _lab(command, environment)
    finally:
        _lab(["runner", "--stop"], environment)
    run = Run(tuple(command), began, time.monotonic() - start, ended.returncode, ended.stdout)
    return run, open_store(database_url)


def _lab(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lab", *arguments]
    return subprocess.run(command, cwd=ROOT, env=dict(environment), stdout=subprocess.PIPE, text=True)


def _write(folder: Path, run: Run, view: ExperimentView, store: Store) -> None:
    (folder / "show.json").write_text(run.printed, "utf-8")
    (folder / "host.json").write_text(json.dumps(_host(store, view), indent=2) + "\n", "utf-8")
    pictures = {name: figure for name, figure in _figures(store, view) if figure.data}
    _photograph(pictures, folder)
    (folder / "README.md").write_text(_text(run, view, list(pictures)), "utf-8")


def _host(store: Store, view: ExperimentView) -> dict[str, Any]:
    """What the numbers depend on; nothing that names the host or who works on it."""
    facts = {name: value for name, value in host_facts().as_json().items() if name not in LEFT_OUT}
    facts["gpus"] = [{"name": gpu["name"], "memory_total_bytes": gpu["memory_total_bytes"]} for gpu in facts["gpus"]]
    told = [_without_paths(launch.effective) for launch in list_launches(store, view.row.host) if launch.effective]
    return {**facts, "effective": [each for place, each in enumerate(told) if each not in told[:place]]}


def _without_paths(effective: Mapping[str, Any]) -> dict[str, Any]:
    """The model by its name, not by the folder it lies in here."""
    model = effective.get("model")
    return {**effective, **({"model": Path(model).name} if isinstance(model, str) else {})}


def _figures(store: Store, view: ExperimentView) -> Iterator[tuple[str, go.Figure]]:
    if any(row.summary.interference is not None for row in view.measurements):
        yield "stalls", stalls(list(_panels(store, view)))
        return
    yield "ttft-by-prompt-length", ladder(ladder_points(view), fits=view.ladders)
    if any(point.kv_peak_ratio for point in cache_points(view)):
        yield "kv-cache-by-context", cache_use(cache_points(view))
    points = throughput_ttft_points(view)
    yield "throughput-ttft", throughput_ttft(points, slo=view.experiment.slo, knees=knees(view.verdicts))


def _panels(store: Store, view: ExperimentView) -> Iterator[StallPanel]:
    """The first measurement of each arm."""
    seen: set[int] = set()
    for row in view.measurements:
        if row.arm_id not in seen:
            seen.add(row.arm_id)
            measured = [request for request in list_requests(store, row.id) if not request.warmup]
            yield StallPanel(row.id, row.arm_name, interference_course(measured))


def _photograph(figures: Mapping[str, go.Figure], folder: Path) -> None:
    """Each figure as a browser draws it, on white."""
    browser_path = find_chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(browser_path), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(device_scale_factor=2)
        for name, figure in figures.items():
            figure.update_layout(paper_bgcolor="white", plot_bgcolor="white", width=WIDTH)
            page.set_viewport_size({"width": WIDTH, "height": int(figure.layout.height)})
            page.set_content(figure.to_html(include_plotlyjs=True, full_html=True, config={"staticPlot": True}))
            page.wait_for_selector(".main-svg")
            page.locator(".js-plotly-plot").screenshot(path=folder / f"{name}.png")
        browser.close()


def _text(run: Run, view: ExperimentView, pictures: list[str]) -> str:
    minutes, seconds = divmod(round(run.seconds), 60)
    command = f"python -m lab {' '.join(run.command)}"
    parts = [
        f"# {view.row.name}",
        view.row.question,
        f"`{command}` on a fresh database, {run.began:%d %B %Y}, {minutes} min {seconds} s with the starts of the "
        "engine. `show.json` is what it printed, `host.json` says on what.",
        f"```\n{result_text(view)}\n```",
        *(f"![{name}]({name}.png)" for name in pictures),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

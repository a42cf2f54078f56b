"""vLLM's own configuration file, as its `--config` reads it (0.32).

Each key becomes `--key value`; true becomes `--key`, and false `--no-key` where the parser has that flag, which it
looks up by the spelling with dashes. Command line wins over file.
"""

from __future__ import annotations

import json

from lab.export.engine_side import EngineSide
from lab.export.text import one_line, plain
from lab.records.workload import Scalar


def vllm_yaml(side: EngineSide) -> str:
    lines = [
        f"# {side.label} configuration of the arm “{one_line(side.arm)}”, experiment “{one_line(side.experiment)}”.",
        f"# Start it: vllm serve --config {side.config_file}",
        *_notes(side),
        f"model: {_yaml(side.model)}",
    ]
    if side.served_name is not None:
        lines.append(f"served-model-name: {_yaml(side.served_name)}")
    lines += [f"host: {_yaml(side.host)}", f"port: {side.port}"]
    lines += [f"{flag}: {_yaml(value)}" for flag, value in side.flags.items()]
    return "\n".join(lines) + "\n"


def _notes(side: EngineSide) -> list[str]:
    """Differences of the measuring host stand in comments only: production has other hardware."""
    notes = []
    if side.overlays:
        where = "The host it was measured on has no GPU; there" if side.measured_on_cpu else "On a host without a GPU"
        notes.append(f"# {where} the lab starts it with:")
        for overlay in side.overlays:
            instead = "" if overlay.asked is None else f" instead of {plain(overlay.asked)}"
            notes.append(f"#   {overlay.knob} = {plain(overlay.used)}{instead}")
    for knob, (asked, took) in side.resolved.items():
        notes.append(f"# Measured with {knob} = {plain(took)}: the engine changed it from {plain(asked)}.")
    return notes


def _yaml(value: Scalar) -> str:
    """Text in double quotes, so that no, 1e3 or 0,1 stay text; JSON strings are YAML strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else plain(value)

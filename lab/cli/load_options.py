"""The options of `lab load`, and the workload and limits that they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lab.findings import error

if TYPE_CHECKING:
    from lab.records.plan import Slo
    from lab.records.workload import Workload, WorkloadKind

KINDS = ("burst", "closed", "open", "gang", "ladder", "interference")
_MOST_TOKENS = 1_048_576  # as in [workload]


class Positive(click.FloatRange):
    """A number above 0, neither infinite nor NaN."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


_POSITIVE = Positive()


def _address(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """An empty one, like that of an unset shell variable, must not send the load to the gateway of the environment."""
    if not value.strip():
        raise click.BadParameter("the address is empty.")
    return value


def _tokenizer_folder(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and not (value / "tokenizer.json").is_file():
        raise click.BadParameter(f"{value} has no tokenizer.json.")
    return value


def _records_file(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    """Found out before the load is sent, not after."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"the folder {value.parent} does not exist.")
    return value


class Listed(click.ParamType[Any]):
    """One value or several with commas between them, each checked by the type of one."""

    name = "n[,n…]"

    def __init__(self, one: click.ParamType[Any]) -> None:
        self._one = one

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(self._one.convert(part.strip(), param, ctx) for part in str(value).split(","))


_OPTIONS = (
    click.option("--base-url", required=True, callback=_address, help="Like http://127.0.0.1:8000/v1."),
    click.option("--model", help="Default: the gateway's, else the first that the server lists."),
    click.option("--kind", type=click.Choice(KINDS), help="Default: open with --rate, else closed."),
    click.option(
        "--concurrency",
        type=Listed(click.IntRange(1)),
        help="Requests under way at a time (default 1); several are measured in turn. Gang: its size.",
    ),
    click.option(
        "--rate", type=Listed(_POSITIVE), help="Requests per second of an open loop, or of interference's long prompts."
    ),
    click.option(
        "--arrival", type=click.Choice(("constant", "poisson", "gamma")), default="poisson", show_default=True
    ),
    click.option("--burstiness", type=_POSITIVE, default=1.0, help="Shape of gamma arrivals."),
    click.option("--requests", type=click.IntRange(1), help="How many requests; for a ladder, of each length."),
    click.option("--duration", type=_POSITIVE, help="Seconds, instead of a number of requests."),
    click.option("--ramp", type=_POSITIVE, help="Seconds in which the load grows first; left out of the figures."),
    click.option("--output-tokens", type=click.IntRange(1, _MOST_TOKENS), default=64, show_default=True),
    click.option(
        "--prompt-tokens",
        type=Listed(click.IntRange(1, _MOST_TOKENS)),
        help="Prompts of exactly these lengths; a ladder's steps; the length of interference's long prompts.",
    ),
    click.option("--prompts", default="mixed", help="mixed, exact or a file (JSONL, ShareGPT JSON)."),
    click.option("--prefix", type=click.Choice(("unique", "shared")), default="unique", show_default=True),
    click.option(
        "--tokenizer",
        type=click.Path(path_type=Path),
        callback=_tokenizer_folder,
        help="A folder with tokenizer.json.",
    ),
    click.option("--natural-length", is_flag=True, help="Do not ask for ignore_eos."),
    click.option("--warmup", type=click.IntRange(0), default=0, help="Requests before the clock, left out."),
    click.option("--timeout", type=_POSITIVE, default=600.0, help="Seconds per request."),
    click.option("--seed", type=int, default=0),
    click.option("--slo-ttft-ms", type=_POSITIVE, help="Goodput counts requests whose first token came by then,"),
    click.option("--slo-tpot-ms", type=_POSITIVE, help="whose tokens took no longer than this on average,"),
    click.option("--slo-e2e-ms", type=_POSITIVE, help="and whose whole answer came by then."),
    click.option("--processes", type=click.IntRange(1), help="Loader processes (default: as load and cores ask)."),
    click.option("--no-probe", is_flag=True, help="Send no request beforehand."),
    click.option("--api-key-env", metavar="NAME", help="The variable that holds the key."),
    click.option(
        "--records",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        callback=_records_file,
        help="Write one JSON object a line per request.",
    ),
)


def load_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def workload_of(given: Mapping[str, Any]) -> Workload:
    """Raises LabError where the options contradict each other or say no end."""
    from lab.records.workload import Workload

    kind: WorkloadKind = given["kind"] or ("open" if given["rate"] else "closed")
    if given["rate"] and given["concurrency"] and kind != "interference":
        raise error("load-rate-and-concurrency")
    if given["requests"] is None and given["duration"] is None and kind != "ladder":
        raise error("workload-without-end", kind=kind)
    exact = given["prompt_tokens"] and given["prompts"] == "mixed" and kind != "interference"
    return Workload(
        kind=kind,
        requests=given["requests"],
        repeat=given["requests"] or 1,
        duration_s=given["duration"],
        ramp_s=given["ramp"],
        output_tokens=given["output_tokens"],
        prompts="exact" if exact else given["prompts"],
        prompt_tokens=given["prompt_tokens"] or (),
        prefix=given["prefix"],
        concurrency=given["concurrency"] or (),
        rate_per_s=given["rate"] or (),
        arrival=given["arrival"],
        burstiness=given["burstiness"],
        warmup_requests=given["warmup"],
        request_timeout_s=given["timeout"],
        ignore_eos=not given["natural_length"],
    )


def slo_of(given: Mapping[str, Any]) -> Slo:
    from lab.records.plan import Slo

    return Slo(ttft_p95_ms=given["slo_ttft_ms"], tpot_p95_ms=given["slo_tpot_ms"], e2e_p95_ms=given["slo_e2e_ms"])

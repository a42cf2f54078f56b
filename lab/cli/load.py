"""`lab load`: measure any OpenAI-compatible address."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lab.cli.store_access import json_option
from lab.environment import Environment, read_environment
from lab.findings import error
from lab.messages import word

if TYPE_CHECKING:
    from lab.cli.gateway_access import Target
    from lab.load.probe import ProbeReport
    from lab.records.request import LoadProgress, LoadResult
    from lab.records.summary import Summary
    from lab.records.workload import LoadJob, Workload

_KINDS = ("burst", "closed", "open", "gang", "ladder", "interference")


@click.command("load", short_help="Measure any OpenAI-compatible address.")
@click.option("--base-url", required=True, help="Like http://127.0.0.1:8000/v1.")
@click.option("--model", help="Default: the gateway's, else the first that the server lists.")
@click.option("--kind", type=click.Choice(_KINDS), help="Default: open with --rate, else closed.")
@click.option("--concurrency", type=click.IntRange(1), help="Requests under way at a time (default 1).")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Requests per second of an open loop.")
@click.option("--arrival", type=click.Choice(("constant", "poisson", "gamma")), default="poisson", show_default=True)
@click.option("--burstiness", type=click.FloatRange(0, min_open=True), default=1.0, help="Shape of gamma arrivals.")
@click.option("--requests", type=click.IntRange(1), help="How many requests.")
@click.option("--duration", type=click.FloatRange(0, min_open=True), help="Seconds, instead of a number of requests.")
@click.option("--output-tokens", type=click.IntRange(1), default=64, show_default=True)
@click.option("--prompt-tokens", type=click.IntRange(1), help="Prompts of exactly this length.")
@click.option("--prompts", default="mixed", help="mixed, exact or a file (JSONL, ShareGPT JSON).")
@click.option("--prefix", type=click.Choice(("unique", "shared")), default="unique", show_default=True)
@click.option("--tokenizer", type=click.Path(path_type=Path), help="A folder with tokenizer.json.")
@click.option("--natural-length", is_flag=True, help="Do not ask for ignore_eos.")
@click.option("--warmup", type=click.IntRange(0), default=0, help="Requests before the clock, left out.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=600.0, help="Seconds per request.")
@click.option("--seed", type=int, default=0)
@click.option("--no-probe", is_flag=True, help="Send no request beforehand.")
@click.option("--api-key-env", metavar="NAME", help="The variable that holds the key.")
@click.option("--records", type=click.Path(path_type=Path), help="Write one JSON object a line per request.")
@json_option
def load(**given: Any) -> int:
    """Send load to an OpenAI-compatible server and print what was measured.

    The exit status is 0 when at least one request succeeded, else 1.
    """
    from lab.cli.gateway_access import find_target
    from lab.load.failures import FATAL

    env = read_environment()
    workload = _workload(given)
    target = find_target(env, given["base_url"], given["model"], given["api_key_env"])
    report = _probe(target, env, send_request=not given["no_probe"])
    if report.failure is not None:
        click.echo(word("load-probe-failed", {"failure": report.failure, "problem": report.message}), err=True)
    if report.failure == "not-json" and not report.checked:
        return _print(given, None, None, report)
    if not (report.model or target.model):
        raise error("load-model-missing")
    job = _job(workload, target, report, env, given)
    if report.failure in FATAL:
        result = _run(_single(job), env, quiet=True)
        if not any(record.ok for record in result.records):
            return _finish(given, result, job, report)
    return _finish(given, _run(job, env, quiet=given["as_json"] or not sys.stderr.isatty()), job, report)


def _workload(given: dict[str, Any]) -> Workload:
    from lab.records.workload import Workload, WorkloadKind

    kind: WorkloadKind = given["kind"] or ("open" if given["rate"] is not None else "closed")
    if given["rate"] is not None and given["concurrency"] is not None and kind != "interference":
        raise error("load-rate-and-concurrency")
    if given["requests"] is None and given["duration"] is None and kind != "ladder":
        raise error("workload-without-end", kind=kind)
    exact = given["prompt_tokens"] is not None
    return Workload(
        kind=kind,
        requests=given["requests"],
        repeat=given["requests"] or 1,
        duration_s=given["duration"],
        output_tokens=given["output_tokens"],
        prompts="exact" if exact and given["prompts"] == "mixed" else given["prompts"],
        prompt_tokens=(given["prompt_tokens"],) if exact else (),
        prefix=given["prefix"],
        concurrency=(given["concurrency"],) if given["concurrency"] else (),
        rate_per_s=(given["rate"],) if given["rate"] else (),
        arrival=given["arrival"],
        burstiness=given["burstiness"],
        warmup_requests=given["warmup"],
        request_timeout_s=given["timeout"],
        ignore_eos=not given["natural_length"],
    )


def _probe(target: Target, env: Environment, *, send_request: bool) -> ProbeReport:
    from lab.load.probe import probe_server

    return probe_server(
        target.base_url or "",
        target.key,
        target.model,
        send_request=send_request,
        use_proxy=True,
        most_requests=1,
        variables=env.variables,
    )


def _job(workload: Workload, target: Target, report: ProbeReport, env: Environment, given: dict[str, Any]) -> LoadJob:
    from uuid import uuid4

    from lab.records.workload import LoadJob

    return LoadJob(
        base_url=report.base_url,
        model=report.model or target.model or "",
        workload=workload,
        api_key_env=target.key_variable,
        include_usage=report.include_usage,
        ignore_eos=report.ignore_eos,
        max_tokens_field=report.max_tokens_field,
        tokenizer_dir=_tokenizer(given["tokenizer"], report.model or target.model, env),
        seed=given["seed"],
        salt=uuid4().hex,
        use_proxy=True,
    )


def _tokenizer(folder: Path | None, model: str | None, env: Environment) -> str | None:
    from lab.engine.model import find_model

    if folder is not None:
        return str(folder)
    if not model:
        return None
    found = find_model(model, env).tokenizer_dir
    return None if found is None else str(found)


def _single(job: LoadJob) -> LoadJob:
    """One request only: the probe was refused in a way that every other request would be too."""
    update = {"kind": "burst", "requests": 1, "duration_s": None, "warmup_requests": 0}
    return job.model_copy(update={"workload": job.workload.model_copy(update=update)})


def _run(job: LoadJob, env: Environment, *, quiet: bool) -> LoadResult:
    from lab.load.supervisor import run_load

    def show(progress: LoadProgress) -> None:
        total = "" if progress.total is None else f" of {progress.total}"
        click.echo(
            f"\r{progress.done}{total} done, {progress.in_flight} under way, {progress.elapsed_s:.0f} s ",
            err=True,
            nl=False,
        )

    if quiet:
        return run_load(job, run_dir=env.run_dir, variables=env.variables)
    result = run_load(job, run_dir=env.run_dir, variables=env.variables, on_progress=show)
    click.echo(err=True)
    return result


def _finish(given: dict[str, Any], result: LoadResult, job: LoadJob, report: ProbeReport) -> int:
    from lab.metrics import summarise
    from lab.records.plan import Slo
    from lab.records.summary import Mark

    marks = [Mark(code=note) for note in report.notes]
    summary = summarise(result, slo=Slo(), workload=job.workload, extra_marks=marks)
    return _print(given, result, summary, report)


def _print(given: dict[str, Any], result: LoadResult | None, summary: Summary | None, report: ProbeReport) -> int:
    from lab.cli.load_report import load_document, load_text, request_line

    if given["records"] is not None:
        lines = [request_line(record) for record in (result.records if result is not None else ())]
        Path(given["records"]).write_text("".join(lines), "utf-8")
    if given["as_json"]:
        document = load_document(summary)
        if report.failure is not None:
            document["probe"] = {"failure": report.failure, "message": report.message}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    elif summary is not None and result is not None:
        click.echo(load_text(summary, result))
    return 0 if summary is not None and summary.succeeded else 1

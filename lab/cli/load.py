"""`lab load`: measure any OpenAI-compatible address."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from lab.cli.load_options import load_options, slo_of, workload_of
from lab.cli.store_access import json_option
from lab.environment import Environment, read_environment
from lab.findings import error
from lab.messages import word

if TYPE_CHECKING:
    from lab.cli.gateway_access import Target
    from lab.cli.load_report import Measured
    from lab.load.probe import ProbeReport
    from lab.records.plan import Slo
    from lab.records.request import LoadProgress, LoadResult
    from lab.records.workload import LoadJob, Workload


@click.command("load", short_help="Measure any OpenAI-compatible address.")
@load_options
@json_option
def load(**given: Any) -> int:
    """Send load to an OpenAI-compatible server and print what was measured.

    Several concurrencies, rates or lengths of a ladder are measured one after the other. The exit status is 0 when at
    least one request of each succeeded, else 1.
    """
    from lab.cli.gateway_access import find_target

    env = read_environment()
    workload = workload_of(given)
    target = find_target(env, given["base_url"], given["model"], given["api_key_env"])
    report = _probe(target, env, send_request=not given["no_probe"])
    if report.failure is not None:
        click.echo(word("load-probe-failed", {"failure": report.failure, "problem": report.message}), err=True)
    if report.failure == "not-json" and not report.checked:
        return _print(given, (), report)
    if not (report.model or target.model):
        raise error("load-model-missing")
    return _print(given, _measure(_job(workload, target, report, env, given), env, given, report), report)


def _measure(
    job: LoadJob, env: Environment, given: Mapping[str, Any], report: ProbeReport
) -> Iterator[tuple[Measured, LoadResult]]:
    """One stage after the other; only one request where the probe was refused in a way that all others would be too."""
    from lab.load.failures import FATAL
    from lab.plan import stages

    slo = slo_of(given)
    if report.failure in FATAL:
        first = _summarised(_single(job), env, slo, report, quiet=True)
        if not first[0].summary.succeeded:
            yield first
            return
    for stage in stages(job.workload):
        quiet = given["as_json"] or not sys.stderr.isatty()
        yield _summarised(job.model_copy(update={"stage": stage}), env, slo, report, quiet=quiet)


def _summarised(
    job: LoadJob, env: Environment, slo: Slo, report: ProbeReport, *, quiet: bool
) -> tuple[Measured, LoadResult]:
    from lab.cli.load_report import Measured
    from lab.metrics import summarise
    from lab.records.summary import Mark

    result = _run(job, env, quiet=quiet)
    marks = [Mark(code=note) for note in report.notes]
    summary = summarise(result, slo=slo, workload=job.workload, extra_marks=marks)
    return Measured.of(job, result, summary), result


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


def _job(
    workload: Workload, target: Target, report: ProbeReport, env: Environment, given: Mapping[str, Any]
) -> LoadJob:
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
        processes=given["processes"],
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


def _print(given: Mapping[str, Any], found: Iterable[tuple[Measured, LoadResult]], report: ProbeReport) -> int:
    """Records are written as each stage ends, so that only one is held at a time."""
    from lab.cli.load_report import load_document, load_text, write_requests

    stages = []
    with _records_file(given["records"]) as file:
        for measured, result in found:
            if file is not None:
                write_requests(file, measured, result)
            if not given["as_json"]:
                click.echo(load_text(measured))
            stages.append(measured)
            del result
    if given["as_json"]:
        document = load_document(stages)
        if report.failure is not None:
            document["probe"] = {"failure": report.failure, "message": report.message}
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    return 0 if stages and all(measured.summary.succeeded for measured in stages) else 1


def _records_file(path: Path | None) -> AbstractContextManager[TextIO | None]:
    return nullcontext() if path is None else path.open("w", encoding="utf-8")

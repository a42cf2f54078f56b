"""`lab doctor`: what is here, and what stands in the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lab.cli.host_ahead import host_for_a_launch
from lab.cli.store_access import json_option
from lab.environment import Environment, read_environment
from lab.findings import Finding, LabError
from lab.messages import word_finding

if TYPE_CHECKING:
    from lab.configs.pair import ConfigPair
    from lab.host.facts import Gpu

State = Literal["ok", "warning", "problem"]
ENGINE = "vllm"
SIGNS: Mapping[State, str] = {"ok": "ok", "warning": "!", "problem": "FAILED"}


@dataclass(frozen=True, slots=True)
class Check:
    """One part of what is here: `facts` for a machine, `text` for a person, `state` for the exit status."""

    name: str
    state: State
    text: str
    facts: Mapping[str, Any]


@click.command("doctor", short_help="What is here: host, GPU, engine, model, gateway, database.")
@json_option
@click.option("--ceiling", is_flag=True, help="Also measure what the load generator keeps up with (about a minute).")
@click.pass_context
def doctor_command(ctx: click.Context, as_json: bool, ceiling: bool) -> None:
    """Look at host, GPU, engine, model, gateway, database and runner; status 1 where something is broken."""
    env = read_environment()
    checks = examine(env)
    if ceiling:
        checks = (*checks, _guarded("ceiling", lambda: _measured_ceiling(env)))
    if as_json:
        click.echo(json.dumps(_as_dict(checks), ensure_ascii=False, indent=2))
    else:
        for check in checks:
            click.echo(f"{check.name:<9} {SIGNS[check.state]:<7} {check.text}")
    if any(check.state == "problem" for check in checks):
        ctx.exit(1)


def examine(env: Environment) -> tuple[Check, ...]:
    """All checks, each on its own: one that fails does not keep the others from looking."""
    pair, configs = _configs(env)
    parts: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("engine", lambda: _engine(env)),
        ("engines", lambda: _other_engines(env)),
        ("model", lambda: _model(env, pair)),
        ("memory", lambda: _memory(env, pair)),
        ("gateway", lambda: _gateway(env, pair)),
        ("database", lambda: _database(env)),
        ("folder", lambda: _folder(env)),
        ("runner", lambda: _runner(env)),
    )
    return (*_host(), configs, *(_guarded(name, look) for name, look in parts))


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except LabError as problem:
        return _found(name, problem.findings[0], {})


def _found(name: str, finding: Finding, facts: Mapping[str, Any]) -> Check:
    state: State = "problem" if finding.severity == "error" else "warning"
    return Check(name, state, word_finding(finding), {**facts, "code": finding.code})


def _host() -> tuple[Check, Check]:
    from lab.host.facts import host_facts

    facts = host_facts()
    table = facts.as_json()
    gpus = {"gpus": table.pop("gpus"), "note": table.pop("gpu_note")}
    memory = f"{facts.memory_bytes / 2**30:.0f} GiB"
    host = f"{facts.name}: {facts.cpu_model}, {facts.cores} cores, {memory}, Python {facts.python}, {facts.os}"
    if facts.gpu_note is not None:
        note = word_finding(Finding(facts.gpu_note, "warning"))
        return Check("host", "ok", host, table), Check("gpu", "warning", f"none: {note}", gpus)
    shown = "; ".join(_gpu_text(gpu) for gpu in facts.gpus)
    return Check("host", "ok", host, table), Check("gpu", "ok", shown, gpus)


def _gpu_text(gpu: Gpu) -> str:
    used, total = (
        "–" if size is None else f"{size / 2**30:.1f}" for size in (gpu.memory_used_bytes, gpu.memory_total_bytes)
    )
    return f"{gpu.index}: {gpu.name or 'unnamed'}, {used} of {total} GiB in use by {len(gpu.processes)} processes"


def _configs(env: Environment) -> tuple[ConfigPair | None, Check]:
    from lab.configs.checks import check_pair
    from lab.configs.pair import read_pair

    facts = {"settings": str(env.settings_file), "config": str(env.config_file)}
    try:
        pair = read_pair(env.config_dir)
        findings = check_pair(pair)
    except LabError as problem:
        return None, _found("configs", problem.findings[0], facts)
    serious = [finding for finding in findings if finding.severity == "error"]
    if serious:
        return pair, _found("configs", serious[0], facts)
    return pair, Check("configs", "ok", f"{env.settings_file}, {env.config_file}", facts)


def _engine(env: Environment) -> Check:
    from lab.engine.catalogue import cached_catalogue
    from lab.engine.definition import load_definition
    from lab.engine.installation import engine_python, engine_version, not_installed

    definition = load_definition(ENGINE, env.config_dir)
    python = engine_python(ENGINE, env)
    version = engine_version(definition, python)
    if version is None:
        raise LabError(not_installed(definition, python))
    catalogue = cached_catalogue(definition, python, env.run_dir)
    facts = {
        "kind": definition.kind,
        "distribution": version.distribution,
        "version": version.version,
        "python": str(python),
        "options": len(catalogue.flags) if catalogue else None,
    }
    return Check("engine", "ok", f"{version.distribution} {version.version} in {python}", facts)


def _other_engines(env: Environment) -> Check:
    """Which of the other engines arms can use here, and what installs the rest."""
    from lab.engine.definition import list_engines, load_definition
    from lab.engine.installation import engine_python, engine_version

    told: list[str] = []
    facts: dict[str, Any] = {}
    for kind in list_engines(env.config_dir):
        if kind == ENGINE:
            continue
        definition = load_definition(kind, env.config_dir)
        found = engine_version(definition, engine_python(kind, env))
        facts[kind] = {"installed": found is not None, "version": found.version if found else None}
        if found is None:
            told.append(f"{definition.label}: not installed ({definition.installed.hint})")
        else:
            told.append(f"{definition.label}: {found.version or found.distribution}")
    return Check("engines", "ok", "; ".join(told) or "none defined", facts)


def _model(env: Environment, pair: ConfigPair | None) -> Check:
    from lab.cli.model_report import facts_json, facts_text, worst
    from lab.engine.model import find_model
    from lab.engine.model_facts import read_model_facts

    name = str(pair.engine_knobs().get("model", "")) if pair is not None else ""
    model = find_model(name, env)
    told = {"name": name or None, "source": model.source, "path": str(model.path) if model.path else None}
    if model.problem is not None:
        return _found("model", model.problem, told)
    place = str(model.path) if model.path else f"fetched by the engine ({model.source})"
    if model.folder is None:
        return Check("model", "ok", f"{name}: {place}", told)
    facts = read_model_facts(name, model.folder)
    told |= facts_json(facts)
    problem = worst(facts.problems)
    if problem is not None:
        return _found("model", problem, told)
    return Check("model", "ok", f"{name}: {place}; {facts_text(facts)}", told)


def _memory(env: Environment, pair: ConfigPair | None) -> Check:
    """What the live pair's launch would take, and the rules that need model and host."""
    from lab.cli.model_report import forecast_json, forecast_text, worst
    from lab.engine.definition import load_definition
    from lab.engine.preflight import look_ahead

    if pair is None:
        return Check("memory", "warning", "unknown: the config pair cannot be read", {})
    ahead = look_ahead(pair, load_definition(ENGINE, env.config_dir), env, host_for_a_launch(env))
    found = ahead.forecast
    if found is None:
        return Check("memory", "warning", "unknown: the model is not on this disk", {})
    problem = worst((*ahead.findings, *found.findings))
    if problem is not None:
        return _found("memory", problem, forecast_json(found))
    return Check("memory", "ok", forecast_text(found), forecast_json(found))


def _gateway(env: Environment, pair: ConfigPair | None) -> Check:
    """Whether it is configured; never the key."""
    from lab.configs.gateway import gateway_config

    if pair is None:
        return Check("gateway", "warning", "unknown: the config pair cannot be read", {"configured": None})
    gateway = gateway_config(pair, env.variables)
    missing = [
        name
        for name, there in (
            ("address", gateway.base_url),
            ("model", gateway.model),
            (gateway.api_key_env, gateway.has_key),
        )
        if not there
    ]
    facts = {
        "configured": not missing,
        "base_url": gateway.base_url,
        "model": gateway.model,
        "api_key_env": gateway.api_key_env,
        "has_key": gateway.has_key,
    }
    if gateway.problem is not None:
        return _found("gateway", gateway.problem, facts)
    if missing:
        return Check("gateway", "warning", f"not configured (missing: {', '.join(missing)}); gateway arms fail", facts)
    return Check("gateway", "ok", f"{gateway.base_url}, model {gateway.model}, key in {gateway.api_key_env}", facts)


def _database(env: Environment) -> Check:
    from lab.host.lock import mask_password
    from lab.store import list_experiments, open_store

    url = mask_password(env.database_url)
    file = Path(env.database_url.removeprefix("sqlite:///")) if env.database_url.startswith("sqlite:///") else None
    if file is not None and not file.exists():
        return Check("database", "warning", f"{url}: not made yet; the first start makes it", {"url": url})
    any_experiment = bool(list_experiments(open_store(env.database_url), limit=1))
    text = f"{url}: {'has experiments' if any_experiment else 'no experiments yet'}"
    return Check("database", "ok", text, {"url": url, "has_experiments": any_experiment})


def _folder(env: Environment) -> Check:
    from lab.host.run_folder import ready_run_folder

    folder = str(ready_run_folder(env.run_dir))
    return Check("folder", "ok", folder, {"folder": folder})


def _runner(env: Environment) -> Check:
    from lab.host.lock import mask_password, read_lock

    holder = read_lock(env.lock_file)
    facts: dict[str, Any] = {"lock_file": str(env.lock_file), "pid": holder.pid if holder else None}
    if holder is None:
        return Check("runner", "warning", "none runs; one is started with the first experiment", facts)
    facts["database"] = holder.database_url
    if holder.database_url != mask_password(env.database_url):
        text = f"process {holder.pid} works for another database, {holder.database_url}: what is queued here waits"
        return Check("runner", "warning", text, facts)
    return Check("runner", "ok", f"process {holder.pid} for {holder.database_url}", facts)


def _measured_ceiling(env: Environment) -> Check:
    """Measured now, without an engine of the lab's beside it, and stored with the facts of this host."""
    from lab.cli.ceiling import Step, measure_ceiling
    from lab.host.facts import host_facts
    from lab.store import open_store, save_client_ceiling

    def tell(step: Step) -> None:
        kept = "not kept" if not step.kept else "kept" if step.server_kept else "the server fell behind"
        text = f"{step.in_flight} in flight: {step.seen_per_s:,.0f} of {step.written_per_s:,.0f} tok/s"
        click.echo(f"  {text}, P95 TTFT {step.late_p95_ms:+.1f} ms: {kept}", err=True)

    found = measure_ceiling(env.run_dir.absolute(), env.variables, on_step=tell)
    save_client_ceiling(open_store(env.database_url), host_facts().name, found)
    more = "" if found.reached else " (the loader fell behind nowhere: its ceiling lies higher)"
    text = f"{found.tokens_per_s:,.0f} tok/s with {found.in_flight} in flight on {found.cores} cores{more}"
    return Check("ceiling", "ok", text, found.model_dump(mode="json"))


def _as_dict(checks: tuple[Check, ...]) -> dict[str, Any]:
    return {check.name: {"state": check.state, "text": check.text, **check.facts} for check in checks}

"""From an arm to a target that can be loaded: an engine launched or kept, a server or gateway probed."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from lab.configs.gateway import is_loopback, resolve_base_url
from lab.configs.pair import ConfigPair
from lab.configs.placeholders import with_variables
from lab.engine.definition import load_definition
from lab.engine.model import find_model
from lab.engine.readiness import LaunchCancelled
from lab.engine.request_fields import request_fields
from lab.environment import read_environment
from lab.findings import LabError
from lab.load.probe import ProbeReport, probe_server
from lab.plan import arm_pair
from lab.records.plan import DEFAULT_ENGINE
from lab.records.summary import Mark
from lab.runner.dying import is_dying
from lab.runner.engine_keeper import EngineKeeper, RunningEngine
from lab.runner.engine_request import engine_marks, engine_request
from lab.runner.outcome import TrialFailed, failed, failed_by
from lab.runner.site import Site
from lab.runner.targets import Observed, TrialTarget
from lab.runner.watch import Watch
from lab.store import TrialWork

_log = logging.getLogger(__name__)


class Targets:
    """Prepares targets; what a server refuses is found out once for each arm of an experiment."""

    def __init__(self, site: Site, keeper: EngineKeeper) -> None:
        self._site = site
        self._keeper = keeper
        self._probes: dict[tuple[int, int], ProbeReport] = {}

    def prepare(self, work: TrialWork, watch: Watch) -> TrialTarget:
        """The target of a trial, ready to be loaded. Raises `TrialFailed` or `TrialInterrupted`."""
        try:
            pair = with_variables(arm_pair(work.experiment, work.arm), read_environment().variables)
        except LabError as problem:
            raise failed_by(problem.findings[0], "bad-config") from problem
        if work.arm.target == "engine":
            return self._engine(work, pair, watch)
        return self._gateway(work, pair) if work.arm.target == "gateway" else self._attached(work, pair)

    def _engine(self, work: TrialWork, pair: ConfigPair, watch: Watch) -> TrialTarget:
        request = engine_request(self._site, pair, work.arm.engine or DEFAULT_ENGINE, frozenset(work.arm.set))
        try:
            engine = self._keeper.provide(request, watch.must_end)
        except LaunchCancelled:
            watch.raise_if_due()
            raise
        return self._engine_target(work, engine, pair)

    def _engine_target(self, work: TrialWork, engine: RunningEngine, pair: ConfigPair) -> TrialTarget:
        definition, command, workload = engine.request.definition, engine.command, work.experiment.workload
        full_length = workload.output_tokens if workload.ignore_eos else None
        return TrialTarget(
            base_url=f"{engine.root_url}/v1",
            model=command.served_name,
            variables=self._site.variables,
            api_key_env=command.api_key_env,
            include_usage=definition.request.include_usage,
            ignore_eos=definition.request.ignore_eos,
            request_fields=request_fields(definition, pair, full_length),
            tokenizer_dir=_text(engine.request.model.tokenizer_dir),
            observed=Observed(engine.root_url, definition, engine.api_key),
            gpu_indices=engine.request.gpu_indices(self._site.gpu_count),
            marks=(*engine.marks, *engine_marks(engine.request, workload)),
            launch_id=engine.launch_id,
            raise_if_dead=self._raise_if_dead,
            alive=self._keeper.alive,
        )

    def _raise_if_dead(self, failing: bool) -> None:
        engine = self._keeper.engine
        if engine is None or not self._keeper.alive() or (failing and is_dying(engine)):
            raise self._keeper.death()

    def _gateway(self, work: TrialWork, pair: ConfigPair) -> TrialTarget:
        # read anew: a key put into .env after the runner's start is there for the next trial
        variables = read_environment().variables
        gateway = pair.gateway(variables)
        if not gateway.has_key:
            raise failed("gateway-unset", variable=gateway.api_key_env)
        if gateway.problem is not None:
            raise failed_by(gateway.problem, "gateway-unset")
        if gateway.base_url is None:
            raise TrialFailed("gateway-unset", {"code": "trial-gateway-address-unset"})
        target = TrialTarget(
            base_url=gateway.base_url,
            model=gateway.model or "",
            variables=variables,
            api_key_env=gateway.api_key_env,
            request_fields=pair.request_fields(),
            tokenizer_dir=self._tokenizer_dir(pair),
            use_proxy=True,
        )
        return self._probed(work, target)

    def _attached(self, work: TrialWork, pair: ConfigPair) -> TrialTarget:
        try:
            base_url = resolve_base_url(work.arm.base_url or "")
            # asked for its counters in vLLM's way; one that knows none of it just has none
            definition = load_definition(DEFAULT_ENGINE, self._site.env.config_dir)
        except LabError as problem:
            raise failed_by(problem.findings[0], "bad-config") from problem
        variables, name = read_environment().variables, work.arm.api_key_env
        key = variables.get(name, "").strip() if name else None
        if key == "":
            raise TrialFailed("bad-config", {"code": "trial-attach-key-unset", "variable": name})
        target = TrialTarget(
            base_url=base_url,
            model=str(work.arm.set.get("model", "")),
            variables=variables,
            api_key_env=name,
            request_fields=pair.request_fields(),
            tokenizer_dir=self._tokenizer_dir(pair),
            use_proxy=not is_loopback(urlsplit(base_url).hostname or ""),
            observed=Observed(base_url.removesuffix("/v1"), definition, key),
        )
        return self._probed(work, target)

    def _probed(self, work: TrialWork, target: TrialTarget) -> TrialTarget:
        """The target as the server takes it; what had to be left out is named by a mark."""
        key = (work.experiment_id, work.arm_id)
        report = self._probes.get(key) or _probe(work, target)
        self._probes[key] = report
        return replace(
            target,
            base_url=report.base_url,
            model=report.model or target.model,
            include_usage=report.include_usage,
            ignore_eos=report.ignore_eos,
            max_tokens_field=report.max_tokens_field,
            marks=tuple(Mark(code=note) for note in report.notes),
        )

    def _tokenizer_dir(self, pair: ConfigPair) -> str | None:
        """The local model's tokenizer, so that all arms of an experiment get prompts of the same lengths."""
        return _text(find_model(str(pair.engine_knobs().get("model", "")), self._site.env).tokenizer_dir)


def _probe(work: TrialWork, target: TrialTarget) -> ProbeReport:
    """One small request finds out what the server takes. Raises `TrialFailed` when it refuses even that."""
    report = probe_server(
        target.base_url,
        target.variables.get(target.api_key_env or ""),
        target.model or None,
        use_proxy=target.use_proxy,
        request_fields=target.request_fields,
        variables=target.variables,
    )
    if report.failure is None:
        return report
    _log.warning("probe of %s: %s %s", report.base_url, report.failure, report.message)
    where = work.arm.target
    params = {"address": report.base_url, "failure": report.failure, "problem": report.message}
    refused = report.failure in ("auth", "quota") and where == "gateway"
    raise TrialFailed("gateway-auth" if refused else "load-failed", {"code": f"trial-{where}-refused", **params})


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)

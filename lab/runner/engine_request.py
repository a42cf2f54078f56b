"""What a trial or a serve intent asks of an engine: checked before anything is launched."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lab.configs.checks import check_launch
from lab.configs.pair import ConfigPair
from lab.engine.catalogue import Catalogue, cached_catalogue, read_catalogue
from lab.engine.command import EngineCommand, build_command, spoken_notes
from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.installation import check_installed, engine_python
from lab.engine.model import ModelRef, find_model
from lab.engine.parallel_rules import devices_wanted, named_devices
from lab.engine.port import LOOPBACK, port_owner
from lab.engine.preflight import look_ahead
from lab.engine.request_fields import check_request
from lab.findings import Finding, LabError
from lab.host.facts import host_facts
from lab.records.summary import Mark
from lab.records.workload import Scalar, Workload
from lab.runner.outcome import FailureClass, failed, failed_by
from lab.runner.site import Site
from lab.runner.status import READING_OPTIONS


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """An engine as wanted; the command depends on the port it will get."""

    definition: EngineDefinition
    model: ModelRef
    knobs: Mapping[str, Scalar]
    explicit: frozenset[str]
    port: int | None
    python: Path
    catalogue: Catalogue | None = None

    def gpu_indices(self, gpu_count: int) -> tuple[int, ...]:
        """The GPUs that the engine will use, as NVML counts them."""
        named = named_devices(self.knobs)
        if named:
            return tuple(int(each) for each in named if each.isdecimal())
        return tuple(range(min(gpu_count, devices_wanted(self.knobs))))


def engine_request(site: Site, pair: ConfigPair, kind: str, explicit: frozenset[str]) -> EngineRequest:
    """The checked request for a pair.

    Raises `TrialFailed` "bad-config", "unsupported" or "model-missing" with the finding's own words.
    """
    _refuse_errors(check_launch(pair, kind))
    knobs = dict(pair.engine_knobs())
    try:
        definition = load_definition(kind, site.env.config_dir)
    except LabError as problem:
        raise failed_by(problem.findings[0], "bad-config") from problem
    python = engine_python(kind, site.env)
    _refuse_errors(check_installed(definition, python), "unsupported")
    _refuse_errors(check_request(definition, pair, explicit))
    model = find_model(str(knobs.get("model", "")), site.env)
    if model.problem is not None and model.problem.severity == "error":
        raise failed_by(model.problem, "model-missing")
    _refuse_errors(look_ahead(pair, definition, site.env, host_facts(), explicit=explicit).findings)
    port = knobs.get("port")
    request = EngineRequest(definition, model, knobs, explicit, int(port) if port else None, python)
    return _checked(site, request)


def engine_marks(request: EngineRequest, workload: Workload) -> tuple[Mark, ...]:
    """Reservations that hold for every measurement of this engine."""
    marks = [Mark(code=code) for code in spoken_notes(request.definition, request.knobs)]
    rules = request.definition.request
    if workload.ignore_eos and not (rules.ignore_eos or rules.full_length):
        marks.append(Mark(code="ignore-eos-refused"))
    return tuple(marks)


def _checked(site: Site, request: EngineRequest) -> EngineRequest:
    """Refuse what the command's findings forbid; unknown flags are looked up in the engine's own parser first."""
    request = _with_catalogue(site, request)
    findings = engine_command(site, request, request.port or 1).findings
    if any(finding.code == "flag-unchecked" for finding in findings):
        try:
            catalogue = read_catalogue(request.definition, request.python, site.env.run_dir)
        except LabError as problem:
            raise failed_by(problem.findings[0], "bad-config") from problem
        request = replace(request, catalogue=catalogue)
        findings = engine_command(site, request, request.port or 1).findings
    _refuse_errors(findings)
    return request


def _with_catalogue(site: Site, request: EngineRequest) -> EngineRequest:
    """The engine's own list of switches tells whether it has those that are set to observe it.

    Asked once per release (about ten seconds), then kept on disk; an engine that cannot be asked says why when it is
    launched.
    """
    if not request.definition.observe or request.catalogue is not None:
        return request
    before = site.heartbeat.activity.detail
    if cached_catalogue(request.definition, request.python, site.env.run_dir) is None:
        site.heartbeat.show(detail=READING_OPTIONS)
    try:
        return replace(request, catalogue=read_catalogue(request.definition, request.python, site.env.run_dir))
    except LabError:
        return request
    finally:
        site.heartbeat.show(detail=before)


def engine_command(site: Site, request: EngineRequest, port: int) -> EngineCommand:
    """The command on a port; whatever stands against it is in its findings."""
    return build_command(
        request.definition,
        request.knobs,
        request.explicit,
        host_kind=site.kind,
        model=request.model,
        port=port,
        python=request.python,
        devices=None,
        variables=site.variables,
        catalogue=request.catalogue,
    )


def choose_port(wanted: int | None) -> int:
    """The wanted port, else a free one of the system's choice.

    Raises `TrialFailed` "port-taken" when something listens on the wanted one, naming it where that can be read.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted or 0))
        except OSError as problem:
            owner = port_owner(wanted) if wanted else None
            if owner is not None and owner.pid is not None:
                taken = Finding("port-taken", "error", {"port": wanted, "pid": owner.pid, "name": owner.name})
                raise failed_by(taken, "port-taken") from problem
            raise failed("port-taken", port=wanted, reason=problem.strerror) from problem
        return int(probe.getsockname()[1])


def _refuse_errors(findings: tuple[Finding, ...], failure: FailureClass = "bad-config") -> None:
    for finding in findings:
        if finding.severity == "error":
            raise failed_by(finding, failure)

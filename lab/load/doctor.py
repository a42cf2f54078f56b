"""The connection doctor: step by step from the address to the first token, each step with what it found."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lab.configs.gateway import resolve_base_url
from lab.findings import Finding, LabError, Param
from lab.load.address import Address, find_route, read_address
from lab.load.probe import UNREACHABLE, ProbeReport, probe_server

StepName = Literal["address", "key", "route", "connection", "models", "request", "stream", "usage"]
SHOWN_MODELS = 8


@dataclass(frozen=True, slots=True)
class DoctorStep:
    """`ok` None is a remark that is neither good nor bad; `code` with `params` words what was found."""

    name: StepName
    ok: bool | None
    code: str
    params: Mapping[str, Param]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    steps: tuple[DoctorStep, ...]
    report: ProbeReport | None

    @property
    def ok(self) -> bool:
        return all(step.ok is not False for step in self.steps)


def connection_doctor(
    base_url: str,
    api_key: str | None,
    model: str | None,
    *,
    key_variable: str | None = None,
    use_proxy: bool = True,
    variables: Mapping[str, str] | None = None,
) -> Diagnosis:
    """Sends at most three small requests; never raises for what a server or network does."""
    environ = os.environ if variables is None else variables
    try:
        resolved = resolve_base_url(base_url)
        address = read_address(resolved)
    except LabError as problem:
        return Diagnosis((_from_finding("address", problem.findings[0]),), None)
    steps = [_step("address", True, "probe-address", given=base_url.strip(), resolved=resolved)]
    if key_variable is not None:
        steps.append(_step("key", None if api_key else False, _key_code(api_key), name=key_variable))
    try:
        steps.append(_route_step(address, environ, use_proxy=use_proxy))
    except LabError as problem:
        return Diagnosis((*steps, _from_finding("route", problem.findings[0])), None)
    report = probe_server(base_url, api_key, model, use_proxy=use_proxy, variables=environ)
    return Diagnosis((*steps, *_report_steps(report)), report)


def _step(name: StepName, ok: bool | None, code: str, /, **params: Param) -> DoctorStep:
    return DoctorStep(name, ok, code, params)


def _from_finding(name: StepName, finding: Finding) -> DoctorStep:
    return DoctorStep(name, False, finding.code, finding.params)


def _key_code(api_key: str | None) -> str:
    return "probe-key-set" if api_key else "probe-key-unset"


def _route_step(address: Address, variables: Mapping[str, str], *, use_proxy: bool) -> DoctorStep:
    route = find_route(address, variables, use_proxy=use_proxy)
    if route.proxy is None:
        return _step("route", None, "probe-route-direct", address=address.authority)
    return _step("route", None, "probe-route-proxy", proxy=route.proxy.authority, variable=route.variable)


def _report_steps(report: ProbeReport) -> list[DoctorStep]:
    if report.failure in UNREACHABLE and not report.checked:
        return [_failed("connection", report)]
    steps = [_step("connection", True, "probe-connected", resolved=report.base_url)]
    if report.failure == "model" and report.model is None:
        return [*steps, _models_step(report), _step("request", False, "probe-model-unnamed")]
    if report.failure is not None and not report.checked:
        return [*steps, _failed("models", report)]
    steps.append(_models_step(report))
    if report.failure is not None:
        return [*steps, _failed("request", report)]
    steps.append(_step("request", True, "probe-answered", model=report.model, ms=_rounded(report.first_token_ms)))
    steps.append(_step("stream", report.streamed, "probe-streams" if report.streamed else "probe-not-streaming"))
    steps.append(_step("usage", True if report.usage_given else None, _usage_code(report)))
    return steps


def _failed(name: StepName, report: ProbeReport) -> DoctorStep:
    return _step(name, False, "probe-failed", failure=report.failure, problem=report.message)


def _models_step(report: ProbeReport) -> DoctorStep:
    if not report.models:
        return _step("models", None, "probe-models-not-listed")
    listed = ", ".join(report.models[:SHOWN_MODELS]) + (", …" if len(report.models) > SHOWN_MODELS else "")
    if report.model in report.models:
        return _step("models", True, "probe-models", count=len(report.models), listed=listed)
    return _step("models", None, "probe-model-not-listed", model=report.model, listed=listed)


def _usage_code(report: ProbeReport) -> str:
    if report.usage_given:
        return "probe-usage"
    return "probe-no-usage" if report.include_usage else "probe-usage-refused"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)

"""An engine as data: what `configs/engines/<kind>.toml` says, checked and frozen."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab.findings import error
from lab.records.workload import Scalar


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise ValueError(f"not a regular expression: {problem}") from problem
    return text


Pattern = Annotated[str, AfterValidator(_regular_expression)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Installed(_Part):
    """What must be there before a launch: one of these Python packages in the engine's interpreter, or a program.

    `module` is one more that the package needs to serve. `hint` is the command that installs it.
    """

    distributions: list[str] = Field(default_factory=list)
    module: str | None = None
    program: str | None = None
    hint: str


class CatalogueSource(_Part):
    """Where the engine's own parser stands, newest place first; each place is `module:attribute`.

    "argparse": `parser` names classes, and `source` functions that fill (or make) such a parser. "click": `source`
    names applications of click or typer, and `command` the one command of them that serves.
    """

    kind: Literal["argparse", "click"]
    source: list[str]
    parser: list[str] = Field(default_factory=lambda: ["argparse:ArgumentParser"])
    command: str | None = None
    # where the kind of device is told that the engine was built for
    device: str | None = None


class EngineEnvironment(_Part):
    """Variables the engine gets and must not get; `secret` and `keep` are shell patterns, `keep` wins."""

    set: dict[str, str] = Field(default_factory=dict)
    set_for_local_model: dict[str, str] = Field(default_factory=dict)
    remove: list[str] = Field(default_factory=list)
    secret: list[str] = Field(default_factory=list)
    keep: list[str] = Field(default_factory=list)


class Absent(_Part):
    """A knob this engine lacks: what comes nearest, and the values that ask for nothing."""

    nearest: str | None = None
    harmless: list[Scalar] = Field(default_factory=list)
    always_error: bool = False
    code: str = "knob-absent"


class Observe(_Part):
    """A switch that makes the engine tell more about each request; `unless` is one that it refuses together with it."""

    flag: str
    unless: str | None = None


class Request(_Part):
    """What a request to this engine may carry.

    `fields` maps a knob to a field of the body; one with a dot stands inside an object, and an object named in
    `json_text` is sent as JSON text. `always` is sent with every request. `ignore_eos` false: the engine refuses that
    field, and `full_length` is sent in its place (`{output_tokens}` stands for the asked length).
    """

    ignore_eos: bool = True
    include_usage: bool = True
    fields: dict[str, str] = Field(default_factory=dict)
    always: dict[str, Scalar] = Field(default_factory=dict)
    full_length: dict[str, Scalar] = Field(default_factory=dict)
    json_text: list[str] = Field(default_factory=list)


class Note(_Part):
    """What must be said wherever this engine is used, unless the named knob is true; a code of the messages."""

    code: str
    unless: str | None = None


class Clash(_Part):
    """Knobs that cannot stand together: `when` maps each to its value; the code of the messages says why.

    `beside` are knobs that clash with it by being set at all; 0 counts as not set.
    """

    when: dict[str, Scalar]
    beside: list[str] = Field(default_factory=list)
    code: str


class OverlayRule(_Part):
    """How a kind of host differs: a default, an upper bound, or a multiple with what replaces anything else."""

    host: Literal["cpu", "cuda"]
    knob: str
    rule: Literal["default", "at-most", "multiple-of"]
    value: Scalar
    multiple: int | None = None
    reason: str

    @model_validator(mode="after")
    def _multiple_stands_with_its_rule(self) -> Self:
        if (self.rule == "multiple-of") != (self.multiple is not None):
            raise ValueError('"multiple" belongs to the rule "multiple-of" and to no other')
        return self


class PhasePattern(_Part):
    """A part of the start, recognised by a line of the log."""

    name: str
    pattern: Pattern


class Ready(_Part):
    """`models_path` None: the engine lists no models, so the name it answers to shows in its first token only.

    A start fails when nothing of the engine moves for `stuck_s`, or when it does nothing but compute for `timeout_s`;
    one that gets on may take as long as it takes.
    """

    models_path: str | None = None
    probe_path: str
    probe_body: dict[str, Any]
    stuck_s: float = Field(default=120.0, gt=0, strict=False)
    timeout_s: float = Field(default=1200.0, gt=0, strict=False)
    phase: list[PhasePattern] = Field(default_factory=list)


class ClientPaths(_Part):
    """What the lab asks a running server; the defaults are vLLM's, for a server that was not launched here.

    "" is for what an engine does not have: it is then not asked.
    """

    metrics_path: str = "/metrics"
    running_metric: str = "vllm:num_requests_running"
    waiting_metric: str = "vllm:num_requests_waiting"
    reset_path: str = "/reset_prefix_cache"
    health_path: str = "/health"


class Metrics(_Part):
    """`series` maps the lab's series to the engine's metric."""

    path: str
    series: dict[str, str] = Field(default_factory=dict)


class EffectiveSource(_Part):
    """Where each knob in force is read: paths of a JSON answer ("!" in front: the opposite), labels of a metric."""

    path: str | None = None
    labels_metric: str | None = None
    knobs: dict[str, str] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)


class FailurePattern(_Part):
    """`share` names two groups: the first divided by the second becomes the parameter `share`.

    `following` is how many lines after the matching one belong to the message. `during` are the steps of the start in
    which the line must stand (any, where it is empty); `moment` is the word for them: the same line asks for another
    cure while weights are loaded than under load. `unexplained` ones count only in a log in which no error of its own
    stands, only echoes: a process that is killed says nothing.
    """

    failure: str = Field(alias="class")
    pattern: Pattern
    remedies: list[str] = Field(default_factory=list)
    share: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    following: int = 0
    during: list[str] = Field(default_factory=list)
    unexplained: bool = False
    moment: Literal["load", "profiling", "under-load"] | None = None


class EngineDefinition(_Part):
    """All the lab knows of one kind of engine."""

    kind: str
    label: str
    # whether the knobs' canonical names are this engine's own, so that any flag of its parser is a knob
    canonical: bool = False
    installed: Installed
    catalogue: CatalogueSource | None = None
    command: list[str]
    # its own configuration file as YAML, flag by flag, which an export writes; None where it reads none
    config_file: str | None = None
    # the engine is given one file of the model's folder, which this pattern finds
    model_file: str | None = None
    # the name that requests carry, made of the same parts as the command
    request_model: str = "{served_name}"
    devices_variable: str | None = None
    api_key_variable: str | None = None
    owned: list[str] = Field(default_factory=list)
    not_flags: list[str] = Field(default_factory=list)
    environment: EngineEnvironment = EngineEnvironment()
    # one flag, several that all get the value (with spaces between), or a pair for true and false ("" for none)
    flags: dict[str, str | Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(default_factory=dict)
    # how this engine writes a knob's values ("": leave it out); a knob that stands here takes these values only
    values: dict[str, dict[str, str]] = Field(default_factory=dict)
    # the flag counts the whole, the knob one of as many as another knob says
    times: dict[str, str] = Field(default_factory=dict)
    # knobs that mean something near but not the same; a code of the messages
    meaning: dict[str, str] = Field(default_factory=dict)
    # knobs that count only where another one, a switch, is true
    only_with: dict[str, str] = Field(default_factory=dict)
    request: Request = Request()
    absent: dict[str, Absent] = Field(default_factory=dict)
    observe: list[Observe] = Field(default_factory=list)
    overlay: list[OverlayRule] = Field(default_factory=list)
    note: list[Note] = Field(default_factory=list)
    clash: list[Clash] = Field(default_factory=list)
    ready: Ready
    client: ClientPaths = ClientPaths()
    metrics: Metrics | None = None
    effective: EffectiveSource = EffectiveSource()
    failure: list[FailurePattern] = Field(default_factory=list)
    # errors that only say that something else failed
    echo: Pattern | None = None


def load_definition(kind: str, config_dir: Path) -> EngineDefinition:
    """The definition of a kind of engine.

    Raises `LabError`: "unknown-engine" (with the kinds there are), "engine-definition-broken" (file, place, problem).
    """
    path = config_dir / "engines" / f"{kind}.toml"
    if kind not in (kinds := list_engines(config_dir)):
        raise error("unknown-engine", engine=kind, known=", ".join(kinds) or "none")
    try:
        return EngineDefinition.model_validate(tomllib.loads(path.read_text("utf-8")))
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise error("engine-definition-broken", file=str(path), place=place, problem=first["msg"]) from problem
    except (OSError, ValueError) as problem:
        raise error("engine-definition-broken", file=str(path), place=None, problem=str(problem)) from problem


def list_engines(config_dir: Path) -> tuple[str, ...]:
    """The kinds of engine that have a definition."""
    return tuple(sorted(path.stem for path in (config_dir / "engines").glob("*.toml")))

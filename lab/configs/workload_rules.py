"""What is wrong with a [workload] table: unknown keys, values, and what each kind of load needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from lab.configs.documents import Document, Path
from lab.configs.knob_values import value_problem
from lab.configs.knobs import knob_table, nearest_name
from lab.findings import Finding

PREFIX = "workload."
TEMPLATE_TOKENS = 32  # what a chat template adds to a prompt, about (measured: 30)
_NEEDS = {
    "closed": "concurrency",
    "open": "rate_per_s",
    "ladder": "prompt_tokens",
    "interference": "prompt_tokens",
}
_RAMPED = ("closed", "open")
_REPEATS = ("ladder", "interference")  # kinds that count by `repeat` where `requests` is not given


def workload_findings(
    table: Mapping[str, object], document: Document | None = None, root: Path = ("workload",)
) -> list[Finding]:
    """All findings on a table that stands at `root` of the document."""
    return [_placed(finding, document, (*root, *where)) for where, finding in workload_problems(table)]


def workload_problems(table: Mapping[str, object]) -> list[tuple[Path, Finding]]:
    """Wrong keys and values with their path in the table; without those, what the kind of load lacks."""
    return _key_problems(table) or _kind_problems(table)


def workload_keys() -> list[str]:
    return [name.removeprefix(PREFIX) for name in knob_table() if name.startswith(PREFIX)]


def _key_problems(table: Mapping[str, object]) -> list[tuple[Path, Finding]]:
    found: list[tuple[Path, Finding]] = []
    for key, value in table.items():
        knob = knob_table().get(PREFIX + key)
        if knob is None:
            nearest = nearest_name(key, workload_keys(), 0.6)
            found.append(((key,), Finding("unknown-key", params={"key": f"workload.{key}", "nearest": nearest})))
            continue
        if isinstance(value, list | tuple) and not knob.many:
            params = {"knob": knob.name, "value": str(value), "kind": "one value", "written": str(value)}
            found.append(((key,), Finding("wrong-type", params=params)))
            continue
        if isinstance(value, list | tuple) and not value:
            found.append(((key,), Finding("empty-list", params={"key": knob.name})))
        for index, item in enumerate(value if isinstance(value, list | tuple) else [value]):
            problem = value_problem(knob, item)
            if problem is not None:
                found.append(((key, index) if isinstance(value, list | tuple) else (key,), problem))
    return found


def _kind_problems(table: Mapping[str, object]) -> list[tuple[Path, Finding]]:
    kind = str(table.get("kind", "ladder"))
    found: list[tuple[Path, Finding]] = []
    needed = _NEEDS.get(kind)
    if needed is not None and needed not in table and table:
        found.append(((), Finding("workload-needs", params={"kind": kind, "key": needed})))
    if kind not in _REPEATS and "requests" not in table and "duration_s" not in table:
        found.append(((), Finding("workload-needs", params={"kind": kind, "key": "requests"})))
    if kind == "burst" and "duration_s" in table:
        found.append((("duration_s",), Finding("burst-has-no-duration")))
    if "ramp_s" in table and kind not in _RAMPED:
        found.append((("ramp_s",), Finding("ramp-without-meaning", params={"kind": kind})))
    if table.get("prompts") == "exact" and "prompt_tokens" not in table:
        found.append((("prompts",), Finding("workload-needs", params={"kind": "exact", "key": "prompt_tokens"})))
    requests, most = table.get("requests"), max(_whole(table.get("concurrency")), default=0)
    if kind == "closed" and isinstance(requests, int) and requests < most:
        params = {"requests": requests, "concurrency": most}
        found.append((("requests",), Finding("fewer-requests-than-slots", "warning", params)))
    return found


def longest_request(table: Mapping[str, object]) -> tuple[int, int]:
    """Tokens of the prompt, where its length is known (else 0), and of the answer of the longest request.

    A long prompt that is thrown in asks for a single token: only the steady answers of an interference are long.
    """
    kind, output = table.get("kind", "ladder"), table.get("output_tokens")
    exact = kind in _REPEATS or table.get("prompts") == "exact"
    prompt = max(_whole(table.get("prompt_tokens")) if exact else [], default=0)
    answer = output if isinstance(output, int) else cast(int, _default_output())
    return max((prompt, 1), (0, answer), key=sum) if kind == "interference" else (prompt, answer)


def _default_output() -> object:
    return knob_table()[PREFIX + "output_tokens"].default


def _whole(value: object) -> list[int]:
    return [item for item in (value if isinstance(value, list | tuple) else [value]) if isinstance(item, int)]


def _placed(finding: Finding, document: Document | None, path: Path) -> Finding:
    if document is None:
        return finding
    for end in range(len(path), 0, -1):
        place = document.locate(path[:end])
        if place is not None:
            return replace(finding, file=document.file, line=place.line, column=place.column)
    return finding.in_file(document.file)

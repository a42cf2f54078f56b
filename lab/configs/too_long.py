"""Requests of an experiment that are longer than an arm's engine takes: said before anything is launched."""

from __future__ import annotations

from collections.abc import Sequence

from lab.configs.arms import Found
from lab.configs.checks import check_lengths
from lab.configs.documents import Path
from lab.configs.pair import ConfigPair
from lab.configs.request_sizes import too_long_lengths
from lab.findings import Finding
from lab.messages import word
from lab.records.plan import Arm
from lab.records.workload import Workload

TOO_LONG = "request-too-long"


def too_long_findings(arms: Sequence[tuple[Path, Arm]], pair: ConfigPair, workload: Workload) -> list[Found]:
    """What the runner will leave out or shorten, a warning for each arm; errors where nothing would be measured."""
    problems = [_problem(arm, pair, workload) for _, arm in arms]
    hopeless = all(problem is not None and _nothing_left(problem, workload) for problem in problems)
    return [
        (where, _refused(arm, problem) if hopeless else _warning(arm, problem, workload))
        for (where, arm), problem in zip(arms, problems, strict=True)
        if problem is not None
    ]


def _problem(arm: Arm, pair: ConfigPair, workload: Workload) -> Finding | None:
    if arm.target != "engine":
        return None
    return next((each for each in check_lengths(pair.with_knobs(arm.set), workload) if each.code == TOO_LONG), None)


def _nothing_left(problem: Finding, workload: Workload) -> bool:
    return workload.too_long == "skip" and too_long_lengths(workload, _limit(problem))[1]


def _limit(problem: Finding) -> int:
    return int(problem.params["max_model_len"] or 0)


def _refused(arm: Arm, problem: Finding) -> Finding:
    reason = word(problem.code, problem.params)
    return Finding("arm-rule", "error", {"arm": arm.name, "rule": problem.code, "reason": reason})


def _warning(arm: Arm, problem: Finding, workload: Workload) -> Finding:
    lengths, nothing_left = too_long_lengths(workload, _limit(problem))
    params = {
        "arm": arm.name,
        "lengths": ", ".join(map(str, lengths)),
        "output_tokens": problem.params["output_tokens"],
        "max_model_len": _limit(problem),
    }
    if workload.too_long == "shrink":
        return Finding("arm-shrinks", "warning", params)
    return Finding("arm-left-out" if nothing_left else "arm-skips", "warning", params)

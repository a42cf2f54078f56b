"""Whether a stage's requests fit into what the target takes: sent whole, shortened, or left out, and said."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from lab.configs.request_sizes import TEMPLATE_RESERVE, RequestSize, request_size
from lab.findings import LabError, Param
from lab.load.preflight import FullSizeAnswer, longest_mixed_characters, try_full_size
from lab.records.summary import Mark
from lab.records.workload import LoadJob, Stage, Workload
from lab.runner.targets import TrialTarget
from lab.store import Store, get_launch

SKIPPED, SHRUNK = "stage-too-long", "workload-shrunk"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageFit:
    """The job to send, with the marks it carries; `job` None leaves the stage out, and `marks` say why."""

    job: LoadJob | None
    marks: tuple[Mark, ...] = ()


def context_limit(store: Store, target: TrialTarget) -> int | None:
    """The most tokens that one request may have on this target; None where nobody tells."""
    limits = [*_of_launch(store, target.launch_id), *_of_models(target)]
    return min(limits, default=None)


def fit_stage(job: LoadJob, limit: int | None, variables: Mapping[str, str], *, may_try: bool = True) -> StageFit:
    """The job as it can be sent. Where sizes alone do not decide, one request of full size is tried, if it may be.

    It may not where requests cost money (a gateway): what is too long there is refused, recorded as such, and free.
    """
    size = request_size(job.workload, job.stage)
    if limit is not None and size.least > limit:
        return _too_long(job, size, limit)
    if not may_try or _surely_fits(job.workload, size, limit):
        return StageFit(job)
    answer = _asked(job, variables)
    if answer.failure != "too-long":
        return StageFit(job)
    return _too_long(job, size, answer.limit_tokens or limit, answer.message)


def _of_launch(store: Store, launch_id: int | None) -> list[int]:
    effective = get_launch(store, launch_id).effective if launch_id is not None else None
    found = [(effective or {}).get(name) for name in ("max_model_len", "kv_cache_size_tokens")]
    return [value for value in found if isinstance(value, int) and value > 0]


def _of_models(target: TrialTarget) -> list[int]:
    """vLLM and SGLang name it in their list of models."""
    path = target.observed.definition.ready.models_path if target.observed is not None else None
    if target.observed is None or path is None:
        return []
    try:
        with target.observed.client() as client:
            listed = (client.get_json(path) or {}).get("data")
    except LabError:
        return []
    models = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    found = [each.get("max_model_len") for each in models if each.get("id") == target.model]
    return [value for value in found if isinstance(value, int) and value > 0]


def _surely_fits(workload: Workload, size: RequestSize, limit: int | None) -> bool:
    if size.prompt_tokens is not None:
        return limit is not None and size.least + TEMPLATE_RESERVE <= limit
    if workload.prompts != "mixed":
        return True  # the user's own prompts differ: those that are too long fail one by one, with their class
    return limit is None or longest_mixed_characters() + TEMPLATE_RESERVE + size.output_tokens <= limit


def _asked(job: LoadJob, variables: Mapping[str, str]) -> FullSizeAnswer:
    try:
        answer = try_full_size(job, variables)
    except LabError as problem:  # the loader will say it properly
        _log.info("no request of full size could be tried: %s", problem)
        return FullSizeAnswer()
    _log.info("a request of full size: %s %s", answer.failure or "taken", answer.message or "")
    return answer


def _too_long(job: LoadJob, size: RequestSize, limit: int | None, message: str | None = None) -> StageFit:
    told: dict[str, Param] = {
        "stage_kind": job.stage.kind,
        "stage_value": job.stage.value,
        "prompt_tokens": size.prompt_tokens,
        "output_tokens": size.output_tokens,
        "limit": limit,
    }
    if job.workload.too_long == "shrink" and limit is not None:
        return _shrunk(job, size, limit, told)
    if limit is None:
        return StageFit(None, (Mark(code="stage-refused-as-too-long", params={**told, "message": message}),))
    return StageFit(None, (Mark(code=SKIPPED, params=told),))


def _shrunk(job: LoadJob, size: RequestSize, limit: int, told: Mapping[str, Param]) -> StageFit:
    """Prompts of a fixed length give way; where they have none, or the answer alone is too long, answers do."""
    room, workload, stage = limit - TEMPLATE_RESERVE, job.workload, job.stage
    output = size.output_tokens
    if size.prompt_tokens is None:
        output, prompt = min(output, room - longest_mixed_characters()), None
    else:
        output = output if output < room else room // 2
        prompt = min(size.prompt_tokens, room - output)
    if output < 1 or (prompt is not None and prompt < 1):
        return StageFit(None, (Mark(code=SKIPPED, params=told),))
    # the long prompts of an interference ask for one token, which is not the length of its steady answers
    if workload.kind != "interference" or prompt is None:
        workload = workload.model_copy(update={"output_tokens": output})
    if prompt is not None:
        workload = workload.model_copy(update={"prompt_tokens": _cut(workload.prompt_tokens, prompt)})
        stage = Stage(kind=stage.kind, value=prompt) if stage.kind == "prompt_tokens" else stage
    params = {**told, "sent_prompt_tokens": prompt, "sent_output_tokens": output}
    return StageFit(job.model_copy(update={"workload": workload, "stage": stage}), (Mark(code=SHRUNK, params=params),))


def _cut(lengths: tuple[int, ...], most: int) -> tuple[int, ...]:
    return tuple(min(length, most) for length in lengths)

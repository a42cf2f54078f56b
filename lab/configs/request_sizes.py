"""How many tokens the longest request of a stage needs, as far as the workload fixes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.configs.workload_rules import TEMPLATE_TOKENS
from lab.records.workload import Stage, Workload

TEMPLATE_RESERVE = 2 * TEMPLATE_TOKENS
"""Chat templates differ: within this of the limit, only the server knows."""


@dataclass(frozen=True, slots=True)
class RequestSize:
    """`prompt_tokens` is None where the prompts have no fixed length; the chat template comes on top of both."""

    prompt_tokens: int | None
    output_tokens: int

    @property
    def least(self) -> int:
        """What it needs without a template."""
        return (self.prompt_tokens or 1) + self.output_tokens


def request_size(workload: Workload, stage: Stage) -> RequestSize:
    """The longest request of one stage. A long prompt thrown in asks for a single token of output."""
    longest, output = max(workload.prompt_tokens, default=None), workload.output_tokens
    if workload.kind == "interference":
        return max(RequestSize(longest, 1), RequestSize(None, output), key=lambda size: size.least)
    if stage.kind == "prompt_tokens" and stage.value is not None:
        return RequestSize(int(stage.value), output)
    return RequestSize(longest if workload.kind == "ladder" or workload.prompts == "exact" else None, output)


def too_long_lengths(workload: Workload, limit: int) -> tuple[Sequence[int], bool]:
    """Prompt lengths whose requests cannot fit into `limit` tokens, and whether nothing of the workload is left."""
    if workload.kind != "ladder":
        size = request_size(workload, Stage())
        return ((size.prompt_tokens or 0,), True) if size.least > limit else ((), False)
    beyond = [n for n in workload.prompt_tokens if n + workload.output_tokens > limit]
    return beyond, len(beyond) == len(workload.prompt_tokens)

"""Answers that say the same again and again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from lab.records.request import RequestRecord
from lab.records.table import RequestTable

RUN_WORDS = 4
LEAST_WORDS = 20
LOOPING_RATIO = 0.5
MOST_ANSWERS = 200
"""Reading every answer of a large measurement would take longer than all its other numbers."""
_MOST_CHARACTERS = 6000
# a word, or one character of a script that is written without spaces between words
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


def loops(text: str) -> bool:
    """Whether at least half of the runs of four words in the second half of the text stood in it before.

    A text of fewer than twenty words is too short to tell and does not loop.
    """
    words = [match.group() for match in islice(_WORD.finditer(text[-_MOST_CHARACTERS:].lower()), _MOST_CHARACTERS)]
    if len(words) < LEAST_WORDS:
        return False
    runs = list(zip(*(words[i:] for i in range(RUN_WORDS)), strict=False))
    middle = len(runs) // 2
    said = set(runs[:middle])
    again = 0
    for run in runs[middle:]:
        again += run in said
        said.add(run)
    return again / (len(runs) - middle) >= LOOPING_RATIO


def looping_ratio(answers: Sequence[RequestRecord]) -> float | None:
    """The share (0..1) of the answers that loop; of many, 200 are read, evenly picked. None without any text."""
    table = RequestTable.of(answers)
    told = table.where(table.text_bytes > 0)
    if not len(told):
        return None
    step = max(1.0, len(told) / MOST_ANSWERS)
    picked = [told.text(int(i * step)) for i in range(min(len(told), MOST_ANSWERS))]
    return sum(map(loops, picked)) / len(picked)

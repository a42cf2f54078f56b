"""The model's own tokenizer, read from its `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Tokenizer:
    """Counts text without special tokens; the chat template's own tokens are the server's business."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def count(self, text: str) -> int:
        return len(self._inner.encode(text, add_special_tokens=False).ids)

    def count_each(self, texts: Sequence[str]) -> list[int]:
        found = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in found]

    def vocabulary_texts(self, limit: int) -> list[str]:
        """Some single tokens as text, for languages and vocabularies that common English words do not fit."""
        size = int(self._inner.get_vocab_size())
        step = max(1, size // limit)
        texts = (self._inner.decode([token]) for token in range(0, size, step))
        return [text.strip() for text in texts if text.strip().isalnum()]


def read_tokenizer(directory: str | None) -> Tokenizer | None:
    """None where there is no readable `tokenizer.json`."""
    if directory is None:
        return None
    path = Path(directory) / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer as Inner  # costs memory that a job without a tokenizer need not pay

    try:
        inner = Inner.from_file(str(path))
    except Exception:  # the library raises bare Exception for a file that it cannot read
        return None
    inner.no_truncation()
    inner.no_padding()
    return Tokenizer(inner)

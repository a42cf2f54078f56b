"""Changed values of the config pair as text: one line for each, keys never shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lab.configs.changes import ChangedValue
from lab.configs.secrets import MASK, is_literal_secret
from lab.store import ConfigSaveRow
from pages.components.i18n import _, ngettext
from pages.components.status import local_time

_SHOWN = 3
_LONGEST = 40


def value_text(key: str, value: Any) -> str:
    """A value as a file spells it, an en dash where the key is not set."""
    if value is None:
        return "–"
    if is_literal_secret(key.rpartition(".")[2], value):
        return MASK
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def change_text(change: ChangedValue) -> str:
    """decode.max_num_seqs 32 → 64."""
    old, new = (value_text(change.key, value) for value in (change.old, change.new))
    return f"{change.key} {old} → {new}"


def changes_text(changes: Sequence[ChangedValue] | None) -> str:
    """The first few, and how many more."""
    if changes is None:
        return _("a file could not be read")
    if not changes:
        return _("comments or layout only")
    text = ", ".join(change_text(change) for change in changes[:_SHOWN])
    more = len(changes) - _SHOWN
    return text if more <= 0 else text + " " + ngettext("and {n} more", "and {n} more", more).format(n=more)


def what_changed(row: ConfigSaveRow) -> str:
    """What a version changed, in one line."""
    if row.parent_hash is None:
        return _("first seen")
    text = changes_text(row.changes)
    if row.restored_id is None:
        return text
    return _("version {number} brought back").format(number=row.restored_id) + f": {text}"


def who(row: ConfigSaveRow) -> str:
    """The author; a change that was found on disk has none."""
    return row.person or (_("outside the lab") if row.parent_hash else _("found on disk"))


def version_title(row: ConfigSaveRow) -> str:
    """Number, author, moment and note: a version in a list to choose from."""
    note = f" · {row.note}" if row.note else ""
    return f"{row.id} · {who(row)} · {local_time(row.created_at)}{note}"

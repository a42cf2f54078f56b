"""What people wrote, put into Markdown without becoming markup."""

from __future__ import annotations

import re

# Streamlit makes links of bare addresses, the full stop after them included
_ADDRESS = re.compile(r"https?://[^\s`<>\"'（），。；：、]*[^\s`<>\"'（），。；：、.,;:!?)]")


def plain_markdown(text: str) -> str:
    """Text of a message or a file: code in back-ticks stays code, addresses become code, nothing else is markup."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _with_addresses(text)
    return "`".join(part if index % 2 else _with_addresses(part) for index, part in enumerate(parts))


def _with_addresses(text: str) -> str:
    found, end = [], 0
    for match in _ADDRESS.finditer(text):
        found += [escaped(text[end : match.start()]), f"`{match.group()}`"]
        end = match.end()
    return "".join([*found, escaped(text[end:])])


def escaped(text: str) -> str:
    """Names and remarks: nothing in them is markup."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>$~#:|" else character for character in text)

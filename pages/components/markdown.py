"""What people wrote, put into Markdown without becoming markup."""

from __future__ import annotations


def plain_markdown(text: str) -> str:
    """Text of a message or a file: code in back-ticks stays code, nothing else is markup."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "`".join(part if index % 2 else escaped(part) for index, part in enumerate(parts))


def escaped(text: str) -> str:
    """Names and remarks: nothing in them is markup."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>$~#:|" else character for character in text)

"""Keys never stand in the two files: what a literal key looks like, and how texts with one are shown."""

from __future__ import annotations

import re

from lab.findings import LabError, error

_SECRET_KEYS = re.compile(r"(?i)(^|[_.-])(api_?key|hf_token|token|secret|password|authorization)$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
LOOKS_SECRET = re.compile(r"\bsk-[A-Za-z0-9_\-]{8,}|\bhf_[A-Za-z0-9]{20,}|\b(?:gsk|ghp)_[A-Za-z0-9]{20,}")
_SURELY_SECRET = re.compile(r"\bsk-[A-Za-z0-9_\-]{16,}")
_ASSIGNED = re.compile(r"""(?i)((?:api_?key|hf_token|secret|password)["']?\s*[=:]\s*)(["'])([^"'\n]+)(["'])""")
# without quotes, in a text that cannot be parsed: long, of letters and figures, so that words of a sentence stay
_ASSIGNED_BARE = re.compile(
    r"""(?i)((?:api_?key|hf_token|secret|password)["']?\s*[=:]\s*)"""
    r"""(?![$"'{])(?=[^\s"',;#]*\d)(?=[^\s"',;#]*[a-z])[^\s"',;#}\]]{12,}"""
)
_IN_A_COMMENT = re.compile(_ASSIGNED_BARE.pattern.replace(r"[=:]\s*", r"""[=:]\s*["']?"""))
_PASTED = re.compile(r"(?<![a-z])(?:sk-|hf_|gsk_|ghp_)[^\s,;\"'`}\])]{4,}|(?<=Bearer )\s*[^\s$\"'`{]{8,}")
_PASTED_VALUE = re.compile(
    r"""(?i)(?:api_?key|hf_token|secret|password|authorization)["'`]?\s*[=:]?\s*["'`]?"""
    r"""(?![$_]|os\.environ|\{env|[A-Z_]+\b)([^\s,;"'`}\])\u3000-\u9fff]{6,})"""
)
# a password before the host, or a key among the parameters of an address; placeholders stay
_IN_ADDRESS = re.compile(
    r"""(?i)(://[^/\s:@"'`]*:|[?&](?:api_?key|key|(?:access_|auth_)?token|secret|password|sig(?:nature)?)=)"""
    r"""(?!\$\{|\{env:|\*\*\*)([^/?&@#\s"'`]+)(?=@|[&#\s"'`]|$)"""
)
MASK = "***"


def is_secret_key(name: str) -> bool:
    """Whether a key of that name would hold a secret (api_key; not api_key_env, not max_tokens)."""
    return _SECRET_KEYS.search(name) is not None


def is_literal_secret(name: str, value: object) -> bool:
    """Whether `value` is a key written out: text under a secret's name that is no placeholder, or key-like text."""
    if isinstance(value, dict):
        return any(is_literal_secret(str(key), each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return any(is_literal_secret(name, each) for each in value)
    if not isinstance(value, str) or not value.strip():
        return False
    if holds_address_key(value):
        return True
    without = _PLACEHOLDER.sub("", value).replace("Bearer", "").strip()
    if LOOKS_SECRET.search(without):
        return True
    if name.endswith("_env"):
        return _NAME.fullmatch(value.strip()) is None
    return is_secret_key(name) and bool(without)


def holds_address_key(text: str) -> bool:
    """Whether an address in the text carries a password or a key."""
    return any(_is_address_key(match) for match in _IN_ADDRESS.finditer(text))


def _is_address_key(match: re.Match[str]) -> bool:
    """A port is no password: `://host:8000` is followed by a path, a password by an `@`."""
    return not match.group(1).startswith("://") or match.string.startswith("@", match.end())


def without_address_keys(text: str, mask: str) -> str:
    return _IN_ADDRESS.sub(lambda match: match.group(1) + mask if _is_address_key(match) else match.group(), text)


def placeholder_name(value: object) -> str | None:
    """NAME of `${NAME}` or `{env:NAME}`."""
    match = _PLACEHOLDER.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None else match.group(1) or match.group(2)


def refuse_secret(name: str, value: object) -> None:
    """Raises "secret-in-file"; the value is never repeated."""
    if is_literal_secret(name, value):
        raise secret_error(name)


def secret_error(name: str) -> LabError:
    return error("secret-in-file", key=name)


def masked(text: str) -> str:
    """A text of a configuration file with keys written out replaced by `***`; placeholders stay."""
    return LOOKS_SECRET.sub(MASK, mask_assigned(without_address_keys(text, MASK), MASK))


def mask_assigned(text: str, mask: str) -> str:
    """The text with `mask` for whatever a key of a secret's name is set to, placeholders apart."""

    def without_value(match: re.Match[str]) -> str:
        before, opening, value, closing = match.groups()
        return match.group() if _PLACEHOLDER.search(value) else f"{before}{opening}{mask}{closing}"

    return _ASSIGNED_BARE.sub(lambda match: match.group(1) + mask, _ASSIGNED.sub(without_value, text))


def blanked(text: str) -> str:
    """Pasted text with what may be a key replaced by as many `*`, so that offsets stay; rather too much than a key."""
    text = _PASTED.sub(lambda match: "*" * len(match.group()), text)
    text = _IN_ADDRESS.sub(_address_blanked, text)
    return _PASTED_VALUE.sub(lambda match: match.group()[: -len(match.group(1))] + "*" * len(match.group(1)), text)


def _address_blanked(match: re.Match[str]) -> str:
    return match.group(1) + "*" * len(match.group(2)) if _is_address_key(match) else match.group()


def lines_with_keys(text: str) -> list[int]:
    """Lines that hold what can only be a real key, comments included: the whole text is stored with experiments."""
    lines = enumerate(text.split("\n"), start=1)
    return [
        number
        for number, line in lines
        if _SURELY_SECRET.search(line) or _IN_A_COMMENT.search(line.partition("#")[2]) or holds_address_key(line)
    ]

"""Taking keys out of a text before anything keeps it: a placeholder stands where one was written out."""

from __future__ import annotations

from lab.configs.documents import open_document
from lab.configs.gateway import DEFAULT_KEY_VARIABLE
from lab.configs.secrets import LOOKS_SECRET, is_literal_secret, mask_assigned, without_address_keys
from lab.findings import LabError


def without_keys(text: str, file: str, variable: str = DEFAULT_KEY_VARIABLE) -> str:
    """The text with `${VARIABLE}` in place of each key, comments included; `api_key_env` gets the name alone.

    A text that cannot be parsed is searched line by line. Without a key it comes back as it was.
    """
    text = without_address_keys(LOOKS_SECRET.sub(f"${{{variable}}}", text), f"${{{variable}}}")
    try:
        document = open_document(text, file)
    except LabError:
        return "".join(_line_without_keys(line, variable) for line in text.splitlines(keepends=True))
    for path, value in document.leaves():
        if isinstance(value, list) and is_literal_secret(path[-1], value):
            document = open_document(mask_assigned(document.text, f"${{{variable}}}"), file)
        elif is_literal_secret(path[-1], value):
            document = document.set(path, _instead(path[-1], variable))
    return document.text


def _instead(key: str, variable: str) -> str:
    """What stands there rightly; a token of another service has a variable of its own name."""
    if key.endswith("_env"):
        return variable
    return "${HF_TOKEN}" if key.lower() == "hf_token" else f"${{{variable}}}"


def _line_without_keys(line: str, variable: str) -> str:
    return line if line.lstrip().startswith("#") else mask_assigned(line, f"${{{variable}}}")

"""Keep locale/*/LC_MESSAGES/lab.po in step with the texts of pages, messages and tables.

python tools/translations.py update    add new texts, drop those that are gone
python tools/translations.py check     name what is untranslated or has other placeholders; status 1 if anything
"""

from __future__ import annotations

import ast
import re
import string
import sys
import tomllib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE_DIR = ROOT / "locale"
DOMAIN = "lab.po"
# which keys of which TOML tables are shown, wherever they stand in the file
TOML_TEXTS = {
    "lab/messages/*.toml": ("text", "remedy"),
    "lab/configs/knobs.toml": ("label", "help", "effect", "unit"),
    "lab/configs/lab_keys.toml": ("label", "help"),
    "configs/experiments/*.toml": ("name", "question"),
}
PYTHON_TEXTS = ("app.py", "pages/**/*.py")
# tables of lab (which knows no gettext): call, and the places of the arguments that are shown, from 0
TABLES = {"lab/metrics/definitions.py": ("Metric", (1, 4, 5))}
# values of lab that pages translate where they show them
VALUES = {"lab/metrics/definitions.py": ("PERCENTILE_HELP",)}
KEYWORDS: Mapping[str, int] = {"_": 1, "N_": 1, "ngettext": 2}  # function → how many texts it takes
_FIELD = re.compile(r"[A-Za-z_]\w*")


def texts() -> Catalog:
    """Every text that a page can show, with the files it stands in."""
    catalogue = Catalog(project="inference tuning lab", charset="utf-8")
    for path in _files(PYTHON_TEXTS):
        for line, message in python_texts(path.read_text("utf-8")):
            catalogue.add(message, locations=[(_name(path), line)])
    for pattern, keys in TOML_TEXTS.items():
        for path in _files((pattern,)):
            with path.open("rb") as file:
                for text in toml_texts(file, keys):
                    catalogue.add(text, locations=[(_name(path), 0)])
    for path, text in _texts_of_lab():
        catalogue.add(text, locations=[(_name(path), 0)])
    return catalogue


def _texts_of_lab() -> Iterator[tuple[Path, str]]:
    for name, (call, places) in TABLES.items():
        for path in _files((name,)):
            yield from ((path, text) for text in table_texts(path.read_text("utf-8"), call, places))
    for name, names in VALUES.items():
        for path in _files((name,)):
            yield from ((path, text) for text in value_texts(path.read_text("utf-8"), names))


def python_texts(source: str) -> Iterator[tuple[int, str | tuple[str, str]]]:
    """Line and text of every `_`, `N_` and `ngettext` with literal texts, also inside an f-string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KEYWORDS:
            literals = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if len(literals) == KEYWORDS[node.func.id] and all(literals):
                yield node.lineno, literals[0] if len(literals) == 1 else (literals[0], literals[1])


def toml_texts(file: BinaryIO, keys: tuple[str, ...]) -> Iterator[str]:
    """The values of `keys` at any depth, in the order of the file."""
    yield from _texts_below(tomllib.load(file), keys)


def table_texts(source: str, call: str, places: tuple[int, ...]) -> Iterator[str]:
    """The string literals that stand at `places` in calls of `call`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == call:
            for place in places:
                value = node.args[place] if place < len(node.args) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield value.value


def value_texts(source: str, names: tuple[str, ...]) -> Iterator[str]:
    """The string literals assigned to these names at the top of a module."""
    for node in ast.parse(source).body:
        value = node.value if isinstance(node, ast.Assign) else None
        named = isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets)
        if named and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def placeholders(text: str) -> tuple[str, ...]:
    """The names of the fields of a `str.format` template, sorted; a text that is no template has none."""
    try:
        fields = [field for _literal, field, _spec, _conversion in string.Formatter().parse(text) if field]
    except ValueError:
        return ()
    return tuple(sorted({match.group() for field in fields if (match := _FIELD.match(field))}))


def problems(language: str) -> list[str]:
    """What is wrong with a language's file, one line each: missing, fuzzy, stale, other placeholders."""
    known = read_catalogue(language)
    wanted = texts()
    found = []
    for message in _messages(wanted):
        translated = known.get(message.id)
        if translated is None or not _is_complete(translated):
            found.append(f"untranslated: {_singular(message)!r} ({_places(message)})")
        elif translated.fuzzy:
            found.append(f"fuzzy: {_singular(message)!r}")
        elif wrong := _other_placeholders(translated):
            found.append(f"placeholders differ: {_singular(message)!r} → {wrong!r}")
    found += [f"stale: {_singular(m)!r}" for m in _messages(known) if wanted.get(m.id) is None]
    return found


def update(language: str) -> None:
    """Bring a language's file in step; translations of texts that stay are kept, nothing is guessed."""
    known = read_catalogue(language)
    known.update(texts(), no_fuzzy_matching=True, update_creation_date=False)
    known.obsolete.clear()
    buffer = BytesIO()
    write_po(buffer, known, width=110, sort_by_file=True, include_lineno=False)
    _path(language).parent.mkdir(parents=True, exist_ok=True)
    _path(language).write_bytes(buffer.getvalue())


def read_catalogue(language: str) -> Catalog:
    path = _path(language)
    if not path.is_file():
        return Catalog(
            locale=language,
            header_comment=f"# Texts of the pages, {language}; kept by tools/translations.py",
            project="inference tuning lab",
            version="0.1",
            copyright_holder="the authors of the inference tuning lab",
            msgid_bugs_address="-",
            last_translator="-",
            language_team="-",
            charset="utf-8",
            fuzzy=False,
        )
    with path.open("rb") as file:
        return read_po(file, locale=language)


def languages() -> list[str]:
    return sorted(path.name for path in LOCALE_DIR.iterdir() if path.is_dir())


def _path(language: str) -> Path:
    return LOCALE_DIR / language / "LC_MESSAGES" / DOMAIN


def _files(patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _texts_below(value: object, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            if key in keys and isinstance(below, str):
                if below:
                    yield below
            else:
                yield from _texts_below(below, keys)
    elif isinstance(value, list):
        for below in value:
            yield from _texts_below(below, keys)


def _messages(catalogue: Catalog) -> list[Message]:
    return [message for message in catalogue if message.id]


def _singular(message: Message) -> str:
    first = message.id[0] if isinstance(message.id, (tuple, list)) else message.id
    return str(first)


def _places(message: Message) -> str:
    return ", ".join(sorted({name for name, _line in message.locations}))


def _forms(message: Message) -> list[str]:
    forms = list(message.string) if isinstance(message.string, (tuple, list)) else [message.string]
    return [form or "" for form in forms]


def _is_complete(message: Message) -> bool:
    return bool(message.string) and all(_forms(message))


def _other_placeholders(message: Message) -> str | None:
    """The first form whose placeholders are not those of the original (for a plural: of its plural form)."""
    original = message.id[1] if isinstance(message.id, (tuple, list)) else message.id
    return next((form for form in _forms(message) if placeholders(form) != placeholders(original)), None)


def main(arguments: list[str]) -> int:
    if arguments == ["update"]:
        for language in languages():
            update(language)
        return 0
    if arguments == ["check"]:
        found = [f"{language}: {problem}" for language in languages() for problem in problems(language)]
        print("\n".join(found) or "every text is translated")
        return 1 if found else 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A config pair from one article's form into the other's, with a list of what has no counterpart there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lab.configs.dialects import engine_args_place, form_keys
from lab.configs.documents import Document, open_document
from lab.configs.knobs import Dialect, File, Knob, Place, Removed, Switch, knob_table
from lab.configs.pair import ConfigPair
from lab.configs.positions import BOM, same_value
from lab.configs.secrets import is_literal_secret, placeholder_name
from lab.configs.toml_scan import scan_toml
from lab.configs.written_files import Leaf, write_file
from lab.findings import Finding, Param, Severity, error

FILES: tuple[File, ...] = ("settings", "config")
KEPT = ("metrics", "workload")
_API_KEY, _API_KEY_ENV = "gateway.api_key", "gateway.api_key_env"
_ENGINE_ARGS = ("engine", "args")


@dataclass(frozen=True, slots=True)
class Moved:
    """A value's old and new place; `knob` is None for keys that the lab does not know."""

    file: File
    path: tuple[str, ...]
    to_file: File
    to_path: tuple[str, ...]
    knob: str | None


@dataclass(frozen=True, slots=True)
class Conversion:
    """`lost` has no counterpart in the new form; `notes` say what became something else or stayed behind."""

    pair: ConfigPair
    lost: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    moved: tuple[Moved, ...] = ()


def convert(pair: ConfigPair, to: Dialect) -> Conversion:
    """The pair in the form of article `to`; one that has it already comes back as it is.

    Raises `LabError` where a text cannot be parsed, and "secret-in-file" for a key written out.
    """
    if all(pair.file_dialect(file) == to for file in FILES):
        return Conversion(pair)
    return _Converter(pair, to).run()


@dataclass(slots=True)
class _Converter:
    pair: ConfigPair
    to: Dialect
    leaves: dict[File, dict[tuple[str, ...], Leaf]] = field(default_factory=lambda: {"settings": {}, "config": {}})
    lost: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)

    def run(self) -> Conversion:
        # a file that has the wanted form already has the first word
        for file in sorted(FILES, key=lambda each: self.pair.file_dialect(each) != self.to):
            document = self.pair.document(file)
            for path, value in document.leaves():
                self._leaf(document, file, path, value)
            self._comments(document, kept_tables(document.text) if file == "config" else "")
        texts = {file: self._text(file) for file in FILES}
        pair = replace(self.pair, settings_text=texts["settings"], config_text=texts["config"])
        return Conversion(pair, tuple(self.lost), tuple(self.notes), tuple(self.moved))

    def _leaf(self, document: Document, file: File, path: tuple[str, ...], value: object) -> None:
        if is_literal_secret(path[-1], value):
            raise error("secret-in-file", key=".".join(path))
        entry = form_keys(file, self.pair.file_dialect(file)).get(path)
        if self.pair.file_dialect(file) == self.to or path[0] == "workload":
            self._put(document, file, path, Place(file, path), entry.name if isinstance(entry, Knob) else None)
        elif isinstance(entry, Removed):
            self._lose(document, path, "no-counterpart-removed", nearest=entry.nearest)
        elif isinstance(entry, Switch):
            self._switch(document, path, entry, value)
        elif isinstance(entry, Knob):
            self._knob(document, file, path, entry, value)
        elif path[:2] == _ENGINE_ARGS and len(path) > 2:
            target = engine_args_place(self.to)
            self._put(document, file, path, Place(target.file, (*target.path, *path[2:])), None)
        else:
            self._put(document, file, path, Place(file, path), None)

    def _knob(self, document: Document, file: File, path: tuple[str, ...], knob: Knob, value: object) -> None:
        if knob.name == _API_KEY and self.to == 3:
            self._key_variable(document, file, path, value)
            return
        places = knob.places_in(self.to)
        rank = knob.places_in(self.pair.file_dialect(file)).index(Place(file, path))
        if rank < len(places):
            self._put(document, file, path, places[rank], knob.name)
        elif not places:
            self._lose(document, path, "no-counterpart")
        elif not same_value(self._first(knob), value):
            self._lose(document, path, "no-second-place", used=places[0].dotted)

    def _first(self, knob: Knob) -> object:
        raw = self.pair.raw_value(knob.name)
        return None if raw is None else raw.value

    def _key_variable(self, document: Document, file: File, path: tuple[str, ...], value: object) -> None:
        """Article 3 names the key's variable instead of holding a placeholder."""
        name = placeholder_name(value)
        if name is None:
            self._lose(document, path, "no-counterpart")
            return
        place = Place("settings", ("api_key_env",))
        self.leaves["settings"][place.path] = Leaf(name)
        self.moved.append(Moved(file, path, place.file, place.path, _API_KEY_ENV))
        self._say(self.notes, document, path, "key-variable-named", "advice", name=name)

    def _switch(self, document: Document, path: tuple[str, ...], switch: Switch, value: object) -> None:
        if value is not False:
            self._say(self.notes, document, path, "switch-is-default", "advice")
            return
        for name, meant in switch.when_false.items():
            place = knob_table()[name].places_in(self.to)[0]
            self.leaves[place.file][place.path] = Leaf(meant)
            self._say(self.notes, document, path, "switch-became", "advice", knob=name, used=meant)

    def _put(self, document: Document, file: File, path: tuple[str, ...], place: Place, knob: str | None) -> None:
        value = document.get(path)
        if value is None:
            return  # a JSON null sets nothing
        if place.file == "settings" and not _json_has(value):
            self._lose(document, path, "no-counterpart")
            return
        known = self.leaves[place.file].get(place.path)
        if known is None:
            self.leaves[place.file][place.path] = Leaf(value, document.literal(path))
        elif not same_value(known.value, value):
            self._lose(document, path, "no-second-place", used=place.dotted)
            return
        if (place.file, place.path) != (file, path):
            self.moved.append(Moved(file, path, place.file, place.path, knob))

    def _lose(self, document: Document, path: tuple[str, ...], code: str, **params: Param) -> None:
        self._say(self.lost, document, path, code, "warning", **params)

    def _say(
        self,
        where: list[Finding],
        document: Document,
        path: tuple[str, ...],
        code: str,
        severity: Severity,
        **params: Param,
    ) -> None:
        place = document.locate(path)
        line, column = (None, None) if place is None else (place.line, place.column)
        shown: Mapping[str, Param] = {"key": ".".join(path), "value": str(document.get(path)), **params}
        where.append(Finding(code, severity, shown, document.file, line, column))

    def _comments(self, document: Document, kept: str) -> None:
        count = _comment_lines(document)
        if kept:
            count -= _comment_lines(open_document(kept, document.file))
        if count > 0:
            self.notes.append(Finding("comments-left-behind", "advice", {"count": count}, document.file))

    def _text(self, file: File) -> str:
        """Written new, with the line ends and byte-order mark of the file it replaces."""
        old = self.pair.document(file).text
        kept = kept_tables(old) if file == "config" else ""
        leaves = {path: leaf for path, leaf in self.leaves[file].items() if not kept or path[0] not in KEPT}
        text = write_file(file, leaves)
        text = text.replace("\n", "\r\n") if "\r\n" in old else text
        gap = ("\r\n" if "\r\n" in old else "\n") if text and kept else ""
        return (BOM if old.startswith(BOM) else "") + text + gap + kept


def kept_tables(text: str) -> str:
    """[metrics] and [workload], which both forms have, as they stand, with the comments above their headers.

    Empty where their keys do not stand below headers of their own.
    """
    text = text.removeprefix(BOM)
    scan = scan_toml(text)
    headers = sorted(scan.headers.values(), key=lambda header: header.start)
    if any(entry.path[0] in KEPT and entry.table[:1] != entry.path[:1] for entry in scan.entries.values()):
        return ""
    starts = [_above(text, header.start) for header in headers] + [len(text)]
    pieces = [text[starts[index] : starts[index + 1]] for index, header in enumerate(headers) if header.path[0] in KEPT]
    return "".join(pieces)


def _above(text: str, offset: int) -> int:
    """The first of the comment lines that stand directly above a header."""
    at = text.rfind("\n", 0, offset) + 1
    while at > 0:
        before = text.rfind("\n", 0, at - 1) + 1
        if not text[before:at].lstrip(" \t").startswith("#"):
            break
        at = before
    return at


def _comment_lines(document: Document) -> int:
    """How many lines of a TOML text have a comment: a `#` outside of every value."""
    if document.file.endswith(".json"):
        return 0
    covered = [document.literal(path) or "" for path, _ in document.leaves()]
    text = document.text
    for literal in covered:
        if "#" in literal:
            text = text.replace(literal, "", 1)
    return sum("#" in line for line in text.split("\n"))


def _json_has(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True

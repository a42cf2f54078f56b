"""Edits that are offered for findings on the config pair: shown as a diff, never made on their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lab.configs.checks import check_pair
from lab.configs.dialects import form_keys
from lab.configs.documents import Document
from lab.configs.edits import Edit, apply_edits, edit_between, overlapping
from lab.configs.gateway import DEFAULT_KEY_VARIABLE
from lab.configs.knobs import Dialect, File, Kind, Knob, Switch, flag_knob, knob_table, lab_keys
from lab.configs.pair import ConfigPair
from lab.configs.paste import read_paste
from lab.configs.reading import Reading, read_leniently
from lab.findings import Finding, LabError, Param

FILES: tuple[File, ...] = ("settings", "config")
Path = tuple[str | int, ...]
_REMOVED = ("removed-key", "removed-flag", "set-twice", "burst-has-no-duration", "chunk-without-chunking")
_FIXED_VALUES: Mapping[str, object] = {"host-not-loopback": "127.0.0.1", "stream-off": True}
_LEAST_REBUILT = 3  # values that a text must give back before a rebuilt file is worth an offer


@dataclass(frozen=True, slots=True)
class Repair:
    """One offer: `code` with `params` says what would be done, `edits` are of the file's text as it is."""

    finding: Finding
    file: File
    edits: tuple[Edit, ...]
    code: str
    params: Mapping[str, Param] = field(default_factory=dict)


def repairs(pair: ConfigPair, findings: Iterable[Finding] | None = None) -> tuple[Repair, ...]:
    """What can be offered for the findings (None: those of `check_pair`), in the order of the files. Never raises."""
    known = check_pair(pair) if findings is None else tuple(findings)
    found: list[Repair] = []
    for file in FILES:
        text, name = _text(pair, file)
        reading = read_leniently(text, name)
        offers = _offers(pair, file, reading, known)
        found += offers
        if not offers and (reading.faults or any(each.code == "no-settings" for each in known if each.file == name)):
            found += _rebuilt(pair, file, known)
    return tuple(found)


def repaired(pair: ConfigPair, chosen: Iterable[Repair]) -> ConfigPair:
    """The pair with the chosen repairs made.

    Of two that touch the same characters the one that covers the other counts, else the first; one that would break
    what another put right is left out.
    """
    taken: list[Repair] = []
    for repair in chosen:
        rivals = [other for other in taken if other.file == repair.file and overlapping(repair.edits, other.edits)]
        if all(_covers(repair, other) for other in rivals):
            without = [other for other in taken if other not in rivals]
            if _faults(pair, repair.file, [*without, repair]) <= _faults(pair, repair.file, taken):
                taken = [*without, repair]
    for file in FILES:
        pair = replace(pair, **{f"{file}_text": _applied(pair, file, taken)})
    return pair


def _covers(repair: Repair, other: Repair) -> bool:
    """Whether it replaces all that the other one touches: a value with its quotes, say."""
    return all(any(mine.start <= each.start and each.end <= mine.end for mine in repair.edits) for each in other.edits)


def _faults(pair: ConfigPair, file: File, taken: Iterable[Repair]) -> int:
    return len(read_leniently(_applied(pair, file, taken), _text(pair, file)[1]).faults)


def _applied(pair: ConfigPair, file: File, taken: Iterable[Repair]) -> str:
    edits = [edit for repair in taken if repair.file == file for edit in repair.edits]
    return apply_edits(_text(pair, file)[0], edits)


def _text(pair: ConfigPair, file: File) -> tuple[str, str]:
    if file == "settings":
        return pair.settings_text, pair.settings_file
    return pair.config_text, pair.config_file


def _offers(pair: ConfigPair, file: File, reading: Reading, findings: Iterable[Finding]) -> list[Repair]:
    """Those of the parser first: the others are about the text as it would be read then."""
    found = [
        Repair(fault.finding, file, fault.edits, "repair-readable", _line(fault.finding))
        for fault in reading.faults
        if fault.edits
    ]
    if reading.document is None:
        return found
    offer = _ValueOffers(reading.document, file, _dialect(pair, file))
    # findings are placed in the text as it is; the document is the text as it would be read
    at: dict[tuple[int | None, int | None], Path] = {}
    for path in offer.paths:
        place = reading.at_origin(_at(reading.document, path))
        at.setdefault((place.line, place.column), path)
    for finding in findings:
        known = at.get((finding.line, finding.column)) if finding.file == reading.document.file else None
        for code, params, edits in offer.of(finding, known) if known is not None else ():
            found.append(Repair(finding, file, reading.original(edits), code, params))
    return found


def _at(document: Document, path: Path) -> Finding:
    place = document.locate(path)
    return Finding("", line=None if place is None else place.line, column=None if place is None else place.column)


def _dialect(pair: ConfigPair, file: File) -> Dialect:
    """The form of a file as it reads without its faults."""
    readings = {each: read_leniently(*_text(pair, each)) for each in FILES}
    if any(reading.document is None for reading in readings.values()):
        return 1
    texts = {f"{each}_text": reading.edited.text for each, reading in readings.items()}
    return replace(pair, **texts).file_dialect(file)


def _line(finding: Finding) -> dict[str, Param]:
    return {"line": finding.line}


Offer = tuple[str, dict[str, Param], tuple[Edit, ...]]


class _ValueOffers:
    """Repairs of keys and values in a document that can be read."""

    def __init__(self, document: Document, file: File, dialect: Dialect) -> None:
        self.document = document
        self.keys = form_keys(file, dialect)
        self.paths: list[Path] = []
        for path, value in document.leaves():
            self.paths.append(path)
            self.paths += [(*path, index) for index in range(len(value))] if isinstance(value, list) else []

    def of(self, finding: Finding, path: Path) -> Iterator[Offer]:
        if finding.code in _REMOVED:
            yield "repair-remove", {"key": _dotted(path)}, edit_between(*self._both(self.document.remove(path)))
        elif finding.code in ("secret-in-file", "secret-placeholder"):
            by_name = str(path[-1]).endswith("_env")
            yield from self._set(path, DEFAULT_KEY_VARIABLE if by_name else f"${{{DEFAULT_KEY_VARIABLE}}}")
        elif finding.code in _FIXED_VALUES:
            yield from self._set(path, _FIXED_VALUES[finding.code])
        elif finding.code == "wrong-type":
            yield from self._retyped(path)
        elif finding.code in ("unknown-key", "unknown-knob", "key-in-wrong-table", "root-key-in-table"):
            yield from self._renamed(path, finding.params.get("nearest"))
        elif finding.severity == "error" and finding.params.get("nearest") is not None:
            yield from self._nearest(path, finding.params["nearest"])

    def _both(self, new: Document) -> tuple[str, str]:
        return self.document.text, new.text

    def _set(self, path: Path, value: object, literal: str | None = None) -> Iterator[Offer]:
        try:
            new = self.document.set(path, value, literal)
        except LabError:
            return
        shown = literal or (value if isinstance(value, str | int | float | bool) else str(value))
        edits = edit_between(*self._both(new))
        if edits:
            yield "repair-set", {"key": _dotted(path), "value": shown}, edits

    def _kind(self, path: Path) -> Kind | None:
        plain = tuple(part for part in path if isinstance(part, str))
        entry = self.keys.get(plain)
        if isinstance(entry, Switch):
            return "bool"
        if isinstance(entry, Knob):
            return entry.kind
        return flag_knob(plain[-1]).kind if plain[:2] == ("engine", "args") else None

    def _retyped(self, path: Path) -> Iterator[Offer]:
        """`"0.90"` as 0.90, `64.0` as 64, `"true"` as true, 7 as "7"."""
        value, kind = self.document.get(path), self._kind(path)
        if kind is None or isinstance(value, list | dict) or value is None:
            return
        for literal, new in _as_kind(kind, value):
            yield from self._set(path, new, literal)

    def _nearest(self, path: Path, nearest: Param) -> Iterator[Offer]:
        kind, value = self._kind(path), self.document.get(path)
        if kind in ("str", "choice") and not isinstance(nearest, str):
            return
        percent = kind == "float" and isinstance(value, int | float) and isinstance(nearest, float)
        if percent and isinstance(value, int | float) and nearest == value / 100:
            yield from self._set(path, nearest, f"{nearest:.2f}" if round(nearest, 2) == nearest else None)
        elif isinstance(nearest, str | int | float):
            yield from self._set(path, nearest)

    def _renamed(self, path: Path, nearest: Param) -> Iterator[Offer]:
        """Under its right name, or in its right table; nothing where that is taken."""
        if any(isinstance(part, int) for part in path):
            return
        target = self._target(path, nearest) if isinstance(nearest, str) else self._elsewhere(path)
        if target is None or self.document.has(target):
            return
        key: dict[str, Param] = {"key": _dotted(path), "nearest": _dotted(target)}
        edit = self._key_edit(path, target)
        if edit is not None:
            yield "repair-rename", key, (edit,)
            return
        try:
            added = self.document.set(target, self.document.get(path), self.document.literal(path))
            edits = (*edit_between(*self._both(self.document.remove(path))), *edit_between(*self._both(added)))
        except LabError:
            return
        if not overlapping(edits[:1], edits[1:]):
            yield "repair-move", key, edits

    def _target(self, path: Path, nearest: str) -> tuple[str, ...]:
        """`nearest` is a dotted path, or a name in the same table."""
        dotted = tuple(nearest.split("."))
        if dotted in self.keys or len(dotted) > 1:
            return dotted
        named = knob_table().get(nearest) or lab_keys().get(nearest)
        places = [place for place, entry in self.keys.items() if named is not None and entry is named]
        beside = (*(str(part) for part in path[:-1]), nearest)
        return places[0] if places and beside not in self.keys and path[:2] != ("engine", "args") else beside

    def _elsewhere(self, path: Path) -> tuple[str, ...] | None:
        """The one other table that has a key of that name."""
        places = [place for place in self.keys if place[-1] == path[-1]]
        return places[0] if len(places) == 1 else None

    def _key_edit(self, path: Path, target: tuple[str, ...]) -> Edit | None:
        """Only the key's own characters, where it stays in its table."""
        span = self.document.span(path)
        if span is None or path[:-1] != target[:-1]:
            return None
        old = re.compile(rf"([\"']?){re.escape(str(path[-1]))}\1").match(self.document.text, span[0])
        if old is None:
            return None
        quote = old.group(1)
        return Edit(old.start(), old.end(), f"{quote}{target[-1]}{quote}")


def _as_kind(kind: Kind, value: object) -> Iterator[tuple[str | None, object]]:
    if kind in ("str", "choice"):
        if not isinstance(value, str):
            yield None, str(value).lower() if isinstance(value, bool) else str(value)
        return
    text = value.strip() if isinstance(value, str) else str(value)
    if kind == "bool":
        if text.lower() in ("true", "1", "on", "yes"):
            yield None, True
        elif text.lower() in ("false", "0", "off", "no"):
            yield None, False
        return
    if re.fullmatch(r"-?\d+(\.\d+)?%", text) and kind == "float":
        yield None, float(text.rstrip("%")) / 100
    elif re.fullmatch(r"-?\d+", text):
        yield text if str(int(text)) == text else None, int(text)
    elif re.fullmatch(r"-?\d+\.\d+", text):
        number = float(text)
        if kind == "float":
            yield text if not text.lstrip("-").startswith("00") else None, number
        elif number.is_integer():
            yield None, int(number)


def _rebuilt(pair: ConfigPair, file: File, findings: Iterable[Finding]) -> Iterator[Repair]:
    """A file whose signs and line breaks are lost, put together again from its known keys."""
    text, name = _text(pair, file)
    try:
        result = read_paste(text)
    except LabError:
        return
    new = result.settings_text if file == "settings" else result.config_text
    about = next((each for each in findings if each.file == name), None)
    if about is not None and new is not None and sum(each.file == file for each in result.values) >= _LEAST_REBUILT:
        yield Repair(about, file, (Edit(0, len(text), new),), "repair-rebuild", {"values": len(result.values)})


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))

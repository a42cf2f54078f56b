"""The config pair: settings.json and config.toml as text, read and edited as knobs."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from lab.configs.dialects import DIALECTS, engine_args_place, recognised
from lab.configs.documents import Document, open_document
from lab.configs.gateway import GatewayConfig, gateway_config
from lab.configs.knob_values import coerced
from lab.configs.knobs import (
    Dialect,
    File,
    Knob,
    Place,
    Switch,
    find_removed,
    flag_knob,
    knob_table,
    lab_keys,
    settable_knob,
    switches,
)
from lab.configs.pair_files import read_text, replace_files
from lab.configs.secrets import masked, refuse_secret
from lab.environment import read_environment
from lab.findings import Finding, LabError
from lab.records.workload import Scalar, Workload

SETTINGS_FILE = "settings.json"
CONFIG_FILE = "config.toml"
_NOT_REQUEST_FIELDS = ("request_model", "stream", "max_tokens")
_NOT_ENGINE = ("host",)


@dataclass(frozen=True, slots=True)
class RawValue:
    """A value as it stands in a file: `"0.90"` stays text."""

    value: object
    file: str
    line: int | None
    column: int | None
    path: tuple[str, ...]


@dataclass(frozen=True)
class ConfigPair:
    """The two texts with the names to show for them. Immutable: the `with_` methods give a new pair.

    Reading raises `LabError` with line and column where a text cannot be parsed.
    """

    settings_text: str
    config_text: str
    settings_file: str = SETTINGS_FILE
    config_file: str = CONFIG_FILE

    @property
    def settings(self) -> Document:
        return open_document(self.settings_text, self.settings_file)

    @property
    def config(self) -> Document:
        return open_document(self.config_text, self.config_file)

    @property
    def dialect(self) -> Dialect:
        """The article in whose form the engine's side is: in article 3's, config.toml is that side."""
        return self.file_dialect("config")

    def file_dialect(self, file: File) -> Dialect:
        """The form of one file by its own content, else by the other's; article 1's where neither tells."""
        settings = recognised(self.settings_text, self.settings_file, "settings")
        config = recognised(self.config_text, self.config_file, "config")
        return ((settings or config) if file == "settings" else (config or settings)) or 1

    @property
    def mixed(self) -> bool:
        """Whether the two files have different forms, so that one side is there twice and the other is missing."""
        return self.file_dialect("settings") != self.file_dialect("config")

    def document(self, file: File) -> Document:
        return self.settings if file == "settings" else self.config

    def knobs(self) -> dict[str, Scalar]:
        """Engine and request knobs that the files set, by canonical name; flags under engine.args too."""
        found = self._values(knob_table().values(), skip="workload")
        for name, value in self._engine_args().items():
            found.setdefault(name, value)
        for switch in switches().values():
            if self._is_off(switch):
                found.update(switch.when_false)
        return found

    def engine_knobs(self) -> dict[str, Scalar]:
        """What goes to the engine, the model included; the lab itself chooses the address."""
        table, knobs = knob_table(), self.knobs()
        wanted = {name: value for name, value in knobs.items() if name not in table or table[name].phase != "request"}
        if wanted.get("use_cache") is True:
            del wanted["use_cache"]  # what every engine does anyway, and no flag anywhere
        return {name: value for name, value in wanted.items() if name not in _NOT_ENGINE}

    def request_fields(self) -> dict[str, Scalar]:
        """Sampling fields of a request; not model, stream and max_tokens, which a measurement sets itself."""
        table = knob_table()
        return {
            name: value
            for name, value in self.knobs().items()
            if name in table and table[name].phase == "request" and name not in _NOT_REQUEST_FIELDS
        }

    def lab_values(self) -> dict[str, Scalar]:
        """The lab's own keys (lab_keys.toml) that the files set."""
        return self._values(lab_keys().values())

    def workload(self) -> Workload:
        """config.toml's [workload]; raises a `LabError` with all that is wrong in it."""
        table = self.config.get(("workload",))
        return workload_from(cast("Mapping[str, object]", table or {}), self.config)

    def gateway(self, variables: Mapping[str, str] | None = None) -> GatewayConfig:
        """The gateway; `variables` None means this process's environment and `.env`."""
        return gateway_config(self, read_environment().variables if variables is None else variables)

    def raw_value(self, name: str) -> RawValue | None:
        """A knob's value just as the file has it, wrong type or not; None where the files do not set it."""
        place = self._standing(settable_knob(name, self.dialect))
        if place is None:
            return None
        document = self.document(place.file)
        found = document.locate(place.path)
        line, column = (None, None) if found is None else (found.line, found.column)
        return RawValue(document.get(place.path), document.file, line, column, place.path)

    def with_knobs(self, changes: Mapping[str, Scalar | None]) -> ConfigPair:
        """The pair with these knobs set (aliases are taken); a missing key is put where its form wants it.

        None takes the knob out of the files: back to the engine's default.

        Raises "unknown-knob", "removed-knob" or "secret-in-file".
        """
        pair = self
        for name, value in changes.items():
            pair = pair._with_setting(name, value)
        return pair

    def with_workload(self, changes: Mapping[str, object]) -> ConfigPair:
        """The pair with these keys of [workload] set; None takes a key away."""
        config = self.config
        for key, value in changes.items():
            plain = list(value) if isinstance(value, tuple) else value
            path = ("workload", key)
            config = config.remove(path) if plain is None else config.set(path, plain)
        return replace(self, config_text=config.text)

    def takes(self, name: str) -> bool:
        """Whether the files have a place for a knob: the lab's own keys do not all exist in both forms."""
        return bool(self._places(settable_knob(name, self.dialect)))

    def _without(self, knob: Knob) -> ConfigPair:
        pair, place = self, self._standing(knob)
        while place is not None:
            if place.file == "settings":
                pair = replace(pair, settings_text=pair.settings.remove(place.path).text)
            else:
                pair = replace(pair, config_text=pair.config.remove(place.path).text)
            place = pair._standing(knob)
        return pair

    def _with_setting(self, name: str, value: Scalar | None) -> ConfigPair:
        switch = switches().get(name.rpartition(".")[2])
        if switch is not None and find_removed(name) is None:
            return self.with_knobs(switch.when_false) if value is False else self
        knob = settable_knob(name, self.dialect)
        if value is None:
            return self._without(knob)
        standing = self._standing(knob)
        if standing is None and self._switched_off(knob.name) == value:
            return self  # a switch says so already
        place = standing or self._home(knob)
        refuse_secret(place.path[-1], value)
        pair = self._put(place, coerced(knob, value))
        for other in switches().values():
            if knob.name in other.when_false and value != other.when_false[knob.name]:
                pair = pair._switched_on(self._in_form(other.places))
        return pair

    def _is_off(self, switch: Switch) -> bool:
        return any(self._get(place) is False for place in self._in_form(switch.places))

    def _switched_off(self, name: str) -> Scalar | None:
        """What a switch that is off sets the knob to; None where none does."""
        return next((each.when_false.get(name) for each in switches().values() if self._is_off(each)), None)

    def _switched_on(self, places: tuple[Place, ...]) -> ConfigPair:
        pair = self
        for place in places:
            if pair._get(place) is False:
                pair = pair._put(place, True)
        return pair

    def _put(self, place: Place, value: object) -> ConfigPair:
        standing = self._get(place)
        if isinstance(standing, int) and isinstance(value, float) and value.is_integer():
            value = int(value)  # 60 over 120 stays a whole number, as its neighbours are
        if place.file == "settings":
            return replace(self, settings_text=self.settings.set(place.path, value).text)
        return replace(self, config_text=self.config.set(place.path, value).text)

    def _standing(self, knob: Knob) -> Place | None:
        """Where the knob's value stands now: the first of its places that is filled, else its flag's."""
        places = (*self._places(knob), *self._places(flag_knob(knob.name)))
        return next((place for place in places if self._get(place) is not None), None)

    def _home(self, knob: Knob) -> Place:
        """Where a knob is put that the files do not set yet."""
        places = (*self._places(knob), *flag_knob(knob.name).places_in(self.dialect))
        return places[0]

    def _places(self, knob: Knob) -> tuple[Place, ...]:
        return self._in_form({dialect: knob.places_in(dialect) for dialect in DIALECTS})

    def _in_form(self, places: Mapping[Dialect, tuple[Place, ...]]) -> tuple[Place, ...]:
        """Those that stand in a file of the same form; the engine's side first."""
        order: tuple[Dialect, ...] = DIALECTS if self.dialect == 1 else DIALECTS[::-1]
        found = [place for each in order for place in places.get(each, ()) if self.file_dialect(place.file) == each]
        return tuple(dict.fromkeys(found))

    def _get(self, place: Place) -> object:
        return self.document(place.file).get(place.path)

    def _values(self, knobs: Any, skip: str | None = None) -> dict[str, Scalar]:
        found: dict[str, Scalar] = {}
        for knob in knobs:
            place = None if knob.phase == skip else self._standing(knob)
            if place is not None:
                found[knob.name] = _scalar(self._get(place))
        return found

    def _engine_args(self) -> dict[str, Scalar]:
        found: dict[str, Scalar] = {}
        for place in self._in_form({dialect: (engine_args_place(dialect),) for dialect in DIALECTS}):
            table = self._get(place)
            if isinstance(table, dict):
                found |= {key.replace("-", "_"): _scalar(value) for key, value in table.items() if value is not None}
        return found


def read_pair(config_dir: Path) -> ConfigPair:
    """The pair of a folder. Raises "config-missing" or "config-unreadable"; the texts are not parsed yet."""
    settings, config = config_dir / SETTINGS_FILE, config_dir / CONFIG_FILE
    return ConfigPair(read_text(settings), read_text(config), str(settings), str(config))


def missing_files(config_dir: Path) -> tuple[str, ...]:
    """Which of the two names no file stands under, in a folder that exists."""
    return tuple(
        name for name in (SETTINGS_FILE, CONFIG_FILE) if config_dir.is_dir() and not (config_dir / name).exists()
    )


def filled_up(config_dir: Path, missing: Collection[str], version: ConfigPair) -> tuple[ConfigPair, ConfigPair]:
    """The pair of a folder with the `missing` files empty, and with their texts taken from a version."""
    settings, config = config_dir / SETTINGS_FILE, config_dir / CONFIG_FILE
    there = ConfigPair(
        "" if SETTINGS_FILE in missing else read_text(settings),
        "" if CONFIG_FILE in missing else read_text(config),
        str(settings),
        str(config),
    )
    return there, replace(
        there,
        settings_text=version.settings_text if SETTINGS_FILE in missing else there.settings_text,
        config_text=version.config_text if CONFIG_FILE in missing else there.config_text,
    )


def write_pair(config_dir: Path, old: ConfigPair, new: ConfigPair, missing: Collection[str] = ()) -> None:
    """Writes what changed; raises "changed-meanwhile" where the file on disk is not the old text.

    The files named in `missing` are made: "changed-meanwhile" where there is one by now.
    """
    texts = {SETTINGS_FILE: (old.settings_text, new.settings_text), CONFIG_FILE: (old.config_text, new.config_text)}
    replace_files(
        config_dir,
        {config_dir / name: (None if name in missing else before, after) for name, (before, after) in texts.items()},
    )


def diff_pair(old: ConfigPair, new: ConfigPair) -> str:
    """A unified diff of both files, keys written out masked; empty where nothing changed."""
    settings = diff_texts(old.settings_text, new.settings_text, old.settings_file)
    return settings + diff_texts(old.config_text, new.config_text, old.config_file)


def pair_hash(pair: ConfigPair) -> str:
    """SHA-256 of both texts."""
    return hashlib.sha256(json.dumps([pair.settings_text, pair.config_text]).encode()).hexdigest()


def workload_from(table: Mapping[str, object], document: Document | None = None) -> Workload:
    """A checked workload; raises a `LabError` with a finding for each wrong key, placed in the document."""
    from lab.configs.workload_rules import workload_findings

    findings = [each for each in workload_findings(table, document) if each.severity == "error"]
    if findings:
        raise LabError(*findings)
    return validated_workload(table)


def validated_workload(table: Mapping[str, object]) -> Workload:
    """A workload from a table without findings; single values where lists may stand are taken as such."""
    lists = {"prompt_tokens", "concurrency", "rate_per_s"}
    plain = {
        key: (value if isinstance(value, list | tuple) else [value]) if key in lists else value
        for key, value in table.items()
    }
    try:
        return Workload.model_validate(plain)
    except ValidationError as problem:
        reason = problem.errors()[0]
        params = {"key": ".".join(map(str, reason["loc"])), "reason": reason["msg"]}
        raise LabError(Finding("workload-invalid", params=params)) from None


def _scalar(value: object) -> Scalar:
    """Tables and lists under engine.args become JSON text, as vLLM's own flags take them."""
    return value if isinstance(value, str | int | float | bool) else json.dumps(value, ensure_ascii=False)


def diff_texts(old: str, new: str, file: str) -> str:
    """A unified diff of two texts of one file, keys written out masked."""
    before, after = masked(old).splitlines(keepends=True), masked(new).splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, file, file)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

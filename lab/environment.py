"""Where things are: the LAB_* and TAOTOKEN_* variables, with `.env` read beneath them."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Environment:
    """Paths and addresses; never a key, only the names of the variables that hold one."""

    config_dir: Path
    run_dir: Path
    database_url: str
    lock_file: Path
    engine_python: Path
    gateway_base_url: str | None
    gateway_model: str | None
    variables: Mapping[str, str]

    @property
    def settings_file(self) -> Path:
        return self.config_dir / "settings.json"

    @property
    def config_file(self) -> Path:
        return self.config_dir / "config.toml"


def read_environment(environ: Mapping[str, str] | None = None, root: Path = ROOT) -> Environment:
    """The environment of this process; what is exported wins over `.env`."""
    from_file = {name: value for name, value in dotenv_values(root / ".env").items() if value is not None}
    variables = {**from_file, **(os.environ if environ is None else environ)}
    return Environment(
        config_dir=Path(variables.get("LAB_CONFIG_DIR") or root / "configs"),
        run_dir=Path(variables.get("LAB_RUN_DIR") or root / ".lab"),
        database_url=variables.get("LAB_DATABASE_URL") or f"sqlite:///{root / 'experiments.db'}",
        lock_file=Path(variables.get("LAB_LOCK_FILE") or _default_lock_file()),
        engine_python=Path(variables.get("LAB_ENGINE_PYTHON") or sys.executable),
        gateway_base_url=variables.get("TAOTOKEN_BASE_URL") or None,
        gateway_model=variables.get("TAOTOKEN_MODEL") or None,
        variables=variables,
    )


def _default_lock_file() -> Path:
    return Path(tempfile.gettempdir()) / f"inference-tuning-lab-{getpass.getuser()}.lock"

"""What the tests of the page Configs share: two files, and how a field is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

SETTINGS = """{
  "model": "smollm2-135m-instruct",
  "api_key_env": "TAOTOKEN_API_KEY",
  "decode": {
    "max_num_seqs": 32,
    "max_model_len": 8192,
    "gpu_memory_utilization": 0.90,
    "kv_cache_dtype": "auto"
  }
}
"""
CONFIG = """# house rules
[server]
base_url = "https://gateway.example/v1"
api_key = "${TAOTOKEN_API_KEY}"   # from the environment

[request]
model = "m"

[workload]
kind   = "burst"
requests = 2_4
output_tokens = 32
"""
SEQUENCES = "Sequences at once"
KEY = "sk-" + "t3st" * 5
Put = Callable[..., Path]
Open = Callable[..., AppTest]


def field(fields: Any, label: str) -> Any:
    return next(each for each in fields if each.label.startswith(label))


def press(app: AppTest, label: str) -> AppTest:
    return field(app.button, label).click().run()


def view(app: AppTest, name: str) -> AppTest:
    return app.segmented_control[0].set_value(name).run()


def texts(app: AppTest) -> str:
    shown = [*app.markdown, *app.caption, *app.error, *app.warning, *app.success, *app.info, *app.code]
    return "\n".join(str(each.value) for each in shown)


def everything(app: AppTest) -> str:
    """What the session keeps, and what the page shows."""
    return f"{texts(app)}\n{app.session_state!r}"


def fine(app: AppTest) -> AppTest:
    assert not app.exception
    assert "This part of the page failed" not in texts(app)
    return app

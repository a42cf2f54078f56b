"""The exported YAML through vLLM's own parser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lab.configs.experiment_file import experiment_from_parts
from lab.configs.pair import read_pair
from lab.engine.definition import load_definition
from lab.environment import ROOT, read_environment
from lab.export import export_arm

READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
found = vars(make_arg_parser(FlexibleArgumentParser()).parse_args(["--config", sys.argv[1]]))
print(json.dumps({name: found[name] for name in sys.argv[2].split(",")}))
"""


@pytest.mark.engine
def test_vllm_reads_the_exported_yaml_as_it_was_meant(tmp_path: Path):
    arm = {
        "name": "a",
        "set": {
            "kv_cache_dtype": "fp8",
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": 8192,
            "enforce_eager": True,
            "enable_prefix_caching": False,
        },
    }
    experiment = experiment_from_parts("x", arms=[arm], pair=read_pair(ROOT / "configs"))
    files = {f.name: f.text for f in export_arm(experiment, "a", load_definition("vllm", ROOT / "configs"), None)}
    path = tmp_path / "vllm.yaml"
    path.write_text(files["vllm.yaml"])
    expected = {
        "model": "smollm2-135m-instruct",
        "host": "127.0.0.1",
        "port": 8000,
        "kv_cache_dtype": "fp8",
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": 8192,
        "max_num_seqs": 32,
        "gpu_memory_utilization": 0.9,
        "enforce_eager": True,
        "enable_prefix_caching": False,
        "block_size": 16,
    }
    python = str(read_environment().engine_python)
    done = subprocess.run(
        [python, "-c", READ, str(path), ",".join(expected)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.strip().split("\n")[-1]) == expected

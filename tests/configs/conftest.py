from __future__ import annotations

import pytest

from lab.configs.pair import ConfigPair, read_pair
from lab.environment import ROOT

ARTICLE_3_CONFIG = """[server]
host = "0.0.0.0"
port = 8000
api_base = "https://taotoken.net/api"
api_key_env = "TAOTOKEN_API_KEY"
[model]
name = "some-model"
dtype = "bfloat16"
max_model_len = 8192
gpu_memory_utilization = 0.90
[kv_cache]
enable = true
block_size = 16
num_gpu_blocks = 2048
swap_space_gb = 8
cache_dtype = "auto"
[batching]
enable_continuous_batching = true
max_num_seqs = 64
max_num_batched_tokens = 4096
[prefill]
chunked_prefill = true
max_prefill_tokens = 2048
[decode]
temperature = 0.7
top_p = 0.9
top_k = 50
repetition_penalty = 1.05
max_tokens = 1024
"""
ARTICLE_3_SETTINGS = """{
  "base_url": "https://taotoken.net/api",
  "api_key_env": "TAOTOKEN_API_KEY",
  "model": "gateway-model",
  "default_params": { "temperature": 0.7, "top_p": 0.9, "top_k": 50, "max_tokens": 512, "stream": true },
  "timeout": { "connect": 10, "read": 120 },
  "retry": { "max_attempts": 3, "backoff_seconds": 2 }
}
"""
ARTICLE_1_SETTINGS = """{
  "model": "some-model",
  "api_base": "https://taotoken.net/api",
  "api_key_env": "TAOTOKEN_API_KEY",
  "max_tokens": 512,
  "temperature": 0.7,
  "stream": true,
  "prefill": { "batch_size": 8, "max_prefill_tokens": 4096, "chunked_prefill": true, "chunk_size": 512 },
  "decode": {
    "max_num_seqs": 32,
    "max_model_len": 8192,
    "gpu_memory_utilization": 0.90,
    "kv_cache_dtype": "auto",
    "block_size": 16
  },
  "observability": { "log_ttft": true, "log_itl": true, "log_kv_cache_usage": true }
}
"""
ARTICLE_1_CONFIG = """[server]
base_url = "https://taotoken.net/api"
api_key = "${TAOTOKEN_API_KEY}"
timeout_seconds = 120

[request]
model = "gateway-model"
stream = true
max_tokens = 512

[metrics]
track_ttft = true
track_itl = true
sample_window = 30

[workload]
prompt_tokens = [128, 512, 2048, 4096]
repeat = 5
"""


@pytest.fixture
def live() -> ConfigPair:
    """The pair of the repository."""
    return read_pair(ROOT / "configs")


@pytest.fixture
def article_1() -> ConfigPair:
    return ConfigPair(ARTICLE_1_SETTINGS, ARTICLE_1_CONFIG)


@pytest.fixture
def article_3() -> ConfigPair:
    return ConfigPair(ARTICLE_3_SETTINGS, ARTICLE_3_CONFIG)

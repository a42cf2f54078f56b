"""A save is the old file or the new one, whatever happens to the process, the disk or the permissions."""

from __future__ import annotations

import os
import random
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lab.configs.pair import ConfigPair, missing_files, read_pair, write_pair
from lab.environment import ROOT
from lab.findings import LabError

KILLS = 200


@pytest.fixture
def folder(tmp_path, article_1):
    (tmp_path / "settings.json").write_bytes(article_1.settings_text.encode())
    (tmp_path / "config.toml").write_bytes(article_1.config_text.encode())
    return tmp_path


def bigger(pair, seqs):
    """Another pair of another length, so that half a file would show."""
    note = f"# {'x' * 4000}\n"
    new = pair.with_knobs({"max_num_seqs": seqs, "max_tokens": seqs})
    return replace(new, config_text=new.config_text + note)


def saving_forever(folder, one, other):
    """In a child of its own: write the two pairs in turn until killed."""
    child = os.fork()
    if child:
        return child
    try:
        while True:
            current = read_pair(folder)
            write_pair(folder, current, other if current.settings_text == one.settings_text else one)
    finally:
        os._exit(1)


def test_kill_during_a_save_leaves_the_old_file_or_the_new_one(folder, tmp_path_factory):
    real = tmp_path_factory.mktemp("elsewhere") / "real.toml"
    (folder / "config.toml").rename(real)
    (folder / "config.toml").symlink_to(real)
    (folder / "settings.json").chmod(0o640)
    one = read_pair(folder)
    other = bigger(one, 7)
    settings, configs = ({text.encode() for text in texts} for texts in (
        (one.settings_text, other.settings_text), (one.config_text, other.config_text),
    ))  # fmt: skip
    chance, seen = random.Random(5), set()
    for _ in range(KILLS):
        child = saving_forever(folder, one, other)
        time.sleep(chance.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        now = (folder / "settings.json").read_bytes(), (folder / "config.toml").read_bytes()
        assert now[0] in settings and now[1] in configs
        seen.add(now)
        # as every page does: what stands there is where the next save starts
        write_pair(folder, read_pair(folder), one if chance.random() < 0.5 else other)
    assert len(seen) > 1
    assert (folder / "config.toml").is_symlink() and real.read_bytes() in configs
    assert stat.S_IMODE((folder / "settings.json").stat().st_mode) == 0o640
    write_pair(folder, read_pair(folder), bigger(one, 9))
    assert sorted(path.name for path in folder.iterdir()) == ["config.toml", "settings.json"]
    assert [path.name for path in real.parent.iterdir()] == ["real.toml"]


def test_two_writers_at_once_never_lose_a_change(folder):
    start = read_pair(folder)
    children = []
    for knob in ("max_num_seqs", "block_size"):
        child = os.fork()
        if not child:
            done = 0
            try:
                while done < 20:
                    current = read_pair(folder)
                    step = current.with_knobs({knob: int(current.knobs()[knob]) + 1})
                    try:
                        write_pair(folder, current, step)
                        done += 1
                    except LabError:
                        continue
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    before, after = start.knobs(), read_pair(folder).knobs()
    assert {knob: after[knob] - before[knob] for knob in ("max_num_seqs", "block_size")} == {
        "max_num_seqs": 20,
        "block_size": 20,
    }


SAVE = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from dataclasses import replace
    from lab.configs.pair import read_pair, write_pair
    from lab.findings import LabError
    from lab.messages import word_finding
    folder = Path(sys.argv[1])
    pair = read_pair(folder)
    try:
        write_pair(folder, pair, replace(pair, config_text=pair.config_text + "# " + "x" * 100_000 + "\\n"))
    except LabError as problem:
        print(word_finding(problem.findings[0]))
        sys.exit(2)
    """
)


def save_in_child(folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SAVE, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False, **options
    )  # type: ignore[call-overload]


def test_a_full_disk_says_so_and_loses_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def small_files() -> None:
        # the kernel refuses to write on at that size, just as a full disk does, without needing one
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = save_in_child(folder, preexec_fn=small_files)
    assert done.returncode == 2
    assert "config.toml" in done.stdout and "cannot be written" in done.stdout
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def save_as_nobody(folder: Path) -> str:
    """In a child without root's powers; gives the code of what was refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            pair = read_pair(folder)
            write_pair(folder, pair, bigger(pair, 5))
        except LabError as problem:
            os.write(writer, f"{problem.findings[0].code} {problem.findings[0].params}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        return said.read()


def test_a_read_only_folder_says_so_and_loses_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in (folder.parent, folder.parent.parent):
        path.chmod(0o755)
    folder.chmod(0o555)
    try:
        said = save_as_nobody(folder)
    finally:
        folder.chmod(0o755)
    assert said.startswith("config-unwritable")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_read_only_file_is_not_replaced_nor_the_other_one(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "config.toml").chmod(0o444)
    pair = read_pair(folder)
    with pytest.raises(LabError) as caught:
        write_pair(folder, pair, bigger(pair, 5))
    assert caught.value.findings[0].code == "config-unwritable"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_saving_without_a_change_writes_nothing(folder):
    stamps = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    pair = read_pair(folder)
    write_pair(folder, pair, pair.with_knobs(pair.knobs()))
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == stamps


def test_a_file_that_vanished_meanwhile_is_told(folder):
    pair = read_pair(folder)
    (folder / "config.toml").unlink()
    with pytest.raises(LabError) as caught:
        write_pair(folder, pair, pair.with_knobs({"max_tokens": 3}))
    assert caught.value.findings[0].code == "config-missing"
    assert not (folder / "config.toml").exists()


def test_a_missing_file_is_made_and_never_over_one_that_came_meanwhile(folder):
    pair = read_pair(folder)
    (folder / "config.toml").unlink()
    assert missing_files(folder) == ("config.toml",)
    write_pair(folder, pair, pair, missing_files(folder))
    assert read_pair(folder) == pair and missing_files(folder) == ()
    assert stat.S_IMODE((folder / "config.toml").stat().st_mode) == 0o644
    with pytest.raises(LabError) as caught:
        write_pair(folder, pair, pair, ("config.toml",))
    assert caught.value.findings[0].code == "changed-meanwhile"


def test_other_files_beside_are_left_alone(folder):
    for name in (".settings.json.swp", ".config.toml.x", "config.toml~", ".other.lab-save"):
        (folder / name).write_text("mine")
    pair = read_pair(folder)
    write_pair(folder, pair, bigger(pair, 5))
    assert {path.name for path in folder.iterdir() if path.read_text() == "mine"} == {
        ".settings.json.swp", ".config.toml.x", "config.toml~", ".other.lab-save",
    }  # fmt: skip


def test_a_pair_is_a_value(article_1):
    assert isinstance(article_1, ConfigPair)
    changed = article_1.with_knobs({"max_num_seqs": 5})
    assert changed is not article_1 and article_1.knobs()["max_num_seqs"] == 32

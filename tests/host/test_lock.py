"""One runner per host: the lock names its holder and ends with it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.environment import ROOT
from lab.findings import LabError
from lab.host.lock import hold_lock, mask_password, read_lock

HOLD = """
import sys, time
from pathlib import Path
from lab.host.lock import hold_lock
with hold_lock(Path(sys.argv[1]), "sqlite:///other.db"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_holder_is_named_while_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "runner.lock"
    with hold_lock(path, "sqlite:///lab.db"):
        holder = read_lock(path)
        assert holder is not None
        assert (holder.pid, holder.database_url) == (os.getpid(), "sqlite:///lab.db")
    assert read_lock(path) is None


def test_the_lock_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_lock(tmp_path / "runner.lock", "sqlite:///lab.db"):
            pass


def test_a_second_runner_is_told_by_whom_and_for_which_database_and_death_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "runner.lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LabError) as caught, hold_lock(path, "sqlite:///lab.db"):
            pass
        finding = caught.value.findings[0]
        assert (finding.code, finding.params["pid"]) == ("runner-lock-taken", other.pid)
        assert finding.params["database"] == "sqlite:///other.db"
        other.send_signal(signal.SIGKILL)
    assert read_lock(path) is None
    with hold_lock(path, "sqlite:///lab.db"):
        pass


def test_what_a_dead_holder_left_names_nobody(tmp_path: Path) -> None:
    path = tmp_path / "runner.lock"
    path.write_text('{"pid": 1, "start_time": 0.5, "database_url": "sqlite:///old.db"}')
    assert read_lock(path) is None
    path.write_text("not json")
    assert read_lock(path) is None


def test_the_file_is_the_users_own_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "runner.lock"
    with hold_lock(path, "sqlite:///lab.db"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_put_there_by_someone_else_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep")
    link = tmp_path / "runner.lock"
    link.symlink_to(target)
    with pytest.raises(LabError, match="lock-unusable"), hold_lock(link, "sqlite:///lab.db"):
        pass
    assert target.read_text() == "keep"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@db/lab", "postgresql://ann:***@db/lab"),
        ("postgresql://ann:s@cret@db:5432/lab", "postgresql://ann:***@db:5432/lab"),
        ("postgresql://ann@db/lab", "postgresql://ann@db/lab"),
        ("sqlite:////data/lab.db", "sqlite:////data/lab.db"),
    ],
)
def test_a_password_is_never_written(tmp_path: Path, url: str, shown: str) -> None:
    assert mask_password(url) == shown
    with hold_lock(tmp_path / "runner.lock", url):
        assert "cret" not in (tmp_path / "runner.lock").read_text()


def test_waiting_for_a_name_is_short(tmp_path: Path) -> None:
    path = tmp_path / "runner.lock"
    with hold_lock(path, "sqlite:///lab.db"):
        path.write_text("")  # held, but nobody is named
        began = time.monotonic()
        with pytest.raises(LabError, match="runner-lock-taken"), hold_lock(path, "sqlite:///lab.db"):
            pass
        assert time.monotonic() - began < 3

"""A process is known by pid and start, and a reused pid is another process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import psutil

from lab.host.process_identity import group_members, identity, is_same, same_boot


def sleeper(**options: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **options)  # type: ignore[call-overload, no-any-return]


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def test_a_living_process_is_the_same_until_it_ends() -> None:
    with sleeper() as process:
        who = identity(process.pid)
        assert who is not None
        assert is_same(who)
        end(process)
    assert not is_same(who)
    assert identity(process.pid) is None


def test_another_start_time_under_the_pid_is_another_process() -> None:
    who = identity(os.getpid())
    assert who is not None
    assert not is_same(replace(who, start_time=who.start_time - 1))


def test_start_times_order_processes() -> None:
    with sleeper() as earlier:
        time.sleep(0.05)
        with sleeper() as later:
            first, second = identity(earlier.pid), identity(later.pid)
            assert first is not None
            assert second is not None
            assert first.start_time < second.start_time
            assert same_boot(first.start_time, second.start_time)
            end(later)
        end(earlier)


def test_a_time_of_another_boot_cannot_be_compared() -> None:
    who = identity(os.getpid())
    assert who is not None
    assert not same_boot(who.start_time, 5.0)


def test_a_zombie_does_not_run_but_its_start_can_be_read() -> None:
    with sleeper() as process:
        before = identity(process.pid)
        process.kill()
        deadline = time.monotonic() + 5
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert identity(process.pid) is None
        assert identity(process.pid, even_zombie=True) == before
        assert process.pid not in group_members(os.getpgid(process.pid))


def test_members_of_a_group_are_found() -> None:
    with sleeper(start_new_session=True) as process:
        assert group_members(process.pid) == (process.pid,)
        end(process)
    assert group_members(process.pid) == ()

"""Launching an engine and ending it whole (R39), with processes that resist."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lab.engine.definition import EngineDefinition
from lab.engine.log_limit import LIMIT_BYTES, NOTICE
from lab.engine.process import EngineProcess, end_orphan, launch, stop
from lab.environment import ROOT
from lab.findings import LabError
from lab.host.process_identity import ProcessIdentity, group_members, identity
from tests.engine.fakes import Launcher, fake_command, unused_port, wait_for


def whole_group(process: EngineProcess) -> tuple[int, ...]:
    wait_for(lambda: len(group_members(process.pgid)) == 3)
    return group_members(process.pgid)


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_engine_leads_a_group_and_session_of_its_own(launch_fake: Launcher) -> None:
    process = launch_fake()
    assert process.pgid == process.pid == os.getpgid(process.pid) == os.getsid(process.pid)
    assert process.identity == identity(process.pid)


def test_the_log_is_only_the_users_own(launch_fake: Launcher) -> None:
    process = launch_fake(lines=["hello"])
    wait_for(lambda: "hello" in process.log_path.read_text())
    assert stat.S_IMODE(process.log_path.stat().st_mode) == 0o600


def test_a_log_of_an_earlier_launch_is_not_read_as_this_ones(vllm: EngineDefinition, tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("ValueError: No available memory for the cache blocks\n")
    process = launch(fake_command(vllm, unused_port()), tmp_path / "engine.log")
    assert stop(process, 5).ended
    assert "cache blocks" not in process.log_path.read_text()


def test_much_output_never_blocks_the_engine(launch_fake: Launcher) -> None:
    process = launch_fake(flood_bytes=5_000_000)
    wait_for(lambda: process.log_path.stat().st_size == 5_000_000)


def test_a_log_that_outgrows_its_limit_keeps_its_beginning_and_its_end(launch_fake: Launcher) -> None:
    process = launch_fake(lines=["the first line"], flood_lines=200_000_000 // 100, last_line="the last line")

    def settled() -> bool:
        if process.log_path.stat().st_size > LIMIT_BYTES:
            return False
        data = process.log_path.read_bytes()
        return len(data) <= LIMIT_BYTES and NOTICE in data and b"the last line" in data[-200:]

    wait_for(settled, timeout_s=60)
    kept = process.log_path.read_bytes().splitlines()
    assert (kept[0], kept[-1]) == (b"the first line", b"the last line")
    assert kept.count(NOTICE.strip()) == 1
    # lines of 100 bytes, whole ones only
    assert {len(line) for line in kept[1:-1] if line != NOTICE.strip()} == {99}
    assert len(kept) > 2 * (LIMIT_BYTES // 4 // 100) - 10
    assert process.poll() is None


def test_stop_ends_launcher_core_and_worker(launch_fake: Launcher) -> None:
    process = launch_fake(core_and_worker=True)
    whole_group(process)
    proof = stop(process, 10)
    assert (proof.ended, proof.how, proof.left, proof.port_free) == (True, "sigterm", (), True)
    assert group_members(process.pgid) == ()


def test_stop_ends_the_group_when_sigterm_is_ignored(launch_fake: Launcher) -> None:
    process = launch_fake(core_and_worker=True, ignore_sigterm=True)
    wait_for(lambda: listening(process.port))
    whole_group(process)
    proof = stop(process, 0.3)
    assert (proof.ended, proof.how, proof.left, proof.port_free) == (True, "sigkill", (), True)
    assert group_members(process.pgid) == ()


def test_stop_ends_what_lives_on_after_the_launcher_was_killed(launch_fake: Launcher) -> None:
    process = launch_fake(core_and_worker=True, ignore_sigterm=True)
    whole_group(process)
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: process.poll() == -signal.SIGKILL)
    assert len(group_members(process.pgid)) == 2
    assert stop(process, 0.3).ended
    assert group_members(process.pgid) == ()


def test_stop_finds_a_worker_that_left_the_group(launch_fake: Launcher) -> None:
    process = launch_fake(core_and_worker=True, worker_leaves_group=True)

    def left() -> list[int]:
        return [c.pid for c in psutil.Process(process.pid).children(recursive=True) if os.getsid(c.pid) == c.pid]

    wait_for(lambda: len(left()) == 1)
    (worker,) = left()
    assert stop(process, 10).ended
    assert identity(worker) is None


def test_stop_of_an_engine_that_ended_by_itself_says_so_and_can_be_repeated(launch_fake: Launcher) -> None:
    process = launch_fake(exit_after_s=0.0, exit_code=3)
    wait_for(lambda: process.poll() is not None)
    assert process.poll() == 3
    assert [stop(process, 1).how for _ in range(2)] == ["exited", "exited"]


def test_another_engine_of_the_same_name_is_not_touched(launch_fake: Launcher) -> None:
    other = launch_fake(core_and_worker=True)
    members = whole_group(other)
    ours = launch_fake(core_and_worker=True)
    whole_group(ours)
    stop(ours, 10)
    assert group_members(other.pgid) == members


def test_a_taken_port_is_refused_before_launch_and_its_owner_named(vllm: EngineDefinition, tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(LabError) as caught:
            launch(fake_command(vllm, port), tmp_path / "engine.log")
    finding = caught.value.findings[0]
    assert (finding.code, finding.params["port"], finding.params["pid"]) == ("port-taken", port, os.getpid())
    assert not (tmp_path / "engine.log").exists()


def test_a_listener_on_the_other_address_family_does_not_matter(vllm: EngineDefinition, tmp_path: Path) -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 on this host")
    with server:
        process = launch(fake_command(vllm, server.getsockname()[1]), tmp_path / "engine.log")
        assert stop(process, 5).ended


def test_an_interpreter_that_is_not_there_is_a_finding(vllm: EngineDefinition, tmp_path: Path) -> None:
    command = replace(fake_command(vllm, unused_port()), argv=(str(tmp_path / "no-python"),))
    with pytest.raises(LabError, match="engine-not-started"):
        launch(command, tmp_path / "engine.log")


def test_a_command_that_the_system_refuses_is_a_finding(vllm: EngineDefinition, tmp_path: Path) -> None:
    command = fake_command(vllm, unused_port())
    with pytest.raises(LabError, match="engine-not-started"):
        launch(replace(command, argv=(*command.argv, "x" * 3_000_000)), tmp_path / "engine.log")
    assert processes_that_write_into(tmp_path) == []


def left_behind(tmp_path: Path, *, guarded: bool) -> tuple[ProcessIdentity, int, Path]:
    """Launch an engine in a process of its own that is then killed with SIGKILL, as a runner may be."""
    log = tmp_path / "left.log"
    program = f"""
import os, signal, sys, time
from pathlib import Path
sys.path[:0] = [{str(ROOT)!r}]
from lab.engine.definition import load_definition
from lab.engine.process import launch
from tests.engine.fakes import fake_command, unused_port
command = fake_command(load_definition("vllm", Path({str(ROOT / "configs")!r})), unused_port(), core_and_worker=True)
process = launch(command, Path({str(log)!r}))
if not {guarded}:
    process._guard.kill()
    process._guard.wait()
print(process.pid, repr(process.start_time), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        pid, start_time = runner.stdout.readline().split()
        wait_for(lambda: len(group_members(int(pid))) == 3)
        runner.send_signal(signal.SIGKILL)
    return ProcessIdentity(int(pid), float(start_time)), int(pid), log


def test_the_engine_of_a_killed_runner_is_ended_by_its_guard(tmp_path: Path) -> None:
    _, pgid, _ = left_behind(tmp_path, guarded=True)
    wait_for(lambda: group_members(pgid) == ())


def test_a_runner_killed_at_any_line_of_the_launch_leaves_no_engine(tmp_path: Path) -> None:
    """The killed process forks once for each line, so that only the launch is repeated and not the imports."""
    program = f"""
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{str(ROOT)!r}]
from lab.engine import process
from lab.engine.definition import load_definition
from tests.engine.fakes import fake_command, unused_port
definition = load_definition("vllm", Path({str(ROOT / "configs")!r}))

def launch_and_die(at, log):
    seen = 0
    def trace(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename == process.__file__:
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    command = fake_command(definition, unused_port(), open_s=None)
    sys.settrace(trace)
    process.launch(command, log)
    os._exit(0)

at = 0
while True:
    at += 1
    log = Path({str(tmp_path)!r}) / f"{{at}}.log"
    child = os.fork()
    if not child:
        launch_and_die(at, log)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
print(at)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    assert int(done.stdout) > 60, "the lines of the launch"
    assert len(list(tmp_path.glob("*.log"))) > 30
    wait_for(lambda: not processes_that_write_into(tmp_path))


def processes_that_write_into(folder: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(f"/proc/{process.pid}/fd/1").readlink().parent == folder:
                found.append(process.pid)
    return found


def test_an_engine_is_not_started_without_a_guard(vllm: EngineDefinition, tmp_path: Path, monkeypatch) -> None:
    """One whose guard was killed before it could be told."""

    def killed_guard(_log_path: Path) -> subprocess.Popen[bytes]:
        guard = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)
        guard.wait()
        return guard

    monkeypatch.setattr("lab.engine.process._start_guard", killed_guard)
    with pytest.raises(LabError, match="engine-not-started"):
        launch(fake_command(vllm, unused_port()), tmp_path / "engine.log")
    assert processes_that_write_into(tmp_path) == []


def test_an_orphan_is_ended_by_pid_and_start_time(tmp_path: Path) -> None:
    who, pgid, log = left_behind(tmp_path, guarded=False)
    assert len(group_members(pgid)) == 3
    assert end_orphan(who, pgid, log_path=log).ended
    assert group_members(pgid) == ()


def test_the_children_of_a_dead_orphan_are_ended_too(tmp_path: Path) -> None:
    who, pgid, log = left_behind(tmp_path, guarded=False)
    os.kill(who.pid, signal.SIGKILL)
    wait_for(lambda: len(group_members(pgid)) == 2)
    assert end_orphan(who, pgid, log_path=log).ended
    assert group_members(pgid) == ()


def test_a_foreign_process_that_has_the_pid_now_is_not_touched(launch_fake: Launcher) -> None:
    foreign = launch_fake(core_and_worker=True)
    members = whole_group(foreign)
    earlier = ProcessIdentity(foreign.pid, foreign.start_time - 1.0)
    proof = end_orphan(earlier, foreign.pgid)
    assert (proof.ended, proof.how) == (True, "exited")
    assert group_members(foreign.pgid) == members


def test_a_group_of_an_earlier_boot_is_not_touched(launch_fake: Launcher) -> None:
    foreign = launch_fake(core_and_worker=True)
    members = whole_group(foreign)
    os.kill(foreign.pid, signal.SIGKILL)  # so that only the group's number speaks for it
    wait_for(lambda: foreign.poll() is not None)
    other_boot = ProcessIdentity(foreign.pid, 1.0)
    end_orphan(other_boot, foreign.pgid)
    assert group_members(foreign.pgid) == members[1:]


def test_members_that_do_not_write_to_the_launchs_log_are_not_touched(launch_fake: Launcher, tmp_path: Path) -> None:
    foreign = launch_fake(core_and_worker=True)
    members = whole_group(foreign)
    os.kill(foreign.pid, signal.SIGKILL)
    wait_for(lambda: foreign.poll() is not None)
    (tmp_path / "other.log").touch()
    end_orphan(foreign.identity, foreign.pgid, log_path=tmp_path / "other.log")
    assert group_members(foreign.pgid) == members[1:]

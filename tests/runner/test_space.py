"""A disk without room fails a trial in one sentence."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from lab.messages import word_message
from lab.runner.outcome import TrialFailed
from lab.runner.space import refuse_full_disk
from lab.runner.trial_log import trial_log


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=3 * 2**20))
    with pytest.raises(TrialFailed) as problem:
        refuse_full_disk(tmp_path)
    assert problem.value.failure == "internal"
    words = word_message(problem.value.message)
    assert str(tmp_path) in words and "3 MiB" in words and "LAB_RUN_DIR" in words


def test_a_disk_with_room_is_none_of_our_business(tmp_path: Path) -> None:
    refuse_full_disk(tmp_path)


def test_a_trial_goes_on_without_a_log_of_its_own(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "logs"
    not_a_folder.write_text("in the way", "utf-8")
    with trial_log(not_a_folder, 1, 1) as path:
        assert not path.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_disk_that_fills_up_during_a_trial_does_not_end_the_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trial-1-1.log").symlink_to("/dev/full")
    with trial_log(tmp_path, 1, 1):
        logging.getLogger("lab.runner").warning("said to a full disk")
    assert "No space left" in capsys.readouterr().err

"""The command line's tests borrow the runner's lab: a config folder, a database, runners that are ended."""

from tests.runner.conftest import lab, sigint_reaches_children, start_stub

__all__ = ["lab", "sigint_reaches_children", "start_stub"]

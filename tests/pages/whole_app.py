"""The whole application for AppTest.

AppTest forgets before each run that `st.navigation` was called and would run a page of `pages/` without app.py; from
this folder, which has no `pages/` of its own, it does not.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "app.py"), run_name="__main__")

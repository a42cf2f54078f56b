from __future__ import annotations

import sys

from lab.load.process import main

sys.exit(main())

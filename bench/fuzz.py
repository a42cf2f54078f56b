"""`python -m bench.fuzz`: many random streams through the decoder; ends with 1 at the first wrong count."""

from __future__ import annotations

import argparse
import sys

from tests.load.random_streams import check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.streams):
        try:
            check(seed)
        except Exception as reason:  # any kind of failure is the find of a fuzz run, named by its seed
            print(f"seed {seed}: {type(reason).__name__}: {reason}", file=sys.stderr)
            return 1
    print(f"{given.streams} streams, no crash and no wrong count")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench`: the loader against a server of known timing, beside the clients that others use."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.numbers import REQUESTS, measure_numbers
from bench.ours import measure_ours
from bench.peers import PeerError, measure_guidellm, measure_sdk, measure_vllm
from bench.row import Row, table
from lab.engine.model import find_model
from lab.environment import read_environment

TOKENS = 100
FIRST_MS = 200.0
GAP_MS = 20.0
DEFAULT_MODEL = "smollm2-135m-instruct"


def main() -> int:
    """0 when the loader met its figures in every run, else 1."""
    given = _arguments()
    rows: list[Row] = []
    for _ in range(given.runs):
        for concurrency in given.concurrency:
            rows.append(measure_ours(concurrency, 2 * concurrency, TOKENS, FIRST_MS, GAP_MS))
            _say(rows[-1])
    missed = [(row, row.misses()) for row in rows if row.misses()]
    rows += _others(given)
    print(f"{TOKENS} tokens a stream, the first after {FIRST_MS:g} ms, one each {GAP_MS:g} ms; two requests a slot")
    print(table(rows))
    numbers = measure_numbers()
    print(numbers)
    for row, names in missed:
        print(f"lab load at {row.concurrency} missed its figure in: {', '.join(names)}")
    print(
        "lab load met its figures in every run" if not missed else f"{len(missed)} of lab load's runs missed a figure"
    )
    for name in numbers.misses():
        print(f"{name} {REQUESTS:,} requests took longer than it may")
    return 1 if missed or numbers.misses() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--runs", type=int, default=1, help="how many times the loader is measured")
    parser.add_argument("--peers", action="store_true", help="measure vllm bench serve and guidellm too")
    parser.add_argument("--no-sdk", action="store_true", help="leave out the AsyncOpenAI loop")
    parser.add_argument("--tokenizer", type=Path, help="the folder that the peers count with")
    return parser.parse_args()


def _others(given: argparse.Namespace) -> list[Row]:
    concurrency = given.concurrency[0]
    load = (concurrency, 2 * concurrency, TOKENS, FIRST_MS, GAP_MS)
    tokenizer = given.tokenizer or find_model(DEFAULT_MODEL, read_environment()).tokenizer_dir or Path()
    wanted = [] if given.no_sdk else [lambda: measure_sdk(*load)]
    if given.peers:
        wanted += [lambda: measure_vllm(*load, tokenizer), lambda: measure_guidellm(*load, tokenizer)]
    rows = []
    for measure in wanted:
        try:
            rows.append(measure())
            _say(rows[-1])
        except PeerError as reason:
            print(f"not measured: {reason}", file=sys.stderr)
    return rows


def _say(row: Row) -> None:
    print(f"… {row.client} at {row.concurrency} measured", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

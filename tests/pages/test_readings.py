"""Values of files as widgets show them: every readable value opens, wrong types are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from pages.components.pair_panel import plain_markdown
from pages.components.readings import parse, read


@pytest.mark.parametrize(
    ("kind", "raw", "shown", "exact"),
    [
        ("float", 1, 1.0, True),
        ("float", 1.0, 1.0, True),
        ("float", "0.90", 0.9, False),
        ("float", 90, 90.0, True),
        ("int", 64, 64, True),
        ("int", 64.0, 64, False),
        ("int", 32_768, 32_768, True),
        ("int", "64", 64, False),
        ("int", 1e3, 1000, False),
        ("bool", True, True, True),
        ("bool", "true", True, False),
        ("bool", 1, True, False),
        ("str", 5, "5", False),
        ("choice", "fp8", "fp8", True),
        ("ints", [128, 512], (128, 512), True),
        ("ints", [128.0, "512"], (128, 512), False),
        ("ints", 128, (128,), False),
        ("floats", [1, 2.5], (1.0, 2.5), True),
    ],
)
def test_a_readable_value_is_shown_in_its_fields_type(kind: Any, raw: Any, shown: Any, exact: bool) -> None:
    reading = read(kind, raw)
    assert (reading.shown, reading.exact) == (shown, exact)
    assert type(reading.shown) is type(shown)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("int", "many"), ("int", 64.5), ("int", True), ("int", [1]), ("int", 2**60), ("float", float("nan")),
        ("float", float("inf")), ("float", False), ("float", 10**400), ("bool", "yes"), ("bool", 2), ("ints", ["x"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_kept_to_be_repaired(kind: Any, raw: Any) -> None:
    reading = read(kind, raw)
    assert (reading.shown, reading.readable) == (None, False)


def test_nothing_set_is_not_wrong() -> None:
    reading = read("int", None)
    assert (reading.shown, reading.readable, reading.exact) == (None, True, True)


def test_typed_lists_take_the_commas_people_type() -> None:
    assert parse("ints", "8, 16，32") == (8, 16, 32)
    assert parse("ints", "[8, 16]") == (8, 16)
    assert parse("floats", "0.5, 2") == (0.5, 2.0)
    assert parse("ints", "8, many") is None
    assert parse("int", "") is None


def test_text_of_a_file_is_never_markup() -> None:
    assert plain_markdown("a_b *c* :red[x] $y$") == r"a\_b \*c\* \:red\[x\] \$y\$"
    assert plain_markdown("run `make_it *now*`") == "run `make_it *now*`"
    assert plain_markdown("one ` alone_") == r"one \` alone\_"

"""Tables for the terminal."""

from __future__ import annotations

from lab.cli.table import shown, table


def test_columns_line_up_also_with_chinese_names() -> None:
    lines = table(("arm", "tok/s"), [("批处理", 300.4), ("a", None)]).splitlines()
    assert lines == [
        "arm     tok/s",
        "──────  ─────",
        "批处理    300",
        "a           –",
    ]


def test_missing_values_are_a_dash_and_zero_stays_zero() -> None:
    assert [shown(each) for each in (None, 0, 0.0, 12345, 1234.5, 12.34, 1.234, True)] == [
        "–", "0", "0.00", "12,345", "1,234", "12.3", "1.23", "True",
    ]  # fmt: skip


def test_a_table_without_rows_has_its_headings() -> None:
    assert table(("id", "name"), []).splitlines()[0] == "id  name"

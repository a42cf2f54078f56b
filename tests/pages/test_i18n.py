"""Every text of the pages in every language, and the choice of the language."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from streamlit.testing.v1 import AppTest

from pages.components.i18n import match_language, translator
from tools import translations


@pytest.mark.parametrize("language", translations.languages())
def test_every_text_is_translated_with_the_same_placeholders(language: str) -> None:
    assert translations.problems(language) == []


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("zh", "zh_CN"),
        ("zh-CN", "zh_CN"),
        ("zh_CN", "zh_CN"),
        ("zh-Hans-CN", "zh_CN"),
        ("en-GB", "en"),
        ("de-DE", "en"),
        ("", "en"),
        (None, "en"),
    ],
)
def test_a_browsers_tag_finds_its_language(tag: str | None, language: str) -> None:
    assert match_language(tag) == language


def test_a_text_of_a_page_comes_out_in_chinese() -> None:
    assert translator("zh_CN").gettext("Home") == "首页"
    assert translator("en").gettext("Home") == "Home"


def test_the_extractor_finds_the_texts_of_a_toml_table() -> None:
    file = BytesIO(b'[a]\ntext = "One {x}."\nother = "no"\n[a.b]\nremedy = "Two."\ntext = ""\n')
    assert list(translations.toml_texts(file, ("text", "remedy"))) == ["One {x}.", "Two."]


def test_the_extractor_finds_texts_inside_of_f_strings_and_plurals() -> None:
    source = 'a = f"**{_("Bold")}**"\nb = ngettext("{n} arm", "{n} arms", n)\nc = _(variable)\nd = _("one " "text")\n'
    source = source.replace('_("Bold")', "_('Bold')")
    assert sorted(python for _line, python in translations.python_texts(source) if isinstance(python, str)) == [
        "Bold",
        "one text",
    ]
    assert ("{n} arm", "{n} arms") in [text for _line, text in translations.python_texts(source)]


def test_placeholders_are_names_whatever_their_format() -> None:
    assert translations.placeholders("{a} of {b:.1f}, {c!r}, {{no}}") == ("a", "b", "c")
    assert translations.placeholders("set = { max_num_seqs = 1") == ()


def test_the_address_names_the_language(open_page: Callable[..., AppTest]) -> None:
    assert open_page("home", lang="zh").title[0].value == "首页"


def test_the_switch_changes_the_page_and_its_address(open_page: Callable[..., AppTest]) -> None:
    app = open_page("home")
    assert app.title[0].value == "Home"
    app.sidebar.selectbox(key="language_widget").set_value("zh_CN").run()
    assert app.title[0].value == "首页"
    assert app.query_params["lang"] in ("zh_CN", ["zh_CN"])


def test_a_chosen_language_survives_a_change_of_page(open_page: Callable[..., AppTest]) -> None:
    app = open_page("home")
    app.sidebar.selectbox(key="language_widget").set_value("zh_CN").run()
    app.query_params.clear()
    app.switch_page("../../pages/history.py").run()
    assert app.title[0].value == "历史"

"""Home: what is here, what runs, what to do first."""

from pages.components.context import header
from pages.components.i18n import _

header(_("Home"))

"""What is to be said of a changed config pair that was not so before the change."""

from __future__ import annotations

from lab.configs.checks import check_pair
from lab.configs.pair import ConfigPair
from lab.findings import Finding


def fresh_findings(old: ConfigPair, new: ConfigPair) -> tuple[Finding, ...]:
    """Findings on the new pair that the old one has not. Never raises."""
    before = set(map(_kind, check_pair(old)))
    return tuple(each for each in check_pair(new) if _kind(each) not in before)


def _kind(finding: Finding) -> tuple[object, ...]:
    """What a finding is about, without its place: a line that moved is no new finding."""
    return (finding.code, finding.severity, *sorted(finding.params.items()))

"""What `lab check` offers for its findings: the diff that would put each right. Nothing is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.configs.experiment_repairs import experiment_offers, with_offers
from lab.configs.pair import ConfigPair, diff_pair, diff_texts
from lab.configs.pair_files import read_text
from lab.configs.repairs import repaired, repairs
from lab.findings import Finding
from lab.messages import word


@dataclass(frozen=True, slots=True)
class Offer:
    """`rule`, `line` and `file` are the finding's; `message` says what would be done."""

    rule: str
    file: str
    line: int | None
    message: str
    diff: str


def pair_offers(pair: ConfigPair, about: str, findings: Iterable[Finding]) -> Iterator[Offer]:
    """Offers for one file of a pair."""
    for repair in repairs(pair, findings):
        if repair.finding.file == about:
            finding, diff = repair.finding, diff_pair(pair, repaired(pair, [repair]))
            yield Offer(finding.code, about, finding.line, word(repair.code, repair.params), diff)


def file_offers(path: Path, findings: Sequence[Finding]) -> Iterator[Offer]:
    """Offers for one experiment file."""
    text = read_text(path)
    for finding, edits in experiment_offers(text, str(path), findings):
        diff = diff_texts(text, with_offers(text, [(finding, edits)]), str(path))
        yield Offer(finding.code, str(path), finding.line, word("repair-readable", {"line": finding.line}), diff)

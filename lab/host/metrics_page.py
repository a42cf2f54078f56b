"""Reading values from a page of metrics in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def read_metrics(text: str, names: Collection[str]) -> dict[str, float]:
    """The wanted metrics, summed over their label sets; a metric that is not on the page is not in the answer.

    Raises `ValueError` where a wanted line is not in the format.
    """
    found: dict[str, float] = {}
    for sample in _samples(text, names):
        if sample.name in names:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def read_labels(text: str, name: str) -> Mapping[str, str] | None:
    """The labels of the first sample of a metric; None where it is not on the page."""
    return next((dict(sample.labels) for sample in _samples(text, (name,)) if sample.name == name), None)


def _samples(text: str, names: Collection[str]) -> Iterator[Sample]:
    """Only the wanted lines go through the parser: a page has thousands, and it is read while an engine is measured."""
    starts = tuple(f"{name}{follow}" for name in names for follow in ("{", " "))
    wanted = "".join(f"{line}\n" for line in text.split("\n") if line.startswith(starts))
    for family in text_string_to_metric_families(wanted):
        yield from family.samples

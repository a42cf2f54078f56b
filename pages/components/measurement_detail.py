"""One measurement down to its requests: where every number of the page comes from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lab.charts import (
    RequestTexts,
    SeriesGroup,
    known_groups,
    request_ttft,
    time_series,
    ttft_histogram,
    ttft_waterfall,
)
from lab.metrics.waterfall import Waterfall, mean_parts, waterfalls
from lab.records.plan import Slo
from lab.records.request import RequestRecord
from lab.records.summary import Summary
from lab.store import MeasurementRow, Store, list_requests, list_samples
from pages.components.context import is_dark
from pages.components.i18n import _, word
from pages.components.markdown import plain_markdown
from pages.components.result_rows import request_record
from pages.components.result_table import column_config, stage_text, styled
from pages.components.stall_chart import stall_chart
from pages.components.status import MISSING, count, failure_word, milliseconds, number, percent, tokens_per_s

_COLUMNS = (
    "index", "result", "start_ms", "ttft_ms", "tpot_ms", "e2e_ms", "prompt_tokens", "completion_tokens",
    "cached_tokens", "finish_reason", "client_wait_ms", "message", "text",
)  # fmt: skip


# requests that were all sent at once have no course over time
_SPREAD_MS = 100.0


def measurement_label(row: MeasurementRow) -> str:
    """How a measurement is named in a list."""
    parts = [f"#{row.id}", row.arm_name, _("repeat {n}").format(n=row.repeat)]
    if stage := stage_text(row.stage):
        parts.append(stage)
    return " · ".join(parts)


def measurement_detail(store: Store, row: MeasurementRow, slo: Slo) -> None:
    """Figures, reservations, the distribution of TTFT, and every request."""
    _figures(row)
    for text in dict.fromkeys(word(mark.code, dict(mark.params)) for mark in row.marks):
        st.markdown(f":orange[:material/flag:] {plain_markdown(text)}")
    requests = list_requests(store, row.id)
    stall_chart(row, requests)
    _distribution(row, requests, slo.ttft_p95_ms)
    _way_to_first_token(row, waterfalls(requests))
    _telemetry(store, row)
    _requests(row, requests)


def _figures(row: MeasurementRow) -> None:
    summary = row.summary
    failed = sum(summary.failed.values())
    requests = _("{ok} of {all} succeeded").format(ok=count(summary.succeeded), all=count(summary.requests))
    figures = [
        (_("Throughput"), tokens_per_s(summary.output_tokens_per_s)),
        (_("P95 TTFT"), milliseconds(summary.ttft_ms.p95)),
        (_("P50 TPOT"), milliseconds(summary.tpot_ms.p50)),
        (_("P95 E2E"), milliseconds(summary.e2e_ms.p95)),
        (_("Most in flight"), count(summary.peak_in_flight)),
        (_("Wall time"), number(summary.wall_s, 1, "s")),
    ]
    figures += [(name, value) for name, value in _more_figures(row.summary) if value != MISSING]
    with st.container(horizontal=True, gap="medium"):
        for name, value in figures:
            st.metric(name, value, width="content")
    st.caption(requests if not failed else f"{requests} · {_failures(row)}")


def _more_figures(summary: Summary) -> list[tuple[str, str]]:
    """What not every measurement has."""
    apart = summary.interference
    long_prompts = None if apart is None else apart.intruder_ttft_ms.mean
    return [
        (_("Mean TTFT of long prompts"), milliseconds(long_prompts)),
        (_("Steady throughput"), tokens_per_s(summary.steady_tokens_per_s)),
        (_("Longest stall"), milliseconds(summary.longest_stall_ms)),
        (_("KV cache peak"), percent(summary.kv_peak_ratio, 1)),
        (_("Energy per token"), number(summary.joules_per_token, 2, "J")),
    ]


def _failures(row: MeasurementRow) -> str:
    return ", ".join(f"{failure_word(name)}: {number(n)}" for name, n in row.summary.failed.items())


def _distribution(row: MeasurementRow, requests: Sequence[RequestRecord], slo_ms: float | None) -> None:
    """How TTFT is spread, and over the time of the measurement."""
    ttft_ms = [r.ttft_ms for r in requests if not r.warmup and r.failure is None and r.ttft_ms is not None]
    if len(ttft_ms) < 2:
        return
    measured = [request for request in requests if not request.warmup]
    sent = [request.t0_ms for request in measured]
    places = st.columns(2, gap="medium") if max(sent) - min(sent) >= _SPREAD_MS else [st.container()]
    with places[0]:
        st.markdown(f"**{_('TTFT: how many requests waited how long')}**")
        figure = ttft_histogram(ttft_ms, dark=is_dark(), ttft_title=_("TTFT (ms)"), requests_title=_("Requests"))
        st.plotly_chart(figure, key=f"results:ttft:{row.id}", theme=None, config={"displayModeBar": False})
    for place in places[1:]:
        with place:
            st.markdown(f"**{_('TTFT: over the time of the measurement')}**")
            figure = request_ttft(measured, slo_ms=slo_ms, dark=is_dark(), texts=_texts(), height=300)
            st.plotly_chart(figure, key=f"results:sent:{row.id}", theme=None, config={"displayModeBar": False})


def _texts() -> RequestTexts:
    return RequestTexts(
        sent=_("Sent (s after the start)"),
        ttft=_("TTFT (ms)"),
        answered=_("answered"),
        incomplete=_("cut off by the end"),
        warmup=_("warm-up, left out"),
        failed=_("failed"),
        hover=_("request {index}: TTFT {ttft} ms, {tokens} tokens"),
    )


def _way_to_first_token(row: MeasurementRow, falls: Sequence[Waterfall]) -> None:
    """The parts of TTFT, as far as client and engine tell them."""
    if not falls:
        return
    words = {
        "client_wait": _("wait in the client"),
        "connection": _("opening the connection"),
        "network": _("network and front end"),
        "queue": _("queue of the engine"),
        "prefill": _("prefill"),
        "unknown": _("not told by the server"),
    }
    with st.expander(_("The way to the first token, request by request")):
        means = [f"{words[name]} {milliseconds(value)}" for name, value in mean_parts(falls).items()]
        st.markdown(_("On average: {parts}").format(parts=" → ".join(means)))
        figure = ttft_waterfall(
            falls,
            dark=is_dark(),
            words=words,
            request_title=_("Request"),
            time_title=_("From due to first token (ms)"),
        )
        st.plotly_chart(figure, key=f"results:waterfall:{row.id}", theme=None, config={"displayModeBar": False})
        st.caption(
            _(
                "Queue and prefill are the engine's own times; what they leave over is network and front end, with the "
                "wait until the engine's step in hand is done and the request is taken in. A server that tells no "
                "times leaves everything after sending unknown."
            )
        )


def _telemetry(store: Store, row: MeasurementRow) -> None:
    """What the engine and the host reported meanwhile; nothing where nothing was sampled."""
    samples = list_samples(store, row.id)
    groups = known_groups(samples, series_groups({sample.series for sample in samples}))
    if groups:
        with st.expander(_("Engine and host during the measurement")):
            figure = time_series(samples, groups, dark=is_dark(), time_title=_("Time (s)"))
            st.plotly_chart(figure, key=f"results:series:{row.id}", theme=None, config={"displayModeBar": False})


def series_groups(names: Iterable[str]) -> tuple[SeriesGroup, ...]:
    """The series that are known, by what they have in common; GPUs as many as there are."""
    gpu_use, gpu_memory, gpu_power = (
        {name: name.split("_")[0].upper() for name in sorted(names) if name.startswith("gpu") and name.endswith(end)}
        for end in ("_utilization_ratio", "_memory_used_bytes", "_power_w")
    )
    return (
        SeriesGroup(_("KV cache in use"), {"kv_cache_usage_ratio": _("KV cache in use")}, percent=True),
        SeriesGroup(_("Requests"), {"requests_running": _("running"), "requests_waiting": _("waiting")}),
        SeriesGroup(_("Preemptions"), {"preemptions_total": _("preemptions")}),
        SeriesGroup(_("Processor of the host"), {"host_cpu_ratio": _("processor of the host")}, percent=True),
        SeriesGroup(_("GPU utilisation"), gpu_use, percent=True),
        SeriesGroup(_("GPU memory (bytes)"), gpu_memory),
        SeriesGroup(_("GPU power (W)"), gpu_power),
    )


def _requests(row: MeasurementRow, requests: Sequence[RequestRecord]) -> None:
    warm = sum(request.warmup for request in requests)
    title = _("Requests ({n}, and {warm} of the warm-up, which count nowhere)")
    st.markdown(f"**{title.format(n=len(requests) - warm, warm=warm)}**")
    records = [_shown(request) for request in requests]
    if not records:
        st.caption(_("No request was stored."))
        return
    st.dataframe(
        styled(records),
        hide_index=True,
        column_order=[name for name in _COLUMNS if any(record[name] not in (None, "") for record in records)],
        column_config=column_config(_COLUMNS),
        height=min(420, 38 + 35 * len(records)),
        key=f"results:requests:{row.id}",
    )
    st.download_button(
        _("Requests as CSV"),
        pd.DataFrame([request_record(request) for request in requests]).to_csv(index=False),
        file_name=f"measurement-{row.id}-requests.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key=f"results:requests-csv:{row.id}",
    )


def _shown(request: RequestRecord) -> dict[str, Any]:
    record = request_record(request)
    if request.warmup:
        record["result"] = _("warm-up")
    elif request.failure is not None:
        record["result"] = failure_word(request.failure)
    else:
        record["result"] = _("cut off at the end") if request.incomplete else _("ok")
    return record

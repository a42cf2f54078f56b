"""One measurement inside the loader's process: prepare, warm up, start the clock, release, end."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.load.address import find_route, read_address
from lab.load.body import RequestWriter
from lab.load.call import End
from lab.load.connection import Exchange
from lab.load.dial import Dialer
from lab.load.failures import FATAL, classify_answer
from lab.load.feed import Feed, Ramped
from lab.load.lag import LagMeter
from lab.load.modes import burst, closed_loop, gangs, interference, open_loop, sleep_until
from lab.load.pool import Pool
from lab.load.prompts import Prompts, build_prompts
from lab.load.schedule import arrivals, ramp_arrivals
from lab.load.shape import INTRUDER_DELAY_S, Shape, read_shape
from lab.load.share import ALL_OF_IT, Share
from lab.load.spill import Spill
from lab.load.tokenizer import read_tokenizer
from lab.records.request import LoadProgress
from lab.records.workload import LoadJob

PROGRESS_EVERY_S = 0.25
OPEN_LEAD_NS = 20_000_000
WARMUP_SLOTS = 4
CONNECTIONS_LIMIT = 4096
OPEN_LOOP_SECONDS = 2.0
AHEAD_REQUESTS = 20_000
AHEAD_RAMP_REQUESTS = 2_000
INTRUDER_OUTPUT_TOKENS = 1
_INTRUDER_INDEX = 1 << 30  # numbered apart from the decoders, whose count is open
_RAMP_INDEX = 1 << 29


@dataclass(frozen=True, slots=True)
class Outcome:
    """`window_s` is set where a moment ended the measurement; None where its requests did, or it was stopped."""

    clock_ns: int
    cpu_s: float
    lag_p99_ms: float | None
    lag_max_ms: float | None
    window_s: float | None
    stopped: bool
    notes: tuple[str, ...]


class Measurement:
    """Built before the loop runs (prompts, bodies: the slow part); raises LabError for what cannot be run."""

    def __init__(
        self,
        job: LoadJob,
        variables: Mapping[str, str],
        directory: Path,
        on_segment: Callable[[Path], None],
        share: Share = ALL_OF_IT,
    ) -> None:
        self.job = job
        self._whole: Shape = read_shape(job)
        self._share = share
        self.shape = share.of_shape(self._whole)
        self._directory = directory
        self._on_segment = on_segment
        self._address = read_address(job.base_url)
        self._route = find_route(self._address, variables, use_proxy=job.use_proxy)
        key = variables.get(job.api_key_env, "").strip() if job.api_key_env else None
        self._writer = RequestWriter(job, self._address, self._route, key)
        tokenizer = read_tokenizer(job.tokenizer_dir)
        steady_lengths = () if self.shape.kind == "interference" else self.shape.lengths
        self._prompts = build_prompts(job, tokenizer, steady_lengths)
        self._intruders = build_prompts(job, tokenizer, self.shape.lengths) if self._has_intruders() else None
        self._notes = list(self._prompts.notes)
        self._lag = LagMeter()
        self._done = 0
        self._stopped = False
        self._window_s: float | None = None
        self._feeds: list[Feed] = []
        self._ramp: Feed | None = None
        self._thrown_in: Feed | None = None
        self._pool: Pool | None = None
        self._begin_ns = 0
        self._clock_ns = 0
        self._cpu_before = 0.0
        self._step: asyncio.Task[None] | None = None

    def _has_intruders(self) -> bool:
        return self.shape.kind == "interference"

    def stop(self) -> None:
        """Close every socket at once."""
        self._stopped = True
        self._break_off("cancelled")

    def progress(self) -> LoadProgress:
        elapsed_s = max(0.0, (time.monotonic_ns() - self._clock_ns) / 1e9) if self._clock_ns else 0.0
        in_flight = self._pool.in_flight if self._pool is not None else 0
        return LoadProgress(self._done, self.shape.requests, in_flight, elapsed_s)

    async def run(
        self, on_clock: Callable[[int], None], wait_to_begin: Callable[[], Awaitable[int]] | None = None
    ) -> Outcome:
        """`on_clock` hears the start of the clock, before the first request of the ramp or of the measurement.

        `wait_to_begin` gives the moment to begin where that is not this process's own business.
        """
        spill = Spill(self._directory, self._on_segment)
        self._pool = pool = Pool(
            Dialer(self._address, self._route), self.job.workload.request_timeout_s, spill.put_part
        )
        pool.on_done = partial(self._ended, spill)
        if self._stopped:
            pool.close("cancelled")
        pool.start_watching()
        await self._until_broken_off(self._warm_up(pool))
        feed = self._feed()
        await self._until_broken_off(feed.build_ahead(AHEAD_REQUESTS))
        if self.shape.ramp_s:
            self._ramp = self._ramp_feed(feed)
            await self._until_broken_off(self._ramp.build_ahead(AHEAD_RAMP_REQUESTS))
        if self._intruders is not None:
            self._thrown_in = self._intruder_feed(feed, self._intruders)
            await self._until_broken_off(self._thrown_in.build_ahead(min(AHEAD_REQUESTS, len(self._moments(1)))))
        if not feed.closed:
            await self._until_broken_off(pool.open_ahead(self._connections()))
        gc.collect()
        gc.freeze()
        gc.disable()
        self._begin_ns = self._clock_ns = time.monotonic_ns()
        await self._until_broken_off(self._begin(wait_to_begin))
        self._lag.start()
        on_clock(self._clock_ns)
        self._meter_cpu()
        await self._until_broken_off(self._release(feed, pool))
        self._lag.stop()
        pool.close("cancelled")
        gc.enable()
        spill.close()
        return Outcome(
            clock_ns=self._clock_ns,
            cpu_s=time.process_time() - self._cpu_before,
            lag_p99_ms=self._lag.p99_ms(),
            lag_max_ms=self._lag.max_ms(),
            window_s=self._window_s,
            stopped=self._stopped,
            notes=tuple(self._notes),
        )

    async def _begin(self, wait_to_begin: Callable[[], Awaitable[int]] | None) -> None:
        """The moment of the first request, and the clock's: the end of the ramp."""
        if wait_to_begin is not None:
            self._begin_ns = await wait_to_begin()
        elif self.shape.kind == "open":
            self._begin_ns += OPEN_LEAD_NS
        self._clock_ns = self._begin_ns + round(self.shape.ramp_s * 1e9)
        await sleep_until(self._begin_ns - OPEN_LEAD_NS if self.shape.kind == "open" else self._begin_ns)

    def _meter_cpu(self) -> None:
        """From the start of the clock, which the ramp comes before."""
        self._cpu_before = time.process_time()
        early_s = (self._clock_ns - time.monotonic_ns()) / 1e9
        if early_s > 0 and self.shape.ramp_s:
            asyncio.get_running_loop().call_later(early_s, self._meter_cpu)

    async def _until_broken_off(self, step: Coroutine[None, None, None]) -> None:
        """Run one step; stopping, or the end of the duration, cancels it."""
        if self._stopped:
            step.close()
            return
        self._step = asyncio.ensure_future(step)
        with suppress(asyncio.CancelledError):
            await self._step

    def _break_off(self, end: End) -> None:
        for feed in self._feeds:
            feed.closed = True
        if self._pool is not None:
            self._pool.close(end)
        if self._step is not None:
            self._step.cancel()

    async def _warm_up(self, pool: Pool) -> None:
        count = self._share.count(self.job.workload.warmup_requests)
        if count == 0:
            return
        build = partial(self._request, self._prompts, "warmup", None)
        feed = Feed(build, count, first_index=0, share=self._share, warmup=True)
        self._feeds.append(feed)
        await closed_loop(feed, pool, min(count, self.shape.slots or WARMUP_SLOTS))

    def _feed(self) -> Feed:
        first = self.job.workload.warmup_requests
        count = None if self.shape.kind == "interference" else self.shape.requests
        build = partial(self._request, self._prompts, "run", None)
        feed = Feed(build, count, first_index=first, share=self._share)
        feed.closed = self._stopped or any(earlier.closed for earlier in self._feeds)
        self._feeds.append(feed)
        return feed

    def _request(self, prompts: Prompts, phase: str, output_tokens: int | None, number: int) -> bytes:
        return self._writer.write(prompts.make(phase, number), output_tokens)

    def _connections(self) -> int:
        shape = self.shape
        if shape.kind == "open":
            rate_per_s = (shape.rate_per_s or 0) / self._share.of
            wanted = min(shape.requests or CONNECTIONS_LIMIT, max(8, round(rate_per_s * OPEN_LOOP_SECONDS)))
        elif shape.kind == "burst":
            wanted = shape.requests or 1
        else:
            wanted = min(shape.slots or 1, shape.requests or CONNECTIONS_LIMIT)
            wanted += 1 if shape.kind == "interference" else 0
        return min(wanted, CONNECTIONS_LIMIT)

    async def _release(self, feed: Feed, pool: Pool) -> None:
        loop = asyncio.get_running_loop()
        shape = self.shape
        timer = None
        if shape.duration_s is not None:
            lead_s = max(0.0, (self._clock_ns - time.monotonic_ns()) / 1e9)
            timer = loop.call_later(lead_s + shape.duration_s, self._time_is_up)
        ramped = feed if self._ramp is None else Ramped(self._ramp, feed, self._clock_ns)
        if shape.kind == "burst":
            await burst(feed, pool, shape.requests or 0)
        elif shape.kind == "gang":
            await gangs(feed, pool, shape.slots or 1, shape.requests or 0)
        elif shape.kind == "open":
            moments = (*self._share.pick(self._ramp_moments()), *self._share.pick(self._moments(0)))
            await open_loop(ramped, pool, moments, self._clock_ns)
            if not feed.over:  # its moments end with the duration, the last answers maybe before it
                self._window_s = shape.duration_s
        elif shape.kind == "interference":
            await self._interfere(feed, self._thrown_in or feed, pool)
        else:
            await closed_loop(ramped, pool, shape.slots or 1, self._slot_starts() if shape.ramp_s else ())
        if timer is not None:
            timer.cancel()

    def _time_is_up(self) -> None:
        self._window_s = self.shape.duration_s
        self._break_off("window")

    def _ramp_feed(self, measured: Feed) -> Feed:
        """Requests of the ramp are warm-up under their own mark: stored, and left out of every figure."""
        build = partial(self._request, self._prompts, "ramp", None)
        ramp = Feed(build, None, first_index=_RAMP_INDEX, share=self._share, warmup=True, marks=("ramp",))
        ramp.closed = measured.closed
        self._feeds.append(ramp)
        return ramp

    def _slot_starts(self) -> list[int]:
        """Slots open one after the other, evenly over the ramp."""
        slots = self._whole.slots or 1
        step_ns = (self._clock_ns - self._begin_ns) / slots
        return [self._begin_ns + round(slot * step_ns) for slot in self._share.pick(range(slots))]

    def _intruder_feed(self, measured: Feed, prompts: Prompts) -> Feed:
        build = partial(self._request, prompts, "intruder", INTRUDER_OUTPUT_TOKENS)
        intruders = Feed(build, self.shape.requests, first_index=_INTRUDER_INDEX)
        intruders.closed = measured.closed
        self._feeds.append(intruders)
        return intruders

    async def _interfere(self, decoders: Feed, intruders: Feed, pool: Pool) -> None:
        moments = [INTRUDER_DELAY_S + moment for moment in self._moments(1)]
        slots, duration_s = self.shape.slots or 1, self.shape.duration_s
        lasts = duration_s is not None and len(moments) < (self.shape.requests or len(moments) + 1)
        until_ns = self._clock_ns + round((duration_s or 0.0) * 1e9) if lasts else 0
        await interference(
            decoders, intruders, pool, slots=slots, moments_s=moments, clock_ns=self._clock_ns, until_ns=until_ns
        )
        self._window_s = duration_s if lasts else (time.monotonic_ns() - self._clock_ns) / 1e9
        pool.close("window")

    def _moments(self, offset: int) -> tuple[float, ...]:
        """Of the whole load, from the clock on."""
        workload, whole = self.job.workload, self._whole
        rate, seed = whole.rate_per_s or 1.0, self.job.seed + offset
        arrival = "constant" if whole.kind == "interference" else workload.arrival
        return arrivals(
            rate,
            arrival,
            burstiness=workload.burstiness,
            seed=seed,
            requests=whole.requests,
            duration_s=whole.duration_s,
        )

    def _ramp_moments(self) -> tuple[float, ...]:
        """Of the whole load, before the clock: shared out by themselves, or a share's moments would not be as many as
        its measured requests.
        """
        workload, whole = self.job.workload, self._whole
        if not whole.ramp_s:
            return ()
        rate = whole.rate_per_s or 1.0
        moments = ramp_arrivals(
            rate, whole.ramp_s, workload.arrival, burstiness=workload.burstiness, seed=self.job.seed
        )
        return tuple(moments)

    def _ended(self, spill: Spill, exchange: Exchange) -> None:
        if not exchange.warmup:
            self._done += 1
        if self.shape.kind == "interference" and not exchange.warmup:
            exchange.marks = ("intruder",) if exchange.index >= _INTRUDER_INDEX else ("decoder",)
        spill.put(exchange)
        if exchange.status is not None and not 200 <= exchange.status < 300:
            failure = classify_answer(exchange.status, b"".join(exchange.pieces))
            if failure in FATAL and not self._stopped:
                note = f"aborted-{failure}"
                if note not in self._notes:
                    self._notes.append(note)
                for feed in self._feeds:
                    feed.closed = True

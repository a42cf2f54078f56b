"""Common words that nearly every vocabulary holds as one token, and the prompts of the kinds that article 2 uses."""

from __future__ import annotations

WORDS = tuple(
    """
    time year people way day man thing woman life child world school state family student group country problem hand
    part place case week company system program question work government number night point home water room mother
    area money story fact month lot right study book eye job word business issue side kind head house service friend
    father power hour game line end member law car city community name president team minute idea body information
    back parent face others level office door health person art war history party result change morning reason
    research girl guy moment air teacher force education good new first last long great little own other old right
    big high different small large next early young important few public bad same able be have do say get make go
    know take see come think look want give use find tell ask work seem feel try leave call keep let begin help show
    hear play run move live believe hold bring happen write provide sit stand lose pay meet include continue set
    learn lead understand watch follow stop create speak read allow add spend grow open walk win offer remember love
    consider appear buy wait serve die send expect build stay fall cut reach kill remain paper light green white
    black blue red table field river road tree sea land rock fire wind rain snow summer winter spring stone glass
    gold iron wood box ball bird fish horse dog cat
    """.split()  # noqa: SIM905 - a list of 250 quoted words reads worse
)

# The same five subjects in the same gradient of lengths, in our own words.
MIXED_PROMPTS = (
    "Explain what happens during prefill.",
    "Say in three sentences what the KV cache is good for and what it costs.",
    "Compare static batching with continuous batching in detail, and say what each of them does to the time to the "
    "first token and to the time per output token.",
    "Write a technical note of about 200 words that explains why the decode phase is bound by memory bandwidth and "
    "not by arithmetic.",
    "Starting from how busy the GPU's arithmetic units are, describe how throughput grows with the number of "
    "concurrent requests, at first about linearly, and why it levels off.",
)

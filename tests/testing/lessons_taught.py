"""What each wrong transport is taught, and by which check of the kit."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

from muybridge.testing.conformance.calling import get
from muybridge.testing.scripted_server import hang, read_request, reset, response_bytes, send
from muybridge.wire.transport import Transport
from muybridge_protocol.http import Phase, Reason

from . import naive_transports as naive
from . import wrong_receiving as receiving
from . import wrong_sending as sending
from . import wrong_transports as wrong

CAN_DECLARE = "or declare: Capabilities({}=False)"
HALF = b"Content-Length: 30\r\n\r\n"

Row = tuple[Callable[..., Transport], str, dict[str, Any], list[str]]
"""A transport, a check that fails for it, with what arguments, and words of what it then says."""

ROWS: list[Row] = [
    (
        wrong.TriesAgain,
        "test_no_retry",
        {"method": "POST"},
        ["one POST", "2 POSTs", "may be charged", "retries"],
    ),
    (
        wrong.TriesAgain,
        "test_instead_of_a_response",
        {"scheme": "http", "script": [read_request], "reasons": {Reason.CLOSED}},
        ["one POST", "paid for twice"],
    ),
    (
        wrong.TakesLostForUnsent,
        "test_instead_of_a_response",
        {"scheme": "https", "script": [read_request, reset], "reasons": {Reason.RESET}},
        ["sent=True: the server has read", "sent=False", "paid for twice", "first byte"],
    ),
    (
        wrong.TakesLostForUnsent,
        "test_handshake",
        {"script": hang, "reason": Reason.TIMED_OUT},
        ["sent=False: the request has not begun", "ambiguous", "note it at the socket"],
    ),
    (
        wrong.HidesTheHandshake,
        "test_tls_phase",
        {},
        ["phase=Phase.TLS", CAN_DECLARE.format("shows_tls_phase")],
    ),
    (wrong.TakesLostForUnsent, "test_in_the_request", {"how": "reset"}, ["some of it has arrived"]),
    (
        wrong.CountsNothing,
        "test_how_much_was_sent",
        {},
        ["bytes_sent between 0 and", CAN_DECLARE.format("shows_sending")],
    ),
    (
        wrong.GivesNoReason,
        "test_instead_of_a_response",
        {"scheme": "http", "script": [read_request], "reasons": {Reason.CLOSED}},
        [
            "given: a server that is to read one whole request, close the connection",
            "expected: reason=Reason.CLOSED",
            "sent=True, reason=Reason.OTHER",
            "building.reason_of",
        ],
    ),
    (
        wrong.GivesNoReason,
        "test_refused",
        {"scheme": "http"},
        ["given: a port at which nobody listens", "reason=Reason.REFUSED", "building.reason_of"],
    ),
    (
        wrong.TakesCutForWhole,
        "test_cut_body",
        {"form": "counted", "end": "closed"},
        ["expected: TransportError", "status 201 with a body of 17 bytes", "Content-Length"],
    ),
    (
        wrong.TakesCutForWhole,
        "test_cut_tls",
        {},
        [
            "given: a server with TLS that is to read one whole request, send b'HTTP/1.1 200 OK",
            "a response of status 200 with a body of 4 bytes, b'some'",
            "ssl.SSLEOFError",
            CAN_DECLARE.format("detects_cut_tls"),
        ],
    ),
    (
        wrong.TakesCutForWhole,
        "test_exceptions",
        {"fault": [read_request, send(b"HTTP/1.1")]},
        ["send b'HTTP/1.1', close", "found: a whole response", "test_cut_body", "fix these first"],
    ),
    (
        wrong.TakesEarlyHints,
        "test_informational",
        {},
        [
            "103 Early Hints",
            "status 200, that of the response after",
            "found: 103",
            "after a 1xx response",
        ],
    ),
    (
        wrong.TakesUnasked,
        "test_unasked_response",
        {},
        [
            "for connection 1: read one whole request, send ",
            'found: b"somebody else\'s"',
            "bytes after the response's end",
            CAN_DECLARE.format("discards_unasked_responses"),
        ],
    ),
    (
        wrong.DropsWhatFollows,
        "test_behind_a_refusal",
        {"status": 429},
        [
            "expected: TransportError",
            "a response of status 429",
            "paid for again after a 429",
            "exchange.send knows the socket",
            CAN_DECLARE.format("refuses_second_responses"),
        ],
    ),
    (
        wrong.FollowsRedirects,
        "test_no_policy",
        {"status": 307, "method": "POST"},
        ["one POST", "carry the key to another host", "options for redirects"],
    ),
    (wrong.ReadsAll, "test_limit", {}, ["expected: TransportError", "take the memory"]),
    (wrong.ReadsAll, "test_bomb", {}, ["expected: TransportError", "64 KiB at a time"]),
    (
        wrong.ReadsAll,
        "test_pieces_as_they_come",
        {},
        ["the first piece before", "after the second was sent", "fixed size"],
    ),
    (
        wrong.ForgetsPartial,
        "test_cut_body",
        {"form": "counted", "end": "closed"},
        ["status=201", "the id of a paid task", "keep the first 64 KiB"],
    ),
    (
        wrong.ForgetsPartial,
        "test_cut_head",
        {},
        ["partial=b'HTTP/1.1 200", "partial=b''", CAN_DECLARE.format("keeps_cut_heads")],
    ),
    (wrong.ForgetsPartial, "test_most_of_what_is_kept", {}, ["the first 65536 bytes", "0 bytes"]),
    (
        wrong.StartsTimeAnew,
        "test_drops",
        {"phase": Phase.BODY, "begun": b"HTTP/1.1 200 OK\r\n" + HALF, "drops": b"x" * 30},
        [
            "a byte every",
            "expected: TransportError",
            "a response of status 200",
            "outlives",
            "anew",
        ],
    ),
    (wrong.OutlivesItsTimeout, "test_handshake_in_drops", {}, ["Reason.TIMED_OUT", "anew"]),
    (
        wrong.KeepsStale,
        "test_stale_connection",
        {},
        ["a new connection for the POST", "paid for twice"],
    ),
    (wrong.GoesAnywhere, "test_private_address", {"host": "127.0.0.1"}, ["metadata service"]),
    (
        wrong.GoesAnywhere,
        "test_one_private_address",
        {},
        ["expected: TransportError", "building.addresses_of"],
    ),
    (
        wrong.LooksUpAgain,
        "test_rebound_name",
        {},
        ["first public, then 127.0.0.1", "a response of status 200", "look the name up once"],
    ),
    (wrong.AddsUserAgent, "test_headers_and_body", {}, ["and no other", "user-agent"]),
    (wrong.AddsUserAgent, "test_content_codings_asked_for", {}, ["identity", "gzip, br"]),
    (wrong.LeavesPacked, "test_codings", {"coding": "gzip"}, ["the body b", "content coding"]),
    (wrong.LogsTheKey, "test_logs", {}, ["nothing that shows sk-", "spends your money", "DEBUG"]),
    (wrong.KeepsTheKey, "test_authorization", {}, ["and not in the second", "default headers"]),
    (wrong.KeepsTheKey, "test_keyless", {}, ["no key in the second request"]),
    (wrong.KeepsTheKey, "test_nothing_kept", {}, ["no object that holds the key", "a str"]),
    (
        wrong.RaisesItsOwn,
        "test_refused",
        {"scheme": "http"},
        ["a driver knows no other exception", "requests.exceptions.ConnectionError"],
    ),
    (
        wrong.RaisesItsOwn,
        "test_exceptions",
        {"fault": reset},
        ["expected: TransportError", "given: a server that is to reset the connection"],
    ),
    (wrong.ChainsExceptions, "test_exceptions", {"fault": reset}, ["no __cause__", "traceback"]),
    # What is sent, and where.
    (
        sending.FollowsRedirectsOfGets,
        "test_redirect_to_another_host",
        {"status": 302, "method": "GET"},
        [
            "Location: http://localhost:",
            "nothing sent to the host",
            "a request with the key, b'GET /x",
            "allow_redirects=False",
        ],
    ),
    (
        sending.FollowsRedirectsOfGets,
        "test_redirect_to_another_host",
        {"status": 308, "method": "DELETE"},
        ["a request with the key, b'DELETE /x", "spends your money"],
    ),
    (
        sending.FollowsRedirectsOfGets,
        "test_no_policy",
        {"status": 301, "method": "HEAD"},
        ["one HEAD and no other request", "options for redirects"],
    ),
    (
        sending.FollowsWithoutTheKey,
        "test_redirect_to_another_host",
        {"status": 307, "method": "GET"},
        ["nothing sent to the host", "a request without the key, b'GET /x", "into your network"],
    ),
    (
        sending.FollowsSeeOther,
        "test_redirect_to_another_host",
        {"status": 303, "method": "POST"},
        ["a request with the key, b'GET /x", "redirect=False"],
    ),
    (sending.TriesGetsAgain, "test_no_retry", {"method": "GET"}, ["one GET", "2 GETs", "double"]),
    (
        sending.ObeysProxies,
        "test_loopback_is_not_proxied",
        {"scheme": "http", "host": "127.0.0.1"},
        ["HTTP_PROXY", "no connection to the proxy", "a request to the proxy", "trust_env=False"],
    ),
    (
        sending.ObeysProxies,
        "test_key_over_plain_http_through_a_proxy",
        {},
        ["http://plain.example", "no key at the proxy", "sk-", "opted in"],
    ),
    (sending.ReadsNetrc, "test_netrc", {}, ["a netrc file", "no Authorization", "trust_env"]),
    (sending.KeepsCookies, "test_cookies", {}, ["no Cookie in the second request", "jar"]),
    (
        naive.VerifiesNothing,
        "test_certificate",
        {"whose": "of an unknown authority"},
        ["a certificate of an unknown authority", "checks certificates"],
    ),
    (sending.TrustsOthers, "test_trusted_certificate", {}, ["one POST over TLS", "ssl_context"]),
    (
        sending.TrustsTheEnvironment,
        "test_authorities_of_the_environment",
        {},
        ["SSL_CERT_FILE", "a response of status 200", "an authority of their own"],
    ),
    (sending.SendsNull, "test_no_body", {"method": "GET"}, ["expected: no body", "b'null'"]),
    (sending.CutsBodies, "test_large_body", {}, ["1048576 bytes of the body", "65536 bytes"]),
    (sending.ExpectsContinue, "test_headers_and_body", {}, ["and no other", "b'expect'"]),
    (sending.NormalisesUrls, "test_request_line", {}, ["/a%2fb/%7Ec/", "normalisations"]),
    (sending.TriesOneAddress, "test_second_address", {}, ["127.0.0.2, which refuses", "in turn"]),
    (sending.OpensEachTime, "test_keep_alive", {}, ["4 connections", "given back to the pool"]),
    (sending.NeverCloses, "test_close", {}, ["the idle connection closed", "it is open"]),
    (
        sending.StaysBroken,
        "test_after_a_failure",
        {"first": [read_request, reset]},
        ["a whole response", "has to close its connection"],
    ),
    (sending.MissesClosing, "test_closed_while_idle", {}, ["Reason.CLOSED", "for nothing"]),
    (
        sending.MissesClosing,
        "test_last_response",
        {"first": response_bytes(200, b"{}", connection="close")},
        ["Reason.CLOSED", "`Connection: close`"],
    ),
    # What comes, and when.
    (
        wrong.TakesUnasked,
        "test_unasked_response_to_paid",
        {},
        ["for the second request b'its own'"],
    ),
    (wrong.TakesUnasked, "test_unasked_while_idle", {"make": get}, ["for the second request"]),
    (wrong.GivesNoReason, "test_name_resolution", {}, ["Reason.NAME_RESOLUTION"]),
    (wrong.ReadsAll, "test_endless", {}, ["64 MB", "expected: TransportError"]),
    (receiving.DecodesTwice, "test_coded_twice", {}, ["the gzip file", "content coding"]),
    (
        receiving.DecodesInPart,
        "test_bad_coding",
        {"packed": gzip.compress(b"{}")[:-3], "coding": "gzip"},
        ["expected: TransportError", "told of the body's end"],
    ),
    (receiving.ReadsText, "test_any_bytes", {}, ["utf-16", "the bytes b'", "pieces of bytes"]),
    (receiving.JoinsFields, "test_head", {}, ["('set-cookie', 'a=1')", "the fields"]),
    (receiving.LeavesChunks, "test_chunks", {}, ["the body b", "found: b'10\\r\\n"]),
    (
        receiving.GuessesAtFraming,
        "test_never_whole",
        {"name": "a length of letters"},
        ["a response of status 200", "the strictest setting of the parser"],
    ),
    (
        receiving.GuessesAtFraming,
        "test_ambiguous_framing",
        {},
        ["a response of status 200", CAN_DECLARE.format("refuses_ambiguous_framing")],
    ),
    (
        receiving.GuessesAtFraming,
        "test_exceptions_in_doubt",
        {"fault": [read_request, send(b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n")]},
        ["found: a whole response", "test_ambiguous_framing"],
    ),
    (
        receiving.WaitsForBodies,
        "test_without_body",
        {"method": "HEAD", "whole": response_bytes(200, b"", content_length="5000")},
        ["Reason.TIMED_OUT", "responses to HEAD"],
    ),
    (receiving.WantsALength, "test_until_close", {}, ["Reason.TRUNCATED"]),
    (receiving.LeavesTheRest, "test_early_leave", {}, ["the whole next body", "500008 bytes"]),
    (receiving.KeepsEverything, "test_most_of_what_is_kept", {}, ["131072 bytes"]),
    (receiving.LimitsEverything, "test_no_limit", {}, ["Reason.TOO_LARGE"]),
    (receiving.LimitsTheWire, "test_limit", {}, ["count the decoded bytes"]),
    (receiving.IgnoresSilence, "test_idle", {"phase": Phase.HEAD}, ["HttpRequest.idle_timeout"]),
    (receiving.AddsSilence, "test_no_idle_timeout", {}, ["Reason.TIMED_OUT"]),
    (receiving.KeepsTheTimeout, "test_next_deadline", {}, ["when it was opened"]),
    (receiving.GivesMoreTime, "test_no_time", {"timeout": 0.0}, ["timeout=0.0"]),
    (receiving.GivesMoreTime, "test_endless_time", {}, ["timeout=inf", "OverflowError"]),
    (receiving.OneAtATime, "test_many_at_once", {}, ["waits for other people's downloads"]),
    (
        receiving.TakesAllForTheNetwork,
        "test_signal_handler",
        {"kind": TimeoutError, "moment": "head"},
        ["TimeoutError, as the handler", "TransportError", "job queue", "was to be stopped"],
    ),
    (receiving.LogsReplies, "test_logs_of_echoes", {}, [CAN_DECLARE.format("hides_echoes")]),
    (receiving.ShowsTheKey, "test_repr", {}, ["a repr without the key", "generated"]),
    # Libraries as they are.
    (
        naive.OnRequests,
        "test_redirect_to_another_host",
        {"status": 302, "method": "GET"},
        ["nothing sent to the host", "a request without the key, b'GET /x"],
    ),
    (
        naive.OnRequests,
        "test_loopback_is_not_proxied",
        {"scheme": "http", "host": "127.0.0.1"},
        ["no connection to the proxy"],
    ),
    (
        naive.OnRequests,
        "test_key_over_plain_http_through_a_proxy",
        {},
        ["no key at the proxy"],
    ),
    (naive.OnRequests, "test_netrc", {}, ["no Authorization"]),
    (naive.OnRequests, "test_cookies", {}, ["no Cookie in the second request"]),
    (naive.OnRequests, "test_authorities_of_the_environment", {}, ["status 200"]),
    (
        naive.OnUrllib,
        "test_redirect_to_another_host",
        {"status": 302, "method": "GET"},
        ["a request with the key, b'GET /x"],
    ),
    (
        naive.OnUrllib,
        "test_loopback_is_not_proxied",
        {"scheme": "http", "host": "127.0.0.1"},
        ["no connection to the proxy"],
    ),
    (
        naive.OnUrllib,
        "test_before_the_first_byte",
        {},
        [
            "or the response b'its own'",
            'the body b"somebody else\'s"',
            "paid for twice",
            CAN_DECLARE.format("refuses_early_bytes"),
        ],
    ),
    (
        naive.OnUrllib,
        "test_behind_the_handshake",
        {},
        ["make a TLS 1.2 handshake", 'the body b"somebody else\'s"', "refuse_early_bytes"],
    ),
    (
        naive.OnUrllib3,
        "test_redirect_to_another_host",
        {"status": 303, "method": "POST"},
        ["a request without the key, b'GET /x"],
    ),
    (naive.OnUrllib3, "test_no_policy", {"status": 503, "method": "GET"}, ["no other request"]),
    (naive.OnUrllib3, "test_no_retry", {"method": "GET"}, ["one GET", "4 GETs"]),
    (
        naive.OnUrllib3,
        "test_no_retry",
        {"method": "DELETE"},
        ["one DELETE", "4 DELETEs"],
    ),
]

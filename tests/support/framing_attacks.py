"""Requests whose end a proxy and a server may see in different places, each with why it must be refused.

Each ends with DELETE /smuggled, which would be a second request if the attack worked; no other test asks for it.
"""

SMUGGLED = b"DELETE /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
_JSON = b"Content-Type: application/json\r\n"


def _get(head, tail=SMUGGLED):
    return b"GET /healthz HTTP/1.1\r\n" + head + b"\r\n" + tail


def _post(head, body):
    return b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\n" + _JSON + head + b"\r\n" + body


_CHUNKED = b"Transfer-Encoding: chunked\r\n"

ATTACKS = {
    "both lengths": _post(b"Content-Length: 6\r\n" + _CHUNKED, b"0\r\n\r\n" + SMUGGLED),
    "both lengths, the other way round": _post(_CHUNKED + b"Content-Length: 6\r\n", b"0\r\n\r\n" + SMUGGLED),
    "two different lengths": _post(b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(SMUGGLED), SMUGGLED),
    "two equal lengths": _post(b"Content-Length: 2\r\nContent-Length: 2\r\n", b"{}" + SMUGGLED),
    "a list of lengths": _post(b"Content-Length: 2, 2\r\n", b"{}" + SMUGGLED),
    "length with a plus": _post(b"Content-Length: +2\r\n", b"{}" + SMUGGLED),
    "length with a minus": _post(b"Content-Length: -2\r\n", b"{}" + SMUGGLED),
    "length in hexadecimal": _post(b"Content-Length: 0x2\r\n", b"{}" + SMUGGLED),
    "length with a point": _post(b"Content-Length: 2.0\r\n", b"{}" + SMUGGLED),
    "empty length": _post(b"Content-Length:\r\n", SMUGGLED),
    "length beyond 64 bits": _post(b"Content-Length: 18446744073709551618\r\n", b"{}" + SMUGGLED),
    "length with a NUL": _post(b"Content-Length: 2\x00\r\n", b"{}" + SMUGGLED),
    "length with a vertical tab": _post(b"Content-Length: \x0b2\r\n", b"{}" + SMUGGLED),
    "two codings": _post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n" + SMUGGLED),
    "coding named twice": _post(_CHUNKED + _CHUNKED, b"0\r\n\r\n" + SMUGGLED),
    "chunked, then identity": _post(_CHUNKED + b"Transfer-Encoding: identity\r\n", b"0\r\n\r\n" + SMUGGLED),
    "unknown coding": _post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + SMUGGLED),
    "coding after a vertical tab": _post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n" + SMUGGLED),
    "coding in quotes": _post(b'Transfer-Encoding: "chunked"\r\n', b"0\r\n\r\n" + SMUGGLED),
    "chunked in HTTP/1.0": b"POST /api/v1/compile HTTP/1.0\r\n" + _JSON + _CHUNKED + b"\r\n0\r\n\r\n" + SMUGGLED,
    "chunk extension": _post(_CHUNKED, b"2;a=b\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk extension with a line feed": _post(_CHUNKED, b"2;\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk size overflow": _post(_CHUNKED, b"10000000000000002\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk size with 0x": _post(_CHUNKED, b"0x2\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk size with a minus": _post(_CHUNKED, b"-2\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk size with a space": _post(_CHUNKED, b"2 \r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "empty chunk size": _post(_CHUNKED, b"\r\n{}\r\n0\r\n\r\n" + SMUGGLED),
    "chunk longer than said": _post(_CHUNKED, b"2\r\n{}xx0\r\n\r\n" + SMUGGLED),
    "chunks with bare line feeds": _post(_CHUNKED, b"2\n{}\n0\n\n" + SMUGGLED),
    "trailer": _post(_CHUNKED, b"0\r\nContent-Length: 5\r\n\r\n" + SMUGGLED),
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\n\n" + SMUGGLED,
    "one bare line feed": b"GET /healthz HTTP/1.1\r\nHost: x\nX: y\r\n\r\n" + SMUGGLED,
    "bare carriage return": _get(b"Host: x\r\nX: y\rContent-Length: 37\r\n"),
    "two hosts": _get(b"Host: x\r\nHost: y\r\n"),
    "no host": _get(b""),
    "host with a path": _get(b"Host: x/y\r\n"),
    "host with a space": _get(b"Host: x y\r\n"),
    "NUL in the path": b"GET /heal\x00thz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "NUL in a header's name": _get(b"Host: x\r\nX\x00: y\r\n"),
    "NUL in a header's value": _get(b"Host: x\r\nX: a\x00b\r\n"),
    "folded header": _get(b"Host: x\r\nX: a\r\n b\r\n"),
    "folded first header": _get(b" X: a\r\nHost: x\r\n"),
    "space before the colon": _post(b"Content-Length : 2\r\n", b"{}" + SMUGGLED),
    "space in a header's name": _get(b"Host: x\r\nX y: z\r\n"),
    "header without a name": _get(b"Host: x\r\n: z\r\n"),
    "header without a colon": _get(b"Host: x\r\nX\r\n"),
    "upgrade to HTTP/2": _get(b"Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"),
    "upgrade to a socket": _get(b"Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED,
    "HTTP/0.9": b"GET /healthz\r\n\r\n" + SMUGGLED,
    "HTTP/1.2": b"GET /healthz HTTP/1.2\r\nHost: x\r\n\r\n" + SMUGGLED,
    "lower-case version": b"GET /healthz http/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "two spaces in the request line": b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "tab in the request line": b"GET\t/healthz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "space in the path": b"GET /heal thz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "lower-case method": b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "whole address as the target of another host": b"GET http://y/healthz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "tunnel": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "empty line first": b"\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "unknown expectation": _post(b"Expect: the-unexpected\r\nContent-Length: 2\r\n", b"{}" + SMUGGLED),
}

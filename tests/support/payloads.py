"""Texts that would run if they were taken for anything but text.

`make test` takes a sample; NKX_PAYLOADS=all takes all.
"""
import os
import re

RUN = "__ran()"
TAGS = [
    f"<script>{RUN}</script>", f"</script><script>{RUN}</script>", f"<img src=x onerror={RUN}>", f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>", f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>", f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>", f"<video><source onerror={RUN}></video>", f"<input autofocus onfocus={RUN}>",
    f"<math><mtext><style><img src=x onerror={RUN}></style></mtext></math>", f"<a href='javascript:{RUN}'>x</a>",
    f"<object data='javascript:{RUN}'>", f"<embed src='javascript:{RUN}'>", f"<form action='javascript:{RUN}'><button>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>", "<base href='https://evil.example/'>",
    f"<style>@import 'https://evil.example/';</style><img src=x onerror={RUN}>", "<link rel=stylesheet href=https://evil.example/x.css>",
    f"<template><script>{RUN}</script></template>", f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    f"<textarea></textarea><img src=x onerror={RUN}>", f"<title></title><script>{RUN}</script>", f"<xmp></xmp><svg onload={RUN}>",
]
WRAPS = ["{}", "'\">{}", "--><!--{}", "]]>{}", "*/{}/*", "\u202e{}", "\x1b[31m{}\x1b]8;;javascript:__ran()\x07", "&lt;{}&gt;"]
OTHERS = [
    f"javascript:{RUN}", f"data:text/html,<script>{RUN}</script>", f"{{{{constructor.constructor('{RUN}')()}}}}", f"${{{RUN}}}",
    f"'+{RUN}+'", f'";{RUN};//', f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e", "%3Cimg%20src=x%20onerror=__ran()%3E",
    "&#60;img src=x onerror=__ran()&#62;", "__proto__", "constructor", "\u0000\ufeff\u2028\u2029<img src=x onerror=__ran()>",
    "\U0001f600<img/src=x/onerror=__ran()>", "`<svg/onload=__ran()>`", "<" * 50 + "img src=x onerror=__ran()>",
    f"<IMG SRC=x ONERROR={RUN}>", f"<img\tsrc=x\tonerror={RUN}>", f"<img src=x onerror\n={RUN}>",
]
PAYLOADS = (OTHERS + [w.format(t) for w in WRAPS for t in TAGS])[:120]
SAMPLE = PAYLOADS if os.environ.get("NKX_PAYLOADS") == "all" else PAYLOADS[::30]

KERNEL = "import numpy as np\nfrom nkigen import trace\n\n@trace(input_specs=[((8, 4), 'f32')])\ndef k(a):\n    return np.exp(a)\n"


def one_line(text):
    """For a comment: Python takes no NUL in a source, wherever it stands."""
    return re.sub(r"[\r\n\u2028\u2029\0]", " ", text)

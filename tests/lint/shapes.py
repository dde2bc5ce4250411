"""Shapes of code that compile and go wrong: unordered iteration, capturing lambda coroutines, long files."""

import re

from layers import SIMULATED, layer_of

MAX_LINES = 600
_ALLOW_ORDER = "order-free:"

_UNORDERED = re.compile(r"\bstd::unordered_(?:multi)?(?:map|set)\s*<")
_RANGE_FOR = re.compile(r"\bfor\s*\(")


def _matching(code, start, opening, closing):
    depth = 0
    for i in range(start, len(code)):
        if code[i] == opening:
            depth += 1
        elif code[i] == closing:
            depth -= 1
            if depth == 0:
                return i
    return -1


def _unordered_names(code):
    for match in _UNORDERED.finditer(code):
        end = _matching(code, match.end() - 1, "<", ">")
        if end < 0:
            continue
        name = re.match(r"[\s&*]*(\w+)\s*[;={(),]", code[end + 1 :])
        if name:
            yield name.group(1)


def check_length(source):
    if len(source.lines) > MAX_LINES + 1:
        yield source.finding(MAX_LINES + 1, "length", f"{len(source.lines)} lines: past {MAX_LINES} there is a seam to cut at")


def check_unordered(source, header):
    """`header` is the Source of the same stem's header, or None: members are declared there."""
    if layer_of(source.path) not in SIMULATED:
        return
    names = set(_unordered_names(source.code))
    if header is not None:
        names |= set(_unordered_names(header.code))
    if not names:
        return
    any_name = "|".join(sorted(re.escape(n) for n in names))
    sites = []
    for match in _RANGE_FOR.finditer(source.code):
        end = _matching(source.code, match.end() - 1, "(", ")")
        range_part = re.search(r"(?<!:):(?!:)(.*)$", source.code[match.end() : end], re.S)
        if range_part and re.search(rf"\b(?:{any_name})\b\s*\)?\s*$", range_part.group(1).strip()):
            sites.append(match.start())
    sites += [m.start() for m in re.finditer(rf"\b(?:{any_name})\s*(?:\.|->)\s*c?begin\s*\(", source.code)]
    for site in sites:
        line = source.line_of(site)
        if any(_ALLOW_ORDER in text for text in source.lines[max(0, line - 2) : line]):
            continue
        yield source.finding(line, "unordered", f"iteration in hash order; sort, or say why not in a `// {_ALLOW_ORDER}`")


_LAMBDA = re.compile(r"\[([^\[\]]*)\]")
_AFTER_CAPTURE = re.compile(r"(?:\s*(?:mutable\b|noexcept\b|->[\s\w:<>,*&]+?))*\s*(?=\{)")


def _lambdas(code):
    """(start, capture, body start, body end) of each lambda expression."""
    for match in _LAMBDA.finditer(code):
        before = code[: match.start()].rstrip()[-1:]
        if before and (before.isalnum() or before in "_)]"):
            word = re.search(r"(\w+)\s*$", code[: match.start()])
            if not (word and word.group(1) in {"return", "co_return", "co_await", "co_yield"}):
                continue  # a subscript
        at = match.end()
        parameters = re.match(r"\s*\(", code[at:])
        if parameters:
            end = _matching(code, at + parameters.end() - 1, "(", ")")
            if end < 0:
                continue
            at = end + 1
        tail = _AFTER_CAPTURE.match(code, at)
        if not tail:
            continue
        body_end = _matching(code, tail.end(), "{", "}")
        if body_end > 0:
            yield match.start(), match.group(1).strip(), tail.end(), body_end


def check_lambda_coroutines(source):
    """A coroutine keeps its parameters, not the closure that it is called on: captures dangle."""
    found = list(_lambdas(source.code))
    for start, capture, body, end in found:
        if not capture:
            continue
        text = source.code[body : end + 1]
        for _, _, inner, inner_end in found:
            if body < inner and inner_end < end:
                text = text[: inner - body] + " " * (inner_end - inner) + text[inner_end - body :]
        for local in re.finditer(r"\b(?:struct|class)\s+\w+[^;{}()]*\{", text):
            local_end = _matching(text, local.end() - 1, "{", "}")
            text = text[: local.end()] + " " * (local_end - local.end()) + text[local_end:]
        # What is left is the lambda's own body, without lambdas and classes inside of it.
        if re.search(r"\bco_(?:await|return|yield)\b", text):
            yield source.finding(source.line_of(start), "lambda-coroutine",
                                 f"[{capture}] dangles after the first suspension; pass what is needed as parameters")

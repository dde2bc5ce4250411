"""C++ source as the rules see it: comments and literals blanked, include lines kept, lines numbered."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


_TOKEN = re.compile(
    r"""//[^\n]*"""
    r"""|/\*.*?\*/"""
    r"""|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)\""""
    r"""|"(?:\\.|[^"\\\n])*\""""
    r"""|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""",
    re.S | re.X,
)


def _blank(text):
    return "".join("\n" if c == "\n" else " " for c in text)


class Source:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        # Same length and lines as the text, without what is not code.
        self.code = _TOKEN.sub(lambda m: _blank(m.group()), text)
        self.includes = []
        for m in list(re.finditer(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">\n]+)[">]', text, re.M)):
            if self.code[m.start() : m.end()].lstrip().startswith("#"):
                self.includes.append((text.count("\n", 0, m.start()) + 1, m.group(1)))
                self.code = self.code[: m.start()] + " " * len(m.group()) + self.code[m.end() :]

    def line_of(self, offset):
        return self.code.count("\n", 0, offset) + 1

    def finding(self, line, rule, message):
        return Finding(self.path, line, rule, message)

#!/usr/bin/env python3
"""Checks the repository's own rules: lint.py ROOT. Prints one line per finding; exit code 1 if any."""

import pathlib
import sys

import bans
import layers
import shapes
from source import Source

_CODE = (".h", ".cc")
_TEXT = _CODE + (".py", ".proto")
_ROOTS = ("common", "master", "chunkserver", "client", "proto", "tests", "bench", "examples", "deploy")


def lint(read, paths):
    """Findings in the given paths; `read(path)` gives a file's text."""
    known = set(paths)
    sources = {p: Source(p, read(p)) for p in paths}

    def exists(target):
        return (target in known or target.startswith("picket/") or
                (target.startswith("proto/") and target.endswith(".pb.h")))

    for path, source in sources.items():
        yield from shapes.check_length(source)
        if not path.endswith(_CODE):
            continue
        yield from layers.check(source, exists)
        yield from bans.check(source)
        yield from shapes.check_lambda_coroutines(source)
        header = sources.get(path.removesuffix(".cc") + ".h") if path.endswith(".cc") else None
        yield from shapes.check_unordered(source, header)


def main():
    root = pathlib.Path(sys.argv[1])
    paths = sorted(str(p.relative_to(root)) for top in _ROOTS for p in (root / top).rglob("*")
                   if p.suffix in _TEXT and p.is_file())
    if not paths:
        sys.exit(f"lint: no sources under {root}")
    findings = sorted(lint(lambda p: (root / p).read_text(encoding="utf-8"), paths), key=str)
    for finding in findings:
        print(finding)
    print(f"lint: {len(paths)} files, {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

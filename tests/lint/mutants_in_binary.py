#!/usr/bin/env python3
"""mutants_in_binary.py present|absent ROOT BINARY...: are the mutation points compiled into the binaries?

Looks for the switch (picket::MutantActive) in the symbols and for the points' names, as string
constants, in the read-only data. A release must have neither; the test of this test looks for both in a
program that has them.
"""

import pathlib
import re
import struct
import sys


def mutant_names(root):
    names = set()
    for top in ("common", "master", "chunkserver", "client"):
        for path in (root / top).rglob("*"):
            if path.suffix in (".h", ".cc") and path.name != "mutation.h":
                names |= set(re.findall(r"\bPICKET_MUTANT\((\w+)\)", path.read_text(encoding="utf-8")))
    return names


def sections(elf):
    """(name, content) of a 64-bit little-endian ELF file's sections."""
    if elf[:6] != b"\x7fELF\x02\x01":
        sys.exit("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names_index = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    names = headers[names_index][4]
    for header in headers:
        begin = names + header[0]
        name = elf[begin : elf.index(b"\0", begin)].decode()
        no_bits = header[1] == 8
        yield name, b"" if no_bits else elf[header[4] : header[4] + header[5]]


def found_in(binary, names):
    found = set()
    for name, content in sections(binary.read_bytes()):
        if name in (".symtab", ".strtab", ".dynstr") and b"MutantActive" in content:
            found.add("MutantActive")
        if name.startswith(".rodata"):
            found |= {n for n in names if b"\0" + n.encode() + b"\0" in b"\0" + content}
    return found


def main():
    expected, root, *binaries = sys.argv[1:]
    names = mutant_names(pathlib.Path(root))
    if expected not in ("present", "absent") or not binaries or not names:
        sys.exit("nothing to look for, or nowhere to look")
    found = set()
    for binary in binaries:
        here = found_in(pathlib.Path(binary), names)
        found |= here
        print(f"{binary}: {len(here)} traces of mutation points")
    if expected == "absent" and found:
        sys.exit(f"mutation points in a binary that must have none: {', '.join(sorted(found))}")
    if expected == "present" and not ("MutantActive" in found and len(found) > 1):
        sys.exit("no mutation points where there must be some: this check would miss them in a release, too")


if __name__ == "__main__":
    main()

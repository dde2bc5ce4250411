"""Appending, cutting and joining files with real processes."""

import os
import signal
import subprocess

from harness import (EXIT_CONFLICT, EXIT_FAILURE, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, MIB, ClusterTest, background,
                     eventually, main)


class Append(ClusterTest):
    def stat(self, path):
        return self.cluster.ok("stat", path, "--json").json["entries"][0]

    def cat(self, path):
        return self.cluster.ok("cat", path).raw

    def test_append_goes_on_in_the_last_chunk(self):
        first, second, third = (os.urandom(size) for size in (MIB + 70_001, 3 * MIB, 5))
        self.cluster.ok("put", "--chunk-size=1M", "-", "/a", stdin=first)
        before = self.cluster.chunks("/a")
        self.cluster.ok("appendToFile", "-", "/a", stdin=second)
        self.cluster.ok("append", "/a", stdin=third)
        self.assertEqual(self.cat("/a"), first + second + third)
        after = self.cluster.chunks("/a")
        self.assertEqual([chunk["id"] for chunk in after[:2]], [chunk["id"] for chunk in before])
        self.assertEqual(after[0]["version"], before[0]["version"], "a full chunk is left alone")
        self.assertGreater(after[1]["version"], before[1]["version"])
        self.assertEqual(len(after), 5)
        self.assertTrue(all(chunk["sealed"] for chunk in after))
        status = self.stat("/a")
        self.assertEqual(status["length"], len(first + second + third))
        self.assertEqual(status["stored_bytes"], status["length"])
        self.assertFalse(status["open"])
        self.assertIsNone(status["holder"])

    def test_append_makes_a_missing_file(self):
        local = self.make_file("local", 12345)
        self.cluster.run("appendToFile", "--no-create", local, "/new", code=EXIT_NOT_FOUND)
        self.cluster.ok("-appendToFile", local, local, "/new")
        with open(local, "rb") as file:
            self.assertEqual(self.cat("/new"), file.read() * 2)

    def test_a_missing_source_appends_nothing(self):
        self.cluster.ok("put", "-", "/whole", stdin=b"whole")
        local = self.make_file("there", 10)
        self.one_line(self.cluster.run("appendToFile", local, "/no/such/file", "/whole", code=EXIT_NOT_FOUND), "/no/such/file")
        self.assertEqual(self.cat("/whole"), b"whole")

    def test_what_was_appended_is_seen_at_once_and_stays_after_an_interruption(self):
        self.cluster.ok("put", "-", "/seen", stdin=b"one\n")
        with background(self.cluster.start("appendToFile", "--sync", "/seen", stdin=subprocess.PIPE)) as writer:
            writer.stdin.write(b"two\n")
            writer.stdin.flush()
            eventually(lambda: self.cat("/seen") == b"one\ntwo\n", "the reader sees what was appended")
            self.assertTrue(self.stat("/seen")["holder"])
            refused = self.cluster.run("append", "/seen", stdin=b"x", code=EXIT_CONFLICT)
            self.one_line(refused, "/seen", "LEASE_CONFLICT", self.stat("/seen")["holder"])
            writer.send_signal(signal.SIGINT)
            writer.wait(30)
            self.assertIn(b"4 bytes were appended and stay", writer.stderr.read())
        self.assertEqual(self.cat("/seen"), b"one\ntwo\n")
        self.assertFalse(self.stat("/seen")["open"])

    def test_an_offset_beyond_all_files_is_refused_and_leaves_no_lease(self):
        self.cluster.ok("put", "-", "/bounded", stdin=b"whole")
        for offset in (1 << 60, 1 << 63, (1 << 64) - 1):
            refused = self.cluster.run("write", "--offset", str(offset), "/bounded", stdin=b"x", code=EXIT_USAGE)
            self.one_line(refused, "/bounded", "INVALID_ARGUMENT", str(1 << 60))
            self.assertFalse(self.stat("/bounded")["open"])
        self.assertEqual(self.cat("/bounded"), b"whole")

    def test_a_member_dies_in_mid_append(self):
        self.cluster.ok("put", "-", "/survivor", stdin=b"head")
        with background(self.cluster.start("appendToFile", "/survivor", stdin=subprocess.PIPE)) as writer:
            writer.stdin.write(b"one")
            writer.stdin.flush()
            eventually(lambda: self.cat("/survivor") == b"headone", "the first bytes are there")
            victim = self.cluster.server_name(self.cluster.chunks("/survivor")[0]["primary"])
            self.cluster.kill(victim)
            self.addCleanup(self.cluster.up)
            out, err = writer.communicate(b"two", timeout=60)
            self.assertEqual(writer.returncode, EXIT_OK, err)
        self.assertEqual(self.cat("/survivor"), b"headonetwo")

    def test_truncate(self):
        data = os.urandom(2 * MIB + 100)
        self.cluster.ok("put", "--chunk-size=1M", "-", "/t", stdin=data)
        for length in (2 * MIB + 50, MIB + 65_537, MIB, 7, 0):
            self.assertIn(str(length), self.cluster.ok("truncate", "-w", str(length), "/t").out)
            self.assertEqual(self.cat("/t"), data[:length])
            self.assertEqual(self.stat("/t")["stored_bytes"], length)
        self.cluster.ok("append", "/t", stdin=b"anew")
        self.assertEqual(self.cat("/t"), b"anew")
        self.one_line(self.cluster.run("truncate", "5", "/t", code=EXIT_USAGE), "/t")
        self.cluster.run("truncate", "0", "/absent", code=EXIT_NOT_FOUND)

    def test_concat(self):
        parts = [os.urandom(size) for size in (MIB, 2 * MIB, 500)]
        for name, part in zip("xyz", parts):
            self.cluster.ok("put", "--chunk-size=1M", "-", f"/{name}", stdin=part)
        self.cluster.ok("concat", "/x", "/y", "/z")
        self.assertEqual(self.cat("/x"), b"".join(parts))
        for name in "yz":
            self.cluster.run("test", "-e", f"/{name}", code=EXIT_FAILURE)
        self.cluster.ok("put", "--chunk-size=1M", "-", "/y", stdin=b"y")
        self.assertNotEqual(self.cluster.run("concat", "/x", "/y").code, EXIT_OK, "the target ends inside a chunk")
        self.assertEqual(self.cat("/y"), b"y")

    def test_a_hole_reads_as_zeros_and_takes_no_space(self):
        self.cluster.ok("put", "--chunk-size=1M", "-", "/h", stdin=b"head")
        self.cluster.ok("write", "--offset", str(5 * MIB), "/h", stdin=b"tail")
        self.assertEqual(self.cat("/h"), b"head" + bytes(5 * MIB - 4) + b"tail")
        status = self.stat("/h")
        self.assertEqual(status["length"], 5 * MIB + 4)
        self.assertLess(status["stored_bytes"], MIB)
        entry = self.cluster.ok("du", "/h", "--json").json["entries"][0]
        self.assertEqual(entry["bytes_with_replicas"], status["stored_bytes"] * status["replication"])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The main that both servers share, as its user sees it: daemon_test.py PROGRAM."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if __name__ == "__main__" else ""


class Done:
    def __init__(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=30)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


class DaemonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "e.toml")

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(text)

    def start(self, *arguments):
        """A running server; returns when it says that it serves."""
        process = subprocess.Popen([PROGRAM, "--dir=/d", *arguments], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        process.seen = []
        self.read_until(process, "serving")
        return process

    def read_until(self, process, text):
        for line in process.stderr:
            process.seen.append(line)
            if text in line:
                return
        self.fail(f"{text!r} never came: {''.join(process.seen)}")

    def assertUsage(self, done, message):
        self.assertEqual(done.code, 2, done.err)
        self.assertEqual(done.out, "")
        self.assertEqual(done.err, f"picket-example: {message}\n")

    def test_version(self):
        done = Done("--version")
        self.assertEqual(done.code, 0)
        self.assertRegex(done.out, r"^picket-example \d+\.\d+\.\d+\n$")

    def test_help_lists_every_key_with_its_default(self):
        done = Done("--help")
        self.assertEqual(done.code, 0)
        for text in ("--config", "--check-config", "--log-format", "init", "--replication", "[default 3]",
                     "Replicas of a new file.", "[required]"):
            self.assertIn(text, done.out)
        self.assertIn("The directory to make.", Done("init", "--help").out)

    def test_check_config(self):
        self.write('dir = "/d"\n')
        done = Done("--config", self.file, "--check-config")
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertIn("good", done.out)

    def test_sample_config_is_a_configuration(self):
        done = Done("--sample-config")
        self.assertEqual(done.code, 0)
        self.write(done.out)
        self.assertEqual(Done("--config", self.file, "--check-config").code, 0)

    def test_mistakes_in_the_file(self):
        self.write('dir = "/d"\nreplicaton = 2\n')
        self.assertUsage(Done("--config", self.file),
                         f"{self.file}:2: unknown key replicaton; did you mean replication?")
        self.write('dir = "/d"\nreplication = 0\n')
        self.assertUsage(Done("--config", self.file, "--check-config"),
                         f"{self.file}:2: replication = 0 is not accepted; write a whole number from 1 to 16")

    def test_missing_file(self):
        self.assertUsage(Done("--config", "/nowhere.toml"),
                         "cannot read the configuration file /nowhere.toml: No such file or directory")
        self.assertEqual(Done("--config", os.path.dirname(self.file)).code, 2)

    def test_mistakes_in_the_flags(self):
        self.assertUsage(Done("--dir=/d", "--replicaton", "2"),
                         "unknown flag --replicaton; did you mean --replication?")
        self.assertUsage(Done("--dir=/d", "--replication", "many"),
                         '--replication: replication = "many" is not accepted; write a whole number from 1 to 16')
        self.assertUsage(Done("--dir=/d", "inti"), "unknown argument inti; did you mean init?")
        self.assertEqual(Done("--dir=/d", "--log-level", "loud").code, 2)
        self.assertEqual(Done("--dir").code, 2)

    def test_required_key(self):
        done = Done()
        self.assertEqual(done.code, 2)
        self.assertIn("dir is not set; give --dir", done.err)

    def test_flags_override_the_file(self):
        self.write('dir = "/d"\nreplication = 2\n')
        process = self.start("--config", self.file, "--replication=5")
        self.assertIn("serving with 5 replicas", process.seen[-1])

    def test_stops_in_order(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start()
            process.send_signal(number)
            rest = process.stderr.read()
            self.assertEqual(process.wait(timeout=30), 0)
            self.assertLess(rest.index("stop was called"), rest.index("destroyed"))

    def test_second_signal_ends_at_once(self):
        process = self.start("--test-hang-stop=true")
        process.send_signal(signal.SIGTERM)
        self.read_until(process, "stop was called")
        process.send_signal(signal.SIGTERM)
        self.assertNotEqual(process.wait(timeout=30), 0)
        self.assertNotIn("destroyed", process.stderr.read())

    def test_failed_start(self):
        done = Done("--dir=/d", "--test-fail-start=true")
        self.assertEqual(done.code, 1)
        self.assertIn("cannot start: NOT_FOUND: /d is empty; mount it", done.err)

    def test_warns_beyond_loopback(self):
        for listen, warns in (("127.0.0.1:1", False), ("localhost:1", False), ("[::1]:1", False), ("127.1.2.3:1", False),
                              ("0.0.0.0:1", True), ("10.0.0.1:1", True), ("127.example.org:1", True)):
            process = self.start("--listen", listen)
            self.assertEqual("TLS and users are not there yet" in "".join(process.seen), warns, listen)
            process.kill()
            process.wait()

    def test_log_levels_and_formats(self):
        done = Done("--dir=/d", "--test-fail-start=true", "--log-format", "json")
        records = [json.loads(line) for line in done.err.splitlines()]
        self.assertTrue(records[-2]["message"].startswith("cannot start") or
                        records[-1]["message"].startswith("cannot start"))
        self.assertTrue(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", r["time"]) for r in records))
        self.assertNotIn("starting", Done("--dir=/d", "--test-fail-start=true", "--log-level=error").err)

    def test_init(self):
        done = Done("init", "--dir", "/new")
        self.assertEqual((done.code, done.out), (0, "initialised /new\n"), done.err)
        failed = Done("init", "--dir", "/full")
        self.assertEqual((failed.code, failed.out), (1, ""))
        self.assertEqual(failed.err, "picket-example: NO_SPACE: /full has no room\n")
        missing = Done("init")
        self.assertEqual(missing.code, 2)
        self.assertIn("dir is not set", missing.err)
        self.assertUsage(Done("init", "--dri", "/x"), "unknown flag --dri; did you mean --dir?")


if __name__ == "__main__":
    unittest.main()

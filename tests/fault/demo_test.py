"""picket demo fencing: it tells what it promises, refuses with the codes that it promises, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from harness import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, PICKET, eventually, main

SECONDS_MAX = 90  # a slow machine; 15 s on an idle one

# Of each scene: who refuses with which code, in this order.
REFUSALS = [
    ["LEASE_CONFLICT", "STALE_GENERATION", "STALE_VERSION"],
    ["OUT_OF_ORDER"],
    ["STALE_VERSION", "NOT_PRIMARY"],
    ["REPLICA_BEHIND"],
    ["STALE_EPOCH"],
    ["STALE (model)"],
]
TITLES = ["The paused writer", "Retries and late duplicates", "The old primary", "The old replica", "The old master",
          "A grantor that forgets (a model, not this cluster)"]


def processes_with(text):
    """pids of the processes whose command line has `text`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if text.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Demo(unittest.TestCase):
    def setUp(self):
        self.scratch = self.enterContext(tempfile.TemporaryDirectory(prefix="picket-fault-"))
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("PICKET_")}
        self.environment.update(HOME=self.scratch, TMPDIR=self.scratch, LC_ALL="C.UTF-8")

    def start(self, *args):
        process = subprocess.Popen([PICKET, "demo", *args], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_demo(self, *args):
        process = self.start(*args)
        out, err = process.communicate(timeout=SECONDS_MAX)
        return process.returncode, out, err

    def nothing_is_left(self):
        eventually(lambda: not processes_with(self.scratch), "its processes have ended", seconds=30)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_the_story(self):
        code, out, err = self.run_demo("fencing")
        self.assertEqual(code, EXIT_OK, out + err)
        self.assertEqual(err, "")
        self.assertEqual(re.findall(r"^(\d+)\. (.*)$", out, re.M), [(str(i + 1), t) for i, t in enumerate(TITLES)])
        story, _, table = out.partition("Who was refused, and where")
        self.assertEqual(re.findall(r"REFUSED by [^\n]*: (\S.*)$", story, re.M), [c for codes in REFUSALS for c in codes])
        for codes in REFUSALS:
            for refused in codes:
                self.assertIn(refused, table)
        # The literal line of the paused writer: object, both tokens, holder, next step.
        line = next(line for line in out.splitlines() if "| " in line and "STALE_GENERATION" in line)
        self.assertRegex(line, r"/demo/ledger: .*\(token 1\.\d+, mark 1\.\d+, holder [0-9a-f]{16}\); .")
        self.assertIn("first write after the fail-over is accepted", re.sub(r"\s+", " ", out))
        self.assertTrue(out.endswith("Everything went as told.\n"), out[-300:])
        self.nothing_is_left()

    def test_as_json(self):
        code, out, err = self.run_demo("fencing", "--json")
        self.assertEqual(code, EXIT_OK, out + err)
        told = json.loads(out)
        self.assertTrue(told["as_told"])
        self.assertEqual([scene["title"] for scene in told["scenes"]], TITLES)
        self.assertEqual([[step["code"] for step in scene["steps"] if "code" in step] for scene in told["scenes"]], REFUSALS)
        for scene in told["scenes"]:
            self.assertTrue(scene["as_told"])
            times = [step["t_ms"] for step in scene["steps"]]
            self.assertEqual(times, sorted(times))
        self.nothing_is_left()

    def test_the_cluster_may_be_kept(self):
        code, out, err = self.run_demo("fencing", "--keep")
        self.assertEqual(code, EXIT_OK, out + err)
        (directory,) = os.listdir(self.scratch)
        directory = f"{self.scratch}/{directory}"
        self.assertIn(f"picket dev wipe --dir {directory}", out)
        eventually(lambda: not processes_with(self.scratch), "its processes have ended", seconds=30)
        subprocess.run([PICKET, "dev", "wipe", "--dir", directory], env=self.environment, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(os.listdir(self.scratch), [])

    def interrupted_when(self, text):
        process = self.start("fencing")
        for line in process.stdout:
            if text in line:
                break
        self.assertIsNone(process.poll())
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)  # an impatient one
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, EXIT_INTERRUPTED)
        self.assertLess(time.monotonic() - begun, 25)
        self.nothing_is_left()

    def test_interrupted_while_a_writer_stands_still(self):
        self.interrupted_when("A stands still")

    def test_interrupted_while_a_server_stands_still(self):
        self.interrupted_when("primary of version")

    def test_interrupted_at_the_start(self):
        self.interrupted_when("Starting")

    def test_usage(self):
        self.assertEqual(self.run_demo()[0], EXIT_USAGE)
        self.assertEqual(self.run_demo("juggling")[0], EXIT_USAGE)


if __name__ == "__main__":
    main()

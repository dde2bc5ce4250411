"""Integration tests with real processes: a cluster of its own for each test class, always cleaned up.

The programs' paths come from the environment (PICKET, PICKET_MASTER_PROGRAM, PICKET_CHUNKSERVER_PROGRAM),
set by ctest. To run one file by hand: ctest -R fault_NAME, or set them and run the file; arguments are those
of unittest, as in `cluster_test.py KillsDuringPut.test_primary`.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PICKET = os.environ["PICKET"]
MASTER_PROGRAM = os.environ["PICKET_MASTER_PROGRAM"]
CHUNKSERVER_PROGRAM = os.environ["PICKET_CHUNKSERVER_PROGRAM"]

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

EXIT_OK, EXIT_FAILURE, EXIT_USAGE, EXIT_NOT_FOUND = 0, 1, 2, 3
EXIT_UNAVAILABLE, EXIT_CORRUPT, EXIT_PARTIAL, EXIT_CONFLICT, EXIT_INTERRUPTED = 6, 7, 8, 9, 130

COMMAND_SECONDS_MAX = 180


def eventually(condition, what, seconds=60):
    """The first true value of condition(), asked again and again."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


class Result:
    def __init__(self, process, out, err):
        self.code = process.returncode
        self.raw = out
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.raw)

    def __repr__(self):
        return f"exit code {self.code}\nstdout: {self.out[-2000:]}\nstderr: {self.err[-2000:]}"


class Cluster:
    """A cluster of `picket dev` in a directory of its own."""

    def __init__(self, directory, chunkservers=3, **settings):
        """settings: master_lease="5s" is --set master.lease=5s."""
        self.directory = directory
        self.home = directory + ".home"
        os.makedirs(self.home, exist_ok=True)
        self.chunkservers = chunkservers
        self.settings = [f"--set={key.replace('_', '.', 1)}={value}" for key, value in settings.items()]

    @property
    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PICKET_")}
        env.update(HOME=self.home, PICKET_DEV_DIR=self.directory, TZ="UTC", LC_ALL="C.UTF-8")
        return env

    def start(self, *args, **popen):
        """`picket ARGS` in the background."""
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([PICKET, *map(os.fsencode, args)], env=self.environment, **popen)

    def run(self, *args, stdin=b"", seconds=COMMAND_SECONDS_MAX, code=None, **popen):
        """`picket ARGS` to its end; with `code`, that exit code is demanded."""
        process = self.start(*args, stdin=subprocess.PIPE, **popen)
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"picket {' '.join(args)} took more than {seconds} s")
        result = Result(process, out or b"", err or b"")
        if code is not None and result.code != code:
            raise AssertionError(f"picket {' '.join(args)}: exit code {code} expected; {result!r}")
        return result

    def ok(self, *args, **kwargs):
        return self.run(*args, code=EXIT_OK, **kwargs)

    def up(self):
        return self.ok("dev", "up", f"--chunkservers={self.chunkservers}", *self.settings)

    def processes(self):
        return {p["name"]: p for p in self.run("dev", "status", "--json").json["processes"]}

    def pid(self, name):
        return self.processes()[name]["pid"]

    def kill(self, name, sig=signal.SIGKILL):
        """Ends when the process has ended."""
        pid = self.pid(name)
        os.kill(pid, sig)
        eventually(lambda: self.processes()[name]["state"] != "running", f"{name} ends")

    def report(self):
        return self.ok("admin", "report", "--json").json

    def chunks(self, path):
        return self.ok("chunk", "show", path, "--json").json["chunks"]

    def server_name(self, server_id):
        """The process that is the chunkserver of that id."""
        address = next(s["address"] for s in self.report()["servers"] if s["id"] == server_id)
        return next(name for name, p in self.processes().items() if p["address"] == address)

    def data_dir(self, name):
        return self.processes()[name]["data"]

    def log(self, name):
        with open(f"{self.directory}/logs/{name}.log", errors="replace") as file:
            return file.read()

    def destroy(self):
        if not os.path.exists(f"{self.directory}/picket-dev.json"):
            return
        self.run("dev", "down")
        self.run("dev", "wipe")


class ClusterTest(unittest.TestCase):
    """One cluster for all tests of the class, or one for each with `each = True`."""

    each = False
    chunkservers = 3
    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="picket-fault-")
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        if not cls.each:
            cls.cluster = cls._make("cluster", cls.addClassCleanup)

    @classmethod
    def _make(cls, name, add_cleanup):
        cluster = Cluster(f"{cls.scratch}/{name}", cls.chunkservers, **cls.settings)
        add_cleanup(cluster.destroy)
        cluster.up()
        return cluster

    def setUp(self):
        if self.each:
            self.cluster = self._make(self.id().rsplit(".", 1)[-1], self.addCleanup)
            self.addCleanup(self._keep_logs)

    def _keep_logs(self):
        """The servers' last words, if the test failed."""
        outcome = self._outcome
        failed = any(error for _, error in getattr(outcome, "errors", []) if error) or (
            outcome.result and any(test is self for test, _ in outcome.result.failures + outcome.result.errors))
        if failed:
            for name in self.cluster.processes():
                print(f"--- last lines of {name}.log", *self.cluster.log(name).splitlines()[-15:], sep="\n", flush=True)

    # Files.

    def make_file(self, name, size):
        path = f"{self.scratch}/{name}"
        with open(path, "wb") as file:
            for at in range(0, size, 8 * MIB):
                file.write(os.urandom(min(8 * MIB, size - at)))
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return path

    def same_content(self, local, remote):
        got = f"{self.scratch}/got"
        self.cluster.ok("get", "-f", remote, got)
        self.assertEqual(subprocess.run(["cmp", local, got]).returncode, 0, f"{local} and {remote} differ")
        os.unlink(got)

    # Output.

    def one_line(self, result, *parts):
        """Standard error is one line, that has the parts."""
        self.assertEqual(len(result.err.splitlines()), 1, repr(result))
        for part in parts:
            self.assertIn(part, result.err)


@contextlib.contextmanager
def background(process):
    """Ends a process that a failing test leaves behind."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()


def main():
    unittest.main(verbosity=2)

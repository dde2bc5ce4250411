"""Several processes append records to one file while servers die: each record is there once, where it was said."""

import json
import signal
import subprocess
import threading

from harness import EXIT_INTERRUPTED, EXIT_OK, ClusterTest, background, eventually, main

APPENDERS = 4
RECORDS = 400


class Appender:
    """A `picket records append` that is fed line by line and tells the offset of each."""

    def __init__(self, test, name):
        self.name = name
        self.offsets = []
        self.sent = 0
        self.process = test.cluster.start("records", "append", "--offsets", "/records", stdin=subprocess.PIPE)
        test.enterContext(background(self.process))
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.offsets.append(int(line))

    def send(self, count):
        for n in range(self.sent, self.sent + count):
            self.process.stdin.write(self.line(n).encode() + b"\n")
        self.process.stdin.flush()
        self.sent += count

    def line(self, n):
        return f"{self.name} {n} " + "x" * (n * 37 % 5000)

    def finish(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=120)
        self.reader.join(timeout=10)
        return code, self.process.stderr.read().decode()


class Records(ClusterTest):
    each = True
    settings = {"master_lease": "3s", "master_heartbeat": "500ms"}

    def records(self):
        result = self.cluster.run("records", "cat", "--json", "/records")
        self.assertEqual(result.code, EXIT_OK, result.err)
        return [json.loads(line) for line in result.out.splitlines()]

    def primary(self):
        chunks = self.cluster.chunks("/records")
        return chunks[-1]["primary"] if chunks else None

    def append_through(self, fault):
        appenders = [Appender(self, f"w{n}") for n in range(APPENDERS)]
        for appender in appenders:
            appender.send(RECORDS // 4)
        eventually(lambda: all(len(a.offsets) >= RECORDS // 8 for a in appenders), "the first records acknowledged")
        fault()
        for appender in appenders:
            appender.send(RECORDS - appender.sent)
        for appender in appenders:
            code, err = appender.finish()
            self.assertEqual(code, EXIT_OK, err)
            self.assertEqual(len(appender.offsets), RECORDS)

        found = self.records()
        where = {}
        for record in found:
            self.assertNotIn(record["text"], where, "twice in the file")
            where[record["text"]] = record["offset"]
        self.assertEqual(len(found), APPENDERS * RECORDS)
        for appender in appenders:
            for n, offset in enumerate(appender.offsets):
                self.assertEqual(where[appender.line(n)], offset)

    def test_nothing_fails(self):
        self.append_through(lambda: None)

    def test_the_primary_is_killed(self):
        self.append_through(lambda: self.cluster.kill(self.cluster.server_name(self.primary())))

    def test_the_master_is_killed(self):
        def fault():
            self.cluster.kill("master")
            self.cluster.up()

        self.append_through(fault)

    def test_an_interruption_keeps_the_records_and_leaves_no_lease(self):
        with background(self.cluster.start("records", "append", "/stopped", stdin=subprocess.PIPE)) as appender:
            appender.stdin.write(b"one\n")
            appender.stdin.flush()
            eventually(lambda: self.cluster.run("records", "cat", "/stopped").out == "one\n", "the record is seen")
            appender.send_signal(signal.SIGINT)
            appender.wait(30)
            self.assertEqual(appender.returncode, EXIT_INTERRUPTED)
            self.assertIn(b"1 records were appended and stay", appender.stderr.read())
        self.assertEqual(self.cluster.ok("lease", "ls", "--path", "/stopped").out, "")

    def test_a_file_of_other_bytes_takes_no_records(self):
        self.make_file("content", 5000)
        self.assertEqual(self.cluster.run("put", f"{self.scratch}/content", "/records").code, EXIT_OK)
        refused = self.cluster.run("records", "append", "/records", stdin=b"one\n")
        self.assertNotEqual(refused.code, EXIT_OK)
        self.assertIn("CONFLICT", refused.err)


if __name__ == "__main__":
    main()

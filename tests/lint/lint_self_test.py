#!/usr/bin/env python3
"""Every rule must flag what it is for, and leave its look-alikes alone."""

import unittest

import bans
import layers
import lint
import shapes

_FILES = {
    "common/base/ids.h": "",
    "common/env/env.h": "",
    "common/env/posix/posix_env.h": "",
    "common/rpc/client.h": "",
    "common/obs/log.h": "",
    "common/identity/data_dir.h": "",
    "common/daemon/daemon.h": "",
    "master/master.h": "",
    "chunkserver/fence.h": "",
    "client/core/packet.h": "",
    "client/blocking/convert.h": "",
    "client/cli/text.h": "",
    "tests/sim/world.h": "",
}


def rules(path, text, others=None):
    files = {**_FILES, **(others or {}), path: text}
    return sorted({f.rule for f in lint.lint(files.get, list(files)) if f.path == path})


# (path, text, the one rule that must flag it)
BAD = [
    # layers
    ("common/base/x.h", '#include "common/env/env.h"', "layer"),
    ("common/base/x.h", '#include "proto/common.pb.h"', "layer"),
    ("common/env/x.h", '#include "common/rpc/client.h"', "layer"),
    ("common/env/x.cc", '#include "common/env/posix/posix_env.h"', "layer"),
    ("common/env/posix/x.cc", '#include "common/rpc/client.h"', "layer"),
    ("common/obs/x.cc", '#include "common/rpc/client.h"', "layer"),
    ("common/rpc/x.cc", '#include "common/identity/data_dir.h"', "layer"),
    ("common/identity/x.cc", '#include "common/rpc/client.h"', "layer"),
    ("common/rpc/x.cc", '#include "master/master.h"', "layer"),
    ("master/x.cc", '#include "chunkserver/fence.h"', "layer"),
    ("master/x.cc", '#  include "client/core/packet.h"', "layer"),
    ("master/x.cc", '#include "common/env/posix/posix_env.h"', "layer"),
    ("master/x.cc", '#include "common/daemon/daemon.h"', "layer"),
    ("master/x.cc", '#include "tests/sim/world.h"', "layer"),
    ("master/main.cc", '#include "chunkserver/fence.h"', "layer"),
    ("chunkserver/x.cc", '#include "master/master.h"', "layer"),
    ("client/core/x.cc", '#include "chunkserver/fence.h"', "layer"),
    ("client/core/x.cc", '#include "client/blocking/convert.h"', "layer"),
    ("client/core/x.cc", '#include "client/cli/text.h"', "layer"),
    ("client/blocking/x.cc", '#include "client/cli/text.h"', "layer"),
    ("client/cli/x.cc", '#include "master/master.h"', "layer"),
    ("client/include/picket/x.h", '#include "common/base/ids.h"', "layer"),
    ("examples/x.cc", '#include "common/base/ids.h"', "layer"),
    ("utils/x.h", "", "layer"),
    ("client/include/picket/x.h", "#include <boost/asio/awaitable.hpp>", "public-header"),
    ("client/include/picket/x.h", "#include <google/protobuf/message.h>", "public-header"),
    ("client/include/picket/x.h", "#include <fmt/format.h>", "public-header"),
    ("master/x.cc", "#include <leveldb/db.h>", "leveldb"),
    ("master/meta_store.h", "#include <leveldb/db.h>", "leveldb"),
    ("chunkserver/x.cc", '#include "leveldb/env.h"', "leveldb"),
    ("client/cli/x.cc", "#include <leveldb/db.h>", "leveldb"),
    ("master/x.cc", "#include <unistd.h>", "world"),
    ("master/x.cc", "#include <sys/stat.h>", "world"),
    ("chunkserver/x.cc", "#include <thread>", "world"),
    ("chunkserver/x.cc", "#include <boost/asio/ip/tcp.hpp>", "world"),
    ("client/core/x.cc", "#include <boost/asio/steady_timer.hpp>", "world"),
    ("common/rpc/x.cc", "#include <random>", "world"),
    ("common/identity/x.cc", "#include <fstream>", "world"),
    ("common/env/x.h", "#include <boost/asio.hpp>", "world"),
    ("common/base/x.h", "#include <filesystem>", "world"),
    # bans
    ("master/x.cc", "auto t = std::chrono::steady_clock::now();", "clock"),
    ("master/x.cc", "auto t = std::chrono::system_clock::now();", "clock"),
    ("master/x.cc", "auto t = time(nullptr);", "clock"),
    ("master/x.cc", "auto t = std::time(0);", "clock"),
    ("master/x.cc", "clock_gettime(CLOCK_MONOTONIC, &ts);", "clock"),
    ("master/x.cc", "auto* t = localtime(&now);", "clock"),
    ("chunkserver/x.cc", "std::this_thread::sleep_for(1s);", "sleep"),
    ("chunkserver/x.cc", "::sleep(1);", "sleep"),
    ("chunkserver/x.cc", "usleep(10);", "sleep"),
    ("common/rpc/x.cc", "std::random_device seed;", "random"),
    ("common/rpc/x.cc", "std::mt19937_64 gen(1);", "random"),
    ("common/rpc/x.cc", "int r = rand() % 6;", "random"),
    ("common/rpc/x.cc", "int r = std::rand();", "random"),
    ("common/rpc/x.cc", "std::shuffle(v.begin(), v.end(), gen);", "random"),
    ("common/env/x.cc", "getrandom(p, 8, 0);", "random"),
    ("master/x.cc", "std::thread t(Work);", "thread"),
    ("master/x.h", "std::mutex mutex_;", "thread"),
    ("master/x.h", "std::shared_mutex mutex_;", "thread"),
    ("master/x.cc", "auto f = std::async(Work);", "thread"),
    ("master/x.cc", "thread_local int depth;", "thread"),
    ("master/x.cc", "std::lock_guard<M> lock(mutex_);", "thread"),
    ("master/x.cc", "void F() {\n  static int calls = 0;\n}", "static"),
    ("master/x.cc", "static std::map<int, std::string> cache;", "static"),
    ("master/x.h", "class A {\n  static inline uint64_t next_ = 1;\n};", "static"),
    ("master/x.h", "inline static Foo* instance_;", "static"),
    ("common/rpc/x.cc", "asio::steady_timer timer(ex);", "asio"),
    ("common/rpc/x.cc", "auto s = asio::make_strand(ex);", "asio"),
    ("common/rpc/x.cc", "asio::thread_pool pool(4);", "asio"),
    ("common/rpc/x.cc", "using namespace asio::experimental::awaitable_operators;", "asio"),
    ("common/rpc/x.cc", "asio::ip::tcp::socket s(ex);", "asio"),
    ("chunkserver/x.cc", "asio::co_spawn(ex, Run(), Done);", "spawn"),
    ("chunkserver/x.cc", "Start(Run(), asio::detached);", "spawn"),
    ("chunkserver/x.cc", "std::ifstream in(path);", "file"),
    ("chunkserver/x.cc", "std::filesystem::remove(path);", "file"),
    ("chunkserver/x.cc", "boost::filesystem::remove(path);", "file"),
    ("chunkserver/x.cc", "FILE* f = fopen(path, mode);", "file"),
    ("master/meta_store.cc", "auto* env = leveldb::Env::Default();", "file"),
    ("chunkserver/x.cc", "int fd = ::open(path, 0);", "system"),
    ("chunkserver/x.cc", "if (::fsync(fd) != 0) return;", "system"),
    ("client/core/x.cc", "::rename(a, b);", "system"),
    ("client/core/x.cc", "const char* home = getenv(name);", "environment"),
    ("client/core/x.cc", "const char* home = std::getenv(name);", "environment"),
    ("client/core/x.cc", "auto id = ::getpid();", "environment"),
    ("master/x.cc", "abort();", "exit"),
    ("master/x.cc", "std::exit(1);", "exit"),
    ("master/x.cc", "std::terminate();", "exit"),
    ("master/x.cc", "::_exit(1);", "exit"),
    ("master/x.h", "std::set<Conn*> conns_;", "pointer-order"),
    ("master/x.h", "std::map<const Server *, int> load_;", "pointer-order"),
    ("master/x.h", "std::unordered_map<Conn*, int> conns_;", "pointer-order"),
    ("master/x.h", "std::set<std::shared_ptr<Conn>> conns_;", "pointer-order"),
    ("master/x.cc", "throw std::runtime_error(why);", "exception"),
    ("master/x.cc", "try { F(); } catch (...) { }", "exception"),
    # shapes
    ("master/x.cc", "\n" * 601, "length"),
    ("tests/x_test.cc", "\n" * 601, "length"),
    ("master/x.cc", "std::unordered_map<int, int> m;\nvoid F() { for (auto& [k, v] : m) Send(k); }", "unordered"),
    ("master/x.cc", "std::unordered_set<Id<Tag>> s_;\nvoid F() { for (auto id : this->s_) Send(id); }", "unordered"),
    ("master/x.cc", "std::unordered_map<int, std::vector<int>> m;\nauto F() { return *m.begin(); }", "unordered"),
    ("master/x.cc", "auto f = [x]() -> Task<> { co_await x->Go(); };", "lambda-coroutine"),
    ("master/x.cc", "auto f = [this](int n) mutable -> Task<Result<int>> { co_return n; };", "lambda-coroutine"),
    ("master/x.cc", "Run([&] { if (a) { co_return; } });", "lambda-coroutine"),
    ("master/x.cc", "auto f = [this]() -> Task<> { struct A { int n; }; co_return; };", "lambda-coroutine"),
    ("tests/x_test.cc", "auto f = [&]() -> Task<> { co_return; };", "lambda-coroutine"),
    ("client/cli/x.cc", "return [=]() -> Task<> { co_return; };", "lambda-coroutine"),
]

# Look-alikes that nothing may flag.
GOOD = [
    ("master/x.cc", '#include "common/rpc/client.h"\n#include "proto/rpc.pb.h"\n#include "master/master.h"\n'
                    "#include <algorithm>\n#include <boost/asio/awaitable.hpp>"),
    ("master/main.cc", '#include "common/daemon/daemon.h"\n#include "common/env/posix/posix_env.h"'),
    ("master/meta_store.cc", "#include <leveldb/db.h>"),
    ("common/env/posix/x.cc", "#include <unistd.h>\nstd::mutex m; int fd = ::open(p, 0); throw 1;"),
    ("common/rpc/x.cc", '#include "common/obs/log.h"'),
    ("client/include/picket/x.h", '#include <string>\n#include "picket/status.h"'),
    ("client/blocking/x.cc", "#include <thread>\nstd::thread t(Run);"),
    ("tests/unit/x_test.cc", '#include "master/master.h"\n#include "chunkserver/fence.h"\n#include <thread>'),
    ("master/x.cc", "// #include <unistd.h>\n/* std::mutex */ const char* s = \"::open( throw\";"),
    ("master/x.cc", 'const char* s = R"(getenv(x) // )"; int n = 1\'000\'000;'),
    ("master/x.cc", "auto t = env.Now(); co_await env.Sleep(1s); RunTime(0); lifetime(&x);"),
    ("master/x.cc", "auto r = env.Random(); operand(1); x.rand(); Rng rng(1);"),
    ("master/x.cc", "static constexpr int kMax = 3;\nstatic const char* const kName = s;\n"
                    "static_assert(sizeof(int) == 4);\nstatic int Twice(int x) { return 2 * x; }\n"
                    "static Task<> Run(std::shared_ptr<State> self);\nx = static_cast<int>(y);"),
    ("master/x.h", "std::map<ChunkId, Conn*> conns_;\nstd::map<std::string, std::shared_ptr<Conn>> by_name_;"),
    ("master/x.cc", "frames.open(); file->rename(a); Log::open(x); on_exit(); self.exit(1);"),
    ("master/x.cc", "bool retry = true; dispatch(x); rethrow();"),
    ("master/x.cc", "std::unordered_map<int, int> m;\nstd::vector<int> v;\n"
                    "void F() { m.find(3); for (int x : v) Send(x); for (auto it = v.begin(); it != m.end();) ++it; }"),
    ("master/x.cc", "std::unordered_map<int, int> m;\n"
                    "void F() {\n  // order-free: only counts\n  for (auto& [k, v] : m) ++n;\n}"),
    ("master/x.cc", "auto f = []() -> Task<> { co_return; };"),
    ("master/x.cc", "auto f = [x] { return Run(x); };\nTask<> G() { co_await H(); }"),
    ("master/x.cc", "auto f = [x] { env->Spawn([](int* y) -> Task<> { co_await Go(y); }(x)); };"),
    ("master/x.cc", "auto f = [this] { struct A { static Task<> Run() { co_return; } }; return A::Run(); };"),
    ("master/x.cc", "[[nodiscard]] Task<> G() { a[i] = co_await H(); }"),
    ("master/x.cc", "\n" * 600),
]


class LintSelfTest(unittest.TestCase):
    def test_bad_snippets_are_flagged(self):
        for path, text, rule in BAD:
            with self.subTest(path=path, text=text[:80]):
                self.assertEqual(rules(path, text), [rule])

    def test_good_snippets_are_not(self):
        for path, text in GOOD:
            with self.subTest(path=path, text=text[:80]):
                self.assertEqual(rules(path, text), [])

    def test_members_are_known_from_the_header(self):
        header = {"master/x.h": "std::unordered_map<int, int> m_;"}
        self.assertEqual(rules("master/x.cc", "void A::F() { for (auto& e : m_) Send(e); }", header), ["unordered"])

    def test_every_ban_has_a_bad_snippet(self):
        covered = {rule for _, _, rule in BAD}
        self.assertLessEqual({rule for rule, _, _ in bans._BANS}, covered)
        self.assertLessEqual({"layer", "leveldb", "world", "public-header", "length", "unordered",
                              "lambda-coroutine"}, covered)

    def test_exemptions_are_narrow(self):
        self.assertEqual(rules("common/base/check.cc", "std::abort(); std::mutex m;"), ["thread"])
        self.assertEqual(rules("common/env/env.cc", "asio::co_spawn(a, b, c); getenv(x);"), ["environment"])

    def test_findings_name_the_line(self):
        files = {"master/x.cc": "int a;\n\nstd::mutex m;\n"}
        self.assertEqual([f.line for f in lint.lint(files.get, list(files))], [3])

    def test_every_simulated_layer_is_a_layer(self):
        self.assertLessEqual(layers.SIMULATED, set(layers._ALLOWED))
        self.assertEqual(shapes.MAX_LINES, 600)


if __name__ == "__main__":
    unittest.main()

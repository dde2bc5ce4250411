"""What code that also runs in the simulator may not touch: each would make a run differ from its seed,
block the loop, or outlive its node.
"""

import re

from layers import SIMULATED, layer_of

_CALL = r"(?<![\w.>])(?:std::|::)?"
_BANS = [
    ("clock", r"\b(?:steady_clock|system_clock|high_resolution_clock|utc_clock|file_clock)\b", "Env::Now or WallNanos"),
    ("clock", _CALL + r"(?:gettimeofday|clock_gettime|localtime(?:_r)?|gmtime(?:_r)?|mktime|strftime|clock)\s*\(",
     "Env::Now or WallNanos"),
    ("clock", _CALL + r"time\s*\(\s*(?:nullptr|NULL|0|&)", "Env::WallNanos"),
    ("sleep", r"\b(?:sleep_for|sleep_until|usleep|nanosleep)\b|" + _CALL + r"sleep\s*\(", "Env::Sleep"),
    ("random", r"\b(?:random_device|mt19937(?:_64)?|default_random_engine|uniform_(?:int|real)_distribution"
               r"|bernoulli_distribution)\b", "Env::Random, Rng"),
    ("random", _CALL + r"(?:s?rand|rand_r|random|getrandom|drand48|arc4random)\s*\(|\bstd::(?:shuffle|sample)\b",
     "Env::Random, Rng"),
    ("thread", r"\bstd::(?:thread|jthread|async|(?:recursive_|shared_|timed_)?mutex|condition_variable(?:_any)?"
               r"|lock_guard|unique_lock|scoped_lock|call_once|once_flag|promise|future|counting_semaphore)\b",
     "one executor and common/env/sync.h"),
    ("thread", r"\bthread_local\b", "members of the object that needs them"),
    ("static", r"^[ \t]*(?:inline[ \t]+)?static[ \t]+(?!constexpr\b|const\b|consteval\b|constinit[ \t]+const\b)"
               r"(?:inline[ \t]+)?(?!constexpr\b|const\b)[\w:<>,*& \t]*?[\w>*&][ \t]+\w+[ \t]*(?:=|;|\{[^()]*\}[ \t]*;)",
     "no mutable statics: all nodes of a simulation share one process"),
    ("asio", r"\b(?:steady_timer|system_timer|deadline_timer|high_resolution_timer)\b", "Env::At"),
    ("asio", r"\basio::(?:thread_pool|system_executor|system_context|strand|make_strand|io_context|signal_set|ip::)",
     "Env::executor, Env::net"),
    ("asio", r"\b(?:make_parallel_group|awaitable_operators|experimental::)", "WhenAll, OneShot"),
    ("spawn", r"\bdetached\b|\bco_spawn\s*\(", "Env::Spawn"),
    ("file", r"\bstd::(?:[io]?fstream|filebuf)\b|\bstd::filesystem::|\bboost::filesystem::|" + _CALL +
             r"f(?:open|dopen|read|write|close)\s*\(", "Env::fs"),
    ("system", r"(?<![\w:>])::(?:open|openat|read|write|pread|pwrite|preadv2?|pwritev2?|fsync|fdatasync|ftruncate"
               r"|rename|unlink|mkdir|opendir|stat|fstat|flock|fcntl|ioctl|mmap|socket|connect|bind|listen|accept4?"
               r"|send|recv|sendmsg|recvmsg|sendfile|poll|epoll_wait|close|kill|signal|sigaction|fork|execv\w*)\s*\(",
     "Env::fs, Env::net"),
    ("file", r"\bleveldb::Env::Default\b", "Fs::leveldb_env"),
    ("environment", _CALL + r"(?:secure_)?(?:get|set|un|put)env\s*\(|" + _CALL + r"(?:getpid|getuid|gethostname)\s*\(",
     "settings that the main passes in"),
    ("exit", _CALL + r"(?:abort|_?exit|_Exit|quick_exit|terminate|raise|signal)\s*\(", "Env::Fatal, PICKET_CHECK"),
    ("pointer-order", r"\bstd::(?:unordered_)?(?:multi)?(?:set|map)<\s*(?:const\s+)?[\w:]+(?:<[^<>]*>)?(?:\s+const)?\s*\*",
     "order by an id: addresses differ from run to run"),
    ("pointer-order", r"\bstd::(?:unordered_)?(?:multi)?(?:set|map)<\s*std::(?:shared|unique|weak)_ptr\b",
     "order by an id: addresses differ from run to run"),
    ("exception", r"\bthrow\b|\btry\s*\{|\bcatch\s*\(", "Result: errors are values"),
]
_BANS = [(rule, re.compile(pattern, re.M), instead) for rule, pattern, instead in _BANS]

# What implements the rule's replacement, or meets a library that knows no other way.
_EXEMPT = {
    ("common/base/check.cc", "exit"),
    ("common/base/mutation.cc", "environment"),
    ("common/env/env.cc", "spawn"),
    ("common/env/env.cc", "exception"),
    ("common/obs/toml.cc", "exception"),
}


def check(source):
    if layer_of(source.path) not in SIMULATED:
        return
    for rule, pattern, instead in _BANS:
        if (source.path, rule) in _EXEMPT:
            continue
        for match in pattern.finditer(source.code):
            found = match.group().strip()
            yield source.finding(source.line_of(match.start() + len(match.group()) - len(match.group().lstrip())), rule,
                                 f"`{found}` is not for simulated code: {instead}")

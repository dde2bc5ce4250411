"""Who may include whom.

base ← env ← {obs, rpc, identity} ← {master, chunkserver, client core}; the outermost ring (the servers'
mains, common/daemon, the blocking client, the CLI) may see the production environment; roles never see
one another.
"""

import re

# (prefix of the path, layer); the first that fits counts.
_PLACES = [
    ("common/base/", "base"),
    ("common/env/posix/", "posix"),
    ("common/env/", "env"),
    ("common/obs/", "obs"),
    ("common/rpc/", "rpc"),
    ("common/identity/", "identity"),
    ("common/daemon/", "daemon"),
    ("common/pch/", "pch"),
    ("proto/", "proto"),
    ("master/main.cc", "master_main"),
    ("master/", "master"),
    ("chunkserver/main.cc", "chunkserver_main"),
    ("chunkserver/", "chunkserver"),
    ("client/include/", "client_api"),
    ("picket/", "client_api"),
    ("client/core/", "client_core"),
    ("client/cli/", "cli"),
    ("client/", "client_blocking"),
    ("tests/", "tests"),
    ("bench/", "tests"),
    ("examples/", "examples"),
]

_SEAM = {"base", "env"}
_ROLE = _SEAM | {"obs", "rpc", "identity", "proto"}
_ALLOWED = {
    "base": {"base"},
    "env": _SEAM,
    "posix": _SEAM | {"posix"},
    "obs": _SEAM | {"obs"},
    "rpc": _SEAM | {"obs", "proto", "rpc"},
    "identity": _SEAM | {"obs", "proto", "identity"},
    "daemon": _SEAM | {"obs", "posix", "daemon"},
    "pch": _SEAM,
    "master": _ROLE | {"master"},
    "chunkserver": _ROLE | {"chunkserver"},
    "client_core": _ROLE | {"client_core"},
    "master_main": _ROLE | {"master", "daemon", "posix"},
    "chunkserver_main": _ROLE | {"chunkserver", "daemon", "posix"},
    "client_api": {"client_api"},
    "client_blocking": _ROLE | {"client_core", "client_api", "client_blocking", "posix"},
    "cli": _ROLE | {"client_core", "client_api", "client_blocking", "cli", "posix"},
    "examples": {"client_api"},
    "tests": None,  # anything
}

# Layers whose code also runs in the simulator: they see the world through Env only.
SIMULATED = {"base", "env", "obs", "rpc", "identity", "master", "chunkserver", "client_core"}

# Headers that let a file reach around the seam.
_WORLD_HEADERS = re.compile(
    r"""^(?:
      unistd\.h | fcntl\.h | poll\.h | signal\.h | csignal | pthread\.h | dlfcn\.h | netdb\.h | ifaddrs\.h | time\.h
    | sys/.* | netinet/.* | arpa/.* | net/.* | linux/.*
    | thread | mutex | shared_mutex | condition_variable | future | semaphore | latch | barrier | stop_token
    | random | fstream | filesystem | iostream | ctime
    | boost/asio\.hpp | boost/asio/ip/.* | boost/asio/local/.* | boost/asio/posix/.* | boost/asio/ts/.*
    | boost/asio/(?:io_context|thread_pool|system_executor|system_context|signal_set|strand|detached
                   |steady_timer|system_timer|deadline_timer|high_resolution_timer|read|write|connect)\.hpp
    | boost/asio/experimental/.* | boost/filesystem.* | boost/thread.*
    )$""",
    re.X,
)
# The seam's own machinery.
_WORLD_HEADERS_ALLOWED = {"common/env/asio_impl.cc"}

_LEVELDB_ALLOWED = re.compile(r"^(?:master/meta_store\.cc|common/env/posix/.*|tests/.*|bench/.*)$")


def layer_of(path):
    for prefix, layer in _PLACES:
        if path.startswith(prefix):
            return layer
    return None


def check(source, exists):
    """`exists(path)` tells whether a path is a file of the repository (generated ones included)."""
    layer = layer_of(source.path)
    if layer is None:
        yield source.finding(1, "layer", "the file belongs to no known layer: add its folder to layers.py")
        return
    allowed = _ALLOWED[layer]
    for line, target in source.includes:
        if target.startswith("leveldb/"):
            if not _LEVELDB_ALLOWED.match(source.path):
                yield source.finding(line, "leveldb", f"{target} belongs behind master/meta_store.cc or the environment")
            continue
        if layer in SIMULATED and _WORLD_HEADERS.match(target) and source.path not in _WORLD_HEADERS_ALLOWED:
            yield source.finding(line, "world", f"<{target}> reaches around the seam; go through Env")
        if layer == "client_api" and not exists(target) and ("/" in target or target.endswith((".h", ".hpp"))):
            yield source.finding(line, "public-header", f"{target} would become part of every user's build")
        if allowed is None:
            continue
        to = layer_of(target) if "/" in target and exists(target) else None
        if to is not None and to not in allowed:
            yield source.finding(line, "layer", f"{layer} may not include {to} ({target})")

// What a simulated world is like when nothing is broken on purpose. Faults are calls on Node, SimDisk
// and World, made by a test or by a fault script.
#pragma once

#include <cstdint>

#include "common/env/env.h"

namespace picket::sim {

struct Config {
  // Scheduler: ready tasks run in a seeded random order instead of FIFO.
  bool shuffle = true;

  // Network. Latency is uniform with a tail; loss shows as TCP shows it: a retransmission's delay.
  Nanos latency_min = 50us;
  Nanos latency_max = 400us;
  double tail_chance = 0.01;
  Nanos tail_max = 50ms;
  double loss = 0.0;
  Nanos retransmit_min = 200ms;
  uint64_t network_bytes_per_s = 1ull << 30;   // egress of one node
  size_t socket_buffer_bytes = 4 << 20;        // unread bytes at a receiver before the sender stalls
  Nanos give_up = 20s;                         // a connection without acknowledgements breaks
  double payload_corruption = 0.0;             // chance that a frame's payload arrives with a bit flipped

  // Disks.
  Nanos disk_latency_min = 10us;
  Nanos disk_latency_max = 200us;
  Nanos sync_latency_min = 100us;
  Nanos sync_latency_max = 4ms;
  uint64_t disk_bytes_per_s = 500ull << 20;
  uint64_t disk_capacity_bytes = 1ull << 40;
  double writeback_chance = 0.05;   // that the kernel has written a dirty sector before it is overwritten
  double sector_survival = 0.5;     // of an un-synced sector in a power loss
  bool sync_is_noop = false;        // a lying disk: the negative control of durability tests

  // Clocks: each node's rate is off by up to this, and its origin differs at each start.
  int64_t drift_ppb_max = 200'000;
  Nanos skew_max = 1s;

  // Env::Buggify: chance that a site is on in this world, and that it fires when on.
  double buggify_site = 0.0;
  double buggify_fire = 0.25;

  // Output.
  LogLevel log_level = LogLevel::kInfo;
  size_t log_ring_lines = 4000;
  bool print = false;               // log, trace and faults to stderr
  Nanos print_from = 0s;
};

}  // namespace picket::sim

// The cluster that the demonstration plays on: real processes in a directory of its own, with limits short
// enough to wait for. Whatever happens, its destruction ends every process and removes the directory.
// REQUIRES: a patient Deferral lives.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "client/cli/demo/wire.h"
#include "client/cli/dev/cluster.h"
#include "common/base/error.h"
#include "picket/client.h"

namespace picket::cli::demo {

inline constexpr std::chrono::milliseconds kSoftLimit{3000};
inline constexpr std::chrono::milliseconds kPrimaryLease{2000};
inline constexpr std::chrono::milliseconds kDeadAfter{8000};
inline constexpr std::chrono::milliseconds kCallTimeout{5000};
inline constexpr std::chrono::milliseconds kConditionTimeout{15000};

// What went wrong as seen from outside of the protocol.
Error NotAsTold(std::string what);
Error Of(const client::Error& error);
Error Of(const dev::DevError& error);

// Asks again and again until `holds`; kDeadlineExceeded, or kInternal when the user interrupts.
Status Until(std::string_view what, const std::function<bool()>& holds);

class Stage {
 public:
  // `say` hears what the processes do.
  static Result<std::unique_ptr<Stage>> Build(bool keep, std::function<void(std::string_view)> say);
  ~Stage();
  Stage(const Stage&) = delete;

  client::Client& client() { return *client_; }
  Wire& wire() { return *wire_; }
  const std::string& directory() const { return cluster_.layout().directory(); }
  std::string client_config() const { return cluster_.layout().client_config(); }
  const Endpoint& master() const { return master_; }

  // "chunkserver-2" for its address.
  std::string NameOf(const Endpoint& server) const;
  // Halts a process between two instructions, as a long garbage collection or a stopped virtual machine does.
  Status Pause(const Endpoint& server);
  Status Resume(const Endpoint& server);
  // Ends the master and starts it again on its directory; on return all chunkservers have registered anew.
  Status RestartMaster();

 private:
  Stage(std::string directory, bool keep, std::function<void(std::string_view)> say);
  Status Start();
  Result<dev::MemberStatus> Find(const Endpoint& server) const;
  Status SignalTo(const Endpoint& server, int signal) const;

  const bool keep_;
  dev::Cluster cluster_;
  Endpoint master_;
  std::set<Endpoint> paused_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace picket::cli::demo

// Where things are in the directory of a local cluster. Pure, but for DefaultDirectory.
#pragma once

#include <string>
#include <string_view>

namespace picket::cli::dev {

// $PICKET_DEV_DIR, else ~/.local/share/picket/dev.
std::string DefaultDirectory();

class Layout {
 public:
  explicit Layout(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  // The marker: says whose the directory is, and what the cluster consists of.
  std::string state_file() const { return directory_ + "/picket-dev.json"; }
  std::string lock_file() const { return directory_ + "/lock"; }
  std::string client_config() const { return directory_ + "/client.toml"; }
  std::string secret_file() const { return data("master") + "/cluster.secret"; }
  std::string config(std::string_view name) const { return Under("config", name, ".toml"); }
  std::string data(std::string_view name) const { return Under("data", name, ""); }
  std::string log(std::string_view name) const { return Under("logs", name, ".log"); }
  std::string pid_file(std::string_view name) const { return Under("run", name, ".pid"); }

  static constexpr std::string_view kFolders[] = {"config", "data", "logs", "run"};

 private:
  std::string Under(std::string_view folder, std::string_view name, std::string_view suffix) const {
    return directory_ + "/" + std::string(folder) + "/" + std::string(name) + std::string(suffix);
  }
  std::string directory_;
};

}  // namespace picket::cli::dev

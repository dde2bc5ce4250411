// A server's settings: keys bound to the fields of a struct, read from a TOML file, then from flags.
//
//   struct Settings { Endpoint listen{"127.0.0.1", 7400}; uint64_t chunk_size = 64 << 20; } s;
//   Config config;
//   config.Address("listen", &s.listen, "Where clients and chunkservers connect.");
//   config.Size("chunk_size", &s.chunk_size, 1 << 20, 1 << 30, "Of files that do not say otherwise.");
//   PICKET_TRY(config.ParseToml(text, "master.toml"));
//   PICKET_TRY(config.Set("chunk_size", "128MiB"));     // a flag
//   PICKET_TRY(config.Check());
//
// The value a field has when its key is declared is the default. A name may be dotted: "log.level" is
// the key `level` of the table [log]. Every error is one line that names the place, the key, what was
// found and what is accepted.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/env/net.h"
#include "common/env/task.h"

namespace picket {

class Config {
 public:
  Config() = default;
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  // Each declares one key; the field must outlive this object. Ranges include both ends.
  void Text(std::string name, std::string* field, std::string doc);
  // One of the listed words.
  void Word(std::string name, std::string* field, std::vector<std::string> words, std::string doc);
  void Integer(std::string name, int64_t* field, int64_t low, int64_t high, std::string doc);
  void Size(std::string name, uint64_t* field, uint64_t low, uint64_t high, std::string doc);
  void Duration(std::string name, Nanos* field, Nanos low, Nanos high, std::string doc);
  void Bool(std::string name, bool* field, std::string doc);
  // default_port 0: the port must be written.
  void Address(std::string name, Endpoint* field, std::string doc, uint16_t default_port = 0);
  // The key declared last has no usable default: Check fails while it was never set.
  void Required();

  // Reads a whole file's text. `file` is its name, for messages. Nothing is rolled back on an error.
  Status ParseToml(std::string_view text, std::string_view file);
  // Sets one key from text as it is written after a flag. `origin` opens the message of an error.
  Status Set(std::string_view name, std::string_view text, std::string_view origin = "");
  // Every required key has been set.
  Status Check() const;

  // A file with every key, its documentation and its default, as a comment unless it is required.
  std::string Sample() const;

  struct Key {
    std::string name;
    std::string doc;
    std::string accepts;   // "a size from 1MiB to 1GiB, such as \"64MiB\""
    std::string initial;   // the default, spelled as in TOML
    std::string flag() const;  // "--chunk-size"
    bool required = false;
    bool set = false;

   private:
    friend class Config;
    enum class Kind { kText, kInteger, kSize, kDuration, kBool };
    Kind kind = Kind::kText;
    std::function<bool(std::string_view)> assign;  // false: not accepted
  };
  const std::vector<Key>& keys() const { return keys_; }

 private:
  void Add(Key key);
  Key* Find(std::string_view name);
  Status Unknown(std::string_view name, std::string_view origin) const;
  std::vector<Key> keys_;
};

}  // namespace picket

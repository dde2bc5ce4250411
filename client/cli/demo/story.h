// What the demonstration tells: numbered scenes, each with its clock and its steps, the refusals in the words of
// whoever refused, and the table at the end. As text while it happens, or as one JSON document at the end.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/context.h"
#include "common/base/error.h"

namespace picket::cli::demo {

class Story {
 public:
  explicit Story(Context& context) : context_(context) {}

  // Starts the next scene, and its clock.
  void Begin(std::string_view title);
  // A paragraph without a time.
  void Explain(std::string_view text);
  // What somebody did or has now.
  void Tell(std::string_view who, std::string_view what);
  // `who` was refused: where, with which code, and the literal line.
  void Refused(std::string_view who, std::string_view where, std::string_view code, std::string_view line);
  void Refused(std::string_view who, std::string_view where, const Error& error) {
    Refused(who, where, CodeName(error.code), error.ToString());
  }
  // The scene went as told: `outcome` says in a few words what that means.
  void End(std::string_view outcome);
  // It did not.
  void Broke(const Error& why);

  std::chrono::milliseconds elapsed() const;
  // The table, or the document.
  void Print(const std::string& directory, bool kept);

 private:
  struct Step {
    std::chrono::milliseconds at;
    std::string who;
    std::string what;
    std::string where;  // of a refusal
    std::string code;
  };
  struct Scene {
    std::string title;
    std::vector<Step> steps;
    std::string outcome;
    bool went_as_told = false;
  };
  void Show(const Step& step);

  Context& context_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::vector<Scene> scenes_;
};

}  // namespace picket::cli::demo

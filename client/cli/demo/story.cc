#include "client/cli/demo/story.h"

#include <fmt/format.h>

#include "client/cli/table.h"

namespace picket::cli::demo {
namespace {

using std::chrono::milliseconds;

constexpr size_t kColumns = 100;
constexpr std::string_view kStepIndent = "            ";

// Broken at blanks, the lines after the first one indented.
std::string Wrapped(std::string_view text, std::string_view indent) {
  std::string out;
  size_t column = indent.size();
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (column + end > kColumns && column > indent.size()) {
      if (out.ends_with(' ')) out.pop_back();
      out += fmt::format("\n{}", indent);
      column = indent.size();
    }
    out += text.substr(0, end);
    column += end + 1;
    if (end < text.size()) out += ' ';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

double Seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000.0; }

}  // namespace

void Story::Begin(std::string_view title) {
  begun_ = std::chrono::steady_clock::now();
  scenes_.push_back({.title = std::string(title), .steps = {}, .outcome = ""});
  if (context_.options.json) return;
  context_.out.Print("\n{}. {}\n", scenes_.size(), title);
  context_.out.Flush();
}

void Story::Explain(std::string_view text) {
  if (context_.options.json) return;
  context_.out.Print("   {}\n", Wrapped(text, "   "));
  context_.out.Flush();
}

void Story::Tell(std::string_view who, std::string_view what) {
  scenes_.back().steps.push_back({elapsed(), std::string(who), std::string(what), "", ""});
  Show(scenes_.back().steps.back());
}

void Story::Refused(std::string_view who, std::string_view where, std::string_view code, std::string_view line) {
  scenes_.back().steps.push_back(
      {elapsed(), std::string(who), std::string(line), std::string(where), std::string(code)});
  Show(scenes_.back().steps.back());
}

void Story::End(std::string_view outcome) {
  scenes_.back().outcome = outcome;
  scenes_.back().went_as_told = true;
  if (context_.options.json) return;
  context_.out.Print("   => {}\n", Wrapped(outcome, "      "));
  context_.out.Flush();
}

void Story::Broke(const Error& why) {
  scenes_.back().outcome = why.ToString();
  context_.Fail(fmt::format("scene {}", scenes_.size()), kExitFailure, why.ToString());
}

milliseconds Story::elapsed() const {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begun_);
}

void Story::Show(const Step& step) {
  if (context_.options.json) return;
  const std::string start = fmt::format("   t={:4.1f} s  ", Seconds(step.at));
  if (step.code.empty()) {
    context_.out.Print("{}{}\n", start, Wrapped(fmt::format("{} {}", step.who, step.what), kStepIndent));
  } else {
    context_.out.Print("{}{} is REFUSED by {}: {}\n", start, step.who, step.where, step.code);
    // The line as it is: whoever looks for it finds it.
    context_.out.Print("{}| {}\n", kStepIndent, step.what);
  }
  context_.out.Flush();
}

void Story::Print(const std::string& directory, bool kept) {
  bool all = true;
  for (const Scene& scene : scenes_) all = all && scene.went_as_told;
  if (context_.options.json) {
    Json scenes = Json::array();
    for (size_t i = 0; i < scenes_.size(); ++i) {
      Json steps = Json::array();
      for (const Step& step : scenes_[i].steps) {
        Json facts = {{"t_ms", step.at.count()}, {"who", step.who}};
        if (step.code.empty()) {
          facts["what"] = step.what;
        } else {
          facts["refused_by"] = step.where;
          facts["code"] = step.code;
          facts["line"] = step.what;
        }
        steps.push_back(std::move(facts));
      }
      scenes.push_back({{"number", i + 1},
                        {"title", scenes_[i].title},
                        {"as_told", scenes_[i].went_as_told},
                        {"outcome", scenes_[i].outcome},
                        {"steps", std::move(steps)}});
    }
    context_.out.PrintJson(
        {{"as_told", all}, {"directory", kept ? Json(directory) : Json()}, {"scenes", std::move(scenes)}});
    return;
  }
  context_.out.Write("\nWho was refused, and where\n");
  Table table({{"SCENE"}, {"WHO"}, {"CODE"}, {"REFUSED BY"}});
  for (size_t i = 0; i < scenes_.size(); ++i) {
    const std::string name = fmt::format("{}. {}", i + 1, scenes_[i].title);
    bool first = true;
    for (const Step& step : scenes_[i].steps) {
      if (step.code.empty()) continue;
      table.Add({first ? name : "", step.who, step.code, step.where});
      first = false;
    }
    if (first) table.Add({name, "", scenes_[i].went_as_told ? "-" : "did not go as told", ""});
  }
  context_.out.Write(table.Render(2));
  context_.out.Print("\n{}\n", all ? "Everything went as told." : "Not everything went as told: see above.");
}

}  // namespace picket::cli::demo

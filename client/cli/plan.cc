#include "client/cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <ranges>
#include <thread>

#include "client/cli/interrupt.h"
#include "client/cli/remote_path.h"

namespace picket::cli {
namespace {

class Copier {
 public:
  Copier(Context& context, const std::vector<PlannedItem>& files, const PlanSteps& steps)
      : context_(context), files_(files), steps_(steps), progress_(context.diagnostics) {
    for (const PlannedItem& file : files) progress_.AddTotal(file.length);
  }

  void Run(uint32_t workers) {
    std::vector<std::jthread> others;
    const size_t useful = std::min<size_t>(workers, files_.size());
    for (size_t i = 1; i < useful; ++i) others.emplace_back([this] { Work(); });
    Work();
    others.clear();
    if (hopeless_ && next_ < files_.size()) {
      context_.Warn("", fmt::format("{} more files were not tried", files_.size() - next_));
    }
  }

  Json copied() && { return std::move(copied_); }

 private:
  void Work() {
    for (size_t i = next_++; i < files_.size() && !Interrupted() && !hopeless_; i = next_++) {
      const PlannedItem& file = files_[i];
      progress_.SetName(std::string(BaseName(file.source)));
      const auto bytes = steps_.copy_file(progress_, file);
      if (!bytes) {
        context_.Fail(steps_.failures_name_source ? file.source : file.target, bytes.error());
        hopeless_ = hopeless_ || ExitCodeOf(bytes.error().kind) == kExitUnavailable;
        continue;
      }
      context_.Succeed();
      context_.Note(fmt::format("{} -> {}: {} bytes", file.source, file.target, *bytes));
      std::lock_guard lock(mutex_);
      copied_.push_back({{"source", file.source}, {"target", file.target}, {"bytes", *bytes}});
    }
  }

  Context& context_;
  const std::vector<PlannedItem>& files_;
  const PlanSteps& steps_;
  std::mutex mutex_;
  Json copied_ = Json::array();
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> hopeless_ = false;  // a file failed for want of a master or servers: so would the rest
  Progress progress_;
};

}  // namespace

void RunPlan(Context& context, const Plan& plan, const PlanSteps& steps, uint32_t workers) {
  std::vector<std::string> missing;
  auto is_missing = [&missing](const PlannedItem& item) {
    return std::ranges::any_of(missing, [&item](const std::string& top) { return IsWithin(item.target, top); });
  };
  std::vector<PlannedItem> made;
  for (const PlannedItem& directory : plan.directories) {
    if (Interrupted()) return;
    if (is_missing(directory)) continue;
    if (auto result = steps.make_directory(directory); !result) {
      context.Fail(directory.target, result.error());
      missing.push_back(directory.target);
      continue;
    }
    context.Succeed();
    made.push_back(directory);
  }

  std::vector<PlannedItem> files;
  std::ranges::copy_if(plan.files, std::back_inserter(files),
                       [&](const PlannedItem& item) { return !is_missing(item); });
  Json copied = Json::array();
  {
    Copier copier(context, files, steps);
    copier.Run(workers);
    copied = std::move(copier).copied();
  }

  if (steps.finish_directory && !Interrupted()) {
    for (const PlannedItem& directory : made | std::views::reverse) {
      if (auto result = steps.finish_directory(directory); !result) context.Fail(directory.target, result.error());
    }
  }
  if (context.options.json) context.out.PrintJson({{"copied", std::move(copied)}});
}

}  // namespace picket::cli

#include "client/cli/arguments.h"
#include "client/cli/commands.h"

namespace picket::cli {

int RunVersion(Context& context, const std::vector<std::string>& args) {
  Arguments arguments(context);
  if (auto code = arguments.Parse(args)) return *code;
  if (context.options.json) {
    context.out.PrintJson({{"picket", PICKET_VERSION}, {"library", client::LibraryVersion()}});
  } else {
    context.out.Print("picket {}\n", PICKET_VERSION);
  }
  return context.Finish();
}

}  // namespace picket::cli

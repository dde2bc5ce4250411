// Mutation points: a check or a sync that the `mutants` build can take out at run time, by name, to
// prove that a test notices. In every other build PICKET_MUTANT(x) is the constant false and leaves
// no trace in the binary.
#pragma once

#ifdef PICKET_MUTANTS
namespace picket {
// True if the point was switched off, by the environment variable PICKET_MUTANT, at process start.
bool MutantActive(const char* name);
}  // namespace picket
#define PICKET_MUTANT(name) (::picket::MutantActive(#name))
#else
#define PICKET_MUTANT(name) (false)
#endif

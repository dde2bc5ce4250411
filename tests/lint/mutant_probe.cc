// A program with a mutation point in it whatever the build: what mutants_in_binary.py must see.
#include "common/base/mutation.h"

int main() { return PICKET_MUTANT(rpc_drop_expired) ? 1 : 0; }

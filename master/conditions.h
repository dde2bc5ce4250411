// Conditions of a request (client_master.proto Conditions): judged on what the name means in the very batch
// that makes the change, so nothing comes between the compare and the change. Pure.
//
// if_revision: the object's create_revision, so it is still the same object, whatever is in it.
// if_version: its mod_revision, so nothing in it has changed that a user can see: bytes, length, attributes,
//   of a directory the names in it (not what is deeper). A file that is being written changes from one seal
//   to the next without a number of its own: no version can be vouched for, so the condition does not hold.
// if_absent: nothing has the name.
#pragma once

#include "common/base/error.h"
#include "master/namespace.h"
#include "master/path.h"
#include "proto/common.pb.h"

namespace picket {

// kConflict, naming the path, the expected value (token), the current one (mark; 0: nothing is there), and
// what to do. `present`: what the name means now; nullptr = nothing. `in_change`: see OpenFiles::InChange.
Status CheckUnchanged(const proto::Conditions& conditions, const Path& path, const Entry* present, bool in_change);
Status CheckAbsent(const proto::Conditions& conditions, const Path& path, const Entry* present);
// Both, of one path.
Status CheckConditions(const proto::Conditions& conditions, const Path& path, const Entry* present, bool in_change);

// A pending overwrite keeps the conditions it was created under, for the batch that swaps it in.
void KeepConditions(const proto::Conditions& conditions, record::Inode* inode);
proto::Conditions KeptConditions(const record::Inode& inode);
void ForgetConditions(record::Inode* inode);

}  // namespace picket

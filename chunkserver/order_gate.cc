#include "chunkserver/order_gate.h"

namespace picket::cs {
namespace {

OrderTokens Tokens(const proto::OrderHeader& h) {
  OrderTokens t;
  t.cluster = h.cluster();
  t.epoch = Epoch{h.epoch().number(), h.epoch().nonce()};
  t.server = ServerId(h.server());
  t.incarnation = Incarnation(h.incarnation());
  return t;
}

}  // namespace

Status OrderGate::Judge(const proto::OrderHeader& header) {
  const OrderTokens tokens = Tokens(header);
  PICKET_TRY(FenceOrder(self_, state_.mark().epoch, tokens));
  state_.SeeRevision(tokens.epoch, header.revision());
  return {};
}

Task<Status> OrderGate::Admit(proto::OrderHeader header) {
  const OrderTokens tokens = Tokens(header);
  PICKET_CO_TRY(FenceOrder(self_, state_.mark().epoch, tokens));
  if (tokens.epoch.number > state_.mark().epoch.number) PICKET_CO_TRY(co_await state_.RaiseEpoch(tokens.epoch));
  co_return Status();
}

}  // namespace picket::cs

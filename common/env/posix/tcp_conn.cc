#include "common/env/posix/tcp_conn.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <deque>
#include <optional>
#include <system_error>

#include "common/base/check.h"
#include "common/env/one_shot.h"
#include "common/env/posix/frame_codec.h"
#include "common/env/posix/posix_file.h"
#include "common/env/posix/send_queue.h"

namespace picket::posix {
namespace {

using boost::system::error_code;

// One connection's share of a turn, so that a fast reader on it does not starve the others.
constexpr size_t kBytesPerTurn = 4 << 20;

std::string ErrnoText(int error) { return std::generic_category().message(error); }

}  // namespace

struct TcpConn::State : std::enable_shared_from_this<State> {
  State(Env& e, Loop& l, asio::ip::tcp::socket s, Side side, std::string p)
      : env(e), loop(l), socket(std::move(s)), peer(std::move(p)),
        decoder([&e](size_t size) { return e.Allocate(size); }, side == Side::kAccepting) {}

  struct Drain {
    Drain(Env& e, size_t l) : limit(l), reached(e) {}
    const size_t limit;
    OneShot<> reached;
  };

  // -- Sending
  bool Send(Frame frame);
  void ScheduleFlush();
  enum class Then { kWaitForRoom, kGiveUp };
  void Flush(Then then);
  ssize_t SendBatch();
  void AwaitWritable();
  void WakeDrained();
  static Task<> Load(std::shared_ptr<State> self, uint64_t ticket, FileSlice slice);
  static Task<> AwaitDrained(std::shared_ptr<State> self, size_t limit);

  // -- Receiving
  static Task<Result<Frame>> Receive(std::shared_ptr<State> self);
  void StartRead();
  void OnRead(const error_code& ec, size_t size);

  void Close();
  // Ends the connection; the first reason stays.
  void Break(Code code, const std::string& why);

  Env& env;
  Loop& loop;
  asio::ip::tcp::socket socket;
  const std::string peer;
  std::optional<Error> error;

  SendQueue queue;
  bool flush_posted = false;
  bool awaiting_writable = false;
  std::deque<std::shared_ptr<Drain>> drains;

  FrameDecoder decoder;
  bool decodable = true;           // frames that have come are still handed out after a break
  OneShot<>* receiver = nullptr;   // the Receive that waits for bytes
};

// ---- Sending ---------------------------------------------------------------------------------------

bool TcpConn::State::Send(Frame frame) {
  PICKET_CHECK(frame.header.size() <= kMaxFrameHeader && frame.payload.size() <= kMaxFramePayload);
  if (error || loop.dead()) return false;
  if (frame.payload.size() == 0) frame.payload = Payload();
  if (const FileSlice* slice = frame.payload.file()) {
    const auto* file = dynamic_cast<const PosixFile*>(slice->file.get());
    if (file == nullptr || !file->Cached(slice->offset, slice->size)) {
      FileSlice copy = *slice;
      const uint64_t ticket = queue.Push(std::move(frame), /*loading=*/true);
      env.Spawn(Load(shared_from_this(), ticket, std::move(copy)));
      return true;
    }
  }
  queue.Push(std::move(frame), /*loading=*/false);
  ScheduleFlush();
  return true;
}

void TcpConn::State::ScheduleFlush() {
  if (flush_posted || awaiting_writable) return;
  flush_posted = true;
  loop.Post([self = shared_from_this()] {
    self->flush_posted = false;
    self->Flush(Then::kWaitForRoom);
  });
}

void TcpConn::State::Flush(Then then) {
  size_t left = kBytesPerTurn;
  while (!error && !queue.empty()) {
    const ssize_t n = SendBatch();
    if (n == 0) break;  // waits for Load
    if (n > 0) {
      queue.Consume(static_cast<size_t>(n));
      left -= std::min(left, static_cast<size_t>(n));
      if (left > 0 || then == Then::kGiveUp) continue;
      ScheduleFlush();
      break;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      if (then == Then::kWaitForRoom) AwaitWritable();
      break;
    }
    Break(Code::kConnectionLost, ErrnoText(errno));
  }
  WakeDrained();
}

// As send(2), or 0 when there is nothing to send yet.
ssize_t TcpConn::State::SendBatch() {
  std::array<iovec, SendQueue::kPiecesMax> pieces;
  const SendQueue::Batch batch = queue.Next(pieces);
  if (batch.file != nullptr) {
    const auto* file = static_cast<const PosixFile*>(batch.file->file.get());
    auto offset = static_cast<off_t>(batch.file->offset + batch.file_sent);
    const ssize_t n = ::sendfile(socket.native_handle(), file->fd(), &offset, batch.file->size - batch.file_sent);
    if (n == 0) Break(Code::kConnectionLost, "a file to send is shorter than its slice");
    return n;
  }
  if (batch.pieces == 0) return 0;
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = batch.pieces;
  return ::sendmsg(socket.native_handle(), &message, MSG_NOSIGNAL | (batch.file_follows ? MSG_MORE : 0));
}

void TcpConn::State::AwaitWritable() {
  if (awaiting_writable) return;
  awaiting_writable = true;
  socket.async_wait(asio::socket_base::wait_write, [self = shared_from_this()](const error_code& ec) {
    self->awaiting_writable = false;
    if (!ec && !self->loop.dead()) self->Flush(Then::kWaitForRoom);
  });
}

void TcpConn::State::WakeDrained() {
  std::erase_if(drains, [this](const std::shared_ptr<Drain>& d) {
    if (!error && queue.bytes() > d->limit) return false;
    d->reached.Set();
    return true;
  });
}

Task<> TcpConn::State::Load(std::shared_ptr<State> self, uint64_t ticket, FileSlice slice) {
  Buffer bytes = self->env.Allocate(slice.size);
  auto n = co_await slice.file->ReadAt(slice.offset, bytes);
  if (self->error) co_return;
  if (!n) {
    self->Break(Code::kConnectionLost, n.error().message);
  } else if (*n < slice.size) {
    self->Break(Code::kConnectionLost, "a file to send is shorter than its slice");
  } else {
    self->queue.Loaded(ticket, std::move(bytes));
    self->ScheduleFlush();
  }
}

Task<> TcpConn::State::AwaitDrained(std::shared_ptr<State> self, size_t limit) {
  if (self->error || self->queue.bytes() <= limit) co_return;
  auto drain = std::make_shared<Drain>(self->env, limit);
  self->drains.push_back(drain);
  co_await drain->reached.Wait();
}

// ---- Receiving -------------------------------------------------------------------------------------

Task<Result<Frame>> TcpConn::State::Receive(std::shared_ptr<State> self) {
  struct Registration {
    State* state;
    ~Registration() { state->receiver = nullptr; }
  };
  PICKET_CHECK(self->receiver == nullptr);
  for (;;) {
    if (self->decodable) {
      auto next = self->decoder.Next();
      if (!next) {
        self->decodable = false;
        self->error.reset();  // says more than how the connection ended
        self->Break(next.error().code, next.error().message);
      } else if (next->has_value()) {
        co_return std::move(**next);
      }
    }
    if (self->error) co_return Fail(*self->error);
    OneShot<> arrived(self->env);
    const Registration registration{self.get()};
    self->receiver = &arrived;
    self->StartRead();
    co_await arrived.Wait();
  }
}

void TcpConn::State::StartRead() {
  const auto spaces = decoder.Spaces();
  const std::array<asio::mutable_buffer, 2> buffers{asio::buffer(spaces[0].data(), spaces[0].size()),
                                                    asio::buffer(spaces[1].data(), spaces[1].size())};
  socket.async_read_some(buffers, [self = shared_from_this()](const error_code& ec, size_t size) {
    if (!self->loop.dead()) self->OnRead(ec, size);
  });
}

void TcpConn::State::OnRead(const error_code& ec, size_t size) {
  if (!ec) {
    decoder.Filled(size);
  } else {
    Break(Code::kConnectionLost, ec == asio::error::eof ? "closed by the peer" : ec.message());
  }
  if (receiver != nullptr) receiver->Set();
}

void TcpConn::State::Close() {
  if (!error && !loop.dead()) Flush(Then::kGiveUp);
  decodable = false;
  Break(Code::kConnectionLost, "closed on this side");
}

void TcpConn::State::Break(Code code, const std::string& why) {
  if (!error) error.emplace(code, "connection with " + peer + ": " + why);
  error_code ignored;
  socket.close(ignored);  // a pending read or wait ends, by its handler
  queue.Clear();
  WakeDrained();
}

// ---- The handle ------------------------------------------------------------------------------------

TcpConn::TcpConn(Env& env, Loop& loop, asio::ip::tcp::socket socket, Side side, std::string peer)
    : state_(std::make_shared<State>(env, loop, std::move(socket), side, std::move(peer))) {
  if (side == Side::kAccepting) return;
  state_->queue.PushPreface();
  state_->ScheduleFlush();  // together with the first frame, when that comes in the same turn
}

TcpConn::~TcpConn() { state_->Close(); }

bool TcpConn::Send(Frame frame) { return state_->Send(std::move(frame)); }
size_t TcpConn::QueuedBytes() const { return state_->queue.bytes(); }
Task<> TcpConn::Drained(size_t limit) { return State::AwaitDrained(state_, limit); }
Task<Result<Frame>> TcpConn::Recv() { return State::Receive(state_); }
void TcpConn::Close() { state_->Close(); }
std::string TcpConn::Peer() const { return state_->peer; }

}  // namespace picket::posix

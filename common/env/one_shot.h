// OneShot<T>: the one suspension primitive. A value is set once, by anybody on the executor, and
// taken by one waiter. Lives in the waiting coroutine's frame (or in an object that outlives it).
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/env/env.h"

namespace picket {

struct Unit {};

template <class T = Unit>
class OneShot final : WaiterHook {
 public:
  explicit OneShot(Env& env) : env_(env) {}
  OneShot(const OneShot&) = delete;
  OneShot& operator=(const OneShot&) = delete;
  ~OneShot() {
    if (handler_) env_.Unlink(this);
  }

  // The first value wins; later ones return false. The waiter resumes through the executor, never
  // inside this call.
  bool Set(T value = T()) {
    if (done_) return false;
    done_ = true;
    if (handler_) {
      env_.Unlink(this);
      auto handler = std::move(handler_);
      handler->Complete(std::move(value));
    } else {
      value_.emplace(std::move(value));
    }
    return true;
  }
  bool done() const { return done_; }

  // co_await one_shot.Wait(): the value. At most once.
  auto Wait() {
    return asio::async_initiate<const asio::deferred_t, void(T)>(
        [this](auto handler) {
          using H = std::decay_t<decltype(handler)>;
          if (value_) {
            T v = std::move(*value_);
            value_.reset();
            Impl<H>(std::move(handler), env_.executor()).Complete(std::move(v));
            return;
          }
          handler_ = std::make_unique<Impl<H>>(std::move(handler), env_.executor());
          env_.Link(this);
        },
        asio::deferred);
  }

 private:
  struct Handler {
    virtual ~Handler() = default;
    virtual void Complete(T value) = 0;
  };
  template <class H>
  struct Impl final : Handler {
    Impl(H h, Executor e) : handler(std::move(h)), executor(std::move(e)) {}
    void Complete(T value) override {
      auto ex = asio::get_associated_executor(handler, executor);
      asio::post(ex, [h = std::move(handler), v = std::move(value)]() mutable { std::move(h)(std::move(v)); });
    }
    H handler;
    Executor executor;
  };

  void Abandon() override { auto dying = std::move(handler_); }

  Env& env_;
  bool done_ = false;
  std::optional<T> value_;
  std::unique_ptr<Handler> handler_;
};

}  // namespace picket

// Shared ownership with the count inside the object: a C handle is the object's own address, and a host's finaliser may
// drop a count on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ckpt {

// Derive as `class T : public Counted<T>`. Starts with one count, which the first Ref adopts.
template <class T>
class Counted {
 public:
  Counted(const Counted &) = delete;
  Counted &operator=(const Counted &) = delete;
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // May delete *this.
  void drop() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<const T *>(this);
  }

 protected:
  Counted() noexcept = default;
  ~Counted() = default;

 private:
  mutable std::atomic<uint64_t> count_{1};
};

template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  static Ref adopt(T *object) noexcept { Ref r; r.object_ = object; return r; }  // takes over a count
  static Ref share(T *object) noexcept { if (object != nullptr) object->retain(); return adopt(object); }
  Ref(const Ref &other) noexcept : object_(other.object_) { if (object_ != nullptr) object_->retain(); }
  Ref(Ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref &operator=(Ref other) noexcept { std::swap(object_, other.object_); return *this; }
  ~Ref() { if (object_ != nullptr) object_->drop(); }

  T *get() const noexcept { return object_; }
  T *operator->() const noexcept { return object_; }
  T &operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T *leave() noexcept { return std::exchange(object_, nullptr); }  // hands the count to the caller

 private:
  T *object_ = nullptr;
};

}  // namespace ckpt

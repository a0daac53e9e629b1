// The double's device side, as kernels and the launcher see it: thread indices, barriers, collectives, how a kernel is registered.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

extern __thread uint3 threadIdx;  // set at every change of fiber
extern __thread uint3 blockIdx;
extern __thread uint3 blockDim;
extern __thread uint3 gridDim;
constexpr int warpSize = 32;

namespace cudasim {

unsigned lane();
void barrier();
unsigned barrier_count(bool predicate);  // a barrier that counts the threads with a true predicate
// The value of each lane, valid until the calling lane's next collective.
const uint64_t *warp_sync(unsigned mask, uint64_t value);
unsigned active_lanes();
// Ends the kernel with a sticky error.
[[noreturn]] void trap(cudaError_t error, const char *what);
void *dyn_shared();

// What nvcc's stubs know of a kernel.
struct Kernel {
  std::shared_ptr<void> (*pack)(void **arguments);
  void (*invoke)(const void *function, const void *packed);
  bool (*pointers_ok)(const void *packed);
};
void add_kernel(const void *function, Kernel kernel);
bool device_range(const void *data, size_t bytes);  // wholly inside one live allocation, device or pinned?

template <class T>
bool pointer_ok(const T &value) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
    return value == nullptr || device_range(reinterpret_cast<const void *>(value), 1);
  else
    return true;
}

template <class... P>
void register_kernel(void (*function)(P...)) {
  using Packed = std::tuple<std::remove_cv_t<P>...>;
  add_kernel(reinterpret_cast<const void *>(function),
             Kernel{[]([[maybe_unused]] void **a) {
                      return [&]<size_t... I>(std::index_sequence<I...>) -> std::shared_ptr<void> {
                        return std::make_shared<Packed>(*static_cast<std::remove_cv_t<P> *>(a[I])...);
                      }(std::index_sequence_for<P...>{});
                    },
                    [](const void *f, const void *packed) {
                      std::apply(reinterpret_cast<void (*)(P...)>(const_cast<void *>(f)), *static_cast<const Packed *>(packed));
                    },
                    [](const void *packed) {
                      return std::apply([](const auto &...value) { return (pointer_ok(value) && ...); },
                                        *static_cast<const Packed *>(packed));
                    }});
}

template <class T>
uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace cudasim

// The typed forms that the toolkit's header has under nvcc alone. More specialised than its T*.
template <class... P>
cudaError_t cudaLaunchKernel(void (*f)(P...), dim3 grid, dim3 block, void **arguments, size_t shared = 0, cudaStream_t stream = nullptr) {
  cudasim::register_kernel(f);
  return ::cudaLaunchKernel(reinterpret_cast<const void *>(f), grid, block, arguments, shared, stream);
}
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*f)(P...), cudaFuncAttribute attribute, int value) {
  cudasim::register_kernel(f);
  return ::cudaFuncSetAttribute(reinterpret_cast<const void *>(f), attribute, value);
}
template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, void (*f)(P...)) {
  cudasim::register_kernel(f);
  return ::cudaFuncGetAttributes(out, reinterpret_cast<const void *>(f));
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void (*f)(P...), int threads, size_t shared) {
  cudasim::register_kernel(f);
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(out, reinterpret_cast<const void *>(f), threads, shared);
}

// Atomics: the compiler's for integers, a loop of compare-exchange for the rest. Relaxed, as on the device.
#pragma once

#include <type_traits>

namespace cudasim {
template <class T, class F>
T update(T *p, F next) {
  T old;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  for (T wanted = next(old); !__atomic_compare_exchange(p, &old, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) wanted = next(old);
  return old;
}
template <class T>
using Same = std::type_identity_t<T>;
}  // namespace cudasim

template <class T>
T atomicAdd(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return static_cast<T>(x + v); });
}
template <class T>
T atomicSub(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return static_cast<T>(x - v); });
}
template <class T>
T atomicMax(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return x < v ? v : x; });
}
template <class T>
T atomicMin(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return v < x ? v : x; });
}
template <class T>
T atomicAnd(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return static_cast<T>(x & v); });
}
template <class T>
T atomicOr(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return static_cast<T>(x | v); });
}
template <class T>
T atomicXor(T *p, cudasim::Same<T> v) {
  return cudasim::update(p, [v](T x) { return static_cast<T>(x ^ v); });
}
template <class T>
T atomicExch(T *p, cudasim::Same<T> v) {
  T old;
  __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
  return old;
}
template <class T>
T atomicCAS(T *p, cudasim::Same<T> expected, cudasim::Same<T> wanted) {
  __atomic_compare_exchange(p, &expected, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
inline unsigned atomicInc(unsigned *p, unsigned last) {
  return cudasim::update(p, [last](unsigned x) { return x >= last ? 0u : x + 1; });
}

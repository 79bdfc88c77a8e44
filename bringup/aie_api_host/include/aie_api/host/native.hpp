// Native vector types and the few intrinsics that public kernels use beside the API.
// Sources: Peano aiev2 headers; mlir-aie aie_kernels (reduce_add.cc, reduce_max.cc, relu.cc, passThrough.cc,
// cascade_mm.cc).
#pragma once

#include "ops_arith.hpp"

#define AIE_HOST_VECTOR(lanes, type)                                                 \
  using v##lanes##type = aie::vector<type, lanes>;                                   \
  inline v##lanes##type undef_v##lanes##type() { return {}; }                        \
  inline v##lanes##type broadcast_to_v##lanes##type(type value) {                    \
    return aie::broadcast<type, lanes>(value);                                       \
  }
#define AIE_HOST_VECTORS(type, a, b, c, d) \
  AIE_HOST_VECTOR(a, type) AIE_HOST_VECTOR(b, type) AIE_HOST_VECTOR(c, type) AIE_HOST_VECTOR(d, type)
AIE_HOST_VECTORS(int8, 16, 32, 64, 128)
AIE_HOST_VECTORS(uint8, 16, 32, 64, 128)
AIE_HOST_VECTORS(int16, 8, 16, 32, 64)
AIE_HOST_VECTORS(uint16, 8, 16, 32, 64)
AIE_HOST_VECTORS(bfloat16, 8, 16, 32, 64)
AIE_HOST_VECTORS(int32, 4, 8, 16, 32)
AIE_HOST_VECTORS(uint32, 4, 8, 16, 32)
AIE_HOST_VECTORS(float, 4, 8, 16, 32)
#undef AIE_HOST_VECTORS
#undef AIE_HOST_VECTOR

using v8acc32 = aie::accum<acc32, 8>;
using v16acc32 = aie::accum<acc32, 16>;
using v32acc32 = aie::accum<acc32, 32>;
using v4acc64 = aie::accum<acc64, 4>;
using v8acc64 = aie::accum<acc64, 8>;
using v16acc64 = aie::accum<acc64, 16>;
using v8accfloat = aie::accum<accfloat, 8>;
using v16accfloat = aie::accum<accfloat, 16>;
using v32accfloat = aie::accum<accfloat, 32>;

inline v64int8 broadcast_zero_s8() { return aie::zeros<int8, 64>(); }
inline v32int16 broadcast_zero_s16() { return aie::zeros<int16, 32>(); }
inline v16int32 broadcast_zero_s32() { return aie::zeros<int32, 16>(); }
inline v32bfloat16 broadcast_zero_bfloat16() { return aie::zeros<bfloat16, 32>(); }

template <aie::Vector V>
auto ext_elem(const V& v, unsigned index) {
  return v.get(index);
}
template <aie::Vector V>
auto extract_elem(const V& v, unsigned index) {
  return v.get(index);
}
template <aie::Vector V>
V upd_elem(V v, unsigned index, aie::element_t<V> value) {
  v.set(value, index);
  return v;
}
template <aie::Vector V>
V insert(V v, unsigned index, aie::element_t<V> value) {
  v.set(value, index);
  return v;
}

template <aie::Vector V, unsigned N>
V insert(V v, unsigned index, const aie::vector<aie::element_t<V>, N>& part) {
  v.insert(index, part);
  return v;
}

/// Bytes n.. of the concatenation of low and high, as many as one vector has.
template <aie::Vector V>
V shift_bytes(const V& low, const V& high, unsigned n) {
  aie_host::require(n <= V::bytes(), "shift_bytes: amount above the vector size");
  unsigned char both[2 * V::bytes()];
  std::memcpy(both, low.data(), V::bytes());
  std::memcpy(both + V::bytes(), high.data(), V::bytes());
  V out;
  std::memcpy(static_cast<void*>(out.data()), both + n, V::bytes());
  return out;
}

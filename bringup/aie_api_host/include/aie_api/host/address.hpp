// Two- and three-dimensional pointer steps of the address generators.
// Source: Peano aiev2 headers (dims_2d_t, dims_2d_from_steps, add_2d_byte, add_2d_ptr and the 3d forms).
#pragma once

#include "types.hpp"

using addr_t = int;

struct dims_2d_t {
  unsigned num1;
  int inc1;
  int inc2;
  addr_t count1;
  dims_2d_t(unsigned size1, int inc1_, int inc2_, addr_t count1_ = 0)
      : num1(size1), inc1(inc1_), inc2(inc2_), count1(count1_) {}
};

inline dims_2d_t dims_2d_from_steps(unsigned size1, int step1, int step2, addr_t count1 = 0) {
  return {size1 - 1, step1, -(static_cast<int>(size1 - 1) * step1) + step2, count1};
}

namespace aie_host {

/// The step that a counter asks for: `inner` until it reaches `limit`, then `outer` and the counter starts over.
inline bool counts_on(addr_t& count, int limit) {
  const bool inside = count < limit;
  count = inside ? count + 1 : 0;
  return inside;
}

template <typename T>
T* step_bytes(T* pointer, std::ptrdiff_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + static_cast<std::uintptr_t>(bytes));
}

}  // namespace aie_host

template <typename T>
T* add_2d_byte(T* a, int off, int size1, addr_t& count1, int inc1) {
  return aie_host::step_bytes(a, aie_host::counts_on(count1, size1) ? inc1 : off);
}
template <typename T>
T* add_2d_byte(T* a, dims_2d_t& dims) {
  return add_2d_byte(a, dims.inc2, static_cast<int>(dims.num1), dims.count1, dims.inc1);
}
template <typename T>
T* add_2d_ptr(T* a, int off, int size1, addr_t& count1, int inc1) {
  return add_2d_byte(a, off * static_cast<int>(sizeof(T)), size1, count1, inc1 * static_cast<int>(sizeof(T)));
}
template <typename T>
T* add_2d_ptr(T* a, dims_2d_t& dims) {
  return add_2d_ptr(a, dims.inc2, static_cast<int>(dims.num1), dims.count1, dims.inc1);
}

template <typename T>
T* add_3d_byte(T* a, int off, int size1, addr_t& count1, int inc1, int size2, addr_t& count2, int inc2) {
  if (aie_host::counts_on(count1, size1)) return aie_host::step_bytes(a, inc1);
  return aie_host::step_bytes(a, aie_host::counts_on(count2, size2) ? inc2 : off);
}
template <typename T>
T* add_3d_ptr(T* a, int off, int size1, addr_t& count1, int inc1, int size2, addr_t& count2, int inc2) {
  const int bytes = static_cast<int>(sizeof(T));
  return add_3d_byte(a, off * bytes, size1, count1, inc1 * bytes, size2, count2, inc2 * bytes);
}

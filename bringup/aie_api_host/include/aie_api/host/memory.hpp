// Aligned and unaligned loads and stores; an access that the API calls undefined ends the run.
// Sources: aie_api aie.hpp (group_memory), detail/ld_st.hpp (vector_ldst_align), aie_doc.hpp ("Required pointer
// alignment for a given memory access size").
#pragma once

#include "vector.hpp"

namespace aie {

inline constexpr unsigned vector_decl_align = AIE_VECTOR_LDST_ALIGN;

template <ElemBaseType T, unsigned N>
inline constexpr unsigned vector_ldst_align_v = detail::vector_alignment(sizeof(T) * N);

namespace detail {

template <typename T>
void check_alignment(const T* pointer, std::size_t bytes, const char* operation) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % bytes == 0) [[likely]]
    return;
  char text[160];
  std::snprintf(text, sizeof text, "%s: pointer is %zu bytes off the required alignment of %zu bytes", operation,
                static_cast<std::size_t>(address % bytes), bytes);
  aie_host::fail(text);
}

inline bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace detail

template <unsigned N, aie_dm_resource = aie_dm_resource::none, ElemBaseType T>
vector<T, N> load_v(const T* pointer) {
  detail::check_alignment(pointer, vector_ldst_align_v<T, N>, "load_v");
  vector<T, N> out;
  std::memcpy(static_cast<void*>(out.data()), pointer, sizeof(T) * N);
  return out;
}

template <aie_dm_resource R = aie_dm_resource::none, ElemBaseType T>
vector<T> load_v(const T* pointer) {
  return load_v<native_vector_length_v<T>, R>(pointer);
}

template <aie_dm_resource = aie_dm_resource::none, ElemBaseType T, unsigned N>
T* store_v(T* pointer, const vector<T, N>& v) {
  detail::check_alignment(pointer, vector_ldst_align_v<T, N>, "store_v");
  std::memcpy(static_cast<void*>(pointer), v.data(), sizeof(T) * N);
  return pointer;
}

template <unsigned N, aie_dm_resource = aie_dm_resource::none, ElemBaseType T>
vector<T, N> load_unaligned_v(const T* pointer, unsigned aligned_elems = 1) {
  aie_host::require(detail::is_power_of_two(aligned_elems), "load_unaligned_v: aligned_elems is not a power of two");
  detail::check_alignment(pointer, aligned_elems * sizeof(T), "load_unaligned_v");
  vector<T, N> out;
  std::memcpy(static_cast<void*>(out.data()), pointer, sizeof(T) * N);
  return out;
}

template <aie_dm_resource R = aie_dm_resource::none, ElemBaseType T>
vector<T> load_unaligned_v(const T* pointer, unsigned aligned_elems = 1) {
  return load_unaligned_v<native_vector_length_v<T>, R>(pointer, aligned_elems);
}

template <unsigned N, aie_dm_resource = aie_dm_resource::none, ElemBaseType T>
T* store_unaligned_v(T* pointer, const vector<T, N>& v, unsigned aligned_elems = 1) {
  aie_host::require(detail::is_power_of_two(aligned_elems), "store_unaligned_v: aligned_elems is not a power of two");
  detail::check_alignment(pointer, aligned_elems * sizeof(T), "store_unaligned_v");
  std::memcpy(static_cast<void*>(pointer), v.data(), sizeof(T) * N);
  return pointer;
}

template <unsigned N, aie_dm_resource R = aie_dm_resource::none, ElemBaseType T>
vector<T, N> load_floor_bytes_v(const T* pointer, std::size_t bytes) {
  aie_host::require(detail::is_power_of_two(bytes), "load_floor_bytes_v: bytes is not a power of two");
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return load_v<N, R>(reinterpret_cast<const T*>(address - address % bytes));
}

template <unsigned N, aie_dm_resource R = aie_dm_resource::none, ElemBaseType T>
vector<T, N> load_floor_v(const T* pointer, unsigned n = N) {
  return load_floor_bytes_v<N, R>(pointer, n * sizeof(T));
}

template <ElemBaseType T, unsigned N>
template <aie_dm_resource>
void vector<T, N>::load(const T* pointer) {
  *this = load_v<N>(pointer);
}
template <ElemBaseType T, unsigned N>
template <aie_dm_resource>
void vector<T, N>::store(T* pointer) const {
  store_v(pointer, *this);
}
template <ElemBaseType T, unsigned N>
template <aie_dm_resource>
void vector<T, N>::load_unaligned(const T* pointer, unsigned aligned_elems) {
  *this = load_unaligned_v<N>(pointer, aligned_elems);
}
template <ElemBaseType T, unsigned N>
template <aie_dm_resource>
void vector<T, N>::store_unaligned(T* pointer, unsigned aligned_elems) const {
  store_unaligned_v(pointer, *this, aligned_elems);
}

}  // namespace aie

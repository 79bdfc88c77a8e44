// Vector iterators: basic, restrict, unaligned and circular.
// Sources: aie_api iterator.hpp, aie_doc.hpp ("AIE API Iterator Types").
#pragma once

#include "memory.hpp"

namespace aie {
namespace detail {

template <typename T, unsigned N, bool Aligned>
class vector_ref {
 public:
  explicit vector_ref(T* pointer) : pointer_(pointer) {}
  using elem = std::remove_const_t<T>;

  operator vector<elem, N>() const {
    if constexpr (Aligned)
      return load_v<N>(pointer_);
    else
      return load_unaligned_v<N>(pointer_);
  }
  const vector_ref& operator=(const vector<elem, N>& v) const
    requires(!std::is_const_v<T>)
  {
    if constexpr (Aligned)
      store_v(pointer_, v);
    else
      store_unaligned_v(pointer_, v);
    return *this;
  }
  const vector_ref& operator=(const vector_ref& other) const
    requires(!std::is_const_v<T>)
  {
    return *this = static_cast<vector<elem, N>>(other);
  }

 private:
  T* pointer_;
};

/// Steps over vectors of N elements; with a `count` above zero it starts over after that many vectors.
template <typename T, unsigned N, bool Aligned = true>
class vector_iterator {
 public:
  using elem = std::remove_const_t<T>;
  using value_type = vector<elem, N>;
  using reference = vector_ref<T, N, Aligned>;
  using difference_type = std::ptrdiff_t;

  explicit vector_iterator(T* base, std::ptrdiff_t count = 0, std::ptrdiff_t index = 0)
      : base_(base), count_(count), index_(index) {}

  reference operator*() const { return reference(base_ + index_ * std::ptrdiff_t{N}); }
  reference operator[](std::ptrdiff_t offset) const { return *(*this + offset); }
  vector_iterator& operator+=(std::ptrdiff_t offset) {
    index_ += offset;
    if (count_ > 0) index_ = ((index_ % count_) + count_) % count_;
    return *this;
  }
  vector_iterator& operator-=(std::ptrdiff_t offset) { return *this += -offset; }
  vector_iterator operator+(std::ptrdiff_t offset) const { return vector_iterator(*this) += offset; }
  vector_iterator operator-(std::ptrdiff_t offset) const { return vector_iterator(*this) -= offset; }
  vector_iterator& operator++() { return *this += 1; }
  vector_iterator& operator--() { return *this -= 1; }
  vector_iterator operator++(int) {
    vector_iterator before = *this;
    ++*this;
    return before;
  }
  vector_iterator operator--(int) {
    vector_iterator before = *this;
    --*this;
    return before;
  }
  bool operator==(const vector_iterator& other) const {
    return base_ + index_ * std::ptrdiff_t{N} == other.base_ + other.index_ * std::ptrdiff_t{N};
  }

 private:
  T* base_;
  std::ptrdiff_t count_;
  std::ptrdiff_t index_;
};

}  // namespace detail

#define AIE_HOST_ITERATORS(begin_name, cbegin_name, aligned)                              \
  template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>              \
  auto begin_name(T* base) {                                                              \
    return detail::vector_iterator<T, N, aligned>(base);                                  \
  }                                                                                       \
  template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>              \
  auto cbegin_name(const T* base) {                                                       \
    return detail::vector_iterator<const T, N, aligned>(base);                            \
  }
AIE_HOST_ITERATORS(begin_vector, cbegin_vector, true)
AIE_HOST_ITERATORS(begin_restrict_vector, cbegin_restrict_vector, true)
AIE_HOST_ITERATORS(begin_unaligned_vector, cbegin_unaligned_vector, false)
#undef AIE_HOST_ITERATORS

/// A buffer of `elems` elements, read or written round and round.
template <unsigned N, std::size_t Elems, aie_dm_resource = aie_dm_resource::none, typename T>
auto begin_vector_circular(T* base) {
  static_assert(Elems % N == 0);
  return detail::vector_iterator<T, N>(base, Elems / N);
}
template <unsigned N, std::size_t Elems, aie_dm_resource = aie_dm_resource::none, typename T>
auto cbegin_vector_circular(const T* base) {
  static_assert(Elems % N == 0);
  return detail::vector_iterator<const T, N>(base, Elems / N);
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto begin_vector_circular(T* base, std::size_t elems) {
  return detail::vector_iterator<T, N>(base, static_cast<std::ptrdiff_t>(elems / N));
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto cbegin_vector_circular(const T* base, std::size_t elems) {
  return detail::vector_iterator<const T, N>(base, static_cast<std::ptrdiff_t>(elems / N));
}

}  // namespace aie

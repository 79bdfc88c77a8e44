// Vector iterators: basic, restrict, unaligned and circular; references to vectors in memory.
// Sources: aie_api iterator.hpp, vector_ref in aie_types.hpp, aie_doc.hpp ("AIE API Iterator Types").
#pragma once

#include "memory.hpp"
#include "ops_compare.hpp"
#include "ops_mul.hpp"
#include "ops_reshape.hpp"

namespace aie {
namespace detail {

template <bool Aligned, typename T, unsigned N>
vector<T, N> load_as(const T* pointer) {
  if constexpr (Aligned)
    return load_v<N>(pointer);
  else
    return load_unaligned_v<N>(pointer);
}

/// What an iterator points at: the vector, read when the iterator is dereferenced, and the place to write to.
template <typename T, unsigned N, bool Aligned>
class basic_vector_ref : public vector<std::remove_const_t<T>, N> {
 public:
  using elem = std::remove_const_t<T>;
  using vector_type = vector<elem, N>;

  explicit basic_vector_ref(T* pointer) : vector_type(load_as<Aligned, elem, N>(pointer)), pointer_(pointer) {}
  basic_vector_ref(const basic_vector_ref&) = default;

  const basic_vector_ref& operator=(const vector_type& v) const
    requires(!std::is_const_v<T>)
  {
    if constexpr (Aligned)
      store_v(pointer_, v);
    else
      store_unaligned_v(pointer_, v);
    return *this;
  }
  const basic_vector_ref& operator=(const basic_vector_ref& other) const
    requires(!std::is_const_v<T>)
  {
    return *this = static_cast<const vector_type&>(other);
  }

 private:
  T* pointer_;
};

template <typename T>
inline constexpr bool is_ref_v = false;
template <typename T, unsigned N, bool Aligned>
inline constexpr bool is_ref_v<basic_vector_ref<T, N, Aligned>> = true;

template <typename T>
decltype(auto) plain(const T& operand) {
  if constexpr (is_ref_v<T>)
    return static_cast<const typename T::vector_type&>(operand);
  else
    return (operand);
}

/// Steps over vectors of N elements; with a `count` above zero it starts over after that many vectors.
template <typename T, unsigned N, bool Aligned = true>
class basic_vector_iterator {
 public:
  using value_type = vector<std::remove_const_t<T>, N>;
  using reference = basic_vector_ref<T, N, Aligned>;
  using difference_type = std::ptrdiff_t;

  explicit basic_vector_iterator(T* base, std::ptrdiff_t count = 0) : base_(base), count_(count) {}

  reference operator*() const { return reference(base_ + index_ * std::ptrdiff_t{N}); }
  reference operator[](std::ptrdiff_t offset) const { return *(*this + offset); }
  basic_vector_iterator& operator+=(std::ptrdiff_t offset) {
    index_ += offset;
    if (count_ > 0) index_ = ((index_ % count_) + count_) % count_;
    return *this;
  }
  basic_vector_iterator& operator-=(std::ptrdiff_t offset) { return *this += -offset; }
  basic_vector_iterator operator+(std::ptrdiff_t offset) const { return basic_vector_iterator(*this) += offset; }
  basic_vector_iterator operator-(std::ptrdiff_t offset) const { return basic_vector_iterator(*this) -= offset; }
  basic_vector_iterator& operator++() { return *this += 1; }
  basic_vector_iterator& operator--() { return *this -= 1; }
  basic_vector_iterator operator++(int) {
    basic_vector_iterator before = *this;
    ++*this;
    return before;
  }
  basic_vector_iterator operator--(int) {
    basic_vector_iterator before = *this;
    --*this;
    return before;
  }
  bool operator==(const basic_vector_iterator& other) const {
    return base_ + index_ * std::ptrdiff_t{N} == other.base_ + other.index_ * std::ptrdiff_t{N};
  }

 private:
  T* base_;
  std::ptrdiff_t count_;
  std::ptrdiff_t index_ = 0;
};

}  // namespace detail

template <typename T, unsigned N, aie_dm_resource = aie_dm_resource::none>
using vector_ref = detail::basic_vector_ref<T, N, true>;
template <typename T, unsigned N, aie_dm_resource = aie_dm_resource::none>
using unaligned_vector_ref = detail::basic_vector_ref<T, N, false>;

#define AIE_HOST_ITERATORS(name, aligned)                                    \
  template <typename T, unsigned N, aie_dm_resource = aie_dm_resource::none> \
  using name##_iterator = detail::basic_vector_iterator<T, N, aligned>;      \
  template <typename T, unsigned N, aie_dm_resource = aie_dm_resource::none> \
  using const_##name##_iterator = detail::basic_vector_iterator<const T, N, aligned>; \
  template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T> \
  auto begin_##name(T* base) {                                               \
    return detail::basic_vector_iterator<T, N, aligned>(base);               \
  }                                                                          \
  template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T> \
  auto cbegin_##name(const T* base) {                                        \
    return detail::basic_vector_iterator<const T, N, aligned>(base);         \
  }
AIE_HOST_ITERATORS(vector, true)
AIE_HOST_ITERATORS(restrict_vector, true)
AIE_HOST_ITERATORS(unaligned_vector, false)
#undef AIE_HOST_ITERATORS

/// A buffer of `elems` elements, read or written round and round.
template <unsigned N, std::size_t Elems, aie_dm_resource = aie_dm_resource::none, typename T>
auto begin_vector_circular(T* base) {
  static_assert(Elems % N == 0);
  return detail::basic_vector_iterator<T, N>(base, Elems / N);
}
template <unsigned N, std::size_t Elems, aie_dm_resource = aie_dm_resource::none, typename T>
auto cbegin_vector_circular(const T* base) {
  static_assert(Elems % N == 0);
  return detail::basic_vector_iterator<const T, N>(base, Elems / N);
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto begin_vector_circular(T* base, std::size_t elems) {
  return detail::basic_vector_iterator<T, N>(base, static_cast<std::ptrdiff_t>(elems / N));
}
template <unsigned N, aie_dm_resource = aie_dm_resource::none, typename T>
auto cbegin_vector_circular(const T* base, std::size_t elems) {
  return detail::basic_vector_iterator<const T, N>(base, static_cast<std::ptrdiff_t>(elems / N));
}

// Operations on dereferenced iterators: on the vectors.
#define AIE_HOST_ON_REFS(name)                          \
  template <typename... Args>                           \
    requires(detail::is_ref_v<Args> || ...)             \
  auto name(const Args&... args) {                      \
    return name(detail::plain(args)...);                \
  }
AIE_HOST_ON_REFS(add)
AIE_HOST_ON_REFS(sub)
AIE_HOST_ON_REFS(max)
AIE_HOST_ON_REFS(min)
AIE_HOST_ON_REFS(abs)
AIE_HOST_ON_REFS(neg)
AIE_HOST_ON_REFS(mac)
AIE_HOST_ON_REFS(msc)
AIE_HOST_ON_REFS(lt)
AIE_HOST_ON_REFS(le)
AIE_HOST_ON_REFS(gt)
AIE_HOST_ON_REFS(ge)
AIE_HOST_ON_REFS(eq)
AIE_HOST_ON_REFS(neq)
AIE_HOST_ON_REFS(select)
AIE_HOST_ON_REFS(bit_and)
AIE_HOST_ON_REFS(bit_or)
AIE_HOST_ON_REFS(bit_xor)
AIE_HOST_ON_REFS(bit_not)
AIE_HOST_ON_REFS(upshift)
AIE_HOST_ON_REFS(downshift)
AIE_HOST_ON_REFS(concat)
AIE_HOST_ON_REFS(reduce_add)
AIE_HOST_ON_REFS(reduce_max)
AIE_HOST_ON_REFS(reduce_min)
AIE_HOST_ON_REFS(filter_even)
AIE_HOST_ON_REFS(filter_odd)
AIE_HOST_ON_REFS(interleave_zip)
AIE_HOST_ON_REFS(interleave_unzip)
AIE_HOST_ON_REFS(transpose)
#undef AIE_HOST_ON_REFS

template <typename Tag = accauto, typename A, typename B>
  requires(detail::is_ref_v<A> || detail::is_ref_v<B>)
auto mul(const A& a, const B& b) {
  return mul<Tag>(detail::plain(a), detail::plain(b));
}
template <typename Tag = accauto, typename A, typename B>
  requires(detail::is_ref_v<A> || detail::is_ref_v<B>)
auto negmul(const A& a, const B& b) {
  return negmul<Tag>(detail::plain(a), detail::plain(b));
}

}  // namespace aie

// Moving lanes: concat, shuffles, interleave, filters, transpose.
// Source: aie_api aie.hpp (group_reshape), detail/aie2/interleave.hpp.
#pragma once

#include "accum.hpp"

namespace aie {

template <Vector V, Vector... Rest>
  requires(std::is_same_v<V, Rest> && ...)
auto concat(const V& first, const Rest&... rest) {
  vector<element_t<V>, V::size() * (1 + sizeof...(Rest))> out;
  unsigned index = 0;
  out.insert(index++, first);
  (out.insert(index++, rest), ...);
  return out;
}
template <Accum Acc, Accum... Rest>
  requires(std::is_same_v<Acc, Rest> && ...)
auto concat(const Acc& first, const Rest&... rest) {
  accum<typename Acc::value_type, Acc::size() * (1 + sizeof...(Rest))> out;
  unsigned index = 0;
  out.insert(index++, first);
  (out.insert(index++, rest), ...);
  return out;
}
template <typename T>
  requires(std::tuple_size_v<T> > 1)
auto concat(const T& parts) {
  return std::apply([](const auto&... part) { return concat(part...); }, parts);
}

template <ElemBaseType D, Vector V>
auto vector_cast(const V& v) {
  return v.template cast_to<D>();
}
template <Vector V>
auto unpack(const V& v) {
  return v.unpack();
}
template <Vector V>
auto pack(const V& v) {
  return v.pack();
}

namespace detail {

/// out[i] = source(i), or undefined where source(i) is negative.
template <typename V, typename F>
V gather(const V& v, F source) {
  V out;
  for (unsigned i = 0; i < V::size(); ++i) {
    const int from = source(static_cast<int>(i));
    if (from >= 0 && from < static_cast<int>(V::size())) out.data()[i] = v.data()[from];
  }
  return out;
}

inline int checked_amount(unsigned n, unsigned size) {
  aie_host::require(n <= size, "shuffle: amount above the vector size");
  return static_cast<int>(n);
}

}  // namespace detail

/// out[i + n] = v[i]; the first n lanes are undefined.
template <Vector V>
V shuffle_up(const V& v, unsigned n) {
  const int by = detail::checked_amount(n, V::size());
  return detail::gather(v, [by](int i) { return i - by; });
}
/// out[i] = v[i + n]; the last n lanes are undefined.
template <Vector V>
V shuffle_down(const V& v, unsigned n) {
  const int by = detail::checked_amount(n, V::size());
  return detail::gather(v, [by](int i) { return i + by; });
}
template <Vector V>
V shuffle_up_rotate(const V& v, unsigned n) {
  const int size = V::size(), by = detail::checked_amount(n, V::size());
  return detail::gather(v, [=](int i) { return (i - by + size) % size; });
}
template <Vector V>
V shuffle_down_rotate(const V& v, unsigned n) {
  const int size = V::size(), by = detail::checked_amount(n, V::size());
  return detail::gather(v, [=](int i) { return (i + by) % size; });
}
/// The lanes that come in are the last n lanes of `fill`.
template <Vector V>
V shuffle_up_fill(const V& v, const V& fill, unsigned n) {
  V out = shuffle_up(v, n);
  for (unsigned i = 0; i < n; ++i) out.data()[i] = fill.data()[V::size() - n + i];
  return out;
}
/// The lanes that come in are the first n lanes of `fill`.
template <Vector V>
V shuffle_down_fill(const V& v, const V& fill, unsigned n) {
  V out = shuffle_down(v, n);
  for (unsigned i = 0; i < n; ++i) out.data()[V::size() - n + i] = fill.data()[i];
  return out;
}
/// The lanes that come in repeat the first (up) or last (down) lane of v.
template <Vector V>
V shuffle_up_replicate(const V& v, unsigned n) {
  const int by = detail::checked_amount(n, V::size());
  return detail::gather(v, [by](int i) { return i < by ? 0 : i - by; });
}
template <Vector V>
V shuffle_down_replicate(const V& v, unsigned n) {
  const int last = V::size() - 1, by = detail::checked_amount(n, V::size());
  return detail::gather(v, [=](int i) { return i + by > last ? last : i + by; });
}
template <Vector V>
V reverse(const V& v) {
  return detail::gather(v, [](int i) { return static_cast<int>(V::size()) - 1 - i; });
}

namespace detail {

inline void check_step(unsigned step, unsigned size) {
  aie_host::require(step != 0 && (step & (step - 1)) == 0 && step <= size, "step is not a power of two in range");
}

}  // namespace detail

/// Blocks of `step` lanes taken from v and w in turn; the two results together hold the sequence.
template <Vector V>
std::pair<V, V> interleave_zip(const V& v, const V& w, unsigned step) {
  detail::check_step(step, V::size());
  std::pair<V, V> out;
  for (unsigned i = 0; i < 2 * V::size(); ++i) {
    const unsigned block = i / step, from = (block / 2) * step + i % step;
    V& target = i < V::size() ? out.first : out.second;
    target.data()[i % V::size()] = (block % 2 ? w : v).data()[from];
  }
  return out;
}
/// The inverse of interleave_zip.
template <Vector V>
std::pair<V, V> interleave_unzip(const V& v, const V& w, unsigned step) {
  detail::check_step(step, V::size());
  std::pair<V, V> out;
  for (unsigned i = 0; i < 2 * V::size(); ++i) {
    const unsigned block = i / step, to = (block / 2) * step + i % step;
    (block % 2 ? out.second : out.first).data()[to] = (i < V::size() ? v : w).data()[i % V::size()];
  }
  return out;
}

namespace detail {

template <unsigned Parity, typename V>
auto filter(const V& v, unsigned step) {
  check_step(step, V::size() / 2);
  vector<element_t<V>, V::size() / 2> out;
  for (unsigned i = 0; i < out.size(); ++i) out.data()[i] = v.data()[(2 * (i / step) + Parity) * step + i % step];
  return out;
}

}  // namespace detail

/// Blocks 0, 2, 4, ... (filter_odd: 1, 3, 5, ...) of `step` lanes: half as many lanes.
template <Vector V>
auto filter_even(const V& v, unsigned step = 1) {
  return detail::filter<0>(v, step);
}
template <Vector V>
auto filter_odd(const V& v, unsigned step = 1) {
  return detail::filter<1>(v, step);
}

/// v holds `rows` x `cols` row-major; the result holds `cols` x `rows` row-major.
template <Vector V>
V transpose(const V& v, unsigned rows, unsigned cols) {
  aie_host::require(rows * cols == V::size(), "transpose: rows x cols differs from the vector size");
  V out;
  for (unsigned r = 0; r < rows; ++r)
    for (unsigned c = 0; c < cols; ++c) out.data()[c * rows + r] = v.data()[r * cols + c];
  return out;
}

}  // namespace aie

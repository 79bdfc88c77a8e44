// Comparison, selection and reductions.
// Source: aie_api aie.hpp (group_compare, group_reduce).
#pragma once

#include "mask.hpp"
#include "ops_arith.hpp"

namespace aie {
namespace detail {

template <typename A, typename B, typename F>
auto compare(const A& a, const B& b, F f) {
  mask<pair_vector<A, B>::type::size()> out;
  for (unsigned i = 0; i < out.size(); ++i)
    if (f(lane(a, i), lane(b, i))) out.set(i);
  return out;
}

}  // namespace detail

#define AIE_HOST_COMPARE(name, op)                                     \
  template <typename A, typename B>                                    \
    requires MatchingPair<A, B>                                        \
  auto name(const A& a, const B& b) {                                  \
    return detail::compare(a, b, [](auto x, auto y) { return x op y; }); \
  }
AIE_HOST_COMPARE(lt, <)
AIE_HOST_COMPARE(le, <=)
AIE_HOST_COMPARE(gt, >)
AIE_HOST_COMPARE(ge, >=)
AIE_HOST_COMPARE(eq, ==)
AIE_HOST_COMPARE(neq, !=)
#undef AIE_HOST_COMPARE

/// Whether all lanes are equal; whether some lane differs.
template <typename A, typename B>
  requires MatchingPair<A, B>
bool equal(const A& a, const B& b) {
  return eq(a, b).full();
}
template <typename A, typename B>
  requires MatchingPair<A, B>
bool not_equal(const A& a, const B& b) {
  return !eq(a, b).full();
}

/// a where the mask is clear, b where it is set.
template <typename A, typename B, unsigned N>
  requires(detail::is_vector_or_elem_v<A> && detail::is_vector_or_elem_v<B> &&
           std::is_same_v<element_t<A>, element_t<B>>)
auto select(const A& a, const B& b, const mask<N>& m) {
  vector<element_t<A>, N> out;
  for (unsigned i = 0; i < N; ++i) out.data()[i] = m.test(i) ? detail::lane(b, i) : detail::lane(a, i);
  return out;
}

/// Sum of all lanes, wrapping in the element type.
template <Vector V>
element_t<V> reduce_add(const V& v) {
  element_t<V> total = v.data()[0];
  for (unsigned i = 1; i < V::size(); ++i) total = detail::wrap_add<element_t<V>>(total, v.data()[i]);
  return total;
}
/// Lane k is the sum of vector k (up to 4 vectors); the other lanes are undefined.
template <Vector V, Vector... Rest>
  requires((std::is_same_v<V, Rest> && ...) && sizeof...(Rest) < 4)
V reduce_add_v(const V& first, const Rest&... rest) {
  V out;
  unsigned index = 0;
  out.data()[index++] = reduce_add(first);
  ((out.data()[index++] = reduce_add(rest)), ...);
  return out;
}
template <Vector V>
element_t<V> reduce_max(const V& v) {
  element_t<V> best = v.data()[0];
  for (unsigned i = 1; i < V::size(); ++i) best = best < v.data()[i] ? v.data()[i] : best;
  return best;
}
template <Vector V>
element_t<V> reduce_min(const V& v) {
  element_t<V> best = v.data()[0];
  for (unsigned i = 1; i < V::size(); ++i) best = v.data()[i] < best ? v.data()[i] : best;
  return best;
}

}  // namespace aie

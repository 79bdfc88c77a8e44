// Initialization and element-wise arithmetic: vectors wrap, accumulators wrap.
// Sources: aie_api aie.hpp (group_init, group_arithmetic), detail/aie2/shift.hpp (up and down shifts pass through
// an accumulator, hence obey the rounding and saturation modes).
#pragma once

#include "accum.hpp"

namespace aie {

template <ElemBaseType T, unsigned N = native_vector_length_v<T>>
vector<T, N> zeros() {
  vector<T, N> out;
  for (unsigned i = 0; i < N; ++i) out.data()[i] = T(0);
  return out;
}

template <AccumElemBaseType Tag, unsigned N>
accum<Tag, N> zeros() {
  accum<Tag, N> out;
  for (unsigned i = 0; i < N; ++i) out.data()[i] = 0;
  return out;
}

template <typename T, unsigned N = native_vector_length_v<operand_base_type_t<T>>, Elem E = T>
vector<operand_base_type_t<T>, N> broadcast(const E& value) {
  vector<operand_base_type_t<T>, N> out;
  for (unsigned i = 0; i < N; ++i) out.data()[i] = static_cast<operand_base_type_t<T>>(value);
  return out;
}

namespace detail {

template <typename A, typename B, typename F>
auto zip(const A& a, const B& b, F f) {
  typename pair_vector<A, B>::type out;
  for (unsigned i = 0; i < out.size(); ++i) out.data()[i] = f(lane(a, i), lane(b, i));
  return out;
}

template <typename V, typename F>
V map(const V& v, F f) {
  V out;
  for (unsigned i = 0; i < V::size(); ++i) out.data()[i] = f(v.data()[i]);
  return out;
}

/// Sum or difference of an accumulator with an accumulator, a vector or an element (upshift 0).
template <bool Subtract, typename Acc, typename B>
Acc add_accum(const Acc& acc, const B& b) {
  using S = typename Acc::lane_type;
  Acc out;
  for (unsigned i = 0; i < Acc::size(); ++i) {
    S other;
    if constexpr (is_accum_v<B>)
      other = b.data()[i];
    else
      other = static_cast<S>(lane(b, i));
    out.data()[i] = Subtract ? wrap_sub<S>(acc.data()[i], other) : wrap_add<S>(acc.data()[i], other);
  }
  return out;
}

/// Sums of bfloat16 pass through a float accumulator: one rounding in the tile's mode.
template <typename T, bool Subtract>
T add_lane(T a, T b) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    const float sum = Subtract ? float(a) - float(b) : float(a) + float(b);
    return round_bf16(sum, current_modes().rounding);
  } else {
    return Subtract ? wrap_sub<T>(a, b) : wrap_add<T>(a, b);
  }
}

template <typename Acc, typename B>
concept AccumOperand = Accum<Acc> && ((Accum<B> && std::is_same_v<Acc, B>) ||
                                      (is_vector_or_elem_v<B> && (std::is_integral_v<element_t<B>> !=
                                                                  Acc::is_floating_point())));

}  // namespace detail

template <typename A, typename B>
  requires MatchingPair<A, B>
auto add(const A& a, const B& b) {
  return detail::zip(a, b, detail::add_lane<element_t<A>, false>);
}
template <typename A, typename B>
  requires MatchingPair<A, B>
auto sub(const A& a, const B& b) {
  return detail::zip(a, b, detail::add_lane<element_t<A>, true>);
}
template <typename Acc, typename B>
  requires detail::AccumOperand<Acc, B>
Acc add(const Acc& acc, const B& b) {
  return detail::add_accum<false>(acc, b);
}
template <typename Acc, typename B>
  requires detail::AccumOperand<Acc, B>
Acc sub(const Acc& acc, const B& b) {
  return detail::add_accum<true>(acc, b);
}

template <typename A, typename B>
  requires MatchingPair<A, B>
auto max(const A& a, const B& b) {
  return detail::zip(a, b, [](auto x, auto y) { return x < y ? y : x; });
}
template <typename A, typename B>
  requires MatchingPair<A, B>
auto min(const A& a, const B& b) {
  return detail::zip(a, b, [](auto x, auto y) { return y < x ? y : x; });
}

/// -x and |x| wrap: the smallest signed value stays itself; unsigned vectors come back unchanged.
template <Vector V>
V neg(const V& v) {
  using T = element_t<V>;
  return detail::map(v, [](T x) -> T {
    if constexpr (std::is_unsigned_v<T>)
      return x;
    else if constexpr (std::is_integral_v<T>)
      return detail::wrap_sub<T>(0, x);
    else
      return T(-float(x));
  });
}
template <Accum Acc>
Acc neg(const Acc& acc) {
  return detail::add_accum<true>(zeros<typename Acc::value_type, Acc::size()>(), acc);
}
template <Vector V>
V abs(const V& v) {
  using T = element_t<V>;
  return detail::map(v, [](T x) -> T {
    if constexpr (std::is_integral_v<T>)
      return x < 0 ? detail::wrap_sub<T>(0, x) : x;
    else
      return T(float(x) < 0 ? -float(x) : float(x));
  });
}

namespace detail {

/// An accumulator that holds a vector of T without loss.
template <Vector V>
auto widened(const V& v, unsigned shift) {
  return accum<typename accum_tag_for_type<element_t<V>>::type, V::size()>(v, static_cast<int>(shift));
}

}  // namespace detail

/// v * 2**shift and v / 2**shift: through an accumulator, so the modes of the tile apply.
template <Vector V>
  requires(V::is_integral())
V upshift(const V& v, unsigned shift) {
  return detail::widened(v, shift).template to_vector<element_t<V>>(0);
}
template <Vector V>
  requires(V::is_integral())
V downshift(const V& v, unsigned shift) {
  return detail::widened(v, 0).template to_vector<element_t<V>>(static_cast<int>(shift));
}
/// As downshift, the bits read as unsigned.
template <Vector V>
  requires(V::is_integral())
V logical_downshift(const V& v, unsigned shift) {
  using U = std::make_unsigned_t<element_t<V>>;
  return downshift(v.template cast_to<U>(), shift).template cast_to<element_t<V>>();
}

/// Sum and difference that saturate if the tile's saturation is on.
template <typename A, typename B>
  requires(MatchingPair<A, B> && std::is_integral_v<element_t<A>>)
auto saturating_add(const A& a, const B& b) {
  const auto mode = detail::current_modes().saturation;
  return detail::zip(a, b, [mode](auto x, auto y) {
    return detail::saturate_to<element_t<A>>(__int128{x} + y, detail::is_signed_v<element_t<A>>, mode);
  });
}
template <typename A, typename B>
  requires(MatchingPair<A, B> && std::is_integral_v<element_t<A>>)
auto saturating_sub(const A& a, const B& b) {
  const auto mode = detail::current_modes().saturation;
  return detail::zip(a, b, [mode](auto x, auto y) {
    return detail::saturate_to<element_t<A>>(__int128{x} - y, detail::is_signed_v<element_t<A>>, mode);
  });
}

/// a - b where a is larger, else 0.
template <typename A, typename B>
  requires MatchingPair<A, B>
auto maxdiff(const A& a, const B& b) {
  using T = element_t<A>;
  return detail::zip(a, b, [](T x, T y) -> T { return y < x ? detail::wrap_sub<T>(x, y) : T(0); });
}

namespace detail {

/// Bit operations take two vectors, or an element and a vector, in this order.
template <typename A, typename B>
concept BitPair = MatchingPair<A, B> && Vector<B> && std::is_integral_v<element_t<A>>;

}  // namespace detail

template <typename A, typename B>
  requires detail::BitPair<A, B>
auto bit_and(const A& a, const B& b) {
  return detail::zip(a, b, [](auto x, auto y) { return static_cast<element_t<A>>(x & y); });
}
template <typename A, typename B>
  requires detail::BitPair<A, B>
auto bit_or(const A& a, const B& b) {
  return detail::zip(a, b, [](auto x, auto y) { return static_cast<element_t<A>>(x | y); });
}
template <typename A, typename B>
  requires detail::BitPair<A, B>
auto bit_xor(const A& a, const B& b) {
  return detail::zip(a, b, [](auto x, auto y) { return static_cast<element_t<A>>(x ^ y); });
}
template <Vector V>
  requires(V::is_integral())
V bit_not(const V& v) {
  return detail::map(v, [](auto x) { return static_cast<element_t<V>>(~x); });
}

}  // namespace aie

// Element-wise multiplication and multiply-accumulate.
// Source: aie_api aie.hpp (group_arithmetic: mul, negmul, mac, msc, mul_square, accumulate; is_valid_mul_op).
#pragma once

#include "ops_arith.hpp"

namespace aie {

template <typename A, typename B>
concept MulPair = VectorPair<A, B> && detail::is_valid_mul_v<element_t<A>, element_t<B>>;

namespace detail {

template <typename S, bool Negate, typename A, typename B>
S product(const A& a, const B& b, unsigned i) {
  const S value = wrap_mul<S>(lane(a, i), lane(b, i));
  if constexpr (Negate)
    return wrap_sub<S>(S(0), value);
  else
    return value;
}

template <typename Tag, bool Negate, typename A, typename B>
auto mul_lanes(const A& a, const B& b) {
  using acc_tag = accum_tag_or_default<Tag, element_t<A>, element_t<B>>;
  accum<acc_tag, pair_vector<A, B>::type::size()> out;
  for (unsigned i = 0; i < out.size(); ++i)
    out.data()[i] = product<typename decltype(out)::lane_type, Negate>(a, b, i);
  return out;
}

template <bool Negate, typename Acc, typename A, typename B>
Acc mac_lanes(const Acc& acc, const A& a, const B& b) {
  static_assert(Acc::size() == pair_vector<A, B>::type::size(), "accumulator and vectors have different sizes");
  static_assert(Acc::is_floating_point() != std::is_integral_v<element_t<A>>, "accumulator class does not fit");
  using S = typename Acc::lane_type;
  Acc out;
  for (unsigned i = 0; i < Acc::size(); ++i)
    out.data()[i] = wrap_add<S>(acc.data()[i], product<S, Negate>(a, b, i));
  return out;
}

}  // namespace detail

/// Default accumulator: 32 bits, or 64 if an operand has 32 bits; `Tag` asks for more.
template <typename Tag = accauto, typename A, typename B>
  requires MulPair<A, B>
auto mul(const A& a, const B& b) {
  return detail::mul_lanes<Tag, false>(a, b);
}
template <typename Tag = accauto, typename A, typename B>
  requires MulPair<A, B>
auto negmul(const A& a, const B& b) {
  return detail::mul_lanes<Tag, true>(a, b);
}
template <Accum Acc, typename A, typename B>
  requires MulPair<A, B>
Acc mac(const Acc& acc, const A& a, const B& b) {
  return detail::mac_lanes<false>(acc, a, b);
}
template <Accum Acc, typename A, typename B>
  requires MulPair<A, B>
Acc msc(const Acc& acc, const A& a, const B& b) {
  return detail::mac_lanes<true>(acc, a, b);
}
template <typename Tag = accauto, Vector V>
auto mul_square(const V& v) {
  return detail::mul_lanes<Tag, false>(v, v);
}
template <Accum Acc, Vector V>
Acc mac_square(const Acc& acc, const V& v) {
  return detail::mac_lanes<false>(acc, v, v);
}

/// acc + sum over k of coeff[start + k] * data_k, with Lanes lanes.
template <unsigned Lanes, Accum Acc, Vector Coeff, Vector... Data>
  requires(Acc::size() == Lanes && ((Data::size() == Lanes) && ...))
Acc accumulate(const Acc& acc, const Coeff& coeff, unsigned start, const Data&... data) {
  Acc out = acc;
  unsigned index = start;
  ((out = mac(out, data, coeff.get(index++ % Coeff::size()))), ...);
  return out;
}
template <unsigned Lanes, typename Tag = accauto, Vector Coeff, Vector First, Vector... Data>
  requires(First::size() == Lanes && ((Data::size() == Lanes) && ...))
auto accumulate(const Coeff& coeff, unsigned start, const First& first, const Data&... data) {
  using acc_tag = detail::accum_tag_or_default<Tag, element_t<Coeff>, element_t<First>>;
  return accumulate<Lanes>(zeros<acc_tag, Lanes>(), coeff, start, first, data...);
}

}  // namespace aie

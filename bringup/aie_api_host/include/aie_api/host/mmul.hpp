// aie::mmul: C (M x N) += A (M x K) * B (K x N), all blocks row-major.
// Sources: aie_api aie.hpp (struct mmul), detail/mmul.hpp (C_block), detail/aie2/mmul_8_8.hpp.
//
// Order of lanes: in which order an mmul keeps its accumulators, and so hands out to_vector<int32>(), is not documented,
// and row-major was observed to be wrong on silicon. Here it is a fixed permutation that is not the identity, so a
// kernel that takes 32 bit results for row-major fails on the host too. It is the same for to_vector of 32 bits,
// to_accum() and the constructors from a 32 bit vector or an accumulator: what was taken out can be handed on and put
// back. Vectors of 8 and 16 bits are row-major both ways, and so are floats.
// AIE_HOST_ROW_MAJOR_INT32 makes all of them row-major, for published kernels that rely on it.
#pragma once

#include "mmul_shapes.hpp"
#include "ops_mul.hpp"

namespace aie {
namespace detail {

/// Arithmetic that wraps: unsigned for integers (conversions keep the value modulo 2**bits), else the type itself.
template <typename S>
struct modular {
  using type = S;
};
template <std::integral S>
struct modular<S> {
  using type = std::make_unsigned_t<S>;
};

/// The row-major place of raw lane i of M x N: rows rotated by one, even columns behind odd ones.
template <unsigned M, unsigned N>
constexpr unsigned raw_lane(unsigned i) {
#ifdef AIE_HOST_ROW_MAJOR_INT32
  return i;
#else
  const unsigned row = i / N, column = i % N;
  return ((row + 1) % M) * N + (column % 2 ? column / 2 : N / 2 + column / 2);
#endif
}

/// c += a b on whole blocks. Why without address checks: nearly all the time of a sanitized run is spent here, and the
/// pointers are always those of an mmul's own vectors, whose sizes the types give.
template <unsigned M, unsigned K, unsigned N, typename A, typename B, typename S>
__attribute__((no_sanitize("address"))) void multiply_add(const A* a, const B* b, S* c) {
  using U = typename modular<S>::type;
  for (unsigned i = 0; i < M; ++i)
    for (unsigned j = 0; j < N; ++j) {
      U sum = static_cast<U>(c[i * N + j]);
      for (unsigned k = 0; k < K; ++k) sum += static_cast<U>(a[i * K + k]) * static_cast<U>(b[k * N + j]);
      c[i * N + j] = static_cast<S>(sum);
    }
}

template <unsigned M, unsigned K, unsigned N, typename A, typename B>
inline constexpr bool only_acc32 = sizeof(A) == 1 && sizeof(B) == 1 && N == 8;

}  // namespace detail

template <unsigned M_, unsigned K_, unsigned N_, ElemBaseType TypeA, ElemBaseType TypeB = TypeA,
          typename AccumTag = accauto>
struct mmul {
  static_assert(detail::is_mmul_shape<TypeA, TypeB>(M_, K_, N_),
                "aie::mmul: this shape is not documented for these types on this architecture");

  static constexpr unsigned M = M_;
  static constexpr unsigned K = K_;
  static constexpr unsigned N = N_;
  static constexpr unsigned size_A = M * K;
  static constexpr unsigned size_B = K * N;
  static constexpr unsigned size_C = M * N;

 private:
  using default_tag = detail::default_accum_tag<TypeA, TypeB>;
  static constexpr bool is_float = std::is_same_v<default_tag, accfloat>;
  // As upstream, the tag gives the width, the operands give the class (integer or floating point).
  using given_tag = std::conditional_t<std::is_same_v<AccumTag, accauto>, default_tag, AccumTag>;
  static constexpr unsigned given_bits = detail::accum_traits<given_tag>::bits;
  using tag = std::conditional_t<is_float, accfloat, std::conditional_t<given_bits == 32, acc32, acc64>>;
  static_assert(!detail::only_acc32<M, K, N, TypeA, TypeB> || is_float || given_bits == 32,
                "aie::mmul: 8 bit x 8 bit shapes with N = 8 accumulate in 32 bits");

 public:
  using value_type = tag;
  using vector_A_type = vector<TypeA, size_A>;
  using vector_B_type = vector<TypeB, size_B>;
  using accum_type = accum<tag, size_C>;
  using lane_type = typename accum_type::lane_type;

  static constexpr unsigned size() { return size_C; }

  /// The first mac after this acts as a mul.
  mmul() : zero_(true) {}
  mmul(const accum_type& acc) : data_(from_raw(acc)), zero_(false) {}
  template <typename T>
  mmul(const vector<T, size_C>& v, int shift = 0) : zero_(false) {
    if constexpr (has_raw_order<T>)
      data_.from_vector(from_raw(v), shift);
    else
      data_.from_vector(v, shift);
  }

  void mul(const vector_A_type& a, const vector_B_type& b) {
    zero_ = true;
    mac(a, b);
  }

  void mac(const vector_A_type& a, const vector_B_type& b) {
    if (zero_) data_ = zeros<tag, size_C>();
    zero_ = false;
    detail::multiply_add<M, K, N>(a.data(), b.data(), data_.data());
  }

  accum_type to_accum() const { return to_raw(data_); }
  operator accum_type() const { return to_accum(); }

  /// 8 and 16 bit results (and floats): row-major. 32 bit results: raw order, see the top of the file.
  template <typename T>
  vector<T, size_C> to_vector(int shift = 0) const {
    return ordered(data_.template to_vector<T>(shift));
  }
  template <typename T>
  vector<T, size_C> to_vector_sign(bool v_sign, int shift = 0) const {
    return ordered(data_.template to_vector_sign<T>(v_sign, shift));
  }

 private:
  template <typename T>
  static constexpr bool has_raw_order = sizeof(T) == 4 && std::is_integral_v<T>;

  template <typename Lanes>
  static Lanes to_raw(const Lanes& plain) {
    if constexpr (is_float) return plain;
    Lanes out;
    for (unsigned i = 0; i < size_C; ++i) out.data()[i] = plain.data()[detail::raw_lane<M, N>(i)];
    return out;
  }
  template <typename Lanes>
  static Lanes from_raw(const Lanes& raw) {
    if constexpr (is_float) return raw;
    Lanes out;
    for (unsigned i = 0; i < size_C; ++i) out.data()[detail::raw_lane<M, N>(i)] = raw.data()[i];
    return out;
  }
  template <typename T>
  static vector<T, size_C> ordered(const vector<T, size_C>& v) {
    if constexpr (has_raw_order<T>)
      return to_raw(v);
    else
      return v;
  }

  accum_type data_;
  bool zero_;
};

}  // namespace aie

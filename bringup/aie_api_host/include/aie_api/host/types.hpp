// Element types, accumulator tags and the traits behind them.
// Sources: aie_api doc "Basic Types" (aie_doc.hpp), Peano aiev2_defines.h / aie2p_defines.h.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

// Which architecture is modelled: 20 = AIE-ML / XDNA 1 (npu1), 21 = XDNA 2 (npu2); the values of __AIE_ARCH__.
#if defined(AIE_HOST_ARCH) && !defined(__AIE_ARCH__)
#define __AIE_ARCH__ AIE_HOST_ARCH
#endif
#ifndef __AIE_ARCH__
#define __AIE_ARCH__ 20
#endif
#if __AIE_ARCH__ != 20 && __AIE_ARCH__ != 21
#error "aie_api_host models __AIE_ARCH__ 20 (AIE-ML) and 21 (XDNA 2) only"
#endif

#if __AIE_ARCH__ == 20
#define AIE_API_ML_VERSION 200
#define AIE_VECTOR_LDST_ALIGN 32
#else
#define AIE_API_ML_VERSION 210
#define AIE_VECTOR_LDST_ALIGN 64
#endif
#define AIE_API_PLATFORM_VERSION 200
#define AIE_API_MATH_VERSION 0

#ifndef restrict
#define restrict __restrict
#endif
#define __aie_inline

using int8 = std::int8_t;
using uint8 = std::uint8_t;
using int16 = std::int16_t;
using uint16 = std::uint16_t;
using int32 = std::int32_t;
using uint32 = std::uint32_t;
using int64 = std::int64_t;
using uint64 = std::uint64_t;

struct acc32 {};
struct acc40 {};
struct acc48 {};
struct acc56 {};
struct acc64 {};
struct accfloat {};
struct accauto {};

namespace aie_host {

/// Ends the run with one line on stderr; a sanitized child reports it like any other abort.
[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "aie_api_host: %s\n", what);
  std::fflush(stderr);
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) [[unlikely]]
    fail(what);
}

/// Byte of contents that the API leaves undefined: neither zero nor a small number.
inline constexpr unsigned char poison = 0xA5;

}  // namespace aie_host

/// A float's upper half. Scalar conversions round to nearest even; vectors round as the tile's mode says (srs.hpp).
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  constexpr bfloat16(float value) : bits(nearest(std::bit_cast<std::uint32_t>(value))) {}
  constexpr bfloat16(double value) : bfloat16(static_cast<float>(value)) {}
  constexpr bfloat16(int value) : bfloat16(static_cast<float>(value)) {}

  static constexpr bfloat16 from_bits(std::uint16_t raw) {
    bfloat16 value(0.0f);
    value.bits = raw;
    return value;
  }
  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

  bfloat16& operator+=(float other) { return *this = bfloat16(float(*this) + other); }
  bfloat16& operator-=(float other) { return *this = bfloat16(float(*this) - other); }
  bfloat16& operator*=(float other) { return *this = bfloat16(float(*this) * other); }

 private:
  static constexpr std::uint16_t nearest(std::uint32_t raw) {
    if ((raw & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((raw >> 16) | 0x40u);
    return static_cast<std::uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
  }
};
static_assert(sizeof(bfloat16) == 2);

template <>
struct std::numeric_limits<bfloat16> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bfloat16 lowest() { return bfloat16::from_bits(0xff7f); }
  static constexpr bfloat16 max() { return bfloat16::from_bits(0x7f7f); }
  static constexpr bfloat16 min() { return bfloat16::from_bits(0x0080); }
  static constexpr bfloat16 infinity() { return bfloat16::from_bits(0x7f80); }
};

/// Virtual memory banks: no effect on values.
enum class aie_dm_resource { none, a, b, c, d, ab, ac, ad, bc, bd, cd, stack };

namespace aie {

template <typename T, typename... Ts>
inline constexpr bool is_one_of_v = (std::is_same_v<T, Ts> || ...);

/// Element types that are modelled (the API also has int4, uint4 and complex types).
template <typename T>
concept ElemBaseType = is_one_of_v<T, int8, uint8, int16, uint16, int32, uint32, bfloat16, float>;

template <typename T>
inline constexpr bool is_integer_elem_v = is_one_of_v<T, int8, uint8, int16, uint16, int32, uint32>;

template <typename T>
concept AccumElemBaseType = is_one_of_v<T, acc32, acc40, acc48, acc56, acc64, accfloat>;

template <ElemBaseType T>
inline constexpr unsigned native_vector_length_v = 64 / sizeof(T);

namespace detail {

template <AccumElemBaseType Tag>
struct accum_traits {
  using storage = std::conditional_t<std::is_same_v<Tag, accfloat>, float,
                                     std::conditional_t<std::is_same_v<Tag, acc32>, std::int32_t, std::int64_t>>;
  static constexpr bool is_float = std::is_same_v<Tag, accfloat>;
  static constexpr unsigned bits = sizeof(storage) * 8;
  static constexpr unsigned min_lanes = bits == 64 ? 4 : (is_float ? 4 : 8);
  static constexpr unsigned max_lanes = bits == 64 ? 64 : 128;
};

template <typename T>
inline constexpr bool is_signed_v = std::numeric_limits<T>::is_signed;

template <typename T>
using unsigned_of = std::make_unsigned_t<T>;

/// a + b, a - b, -a modulo 2**bits (integers) or rounded once (floating point).
template <typename T>
constexpr T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<unsigned_of<T>>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)));
  else
    return T(float(a) + float(b));
}

template <typename T>
constexpr T wrap_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<unsigned_of<T>>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)));
  else
    return T(float(a) - float(b));
}

/// Product for an accumulator of type S: modulo 2**bits, or a single float multiplication.
template <typename S, typename A, typename B>
constexpr S wrap_mul(A a, B b) {
  if constexpr (std::is_integral_v<S>) {
    const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(a)) *
                      static_cast<std::uint64_t>(static_cast<std::int64_t>(b));
    return static_cast<S>(static_cast<unsigned_of<S>>(wide));
  } else {
    return static_cast<float>(a) * static_cast<float>(b);
  }
}

/// Default accumulator of a product (aie_doc.hpp, "Default accumulator tag"): 32 bit operands need 64 bits.
template <typename A, typename B>
using default_accum_tag =
    std::conditional_t<!std::is_integral_v<A>, accfloat,
                       std::conditional_t<(sizeof(A) == 4 || sizeof(B) == 4), acc64, acc32>>;

template <typename Tag, typename A, typename B>
using accum_tag_or_default = std::conditional_t<std::is_same_v<Tag, accauto>, default_accum_tag<A, B>, Tag>;

/// Products that the API accepts on these architectures (is_valid_mul_op in aie.hpp), order of operands free.
template <typename A, typename B>
inline constexpr bool is_valid_mul_v =
    (std::is_integral_v<A> && std::is_integral_v<B> &&
     (sizeof(A) == sizeof(B) || sizeof(A) == 2 * sizeof(B) || sizeof(B) == 2 * sizeof(A))) ||
    (std::is_same_v<A, B> && !std::is_integral_v<A>);

template <typename A>
struct accum_tag_for_type {
  using type = default_accum_tag<A, A>;
};

}  // namespace detail
}  // namespace aie

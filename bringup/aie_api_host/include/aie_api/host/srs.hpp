// Shift-round-saturate and the sticky modes it obeys.
// Sources: aie_types.hpp (enums), aiev2_defines.h / aie2p_defines.h (codes 0-3 and 8-13), UG1603 "Rounding and
// Saturation Modes" (order: shift and round the full accumulator, then saturate or truncate; defaults floor, none).
#pragma once

#include "types.hpp"

#define rnd_floor 0
#define rnd_ceil 1
#define rnd_sym_floor 2
#define rnd_sym_ceil 3
#define rnd_neg_inf 8
#define rnd_pos_inf 9
#define rnd_sym_zero 10
#define rnd_sym_inf 11
#define rnd_conv_even 12
#define rnd_conv_odd 13

extern "C" {
/// Modes of the selected tile; kept by aie_host_runtime.cc.
struct aie_host_tile_state {
  std::int32_t tile;
  std::int32_t rounding;
  std::int32_t saturation;
  std::uint64_t event0_count;
  std::uint64_t event1_count;
};
aie_host_tile_state* aie_host_current_tile(void);
}

namespace aie {

enum class saturation_mode : unsigned {
  none = 0,
  truncate [[deprecated("Use saturate instead")]] = 1,
  saturate = 1,
  symmetric = 3,
};

enum class rounding_mode : unsigned {
  floor = rnd_floor,
  ceil = rnd_ceil,
  positive_inf = rnd_pos_inf,
  negative_inf = rnd_neg_inf,
  symmetric_inf = rnd_sym_inf,
  symmetric_zero = rnd_sym_zero,
  conv_even = rnd_conv_even,
  conv_odd = rnd_conv_odd,
  symmetric_floor = rnd_sym_floor,
  symmetric_ceil = rnd_sym_ceil,
};

/// Shifts that the shift-round-saturate unit takes (detail/shift.hpp).
inline constexpr int max_shift = 59;
inline constexpr int min_shift = -4;

namespace detail {

struct modes {
  rounding_mode rounding;
  saturation_mode saturation;
};

inline modes current_modes() {
  const aie_host_tile_state* tile = aie_host_current_tile();
  return {static_cast<rounding_mode>(tile->rounding), static_cast<saturation_mode>(tile->saturation)};
}

/// Whether the quotient goes up by one. `odd`: quotient (rounded down) is odd; `negative`: value is below zero.
/// `below`, `tie`: the dropped part is below / exactly half; it is not zero.
constexpr bool rounds_up(rounding_mode mode, bool odd, bool negative, bool below, bool tie) {
  const bool above = !below && !tie;
  switch (mode) {
    case rounding_mode::floor: return false;
    case rounding_mode::ceil: return true;
    case rounding_mode::symmetric_floor: return negative;
    case rounding_mode::symmetric_ceil: return !negative;
    case rounding_mode::positive_inf: return above || tie;
    case rounding_mode::negative_inf: return above;
    case rounding_mode::symmetric_inf: return above || (tie && !negative);
    case rounding_mode::symmetric_zero: return above || (tie && negative);
    case rounding_mode::conv_even: return above || (tie && odd);
    case rounding_mode::conv_odd: return above || (tie && !odd);
  }
  aie_host::fail("unknown rounding mode");
}

/// round(value / 2**shift); a negative shift multiplies.
inline __int128 shift_round(std::int64_t value, int shift, rounding_mode mode) {
  aie_host::require(shift >= min_shift && shift <= max_shift, "SRS shift outside -4..59");
  if (shift <= 0)
    return static_cast<__int128>(static_cast<unsigned __int128>(static_cast<__int128>(value)) << -shift);
  const std::int64_t quotient = value >> shift;
  const std::uint64_t mask = (std::uint64_t{1} << shift) - 1;
  const std::uint64_t rest = static_cast<std::uint64_t>(value) & mask;
  if (rest == 0) return quotient;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return __int128{quotient} + rounds_up(mode, quotient & 1, value < 0, rest < half, rest == half);
}

/// Saturate or truncate to T, which is interpreted with the given sign.
template <typename T>
T saturate_to(__int128 value, bool is_signed, saturation_mode mode) {
  constexpr unsigned bits = sizeof(T) * 8;
  if (mode != saturation_mode::none) {
    const __int128 high = (__int128{1} << (is_signed ? bits - 1 : bits)) - 1;
    __int128 low = is_signed ? -high - 1 : 0;
    if (is_signed && mode == saturation_mode::symmetric) low = -high;
    value = value < low ? low : (value > high ? high : value);
  }
  return static_cast<T>(static_cast<unsigned_of<T>>(value));
}

/// SRS of one lane. On AIE-ML the shifts -4, -3, -2 are documented as unsafe unless truncating.
template <typename T>
T srs(std::int64_t value, int shift, bool is_signed, modes m) {
#if __AIE_ARCH__ == 20
  aie_host::require(shift > -2 || shift < -4 || m.saturation == saturation_mode::none,
                    "SRS shift -4, -3 or -2 is unsafe on AIE-ML unless truncating");
#endif
  return saturate_to<T>(shift_round(value, shift, m.rounding), is_signed, m.saturation);
}

/// UPS of one lane into S: an overflow saturates if saturation is on, else it wraps.
template <typename S>
S ups(std::int64_t value, int shift, saturation_mode mode) {
  aie_host::require(shift >= 0 && shift <= max_shift, "UPS shift outside 0..59");
  const auto wide = static_cast<__int128>(static_cast<unsigned __int128>(static_cast<__int128>(value)) << shift);
  return saturate_to<S>(wide, true, mode);
}

/// float -> bfloat16 in the current rounding mode (NaN stays NaN, overflow goes to infinity).
inline bfloat16 round_bf16(float value, rounding_mode mode) {
  const auto raw = std::bit_cast<std::uint32_t>(value);
  if ((raw & 0x7fffffffu) > 0x7f800000u) return bfloat16::from_bits(static_cast<std::uint16_t>((raw >> 16) | 0x40u));
  const std::uint32_t rest = raw & 0xffffu;
  const bool negative = raw >> 31;
  std::uint32_t top = raw >> 16;
  if (rest != 0) {
    // The magnitude is rounded: a step up of the value is a step down of a negative magnitude.
    const bool up = negative ? !rounds_up(mode, !(top & 1), true, rest > 0x8000u, rest == 0x8000u)
                             : rounds_up(mode, top & 1, false, rest < 0x8000u, rest == 0x8000u);
    top += up;
  }
  return bfloat16::from_bits(static_cast<std::uint16_t>(top));
}

}  // namespace detail
}  // namespace aie

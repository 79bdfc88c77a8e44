// The vendor's fixed-point type as a second opinion: 40 raw bits of a value with SHIFT fraction bits, assigned to an
// integer type in a rounding (Q) and an overflow (O) mode.
#include <ap_fixed.h>

#include <cstdint>

namespace {

constexpr int BITS = 40;
constexpr int SHIFT = 5;

template <ap_q_mode Q, ap_o_mode O>
void convert(bool is_signed, const std::int64_t* lanes, int count, std::int64_t* out) {
  for (int i = 0; i < count; ++i) {
    ap_fixed<BITS, BITS - SHIFT> exact;
    exact.range(BITS - 1, 0) = ap_int<BITS>(lanes[i]);
    if (is_signed)
      out[i] = ap_fixed<8, 8, Q, O>(exact).to_int64();
    else
      out[i] = ap_ufixed<8, 8, Q, O>(exact).to_int64();
  }
}

template <ap_q_mode Q>
void with_overflow(int overflow, bool is_signed, const std::int64_t* lanes, int count, std::int64_t* out) {
  switch (overflow) {
    case 0: return convert<Q, AP_WRAP>(is_signed, lanes, count, out);
    case 1: return convert<Q, AP_SAT>(is_signed, lanes, count, out);
    case 3: return convert<Q, AP_SAT_SYM>(is_signed, lanes, count, out);
  }
}

}  // namespace

/// The codes of the modes are those of AIE-ML; returns 0 for a rounding that the type does not have.
extern "C" int ap_convert(int rounding, int overflow, int is_signed, const std::int64_t* lanes, int count,
                          std::int64_t* out) {
  switch (rounding) {
    case 0: with_overflow<AP_TRN>(overflow, is_signed, lanes, count, out); return 1;
    case 2: with_overflow<AP_TRN_ZERO>(overflow, is_signed, lanes, count, out); return 1;
    case 8: with_overflow<AP_RND_MIN_INF>(overflow, is_signed, lanes, count, out); return 1;
    case 9: with_overflow<AP_RND>(overflow, is_signed, lanes, count, out); return 1;
    case 10: with_overflow<AP_RND_ZERO>(overflow, is_signed, lanes, count, out); return 1;
    case 11: with_overflow<AP_RND_INF>(overflow, is_signed, lanes, count, out); return 1;
    case 12: with_overflow<AP_RND_CONV>(overflow, is_signed, lanes, count, out); return 1;
    default: return 0;
  }
}

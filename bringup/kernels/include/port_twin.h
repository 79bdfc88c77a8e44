// Scalar twins, for tests: plain C++, one number after the other, 128 bits wherever it matters. No vector, no packing.
#pragma once

#include <cstdint>

namespace twin {

enum class Rounding : int32_t {
    floor, ceil, pos_inf, neg_inf, sym_inf, sym_zero, conv_even, conv_odd, sym_floor, sym_ceil
};
enum class Saturation : int32_t { none, saturate, symmetric };

// How sums of products leave.
struct Finish {
    int32_t rounds;  // 0: integers leave as they are
    int32_t out_bits;
    int32_t out_signed;
    int64_t zero_point;
    int64_t low;
    int64_t high;
    int32_t inside;  // the zero point goes in before the rounding
    int32_t acc_bits;
    int32_t rounding;
    int32_t saturation;
    int32_t has_bias;
    int32_t shifts;   // left shifts in front of the bias: 1, or one for each channel
    int32_t factors;  // multipliers: 1, or one for each channel
};

inline int64_t wrapped(int64_t value, int32_t bits) {
    return bits == 32 ? int64_t(int32_t(uint32_t(uint64_t(value)))) : value;
}

inline int64_t sum(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
inline int64_t product(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

inline bool rounds_up(Rounding mode, bool odd, bool negative, int32_t beside_half) {
    switch (mode) {
    case Rounding::floor: return false;
    case Rounding::ceil: return true;
    case Rounding::sym_floor: return negative;
    case Rounding::sym_ceil: return !negative;
    case Rounding::pos_inf: return beside_half >= 0;
    case Rounding::neg_inf: return beside_half > 0;
    case Rounding::sym_inf: return beside_half > 0 || (beside_half == 0 && !negative);
    case Rounding::sym_zero: return beside_half > 0 || (beside_half == 0 && negative);
    case Rounding::conv_even: return beside_half > 0 || (beside_half == 0 && odd);
    case Rounding::conv_odd: return beside_half > 0 || (beside_half == 0 && !odd);
    }
    return false;
}

// value / 2**shift, rounded; shift 0 to 126.
inline __int128 shifted(__int128 value, int32_t shift, Rounding mode) {
    const __int128 quotient = value >> shift;
    const __int128 rest = value - (quotient << shift);
    if (rest == 0) {
        return quotient;
    }
    const __int128 half = __int128(1) << (shift - 1);
    const int32_t beside_half = rest < half ? -1 : (rest == half ? 0 : 1);
    return quotient + (rounds_up(mode, (quotient & 1) != 0, value < 0, beside_half) ? 1 : 0);
}

inline int64_t narrowed(__int128 value, int32_t bits, bool is_signed, Saturation mode) {
    const __int128 size = __int128(1) << bits;
    const __int128 high = is_signed ? size / 2 - 1 : size - 1;
    const __int128 low = is_signed ? (mode == Saturation::symmetric ? -high : -high - 1) : 0;
    if (mode == Saturation::none) {
        const __int128 rest = value & (size - 1);
        return int64_t(rest > high ? rest - size : rest);
    }
    return int64_t(value < low ? low : (value > high ? high : value));
}

// One number: promotion, bias, multiplier, rounding, zero point, saturation, clamp.
inline int64_t finished(const Finish& f, int64_t acc, int32_t channel, const int64_t* shifts, const int64_t* bias,
                        const int64_t* multipliers, const int64_t* amounts) {
    int64_t value = int64_t(uint64_t(acc) << shifts[f.shifts == 1 ? 0 : channel]);
    if (f.has_bias != 0) {
        value = sum(value, bias[channel]);
    }
    value = wrapped(value, f.acc_bits);
    if (f.rounds == 0) {
        return value;
    }
    const int32_t at = f.factors == 1 ? 0 : channel;
    const int32_t right = amounts[at] > 0 ? int32_t(amounts[at]) : 0;
    __int128 all = __int128(value) * multipliers[at];
    if (amounts[at] < 0) {
        // Left shifts of 62 at most: beyond 128 bits only what saturates anyway.
        const __int128 limit = __int128(1) << 64;
        all = f.saturation != 0 && all > limit ? limit : (f.saturation != 0 && all < -limit ? -limit : all);
        all = __int128(static_cast<unsigned __int128>(all) << -amounts[at]);
    }
    if (f.inside != 0) {
        all += __int128(f.zero_point) << right;
    }
    all = shifted(all, right, Rounding(f.rounding)) + (f.inside != 0 ? 0 : f.zero_point);
    const int64_t code = narrowed(all, f.out_bits, f.out_signed != 0, Saturation(f.saturation));
    return code < f.low ? f.low : (code > f.high ? f.high : code);
}

}  // namespace twin

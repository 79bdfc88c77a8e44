// Accumulators of 64 bits whose lanes have to be seen one by one: products with a multiplier take up to 96 bits, more
// than any accumulator holds. The numbers are reduced in scalar code to what the rounding can see; the rounding itself,
// the zero point and the saturation stay with the vector unit, in the modes of the tile.
#pragma once

#include "port_finish.h"

namespace port {

struct Wide {
    int64_t lane[LANES];
};

// The lanes of an accumulator, whatever the rounding mode: each part leaves a rest that the next one takes in. The top
// part is below 2**24, the others at most 2**20, so nothing saturates.
inline Wide lanes_of(const Products& sums) {
    const Values high = sums.to_vector<int32>(40);
    Products part;
    part.from_vector(high, 40);
    Products rest = aie::sub(sums, part);
    const Values middle = rest.to_vector<int32>(20);
    part.from_vector(middle, 20);
    rest = aie::sub(rest, part);
    const Values low = rest.to_vector<int32>(0);
    Wide all;
    for (unsigned i = 0; i < LANES; ++i) {
        const uint64_t upper = (uint64_t(int64_t(high.get(i))) << 40) + (uint64_t(int64_t(middle.get(i))) << 20);
        all.lane[i] = int64_t(upper + uint64_t(int64_t(low.get(i))));
    }
    return all;
}

// An accumulator with these lanes, each within +-2**61.
inline Products accumulator_of(const Wide& lanes) {
    alignas(64) int32_t high[LANES];
    alignas(64) int32_t low[LANES];
    for (unsigned i = 0; i < LANES; ++i) {
        high[i] = int32_t(lanes.lane[i] >> 30);
        low[i] = int32_t(lanes.lane[i] & ((1 << 30) - 1));
    }
    Products upper, lower;
    upper.from_vector(aie::load_v<LANES>(high), 30);
    lower.from_vector(aie::load_v<LANES>(low), 0);
    return aie::add(upper, lower);
}

// value * multiplier / 2**shift with two binary places, the last of which says whether anything lies below it: that is
// all a rounding to an integer needs. WRAPS keeps the low bits of the result, else it is clamped far outside of codes.
template <bool WRAPS>
inline int64_t quarters(int64_t value, int32_t multiplier, int32_t shift) {
    const int64_t factor = multiplier;
    const int64_t upper = (value >> 32) * factor;
    const int64_t lower = int64_t(uint64_t(value) & 0xffffffffu) * factor;
    const int64_t top = upper + (lower >> 32);  // product = top * 2**32 + rest
    const uint64_t rest = uint64_t(lower) & 0xffffffffu;
    if (shift >= 34) {
        const int32_t amount = shift - 34 < 62 ? shift - 34 : 62;
        const int64_t kept = top >> amount;
        const bool below = rest != 0 || int64_t(uint64_t(kept) << amount) != top;
        return kept | int64_t(below);
    }
    const int32_t amount = 34 - shift;
    const bool far = amount > 62 || (top >> (62 - (amount < 62 ? amount : 62))) != (top < 0 ? -1 : 0);
    if (far && !WRAPS) {
        return top < 0 ? -(int64_t(1) << 60) : int64_t(1) << 60;
    }
    const uint64_t moved = amount < 64 ? uint64_t(top) << amount : 0;
    uint64_t low;
    bool below = false;
    if (shift >= 2) {
        low = rest >> (shift - 2);
        below = (low << (shift - 2)) != rest;
    } else {
        low = 2 - shift < 64 ? rest << (2 - shift) : 0;
    }
    return int64_t(((moved + low) | uint64_t(below)) << 2) >> 2;
}

template <typename O, bool WRAPS>
inline aie::vector<typename O::type, LANES> finish_wide(const Wide& values, const int32_t* __restrict multipliers,
                                                        const int32_t* __restrict shifts) {
    Wide all;
    for (unsigned i = 0; i < LANES; ++i) {
        const int64_t value = quarters<WRAPS>(values.lane[i], multipliers[i], shifts[i]);
        constexpr int64_t limit = int64_t(1) << 60;
        all.lane[i] = WRAPS ? value : (value > limit ? limit : (value < -limit ? -limit : value));
    }
    return codes<O>(rounded<O>(accumulator_of(all), 2));
}

}  // namespace port

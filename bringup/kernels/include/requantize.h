// Integers of one scale to codes of another; relu and clip are the same, and so is the end of a global average.
//
// K: X, Out, Y dtypes; Output O; finish; along; blocks, width, channels; x_zero_point; plain; minimums, maximums
// (numbers of bounds, 0 = none), minimum[], maximum[]: bounds in front of the rounding, 1 or one per channel.
#pragma once

#include "elementwise.h"
#include "port_wide.h"

namespace port {

// What leaves from 32-bit integers whose zero point is off; `clamp` is taken by the callers on codes.
template <typename K>
inline aie::vector<typename K::Y, LANES> leave(const Values& values, const Scale& scale) {
    if constexpr (K::finish == Finish::round) {
        return finish<typename K::O>(values, scale);
    } else {
        return values;
    }
}

template <typename K>
inline Values within_bounds(const Values& values) {
    Values all = values;
    if constexpr (K::minimums == 1) {
        all = aie::max(all, aie::broadcast<int32, LANES>(K::minimum[0]));
    }
    if constexpr (K::maximums == 1) {
        all = aie::min(all, aie::broadcast<int32, LANES>(K::maximum[0]));
    }
    return all;
}

// What leaves from 8 integers of 64 bits whose zero point is off.
template <typename K>
inline void leave_plain(const int64_t* __restrict values, const int32_t* __restrict requant, int32_t block,
                        int32_t column, typename K::Y* __restrict y) {
    if constexpr (K::finish == Finish::round) {
        constexpr bool split = K::along == Along::channel;
        const int32_t* pairs = requant + (split ? 16 * block : K::along == Along::width ? 2 * column : 0);
        Wide all;
        int32_t multipliers[LANES], shifts[LANES];
        for (int32_t lane = 0; lane < int32_t(LANES); ++lane) {
            all.lane[lane] = values[lane & 7];
            multipliers[lane] = pairs[split ? lane & 7 : 0];
            shifts[lane] = pairs[split ? 8 + (lane & 7) : 1];
        }
        write<Access::half>(y, finish_wide<typename K::O, K::wraps>(all, multipliers, shifts));
    } else {
        for (int32_t lane = 0; lane < 8; ++lane) {
            int64_t value = values[lane];
            if constexpr (K::finish == Finish::clamp) {
                value = at_most(at_least(value, K::O::low), K::O::high);
            }
            y[lane] = static_cast<typename K::Y>(value);
        }
    }
}

// Element by element: 64-bit integers, bounds that differ by channel, codes that change their type.
template <typename K>
inline void requantize_plain(const typename K::X* __restrict x, const int32_t* __restrict requant,
                             typename K::Y* __restrict y) {
    for (int32_t block = 0; block < K::blocks; ++block) {
        for (int32_t column = 0; column < K::width; ++column) {
            const int32_t first = (block * K::width + column) * 8;
            int64_t values[8];
            for (int32_t lane = 0; lane < 8; ++lane) {
                int64_t value = minus(x[first + lane], K::x_zero_point);
                if constexpr (K::minimums != 0) {
                    value = at_least(value, K::minimum[K::minimums == 1 ? 0 : 8 * block + lane]);
                }
                if constexpr (K::maximums != 0) {
                    value = at_most(value, K::maximum[K::maximums == 1 ? 0 : 8 * block + lane]);
                }
                values[lane] = value;
            }
            leave_plain<K>(values, requant, block, column, y + first);
        }
    }
}

template <typename K>
inline void requantize_kernel(const typename K::X* __restrict x, const int32_t* __restrict requant,
                              typename K::Y* __restrict y) {
    if constexpr (K::plain) {
        requantize_plain<K>(x, requant, y);
    } else {
        each_scaled<K::along, K::blocks, K::width, K::finish == Finish::round>(
            requant, [&]<Access A>(int32_t at, const Scale& scale) {
                if constexpr (K::finish == Finish::clamp) {
                    write<A>(y + at, bounded<typename K::O>(read<A>(x + at)));
                } else {
                    write<A>(y + at, leave<K>(within_bounds<K>(centred<K::x_zero_point>(read<A>(x + at))), scale));
                }
            });
    }
    clear_padding<K::channels, K::blocks, K::width>(y);
}

}  // namespace port

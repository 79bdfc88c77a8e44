// Two operands of an elementwise op, one of which may be of one channel or of width 1 and is then broadcast.
//
// K: A, B, Y dtypes; Output O; finish; along; blocks, width, channels; a_zero_point, b_zero_point; a_channels,
// b_channels (1 = broadcast), a_width, b_width (1 = broadcast); constant: which of them is a constant, -1 = none; plain.
#pragma once

#include "requantize.h"

namespace port {

// Rows of a constant operand begin at multiples of 8 elements.
template <Access A>
constexpr Access unheld() {
    return A == Access::aligned ? Access::unaligned : A;
}

// Whether an operand has one channel for all.
template <typename K, int32_t CHANNELS>
constexpr bool spread() {
    return CHANNELS == 1 && K::channels != 1;
}

// Element of an operand of CHANNELS channels and width WIDTH beside lane 0 of a pixel of the output.
template <int32_t CHANNELS, int32_t WIDTH>
inline int32_t place(int32_t block, int32_t column) {
    return ((CHANNELS == 1 ? 0 : block * WIDTH) + (WIDTH == 1 ? 0 : column)) * 8;
}

template <int32_t CHANNELS, int32_t ZERO_POINT, bool SPREAD, Access A, typename T>
inline Values operand(const T* __restrict from) {
    if constexpr (SPREAD && CHANNELS == 1) {
        return aie::broadcast<int32, LANES>(int32_t(from[0]) - ZERO_POINT);
    } else {
        return centred<ZERO_POINT>(read<A>(from));
    }
}

// Calls step<access>(at, values of a, values of b, scale) for all lanes.
template <typename K, typename Step>
inline void each_pair(const typename K::A* __restrict a, const typename K::B* __restrict b,
                      const int32_t* __restrict requant, Step step) {
    constexpr bool rounds = K::finish == Finish::round;
    constexpr bool a_whole = K::a_channels == K::channels && K::a_width == K::width;
    constexpr bool b_whole = K::b_channels == K::channels && K::b_width == K::width;
    if constexpr (a_whole && b_whole) {
        each_scaled<K::along, K::blocks, K::width, rounds>(requant, [&]<Access R>(int32_t at, const Scale& scale) {
            const Values first = operand<K::a_channels, K::a_zero_point, false, K::constant == 0 ? unheld<R>() : R>(a + at);
            const Values second = operand<K::b_channels, K::b_zero_point, false, K::constant == 1 ? unheld<R>() : R>(b + at);
            step.template operator()<R>(at, first, second, scale);
        });
    } else {
        Scale scale;
        if constexpr (rounds) {
            scale = scale_uniform(requant);
        }
        for (int32_t block = 0; block < K::blocks; ++block) {
            if constexpr (rounds && K::along == Along::channel) {
                scale = scale_block(requant, block);
            }
            for (int32_t column = 0; column < K::width; ++column) {
                if constexpr (rounds && K::along == Along::width) {
                    scale = scale_uniform(requant + 2 * column);
                }
                const Values first = operand<K::a_channels, K::a_zero_point, !a_whole, Access::half>(
                    a + place<K::a_channels, K::a_width>(block, column));
                const Values second = operand<K::b_channels, K::b_zero_point, !b_whole, Access::half>(
                    b + place<K::b_channels, K::b_width>(block, column));
                step.template operator()<Access::half>((block * K::width + column) * 8, first, second, scale);
            }
        }
    }
}

// Calls step(first element, block, column, 8 values of a, of b) for all pixels, on 64-bit integers.
template <typename K, typename Step>
inline void each_pair_plain(const typename K::A* __restrict a, const typename K::B* __restrict b, Step step) {
    for (int32_t block = 0; block < K::blocks; ++block) {
        for (int32_t column = 0; column < K::width; ++column) {
            const typename K::A* from_a = a + place<K::a_channels, K::a_width>(block, column);
            const typename K::B* from_b = b + place<K::b_channels, K::b_width>(block, column);
            int64_t first[8], second[8];
            for (int32_t lane = 0; lane < 8; ++lane) {
                first[lane] = minus(from_a[spread<K, K::a_channels>() ? 0 : lane], K::a_zero_point);
                second[lane] = minus(from_b[spread<K, K::b_channels>() ? 0 : lane], K::b_zero_point);
            }
            step((block * K::width + column) * 8, block, column, first, second);
        }
    }
}

}  // namespace port

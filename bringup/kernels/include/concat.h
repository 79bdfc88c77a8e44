// One operand of a concatenation, brought to the output's scale and put into its place.
//
// K of an operand: X, Y dtypes; Output O; finish; x_zero_point; factor (of a value that is exact, else 1); channels, blocks,
// width of the operand; y_width; y_channel, y_column: where it begins; along (nowhere), wraps, plain.
#pragma once

#include "operands.h"

namespace port {

template <typename K, Access A>
inline aie::vector<typename K::Y, LANES> joined(const typename K::X* __restrict x, const Scale& scale) {
    if constexpr (K::finish == Finish::clamp) {
        return bounded<typename K::O>(read<A>(x));
    } else if constexpr (K::finish == Finish::exact) {
        return aie::mul<acc64>(centred<K::x_zero_point>(read<A>(x)), aie::broadcast<int32, LANES>(K::factor))
            .template to_vector<int32>(0);
    } else {
        return finish<typename K::O>(centred<K::x_zero_point>(read<A>(x)), scale);
    }
}

// Lane by lane: where blocks of the operand do not begin at blocks of the output.
template <typename K>
inline void scatter(const typename K::Y* __restrict lanes, typename K::Y* __restrict y, int32_t block, int32_t column) {
    const int32_t left = K::channels - 8 * block, count = left < 8 ? left : 8;
    for (int32_t lane = 0; lane < count; ++lane) {
        const int32_t channel = K::y_channel + 8 * block + lane;
        y[((channel >> 3) * K::y_width + K::y_column + column) * 8 + (channel & 7)] = lanes[lane];
    }
}

template <typename K>
inline void concat_operand(const typename K::X* __restrict x, const int32_t* __restrict requant,
                           typename K::Y* __restrict y) {
    if constexpr (K::plain) {
        for (int32_t block = 0; block < K::blocks; ++block) {
            for (int32_t column = 0; column < K::width; ++column) {
                int64_t values[8];
                alignas(32) typename K::Y lanes[8];
                for (int32_t lane = 0; lane < 8; ++lane) {
                    values[lane] = times(minus(x[(block * K::width + column) * 8 + lane], K::x_zero_point), K::factor);
                }
                leave_plain<K>(values, requant, block, column, lanes);
                scatter<K>(lanes, y, block, column);
            }
        }
    } else {
        Scale scale;
        if constexpr (K::finish == Finish::round) {
            scale = scale_uniform(requant);
        }
        if constexpr (K::y_channel % 8 == 0) {
            for (int32_t block = 0; block < K::blocks; ++block) {
                const typename K::X* from = x + block * K::width * 8;
                typename K::Y* to = y + ((K::y_channel / 8 + block) * K::y_width + K::y_column) * 8;
                each<K::width * 8, Access::unaligned>(
                    [&]<Access A>(int32_t at) { write<A>(to + at, joined<K, A>(from + at, scale)); });
            }
        } else {
            for (int32_t block = 0; block < K::blocks; ++block) {
                for (int32_t column = 0; column < K::width; ++column) {
                    alignas(32) typename K::Y lanes[8];
                    const int32_t at = (block * K::width + column) * 8;
                    write<Access::half>(lanes, joined<K, Access::half>(x + at, scale));
                    scatter<K>(lanes, y, block, column);
                }
            }
        }
    }
}

}  // namespace port

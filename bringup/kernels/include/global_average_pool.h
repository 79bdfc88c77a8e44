// Sums over an image, row by row; the average is rounded by requantize.h.
//
// K: X, Acc dtypes; blocks, width, channels; x_zero_point; narrow: sums of half a row fit 16 bits; plain.
#pragma once

#include "average_pool.h"

namespace port {

// The sum of one block's pixels, 8 lanes in front.
template <typename K>
inline Values row_sum(const typename K::X* __restrict row) {
    using Total = Sum<typename K::X, K::narrow>;
    typename Total::Lanes lanes = Total::empty();
    for (int32_t at = 0; at < K::width * 8 - 8; at += 16) {
        lanes = Total::with(lanes, read<Access::unaligned>(row + at));
    }
    if constexpr (K::width % 2 != 0) {
        lanes = Total::with(lanes, read<Access::half>(row + (K::width - 1) * 8));
    }
    const Values pairs = Total::values(lanes);
    const aie::vector<int32, 8> folded = aie::add(pairs.template extract<8>(0), pairs.template extract<8>(1));
    return aie::sub(aie::concat(folded, folded), aie::broadcast<int32, LANES>(K::x_zero_point * K::width));
}

// Element by element, for sums of 64 bits.
template <typename K>
inline void global_sum_plain(const typename K::X* __restrict x, typename K::Acc* __restrict acc) {
    for (int32_t channel = 0; channel < K::channels; ++channel) {
        const typename K::X* from = x + (channel >> 3) * K::width * 8 + (channel & 7);
        int64_t sum = acc[channel];
        for (int32_t column = 0; column < K::width; ++column) {
            sum = plus(sum, minus(from[8 * column], K::x_zero_point));
        }
        acc[channel] = static_cast<typename K::Acc>(sum);
    }
}

template <typename K>
inline void global_sum_kernel(const typename K::X* __restrict x, typename K::Acc* __restrict acc, int32_t row) {
    if (row == 0) {
        for (int32_t at = 0; at < K::blocks * 8; ++at) {
            acc[at] = 0;
        }
    }
    if constexpr (K::plain) {
        global_sum_plain<K>(x, acc);
    } else {
        constexpr int32_t whole = K::channels / 8, lanes = K::channels % 8;
        for (int32_t block = 0; block < whole; ++block) {
            const aie::vector<int32, 8> sum = row_sum<K>(x + block * K::width * 8).template extract<8>(0);
            aie::store_v(acc + 8 * block, aie::add(aie::load_v<8>(acc + 8 * block), sum));
        }
        if constexpr (lanes != 0) {
            alignas(32) int32_t sum[8];
            aie::store_v(sum, row_sum<K>(x + whole * K::width * 8).template extract<8>(0));
            PORT_UNROLL_FULL
            for (int32_t lane = 0; lane < lanes; ++lane) {
                acc[8 * whole + lane] = static_cast<int32_t>(plus(acc[8 * whole + lane], sum[lane]));
            }
        }
    }
}

}  // namespace port

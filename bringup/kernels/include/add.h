// The sum of two objects, rounded once.
//
// requant: {multiplier of a, shift, multiplier of b}, with `wide` {.., high of a, high of b}: multiplier = high << room
// | low. K beside what operands.h says: wide, a_room, b_room; a_factor, b_factor: multipliers of a sum that is exact.
#pragma once

#include "operands.h"

namespace port {

template <typename K>
inline void add_kernel(const typename K::A* __restrict a, const typename K::B* __restrict b,
                       const int32_t* __restrict requant, typename K::Y* __restrict y) {
    if constexpr (K::plain) {
        each_pair_plain<K>(a, b, [&](int32_t at, int32_t block, int32_t column, int64_t* first, const int64_t* second) {
            for (int32_t lane = 0; lane < 8; ++lane) {
                first[lane] = plus(times(first[lane], K::a_factor), times(second[lane], K::b_factor));
            }
            leave_plain<K>(first, requant, block, column, y + at);
        });
    } else if constexpr (K::finish == Finish::exact) {
        each_pair<K>(a, b, requant, [&]<Access A>(int32_t at, const Values& first, const Values& second, const Scale&) {
            const Products sum = aie::mac(aie::mul<acc64>(first, aie::broadcast<int32, LANES>(K::a_factor)), second,
                                          aie::broadcast<int32, LANES>(K::b_factor));
            write<A>(y + at, sum.template to_vector<int32>(0));
        });
    } else {
        const Values multiplier = aie::broadcast<int32, LANES>(requant[2]);
        each_pair<K>(
            a, b, requant, [&]<Access A>(int32_t at, const Values& first, const Values& second, const Scale& scale) {
                Products sum = aie::mac(scaled(first, scale), second, multiplier);
                if constexpr (K::wide) {
                    sum = plus_wide<K::a_room>(sum, first, requant[3]);
                    sum = plus_wide<K::b_room>(sum, second, requant[4]);
                }
                write<A>(y + at, finish<typename K::O>(sum, scale));
            });
    }
    clear_padding<K::channels, K::blocks, K::width>(y);
}

}  // namespace port

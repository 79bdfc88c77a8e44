// An object times a constant, rounded once; K as operands.h says.
#pragma once

#include "operands.h"

namespace port {

template <typename K>
inline void mul_kernel(const typename K::A* __restrict x, const typename K::B* __restrict constant,
                       const int32_t* __restrict requant, typename K::Y* __restrict y) {
    if constexpr (K::plain) {
        each_pair_plain<K>(
            x, constant, [&](int32_t at, int32_t block, int32_t column, int64_t* first, const int64_t* second) {
                for (int32_t lane = 0; lane < 8; ++lane) {
                    first[lane] = times(first[lane], second[lane]);
                }
                leave_plain<K>(first, requant, block, column, y + at);
            });
    } else {
        each_pair<K>(
            x, constant, requant,
            [&]<Access A>(int32_t at, const Values& first, const Values& second, const Scale& scale) {
                const Values product = aie::mul<acc64>(first, second).template to_vector<int32>(0);
                write<A>(y + at, leave<K>(product, scale));
            });
    }
    clear_padding<K::channels, K::blocks, K::width>(y);
}

}  // namespace port

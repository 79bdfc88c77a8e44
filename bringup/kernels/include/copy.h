// The same elements, padding included. K: X dtype; elements: a multiple of 8.
#pragma once

#include "elementwise.h"

namespace port {

template <typename K>
inline void copy_kernel(const typename K::X* __restrict x, typename K::X* __restrict y) {
    if constexpr (K::plain) {
        for (int32_t at = 0; at < K::elements; ++at) {
            y[at] = x[at];
        }
    } else {
        each<K::elements, Access::aligned>([&]<Access A>(int32_t at) { write<A>(y + at, read<A>(x + at)); });
    }
}

}  // namespace port

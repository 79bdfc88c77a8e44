// A table with one code for every input code, lowest first; its entries are clamped already.
//
// Why element by element: the parallel lookup of the AIE API reads tables that hold every entry twice, in two banks
// and in an order of its own, and that are made by the person; a plain load does without.
//
// K: X, Y dtypes; blocks, width, channels; lowest: input code of the first entry.
#pragma once

#include "elementwise.h"

namespace port {

template <typename K>
inline void lut_kernel(const typename K::X* __restrict x, const typename K::Y* __restrict table,
                       typename K::Y* __restrict y) {
    PORT_LOOP_AT_LEAST(8)
    for (int32_t at = 0; at < K::blocks * K::width * 8; ++at) {
        y[at] = table[int32_t(x[at]) - K::lowest];
    }
    clear_padding<K::channels, K::blocks, K::width>(y);
}

}  // namespace port

// Numbers for each channel in the raw lane order of a matrix multiplication.
//
// `aie::mmul` documents row-major results for 8 and 16 bits; the order in which 32-bit results come is not documented.
// Nothing here depends on it: whatever the order is, it is the same for every product of one mmul type, and a vector
// that is handed to the constructor is taken in the order in which `to_vector<int32>` gives it. So
//   1. what varies along channels (bias, multiplier, shift) is itself computed by this mmul, as a product whose rows
//      are all the same, and arrives in the order of the sums it is to meet;
//   2. the requantization in between is elementwise;
//   3. the finished 32-bit codes go through the constructor and leave as 8 or 16 bits: row-major.
//
// A packed tile (8 x 8, dtype of the weights) holds a 32-bit number for each of 8 channels as digits of 6 bits in rows
// 0 to 5, lowest first, the last one with the sign where the dtype has one; row 6 holds a shift. Rows 0 and 1, 2 and 3,
// 4 and 5 are put together as low + 64 * high by the left operand, so a number costs three multiplications.
#pragma once

#include "port_finish.h"

namespace port {

template <class M, typename A>
struct Raw {
    static constexpr unsigned ROWS = M::M;
    static constexpr unsigned SIZE = M::size_C;
    static constexpr unsigned HALVES = SIZE / LANES;
    using Lanes = aie::vector<int32, SIZE>;
    using Tile = typename M::vector_B_type;

    // Every row of the result = row `first` of a tile + 64 * the row behind it (second = 64), or the row alone (0).
    static Lanes plane(const Tile& tile, unsigned first, A second) {
        alignas(64) A left[ROWS * 8] = {};
        for (unsigned row = 0; row < ROWS; ++row) {
            left[8 * row + first] = 1;
            left[8 * row + first + 1] = second;
        }
        M product(aie::zeros<typename M::accum_type::value_type, SIZE>());
        product.mac(aie::load_v<ROWS * 8>(left), tile);
        return product.template to_vector<int32>();
    }

    static Lanes number(const Tile& tile) {
        const Lanes low = plane(tile, 0, 64), middle = plane(tile, 2, 64), high = plane(tile, 4, 64);
        if constexpr (typename M::vector_B_type::value_type(-1) < 0) {
            return aie::add(aie::add(low, aie::upshift(middle, 12)), aie::upshift(high, 24));
        } else {
            return aie::add(low, doubled(aie::add(middle, aie::upshift(high, 12)), 12));
        }
    }

    static Lanes shift(const Tile& tile) { return plane(tile, 6, 0); }
};

}  // namespace port

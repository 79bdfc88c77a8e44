// From integers to codes: multiply, shift-round-saturate in the mode of the tile, zero point, clamp, store.
//
// Everything works on 16 lanes in an order that the caller chooses: two pixels of a block of 8 channels, 16 places of a
// vector, or the lanes of an accumulator as they come. Every step is elementwise, so no order is assumed anywhere.
//
//   using Out = port::Output<int8, 3, -128, 127>;            // dtype, zero point, lowest and highest code[, inside]
//   port::Scale scale = port::scale_uniform(requant);        // {multiplier, shift} for all lanes, or
//   port::Scale scale = port::scale_block(requant, block);   // packed (blocks, 2, 8): the block twice (two pixels), or
//   port::Scale scale = port::scale_vector(requant, block);  // packed (blocks, 2, 8): this block and the next one
//   aie::vector<int8, 16> codes = port::finish<Out>(values, scale);    // int32 values * multipliers, or
//   aie::vector<int8, 16> codes = port::finish<Out>(products, scale);  // acc64 products that are multiplied already
//   port::store(out, codes);                                 // 16 elements, no alignment asked for
//   port::store8(out, codes);                                // the first 8
//
// Requant arrays hold int32 and are packed by `bringup.kernels.finish`: shifts are 0..59 (what the shift-round-saturate
// unit takes), multipliers within int32; pairs beyond that are rewritten there into pairs with the same result.
//
// Steps, as in the manifest's target arithmetic:
//   1. products = values * multiplier                          64 bits, exact
//   2. [inside] products += zero point << shift                64 bits, exact
//   3. r = shift-round-saturate(products, shift) to int32      rounding and saturation of the tile
//   4. r += zero point (unless inside)                         64 bits, exact
//   5. code = saturate(r)                                      saturation of the tile
//   6. clamp to LOW..HIGH
// Step 3 leaves what 32 bits hold; zero points are at most 16 bits, so step 5 gives what one saturation would: beyond
// 32 bits is beyond the code on the same side, and without saturation the low bits are kept both times.
//
// Shifts that differ between lanes: one shift-round-saturate for each shift from the lowest to the highest, lanes
// picked by comparing their shift; a channel-wise quantised layer spans a few.
#pragma once

#include <aie_api/aie.hpp>

#include <cstdint>
#include <cstring>

#include "port_loops.h"

namespace port {

constexpr unsigned LANES = 16;
using Values = aie::vector<int32, LANES>;
using Products = aie::accum<acc64, LANES>;

template <typename T, int32_t ZERO_POINT, int32_t LOW, int32_t HIGH, bool INSIDE = false>
struct Output {
    using type = T;
    static constexpr int32_t zero_point = ZERO_POINT;
    static constexpr int32_t low = LOW;
    static constexpr int32_t high = HIGH;
    static constexpr bool inside = INSIDE;
};

struct Scale {
    Values multiplier;
    Values shift;
    int32_t lowest;   // shift of any lane
    int32_t highest;  // likewise
};

inline Scale scale_of(const Values& multiplier, const Values& shift) {
    return {multiplier, shift, aie::reduce_min(shift), aie::reduce_max(shift)};
}

inline Scale scale_uniform(const int32_t* __restrict pair) {
    return {aie::broadcast<int32, LANES>(pair[0]), aie::broadcast<int32, LANES>(pair[1]), pair[1], pair[1]};
}

inline Scale scale_block(const int32_t* __restrict packed, unsigned block) {
    const int32_t* at = packed + 16 * block;
    const aie::vector<int32, 8> multiplier = aie::load_v<8>(at), shift = aie::load_v<8>(at + 8);
    return scale_of(aie::concat(multiplier, multiplier), aie::concat(shift, shift));
}

inline Scale scale_vector(const int32_t* __restrict packed, unsigned block) {
    const int32_t* from = packed + 16 * block;
    return scale_of(aie::concat(aie::load_v<8>(from), aie::load_v<8>(from + 16)),
                    aie::concat(aie::load_v<8>(from + 8), aie::load_v<8>(from + 24)));
}

inline Products scaled(const Values& values, const Scale& scale) {
    return aie::mul<acc64>(values, scale.multiplier);
}

// values * 2**times modulo 2**32; why not `aie::upshift`: it saturates where the tile does.
template <unsigned N>
inline aie::vector<int32, N> doubled(const aie::vector<int32, N>& values, int32_t times) {
    aie::vector<int32, N> all = values;
    for (int32_t i = 0; i < times; ++i) {
        all = aie::add(all, all);
    }
    return all;
}

inline Products constant(int32_t value, int32_t shift) {
    Products all;
    all.from_vector(aie::broadcast<int32, LANES>(value), shift);
    return all;
}

template <typename O>
inline Values rounded(const Products& products, int32_t shift) {
    if constexpr (O::inside && O::zero_point != 0) {
        return aie::add(products, constant(O::zero_point, shift)).template to_vector<int32>(shift);
    } else {
        return products.template to_vector<int32>(shift);
    }
}

template <typename O>
inline Values rounded(const Products& products, const Scale& scale) {
    Values all = rounded<O>(products, scale.lowest);
    for (int32_t shift = scale.lowest + 1; shift <= scale.highest; ++shift) {
        all = aie::select(all, rounded<O>(products, shift), aie::eq(scale.shift, shift));
    }
    return all;
}

// Step 6, on any number of lanes.
template <typename O, unsigned N>
inline aie::vector<typename O::type, N> bounded(const aie::vector<typename O::type, N>& codes) {
    using T = typename O::type;
    constexpr bool is_signed = T(-1) < T(0);
    constexpr int32_t bits = 8 * sizeof(T);
    constexpr int32_t least = is_signed ? -(1 << (bits - 1)) : 0;
    constexpr int32_t most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    aie::vector<T, N> all = codes;
    if constexpr (O::low > least) {
        all = aie::max(all, aie::broadcast<T, N>(T(O::low)));
    }
    if constexpr (O::high < most) {
        all = aie::min(all, aie::broadcast<T, N>(T(O::high)));
    }
    return all;
}

// Step 4; what does not fit 32 bits stays at their end.
template <typename O>
inline Values displaced(const Values& values) {
    constexpr int32_t zero_point = O::inside ? 0 : O::zero_point;
    if constexpr (zero_point == 0) {
        return values;
    } else {
        Products moved;
        moved.from_vector(values, 0);
        return aie::add(moved, constant(zero_point, 0)).template to_vector<int32>(0);
    }
}

// Steps 4 to 6.
template <typename O>
inline aie::vector<typename O::type, LANES> codes(const Values& values) {
    using T = typename O::type;
    static_assert(sizeof(T) <= 2, "codes of 8 or 16 bits");
    aie::accum<acc32, LANES> moved;
    moved.from_vector(displaced<O>(values), 0);
    return bounded<O>(moved.template to_vector<T>(0));
}

template <typename O>
inline aie::vector<typename O::type, LANES> finish(const Products& products, const Scale& scale) {
    return codes<O>(rounded<O>(products, scale));
}

template <typename O>
inline aie::vector<typename O::type, LANES> finish(const Values& values, const Scale& scale) {
    return finish<O>(scaled(values, scale), scale);
}

template <typename T>
inline void store(T* __restrict out, const aie::vector<T, LANES>& codes) {
    aie::store_unaligned_v(out, codes);
}

// Why by way of memory: a vector has at least 128 bits, eight 8-bit codes are half of that.
template <typename T>
inline void store8(T* __restrict out, const aie::vector<T, LANES>& codes) {
    alignas(64) T all[LANES];
    aie::store_v(all, codes);
    std::memcpy(out, all, 8 * sizeof(T));
}

}  // namespace port

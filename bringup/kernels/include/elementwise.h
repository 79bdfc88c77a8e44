// What kernels over single elements share: lanes of an object, conversions of 16 lanes, padding.
//
// An object is (blocks, width, 8): channels in blocks of 8 that stay together, a vector is an object of width 1. A
// kernel walks over it in steps of 16 lanes; 8 lanes that are left over go through memory beside 8 zeros.
//
// Every kernel is a template over a struct `K` of its figures; `port::Output` and `port::Scale` are in port_finish.h.
#pragma once

#include "port_finish.h"

namespace port {

// How 16 lanes are read and written: at multiples of their size, at multiples of 8 elements, or 8 of them.
enum class Access { aligned, unaligned, half };

// `round`: through multiplier and shift; `clamp`: codes pass, clamped; `exact`: integers leave as they are.
enum class Finish { round, clamp, exact };

// Where multipliers differ inside an object.
enum class Along { nowhere, channel, width };

// Why not always aligned: vectors of more than 32 bytes ask for more than an object's 32 on some architectures.
template <Access A, typename T>
inline aie::vector<T, LANES> read(const T* __restrict from) {
    if constexpr (A == Access::half) {
        alignas(32) T lanes[LANES] = {};
        std::memcpy(lanes, from, 8 * sizeof(T));
        return aie::load_unaligned_v<LANES>(lanes, 8);
    } else if constexpr (A == Access::aligned && sizeof(T) <= 2) {
        return aie::load_v<LANES>(from);
    } else {
        return aie::load_unaligned_v<LANES>(from, 8);
    }
}

template <Access A, typename T>
inline void write(T* __restrict to, const aie::vector<T, LANES>& lanes) {
    if constexpr (A == Access::half) {
        alignas(32) T all[LANES];
        aie::store_unaligned_v(all, lanes, 8);
        std::memcpy(to, all, 8 * sizeof(T));
    } else if constexpr (A == Access::aligned && sizeof(T) <= 2) {
        aie::store_v(to, lanes);
    } else {
        aie::store_unaligned_v(to, lanes, 8);
    }
}

// Calls step<access>(at) for every 16 of TOTAL elements, and once for the 8 that may be left over.
template <int32_t TOTAL, Access A, typename Step>
inline void each(Step step) {
    static_assert(TOTAL % 8 == 0);
    for (int32_t at = 0; at < TOTAL - 8; at += 16) {
        step.template operator()<A>(at);
    }
    if constexpr (TOTAL % 16 != 0) {
        step.template operator()<Access::half>(TOTAL - 8);
    }
}

// 16 lanes as 32-bit integers. Why by way of an accumulator: vectors unpack to twice their width and no further.
template <typename T>
inline Values widened(const aie::vector<T, LANES>& lanes) {
    if constexpr (sizeof(T) == 4) {
        return lanes;
    } else {
        Products wide;
        wide.from_vector(lanes, 0);
        return wide.template to_vector<int32>(0);
    }
}

template <int32_t ZERO_POINT, typename T>
inline Values centred(const aie::vector<T, LANES>& lanes) {
    if constexpr (ZERO_POINT == 0) {
        return widened(lanes);
    } else {
        return aie::sub(widened(lanes), aie::broadcast<int32, LANES>(ZERO_POINT));
    }
}

// Integers within LOW..HIGH of `O` as codes, whatever mode the tile is in.
template <typename O>
inline aie::vector<typename O::type, LANES> clipped(const Values& values) {
    using Plain = Output<typename O::type, 0, O::low, O::high>;
    const Values above = aie::max(values, aie::broadcast<int32, LANES>(O::low));
    return codes<Plain>(aie::min(above, aie::broadcast<int32, LANES>(O::high)));
}

// Products of multipliers beyond 32 bits: multiplier = high << ROOM | low, and values << ROOM stay within 32 bits.
template <int32_t ROOM>
inline Products plus_wide(const Products& products, const Values& values, int32_t high) {
    const Values moved = aie::mul<acc64>(values, aie::broadcast<int32, LANES>(int32_t(1) << ROOM)).template to_vector<int32>(0);
    return aie::mac(products, moved, aie::broadcast<int32, LANES>(high));
}

// Calls step<access>(at, scale) for all lanes of (BLOCKS, WIDTH, 8), as many at once as share a scale. Multipliers and
// shifts are packed {multiplier, shift} where they are the same everywhere, {multiplier, shift} for every place of the
// width, or (blocks, 2, 8).
template <Along ALONG, int32_t BLOCKS, int32_t WIDTH, bool ROUNDS, typename Step>
inline void each_scaled(const int32_t* __restrict requant, Step step) {
    if constexpr (!ROUNDS || ALONG == Along::nowhere) {
        Scale scale;
        if constexpr (ROUNDS) {
            scale = scale_uniform(requant);
        }
        each<BLOCKS * WIDTH * 8, Access::aligned>([&]<Access A>(int32_t at) { step.template operator()<A>(at, scale); });
    } else if constexpr (ALONG == Along::channel) {
        for (int32_t block = 0; block < BLOCKS; ++block) {
            const Scale scale = scale_block(requant, block);
            const int32_t first = block * WIDTH * 8;
            each<WIDTH * 8, Access::unaligned>(
                [&]<Access A>(int32_t at) { step.template operator()<A>(first + at, scale); });
        }
    } else {
        for (int32_t column = 0; column < WIDTH; ++column) {
            const Scale scale = scale_uniform(requant + 2 * column);
            for (int32_t block = 0; block < BLOCKS; ++block) {
                step.template operator()<Access::half>((block * WIDTH + column) * 8, scale);
            }
        }
    }
}

// Lanes of an object that hold no channel become 0.
template <int32_t CHANNELS, int32_t BLOCKS, int32_t WIDTH, typename T>
inline void clear_padding(T* __restrict out) {
    constexpr int32_t whole = (CHANNELS + 7) >> 3, lanes = CHANNELS & 7;
    if constexpr (lanes != 0) {
        T* last = out + (whole - 1) * WIDTH * 8;
        for (int32_t column = 0; column < WIDTH; ++column) {
            PORT_UNROLL_FULL
            for (int32_t lane = lanes; lane < 8; ++lane) {
                last[8 * column + lane] = 0;
            }
        }
    }
    for (int32_t at = whole * WIDTH * 8; at < BLOCKS * WIDTH * 8; ++at) {
        out[at] = 0;
    }
}

// a + b, a - b and a * b modulo 2**64.
inline int64_t plus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t minus(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t times(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

inline int64_t at_least(int64_t value, int64_t low) { return value < low ? low : value; }
inline int64_t at_most(int64_t value, int64_t high) { return value > high ? high : value; }

}  // namespace port

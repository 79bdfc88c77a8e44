// Vectors times a constant matrix: 16 output channels at a time, one k after the other.
//
// A configuration C says at compile time what `port_lanes.h` lists, and
//   X, W              elements of the vector (or row) and of the weights, as planned
//   IN_FIRST, IN_COUNT   first k that is read, and how many (Gemm)
//   IN_WIDTH, IN_CHANNELS   of a row (GemmRows)
//   CHUNK             output channels that the weights hold
//   X_ZERO, SPLITS    zero point; codes without it take more than 16 bits
//   W_ZEROS           zero points of the weights, one for all channels or one for each
// Packed weights: (blocks of 16 channels, K, 16); GemmRows (H, blocks of 16 channels, IN_WIDTH, IN_CHANNELS, 16).
// Accumulators in memory: blocks of 16.
#pragma once

#include "port_lanes.h"

namespace port {

template <class C>
struct Columns {
    using W = typename C::W;
    using Short = aie::vector<int16, LANES>;

    Short points;

    explicit Columns(unsigned first) {
        alignas(64) int16_t all[LANES];
        for (unsigned i = 0; i < LANES; ++i) {
            all[i] = int16_t(of_channel(C::W_ZEROS, first + i));
        }
        points = aie::load_v<LANES>(all);
    }

    Short at(const W* __restrict weights) const {
        const Short all = columns16(weights);
        return any(C::W_ZEROS) ? Short(aie::sub(all, points)) : all;
    }
};

template <class C>
struct Gemm {
    using X = typename C::X;
    using W = typename C::W;
    using T = typename C::Out::type;

    static Sums<C::BITS> sums(const X* __restrict x, const W* __restrict weights, const Columns<C>& columns) {
        Sums<C::BITS> all = aie::zeros<typename Sums<C::BITS>::value_type, LANES>();
        PORT_LOOP_AT_LEAST(1)
        for (int32_t k = 0; k < C::IN_COUNT; ++k) {
            multiply<C::SPLITS>(all, columns.at(weights + LANES * k), int32_t(x[C::IN_FIRST + k]) - C::X_ZERO);
        }
        return all;
    }

    static void run(const X* __restrict x, const W* __restrict weights, const BiasOf<C::BITS>* __restrict bias,
                    const int32_t* __restrict requant, T* __restrict out, int32_t offset) {
        constexpr unsigned rounded = (C::CHANNELS + 7) & ~7u;
        const unsigned chunk = unsigned(offset) + ((C::CHUNK + 7) & ~7u);
        const unsigned end = chunk < rounded ? chunk : rounded;
        for (unsigned first = unsigned(offset); first < end; first += LANES) {
            const Place place = {first, false};
            const Columns<C> columns(first);
            const Sums<C::BITS> all = sums(x, weights, columns);
            const Tail<C, C::BITS> tail(place, bias, requant);
            const unsigned elements = end - first < LANES ? end - first : LANES;
            write<C>(tail, all, C::CASCADE_OUT ? nullptr : out + first, place, elements);
            weights += LANES * C::IN_COUNT;
        }
    }
};

template <class C>
struct GemmRows {
    using X = typename C::X;
    using W = typename C::W;

    static void run(const X* __restrict row, const W* __restrict weights, BiasOf<C::BITS>* __restrict acc, int32_t at) {
        constexpr int32_t blocks = (C::CHANNELS + 15) / 16;
        weights += int32_t(LANES) * blocks * C::IN_WIDTH * C::IN_CHANNELS * at;
        for (int32_t block = 0; block < blocks; ++block) {
            const Columns<C> columns(LANES * unsigned(block));
            Sums<C::BITS> all = aie::zeros<typename Sums<C::BITS>::value_type, LANES>();
            if (at != 0) {
                all = sums_at(acc + int32_t(LANES) * block);
            }
            for (int32_t pixel = 0; pixel < C::IN_WIDTH; ++pixel) {
                PORT_LOOP_AT_LEAST(1)
                for (int32_t channel = 0; channel < C::IN_CHANNELS; ++channel) {
                    const int32_t code = row[8 * ((channel >> 3) * C::IN_WIDTH + pixel) + (channel & 7)];
                    multiply<C::SPLITS>(all, columns.at(weights), code - C::X_ZERO);
                    weights += LANES;
                }
            }
            keep(acc + int32_t(LANES) * block, all);
        }
    }
};

template <class C>
struct GemmFinish {
    using T = typename C::Out::type;

    static void run(const BiasOf<C::BITS>* __restrict acc, const BiasOf<C::BITS>* __restrict bias,
                    const int32_t* __restrict requant, T* __restrict out) {
        constexpr unsigned rounded = (C::CHANNELS + 7) & ~7u;
        for (unsigned first = 0; first < rounded; first += LANES) {
            const Place place = {first, false};
            const Tail<C, C::BITS> tail(place, bias, requant);
            const unsigned elements = rounded - first < LANES ? rounded - first : LANES;
            write<C>(tail, sums_at(acc + first), out + first, place, elements);
        }
    }
};

}  // namespace port
